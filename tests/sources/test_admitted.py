"""Dates are no numbers and extreme weights are no weights, whichever way they come; what is refused changes nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from pyspar import BayesSpARRegressor, SpARRegressor, inspect

N = 120
DAYS = np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(1, "D")
LENGTHS = DAYS - DAYS[0]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(N, 2))
    return X, X @ [1.0, 2.0] + rng.normal(size=N)


def made_of(times, other):
    """Tables that hold dates or durations, alone and beside numbers."""
    frame = pd.DataFrame({"when": times, "size": other})
    return {
        "an array": np.column_stack([times, times]),
        "a list": [[time, time] for time in times],
        "a frame of nothing else": pd.DataFrame({"when": times, "then": times}),
        "a frame with numbers": frame,
        "polars": pl.DataFrame({"when": times, "size": other}),
        "arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
    }


@pytest.mark.parametrize("times", [DAYS, LENGTHS], ids=["dates", "durations"])
@pytest.mark.parametrize("kind", list(made_of(DAYS, np.zeros(N))))
def test_dates_and_durations_among_features_are_refused_with_a_cure(rows, times, kind):
    X, y = rows
    table = made_of(times, X[:, 0])[kind]
    est = SpARRegressor().fit(X, y)
    before = est.coef_.copy()
    for call in (lambda: SpARRegressor().fit(table, y), lambda: est.fit(table, y), lambda: est.predict(table)):
        with pytest.raises(TypeError, match=r"features must hold numbers. Got dates or durations.*turn them into num"):
            call()
    named = ".*'when'" if hasattr(table, "columns") else ""
    with pytest.raises(TypeError, match=f"must hold numbers. Got dates or durations{named}"):
        SpARRegressor().fit(table, y)
    if not hasattr(table, "columns"):
        with pytest.raises(TypeError, match=r"the target must hold numbers. Got dates"):
            est.adapt(table)
    np.testing.assert_array_equal(est.coef_, before)


@pytest.mark.parametrize("times", [DAYS, LENGTHS], ids=["dates", "durations"])
def test_labels_that_are_dates_are_refused_in_rows_and_in_batches(rows, times):
    X, _ = rows
    for y in (times, pd.Series(times), list(times), pd.DataFrame({"a": times})):
        with pytest.raises(TypeError, match=r"y must hold numbers. Got dates or durations"):
            BayesSpARRegressor().fit(X, y)
    with pytest.raises(TypeError, match=r"batch 1: y must hold numbers. Got dates"):
        SpARRegressor().fit_batches([(X, X[:, 0]), (X, times)])
    with pytest.raises(TypeError, match=r"batch 0: X must hold numbers. Got dates"):
        SpARRegressor().fit_batches([(times[:, None], X[:, 0])])


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_labels_that_are_text_are_called_labels(rows, kind):
    with pytest.raises(ValueError, match=r"y must hold numbers. Got text .*convert the labels to numbers first"):
        SpARRegressor().fit(rows[0], kind(["a"] * N))


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
def test_weights_too_extreme_to_be_squared_are_refused(rows, form, size):
    X, y, weight = FORMS[form](*rows, np.full(N, size))
    est = BayesSpARRegressor().fit(*rows)
    told = r"sample_weight must have its largest between 1e-150 and 1e\+150. Got 1e.*divide all weights by the largest"
    with pytest.raises(ValueError, match=told):
        BayesSpARRegressor().fit(X, y, weight)
    with pytest.raises(ValueError, match=told):
        est.adapt(X, sample_weight=weight)
    if form != "dask":
        with pytest.raises(ValueError, match=f"batch 1: {told}"):
            SpARRegressor().fit_batches([(X, y, weight / size), (X, y, weight)])


@pytest.mark.parametrize("size", [1e-149, 1e149])
def test_weights_within_the_limits_are_weights_and_small_ones_beside_large_ones_too(rows, size):
    X, y = rows
    spread = np.linspace(0.1, 1.0, N)
    found, expected = (SpARRegressor(weights="importance").fit(X, y, weight) for weight in (spread * size, spread))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12)  # least squares does not know the size
    mixed = np.where(np.arange(N) < 60, 1.0, 1e-300)
    np.testing.assert_allclose(SpARRegressor().fit(X, y, mixed).coef_, SpARRegressor().fit(X[:60], y[:60]).coef_)
    assert np.isfinite(inspect(found, X, sample_weight=spread * size).outputs[0].forecasts[0].rmse)


def test_weights_that_are_text_are_called_weights(rows):
    with pytest.raises(ValueError, match=r"sample_weight must hold one number for each row. Got what cannot be one"):
        SpARRegressor().fit(*rows, ["a"] * N)
