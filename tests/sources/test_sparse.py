"""Sparse rows give the fit of dense rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from pyspar import SpARRegressor
from pyspar.sources.sparse import moments_of_sparse

FORMS = [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix]


@pytest.mark.parametrize("form", FORMS)
def test_a_sparse_source_and_target_give_the_fit_of_dense_rows(problem, in_memory, assert_same, form):
    est = SpARRegressor().fit(form(problem.X), problem.y).adapt(form(problem.Z))
    assert_same(est, in_memory)
    np.testing.assert_allclose(est.predict(form(problem.Z)), in_memory.predict(problem.Z), rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="12"):
        est.adapt(form(problem.Z[:, :5]))


def test_weights_float32_and_several_outputs_are_supported(problem):
    Y = np.column_stack([problem.y, problem.y**2])
    X = problem.X.astype(np.float32)
    ours = SpARRegressor().fit(sp.csr_array(X), Y, problem.w)
    dense = SpARRegressor().fit(X, Y, problem.w)
    np.testing.assert_allclose(ours.coef_, dense.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(ours.moments_.eps, dense.moments_.eps)


@pytest.mark.parametrize("decades", [0, 5, 8, 12])
def test_accuracy_is_kept_at_every_condition_number(decades):
    rng = np.random.default_rng(decades)
    X = rng.normal(size=(800, 6)) * (rng.random((800, 6)) < 0.5)
    X = X @ np.diag(np.logspace(0, -decades, 6)) @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    moments = moments_of_sparse(sp.csr_array(X))
    expected = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    singular_values = np.linalg.svd(moments.root_about(None), compute_uv=False)[:6]
    np.testing.assert_allclose(singular_values, expected, rtol=max(1e-10, 1e-4 * 10.0 ** (decades - 12)))


def test_rows_are_not_made_dense():
    rows = sp.random_array((100_000, 400), density=1e-4, format="csr", rng=np.random.default_rng(0))
    import tracemalloc

    tracemalloc.start()
    moments_of_sparse(rows, np.ones(100_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000 * 400 * 8 / 4  # the dense rows would be 320 MB
