"""With fewer rows than columns the cost grows with the number of columns, and no D x D array is computed."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from pyspar import BayesSpARRegressor, Moments, SpARRegressor

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


def test_sparse_rows_that_need_too_much_memory_are_refused_with_the_size(monkeypatch):
    from pyspar.sources import sparse

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(sparse, "product_of", fail)
    with pytest.raises(MemoryError, match=r"40 .* 20 .*GB"):
        sparse.moments_of_sparse(make_sparse(40, 20, 4))
