"""If LAPACK's fast driver does not converge, the slower driver is used."""

import numpy as np
import pytest
import scipy.linalg

from pyspar import BayesSpARRegressor, SpARRegressor
from pyspar.core import spectrum


@pytest.fixture
def no_fast_way(monkeypatch):
    scipy_svd = scipy.linalg.svd

    def gives_up(matrix, *, lapack_driver="gesdd", **how):
        if lapack_driver == "gesdd":
            raise spectrum.LinAlgError("SVD did not converge")
        return scipy_svd(matrix, lapack_driver=lapack_driver, **how)

    monkeypatch.setattr(spectrum, "svd", gives_up)


def test_both_drivers_return_the_same_decomposition(rng, no_fast_way):
    matrix = rng.normal(size=(9, 4)) @ rng.normal(size=(4, 6))
    U, lam, Vt = spectrum.thin_svd(matrix)
    assert (U.shape, lam.shape, Vt.shape) == ((9, 6), (6,), (6, 6))
    np.testing.assert_allclose(U * lam @ Vt, matrix, atol=1e-12)
    np.testing.assert_allclose(lam, np.linalg.svd(matrix, compute_uv=False), atol=1e-12)


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
def test_an_estimator_has_the_same_predictions_with_the_slower_driver(rng, kind, request):
    """Dependent columns of very different scales, for which the decomposition is always asked."""
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 9)) * np.geomspace(1.0, 1e-6, 9)
    y, Z = X[:, 0] + rng.normal(size=60), X[:20] + 1.0
    expected = kind().fit(X, y).adapt(Z).predict(Z)
    request.getfixturevalue("no_fast_way")
    np.testing.assert_allclose(kind().fit(X, y).adapt(Z).predict(Z), expected, rtol=1e-6)
