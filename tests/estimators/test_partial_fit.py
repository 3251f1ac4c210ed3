"""Fitting batches equals one fit on all rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspar import SpARRegressor, SparWarning


def assert_same_fit(streamed, whole, rtol=1e-10):
    # Relative to the largest weight: 300 rows of condition number 1e2 through other sums.
    np.testing.assert_allclose(streamed.coef_, whole.coef_, atol=rtol * np.abs(whole.coef_).max(), rtol=0)
    np.testing.assert_allclose(streamed.intercept_, whole.intercept_, atol=rtol * np.abs(whole.coef_).max(), rtol=rtol)
    assert streamed.rank_ == whole.rank_
    assert streamed.moments_.rows == whole.moments_.rows


@given(
    seed=st.integers(0, 1000),
    cuts=st.lists(st.integers(1, 299), unique=True, max_size=15),
    outputs=st.sampled_from([None, 1, 2]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_random_batches_equal_one_fit(shifts, seed, cuts, outputs, fit_intercept, weighted):
    data = shifts(seed, outputs=outputs, offset=1.0)
    weight = np.random.default_rng(seed).uniform(0.1, 2.0, size=300) if weighted else None
    whole = SpARRegressor(fit_intercept=fit_intercept).fit(data.X, data.y, weight)
    streamed = SpARRegressor(fit_intercept=fit_intercept)
    for rows in np.split(np.arange(300), sorted(cuts)):
        streamed.partial_fit(data.X[rows], data.y[rows], None if weight is None else weight[rows])
    assert_same_fit(streamed, whole)
    np.testing.assert_allclose(streamed.sigma2_, whole.sigma2_, rtol=1e-10)
    whole.adapt(data.Z)
    streamed.adapt(data.Z)
    assert (whole.adaptation_.removed == streamed.adaptation_.removed).all()
    np.testing.assert_allclose(streamed.predict(data.Z), whole.predict(data.Z), rtol=1e-8, atol=1e-8)


def test_hundreds_of_float32_batches_lose_no_accuracy(rng):
    X = (rng.normal(size=(1_200, 6)) * np.geomspace(1.0, 1e-2, 6) + 10.0).astype(np.float32)
    y = X.astype(np.float64) @ rng.normal(size=6) + 0.1 * rng.normal(size=1_200)
    whole = SpARRegressor().fit(X, y)
    streamed = SpARRegressor()
    for rows in np.array_split(np.arange(1_200), 600):
        streamed.partial_fit(X[rows], y[rows])
    wide = X.astype(np.float64)
    reference = np.linalg.lstsq(wide - wide.mean(axis=0), y - y.mean(), rcond=None)[0]
    # Six hundred merges in float64, each within 1e-16 of means that are 1e3 spreads away; float32 sums would have
    # lost all but two digits here.
    for est in (whole, streamed):
        np.testing.assert_allclose(est.coef_, reference, rtol=1e-8)
    assert_same_fit(streamed, whole)
    assert (streamed.moments_.eps == np.finfo(np.float32).eps).all()


def test_a_batch_discards_an_earlier_adaptation(shift):
    est = SpARRegressor().partial_fit(shift.X[:200], shift.y[:200]).adapt(shift.Z)
    est.partial_fit(shift.X[200:], shift.y[200:])
    assert not hasattr(est, "adaptation_")
    assert_same_fit(est, SpARRegressor().fit(shift.X, shift.y))


def test_adaptation_between_batches_warns_if_there_are_few_rows(rng):
    est = SpARRegressor().partial_fit(rng.normal(size=(2, 5)), rng.normal(size=2))  # no warning: more will come
    with pytest.warns(SparWarning, match="estimated as zero"):
        est.adapt(rng.normal(size=(5, 5)))


def test_a_further_batch_without_weight_changes_nothing(shift):
    est = SpARRegressor().partial_fit(shift.X, shift.y).adapt(shift.Z)
    state = dict(est.__dict__)
    none = np.zeros(300)
    est.partial_fit(np.where(shift.X > 2.0, np.nan, shift.X), shift.y, sample_weight=none)
    assert est.__dict__.keys() == state.keys()
    assert all(est.__dict__[name] is value for name, value in state.items())
    with pytest.raises(ValueError, match="3 features"):
        est.partial_fit(shift.X[:, :3], shift.y, sample_weight=none)
    with pytest.raises(ValueError, match="all zero"):
        SpARRegressor().partial_fit(shift.X, shift.y, sample_weight=none)


@pytest.mark.parametrize("weights", [np.zeros(5), None])
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"X": np.ones(5)}, "2D"),
        ({"X": np.full((5, 5), "a")}, "text"),
        ({"y": None}, "requires y"),
        ({"y": np.ones((4, 2))}, "5, 4"),
        ({"y": np.ones(5)}, r"2 dimension.*got shape \(5,\)"),
        ({"y": np.ones((5, 3))}, r"2 output.*got shape \(5, 3\)"),
        ({"sample_weight": np.zeros((5, 1))}, r"\(5, 1\)"),
        ({"sample_weight": 0}, r"\(5,\)"),
    ],
)
def test_a_further_batch_is_checked_also_without_weight(shifts, weights, changed, words):
    data = shifts(0, outputs=2)
    est = SpARRegressor().partial_fit(data.X, data.y)
    state = dict(est.__dict__)
    batch = {"X": data.X[:5], "y": data.y[:5], "sample_weight": weights}
    with pytest.raises(ValueError, match=words):
        est.partial_fit(**(batch | changed))
    assert est.__dict__ == state
