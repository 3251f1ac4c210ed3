"""One problem for all kinds of input, and its fit in memory."""

from types import SimpleNamespace

import numpy as np
import pytest

from pyspar import SpARRegressor


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12)) * np.logspace(0, -2, 12) + rng.normal(size=12)
    Z = rng.normal(size=(500, 12))
    X[rng.random(X.shape) < 0.5] = 0.0
    Z[rng.random(Z.shape) < 0.5] = 0.0
    y = X[:, :3].sum(axis=1) + rng.normal(size=3000)
    return SimpleNamespace(X=X, y=y, Z=Z, w=rng.integers(0, 3, size=3000).astype(float), rng=rng)


@pytest.fixture(scope="module")
def in_memory(problem):
    return SpARRegressor().fit(problem.X, problem.y).adapt(problem.Z)


def _compare(est, reference):
    """Compare two fits to a relative 1e-10, and the number of removed directions."""
    scale = np.abs(reference.coef_).max()
    np.testing.assert_allclose(est.coef_, reference.coef_, rtol=1e-10, atol=1e-10 * scale)
    np.testing.assert_allclose(est.intercept_, reference.intercept_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(est.sigma2_, reference.sigma2_, rtol=1e-10)
    assert (est.adaptation_.removed.sum(axis=0) == reference.adaptation_.removed.sum(axis=0)).all()


@pytest.fixture(scope="session")
def assert_same():
    return _compare
