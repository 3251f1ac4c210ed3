"""Dates and extreme weights are refused for every kind of input, and a refused input changes nothing."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from pyspar import BayesSpARRegressor, SpARRegressor
from pyspar.errors import collect_warnings

N = 120
DAYS = np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(1, "D")
DURATIONS = DAYS - DAYS[0]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(N, 2))
    return X, X @ [1.0, 2.0] + rng.normal(size=N)


def tables_with(times, numbers):
    """Return tables of dates or durations, with and without a column of numbers."""
    frame = pd.DataFrame({"when": times, "size": numbers})
    return {
        "an array": np.column_stack([times, times]),
        "a list": [[time, time] for time in times],
        "a frame": pd.DataFrame({"when": times, "then": times}),
        "a frame with numbers": frame,
        "polars": pl.DataFrame({"when": times, "size": numbers}),
        "arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
    }


@pytest.mark.parametrize("times", [DAYS, DURATIONS], ids=["dates", "durations"])
@pytest.mark.parametrize("kind", list(tables_with(DAYS, np.zeros(N))))
def test_dates_and_durations_among_features_are_refused(rows, times, kind):
    X, y = rows
    table = tables_with(times, X[:, 0])[kind]
    est = SpARRegressor().fit(X, y)
    before = est.coef_.copy()
    for call in (lambda: SpARRegressor().fit(table, y), lambda: est.fit(table, y), lambda: est.predict(table)):
        with pytest.raises(TypeError, match=r"^X (?=.*dates)"):
            call()
    if hasattr(table, "columns"):
        with pytest.raises(TypeError, match="'when'"):
            SpARRegressor().fit(table, y)
    else:
        with pytest.raises(TypeError, match=r"(?=.*target)(?=.*dates)"):
            est.adapt(table)
    np.testing.assert_array_equal(est.coef_, before)


@pytest.mark.parametrize("times", [DAYS, DURATIONS], ids=["dates", "durations"])
def test_dates_among_labels_are_refused_in_rows_and_in_batches(rows, times):
    X, _ = rows
    for y in (times, pd.Series(times), list(times), pd.DataFrame({"a": times})):
        with pytest.raises(TypeError, match=r"(?=.*\by\b)(?=.*dates)"):
            BayesSpARRegressor().fit(X, y)
    with pytest.raises(TypeError, match=r"batch 1: (?=.*\by\b)(?=.*dates)"):
        SpARRegressor().fit([(X, X[:, 0]), (X, times)])
    with pytest.raises(TypeError, match=r"batch 0: (?=.*\bX\b)(?=.*dates)"):
        SpARRegressor().fit([(times[:, None], X[:, 0])])


def dask_rows(X, y, weight):
    da = pytest.importorskip("dask.array")
    return tuple(da.from_array(part, chunks=(N, *part.shape[1:])) for part in (X, y, weight))


def torch_rows(X, y, weight):
    torch = pytest.importorskip("torch")
    return tuple(map(torch.as_tensor, (X, y, weight)))


FORMS = {
    "array": lambda *parts: parts,
    "sparse": lambda X, y, weight: (csr_array(X), y, weight),
    "dask": dask_rows,
    "torch": torch_rows,
}


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("form", list(FORMS))
def test_weights_whose_squares_overflow_or_underflow_are_refused(rows, form, size):
    X, y, weight = FORMS[form](*rows, np.full(N, size))
    est = BayesSpARRegressor().fit(*rows)
    words = rf"(?=.*sample_weight)(?=.*{re.escape(f'{size:g}')})"
    with pytest.raises(ValueError, match=words):
        BayesSpARRegressor().fit(X, y, weight)
    with pytest.raises(ValueError, match=words):
        est.adapt(X, sample_weight=weight)
    if form != "dask" and size > 1.0:  # tiny weights among others are accepted
        with pytest.raises(ValueError, match=f"batch 1: {words}"):
            SpARRegressor().fit([(X, y, weight / size), (X, y, weight)])


@pytest.mark.parametrize("size", [1e-149, 1e149])
def test_weights_within_the_limits_are_accepted_also_with_tiny_ones_among_them(rows, size):
    X, y = rows
    weight = np.linspace(0.1, 1.0, N)
    with collect_warnings():
        scaled, expected = (SpARRegressor().fit(X, y, w) for w in (weight * size, weight))
    np.testing.assert_allclose(scaled.coef_, expected.coef_, rtol=1e-12)  # the scale of the weights cancels
    mixed = np.where(np.arange(N) < 60, 1.0, 1e-300)
    np.testing.assert_allclose(SpARRegressor().fit(X, y, mixed).coef_, SpARRegressor().fit(X[:60], y[:60]).coef_)
