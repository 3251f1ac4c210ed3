"""With fewer rows than columns the cost grows with the number of columns, and no D x D array is computed."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import ks_2samp

from pyspar import BayesSpARRegressor, Moments, SpARRegressor
from pyspar.core.forecast import DRAWS
from pyspar.core.posterior import posteriors_of
from pyspar.core.regression import Prior
from pyspar.core.spectrum import Spectrum

WIDE = 20_000
ESTIMATORS = [SpARRegressor(), BayesSpARRegressor(), BayesSpARRegressor(alpha=0.999)]


def make_sparse(rows, columns, seed):
    return sp.random_array((rows, columns), density=0.02, format="csr", rng=np.random.default_rng(seed))


@pytest.mark.filterwarnings("ignore::pyspar.SparWarning")  # the noise of an exact fit is unknown
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_sparse_rows_with_many_columns_need_memory_in_proportion_to_their_rows(estimator):
    rng = np.random.default_rng(0)
    X, Z, y = make_sparse(60, WIDE, 0), make_sparse(30, WIDE, 1), rng.normal(size=60)
    tracemalloc.start()
    predictions = estimator.fit(X, y).adapt(Z).predict(Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * (60 + 30) * WIDE * 8 < WIDE**2 * 8 / 10
    dense = type(estimator)(**estimator.get_params()).fit(X.toarray(), y).adapt(Z.toarray())
    np.testing.assert_allclose(estimator.coef_, dense.coef_, rtol=0, atol=1e-10 * np.abs(dense.coef_).max())
    np.testing.assert_allclose(predictions, dense.predict(Z), rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::pyspar.SparWarning")
def test_wide_least_squares_with_constant_columns_is_the_solution_of_minimum_norm():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 300)), rng.normal(size=20)
    X[:, ::7] = 3.0
    X[:, 5] = 0.0
    centred = X - X.mean(axis=0)
    expected = np.linalg.pinv(centred) @ (y - y.mean())
    for rows in (X, sp.csr_array(X)):
        est = SpARRegressor().fit(rows, y)
        np.testing.assert_allclose(est.coef_, expected, rtol=0, atol=1e-12)
        assert not est.coef_[::7].any()
        assert est.rank_ == 19


@pytest.mark.parametrize("weighted", [False, True])
def test_the_root_of_few_rows_equals_that_of_qr_and_can_be_merged(weighted):
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(30, 50)) + 1e6 * rng.normal(size=50), rng.normal(size=(30, 2))
    weight = rng.uniform(0.5, 2.0, size=30) if weighted else np.ones(30)
    few = Moments.of(X, Y, weight)
    parts = sum(Moments.of(X[i : i + 10], Y[i : i + 10], weight[i : i + 10]) for i in (0, 10, 20))
    mean = weight @ np.column_stack([X, Y]) / weight.sum()
    centred = (np.column_stack([X, Y]) - mean) * np.sqrt(weight)[:, None]
    for moments in (few, parts):
        assert moments.root.shape == (30, 53)
        assert not moments.root[1:, 0].any()
        np.testing.assert_allclose(moments.mean, mean, rtol=1e-12)
        scatter = moments.root_about(None)
        np.testing.assert_allclose(scatter.T @ scatter, centred.T @ centred, rtol=0, atol=1e-8)


def test_repeated_rows_do_not_add_directions():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10, 80))
    spectrum = Spectrum.about(Moments.of(np.vstack([X, X])), X.mean(axis=0))
    assert spectrum.rank == 9
    expected = np.linalg.svd(np.vstack([X, X]) - X.mean(axis=0), compute_uv=False)[:9]
    np.testing.assert_allclose(spectrum.lam, expected, rtol=1e-12)


def test_sparse_rows_that_need_too_much_memory_are_refused_with_the_size(monkeypatch):
    from pyspar.sources import sparse

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(sparse, "gram_root", fail)
    with pytest.raises(MemoryError, match=r"40 .* 20 .*GB"):
        sparse.moments_of_sparse(make_sparse(40, 20, 4))


def test_draws_in_the_span_of_the_rows_have_the_distribution_of_draws_of_all_weights():
    rng = np.random.default_rng(5)
    X, Z = rng.normal(size=(8, 12)), rng.normal(size=(3, 12))
    source = Moments.of(X, X[:, 0] + rng.normal(size=8))
    prior = Prior(np.ones(12), np.zeros((12, 1)), np.zeros(1))
    (posterior,) = posteriors_of(source, [prior], fit_intercept=True)
    size = 40_000
    rows = np.column_stack([np.zeros(3), Z])
    direct, _ = posterior.draw_labels(rows, 0, size, np.random.default_rng(6), None)
    drawn, _ = posterior.draw_labels(rows, 0, size, np.random.default_rng(7), np.random.default_rng(8))
    combined = np.vstack([np.eye(3), [[1, 1, 0], [0, 1, -1]]])  # rows alone, and two combinations of them
    for ours, expected in zip(combined @ drawn, combined @ direct, strict=True):
        assert ks_2samp(ours, expected).pvalue > 1e-3


@pytest.mark.filterwarnings("ignore::pyspar.SparWarning")
def test_a_forecast_for_many_columns_draws_no_weights():
    rng = np.random.default_rng(9)
    columns = 2 * DRAWS
    X, Z, y = rng.normal(size=(30, columns)), rng.normal(size=(20, columns)), rng.normal(size=30)
    est = BayesSpARRegressor().fit(X, y).adapt(Z)
    tracemalloc.start()
    forecast = est.expected_rmse(Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < columns * DRAWS * 8 / 2
    low, high = forecast.interval95_if_linear
    assert low < forecast.rmse < high
