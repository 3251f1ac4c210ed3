"""The input of Moments: accepted types, unchanged arrays, and errors for invalid rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pyspar.core.moments import measured_eps
from pyspar.theory import Moments


@pytest.fixture
def table(rng):
    X = np.round(rng.normal(size=(60, 4)) * 8)  # whole numbers: every dtype below holds them exactly
    Y = np.round(rng.normal(size=(60, 2)) * 8)
    return X, Y


def forms(X):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    wide[::2, ::3] = X
    read_only = X.copy()
    read_only.setflags(write=False)
    return {
        "read-only": read_only,
        "Fortran order": np.asfortranarray(X),
        "a slice of every other row and third column": wide[::2, ::3],
        "backwards": X[::-1].copy()[::-1],
        "float32": X.astype(np.float32),
        "float16": X.astype(np.float16),
        "long double": X.astype(np.longdouble),
        "big-endian": X.astype(">f8"),
        "big-endian float32": X.astype(">f4"),
        "int64": X.astype(np.int64),
        "int8": X.astype(np.int8),
        "a list of lists": X.tolist(),
        "pandas": pd.DataFrame(X),
        "pandas of mixed types": pd.DataFrame(X).astype({0: np.int32, 1: np.float32}),
        "pandas of nullable types": pd.DataFrame(X).astype("Float64"),
        "polars": pl.DataFrame(X),
        "objects": X.astype(object),
    }


@pytest.mark.parametrize("form", list(forms(np.zeros((2, 2)))))
def test_every_form_of_the_same_rows_has_the_same_moments(table, form):
    X, Y = table
    ours = Moments.of(forms(X)[form], forms(Y)[form])
    A = np.column_stack([np.ones(60), X, Y])
    np.testing.assert_allclose(ours.root.T @ ours.root, A.T @ A, rtol=1e-12, atol=1e-10)  # rounding of 60 terms
    assert (ours.n_features, ours.n_outputs, ours.rows) == (4, 2, 60)


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (np.zeros((2, 2), np.float64), np.float64),
        (np.zeros((2, 2), np.float32), np.float32),
        (np.zeros((2, 2), ">f4"), np.float32),
        (np.zeros((2, 2), np.float16), np.float16),
        (np.zeros((2, 2), np.int32), np.float64),
        ([[1.0, 2.0]], np.float64),
        (pd.DataFrame({"a": np.zeros(2, int)}), np.float64),
        (pd.DataFrame({"a": pd.array([0.0, 1.0], dtype="Float32")}), np.float32),
        (pd.DataFrame({"a": pd.array([0.0, 1.0], dtype="float32[pyarrow]")}), np.float32),
        (pd.DataFrame({"a": pd.array([0.0, 1.0], dtype="float64[pyarrow]")}), np.float64),
        (pl.DataFrame({"a": np.zeros(2)}), np.float64),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, type) else value.__name__,
)
def test_the_precision_is_that_of_the_dtype(form, kind):
    assert np.all(measured_eps(form) == np.finfo(kind).eps)
    assert np.all(Moments.of(form).eps == np.finfo(kind).eps)


def test_the_precision_can_be_set_if_it_is_coarser_than_the_dtype(table):
    assert (Moments.of(table[0], eps=2**-7).eps == 2**-7).all()
    for bad in (-1.0, 0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="eps"):
            Moments.of(table[0], eps=bad)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [60, 5])
def test_the_error_for_a_value_that_is_not_finite_states_its_row_and_column(table, value, rows):
    X, Y = (part[:rows] for part in table)
    bad = X.copy()
    bad[3, 2] = value
    with pytest.raises(ValueError, match=r"X .*-?(nan|inf) in row 3, column 2 \(.*: 1\)"):
        Moments.of(bad, Y)
    bad = Y.copy()
    bad[4, 1] = value
    with pytest.raises(ValueError, match=r"Y .*-?(nan|inf) in row 4, column 1"):
        Moments.of(X, bad)


def test_values_whose_sums_overflow_float64_raise():
    X = np.full((10, 2), 1.5e308)
    X[::2] *= -1
    X[:3, 1] *= -1
    with pytest.raises(ValueError, match="overflow"):
        Moments.of(X)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.zeros(5), None, r"X .*shape \(5,\)"),
        (np.zeros((2, 2, 2)), None, r"shape \(2, 2, 2\)"),
        (np.float64(3.0), None, r"shape \(\)"),
        (np.zeros((0, 3)), None, r"shape \(0, 3\)"),
        (np.zeros((3, 0)), None, r"shape \(3, 0\)"),
        (np.zeros((3, 2), complex), None, "X .*complex128"),
        (np.zeros((3, 2)), np.zeros(3, complex), "Y .*complex128"),
        (np.zeros((3, 2)), np.zeros(4), "rows.* 3 and 4"),
        (np.zeros((3, 2)), np.zeros((3, 1, 1)), r"Y .*shape \(3, 1, 1\)"),
        ([["a", "b"]], None, "could not convert string"),
    ],
)
def test_rows_that_are_not_a_table_of_numbers_raise(X, Y, message):
    with pytest.raises(ValueError, match=message):
        Moments.of(X, Y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1e-9, 1.0], "at least 0"),
        ([1.0, np.nan, 1.0], "finite"),
        ([1.0, np.inf, 1.0], "finite"),
        ([0.0, 0.0, 0.0], "not all zero"),
        ([1.0, 1.0], r"sample_weight.*\(3,\).* \(2,\)"),
        ([[1.0], [1.0], [1.0]], r"sample_weight.*\(3,\).* \(3, 1\)"),
        (2.0, r"sample_weight.*\(3,\).* \(\)"),
    ],
)
def test_invalid_weights_raise(weight, message):
    with pytest.raises(ValueError, match=message):
        Moments.of(np.eye(3), None, weight)


def test_moments_of_other_columns_cannot_be_added():
    with pytest.raises(ValueError, match="3 features and 1 outputs, plus 3 and 0"):
        Moments.of(np.eye(3), np.ones(3)) + Moments.of(np.eye(3))
    with pytest.raises(ValueError, match="2 features and 1 outputs, plus 1 and 2"):
        Moments.of(np.eye(2), np.ones(2)) + Moments.of(np.ones((2, 1)), np.eye(2))  # as wide, but not the same
    with pytest.raises(TypeError):
        Moments.of(np.eye(3)) + 1
