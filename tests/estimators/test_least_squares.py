"""Without adaptation SpARRegressor equals scikit-learn's LinearRegression."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from pyspar import SpARRegressor, SparWarning

# Two backward-stable solutions of problems with condition numbers up to 1e2.
SAME = {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_an_unadapted_regressor_is_linear_regression(shifts, rng, outputs, fit_intercept, weighted):
    data = shifts(1, outputs=outputs, offset=2.0)
    weight = rng.uniform(0.0, 3.0, size=300) if weighted else None
    ours = SpARRegressor(fit_intercept=fit_intercept).fit(data.X, data.y, sample_weight=weight)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(data.X, data.y, sample_weight=weight)
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_) or not fit_intercept
    np.testing.assert_allclose(ours.coef_, theirs.coef_, **SAME)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, **SAME)
    assert ours.predict(data.Z).shape == theirs.predict(data.Z).shape
    np.testing.assert_allclose(ours.predict(data.Z), theirs.predict(data.Z), **SAME)
    assert ours.score(data.X, data.y) == pytest.approx(theirs.score(data.X, data.y), abs=1e-10)
    assert ours.n_features_in_ == 5


def test_an_underdetermined_regressor_is_linear_regression_too(rng):
    X, y, Z = rng.normal(size=(8, 20)), rng.normal(size=8), rng.normal(size=(5, 20))
    with pytest.warns(SparWarning):
        ours = SpARRegressor().fit(X, y)
    np.testing.assert_allclose(ours.predict(Z), LinearRegression().fit(X, y).predict(Z), **SAME)


@given(seed=st.integers(0, 1000), outputs=st.sampled_from([None, 2]))
def test_sigma2_is_rss_over_n_or_over_what_the_rank_leaves(shifts, seed, outputs):
    data = shifts(seed, n=30, outputs=outputs)
    rss = np.sum((data.y - LinearRegression().fit(data.X, data.y).predict(data.X)) ** 2, axis=0)
    mle, unbiased = (SpARRegressor(noise=noise).fit(data.X, data.y).sigma2_ for noise in ("mle", "unbiased"))
    np.testing.assert_allclose(mle, rss / 30, rtol=1e-10)
    np.testing.assert_allclose(unbiased, rss / (30 - 5 - 1), rtol=1e-10)
    assert isinstance(mle, float) == (outputs is None)
    rss = np.sum((data.y - LinearRegression(fit_intercept=False).fit(data.X, data.y).predict(data.X)) ** 2, axis=0)
    plain = SpARRegressor(noise="unbiased", fit_intercept=False).fit(data.X, data.y).sigma2_
    np.testing.assert_allclose(plain, rss / (30 - 5), rtol=1e-10)


def test_the_unbiased_noise_counts_the_rank_and_not_the_features(rng):
    X = rng.normal(size=(25, 3))
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    y = rng.normal(size=25)
    rss = np.sum((y - LinearRegression().fit(X, y).predict(X)) ** 2)
    assert SpARRegressor(noise="unbiased").fit(X, y).sigma2_ == pytest.approx(rss / (25 - 3 - 1), rel=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n", range(3, 9))
def test_no_more_rows_than_directions_warns(rng, n, fit_intercept):
    d = 8 - fit_intercept
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    est = SpARRegressor(fit_intercept=fit_intercept)
    est.fit(rng.normal(size=(12, d)), rng.normal(size=12))  # a warning would be an error
    with pytest.warns(SparWarning, match="noise is estimated as zero.*adapt.. removes no direction") as record:
        est.fit(X, y)
    assert [w.filename for w in record] == [__file__]  # it points to the caller's line
    with pytest.warns(SparWarning, match="estimated as zero"):
        est.adapt(rng.normal(size=(20, d)))
    assert not est.adaptation_.removed.any()
    np.testing.assert_array_equal(est.adaptation_.risk_before, 0.0)


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_weights_count_as_rows_when_the_noise_is_estimated(shift, weight):
    once = SpARRegressor(noise="mle").fit(shift.X, shift.y)
    weighted = SpARRegressor(noise="mle").fit(shift.X, shift.y, np.full(300, weight))
    assert weighted.sigma2_ == pytest.approx(once.sigma2_, rel=1e-11)
    rss = 300 * once.sigma2_
    unbiased = SpARRegressor(noise="unbiased").fit(shift.X, shift.y, np.full(300, weight))
    assert unbiased.sigma2_ == pytest.approx(weight * rss / (weight * 300 - 6), rel=1e-11)
