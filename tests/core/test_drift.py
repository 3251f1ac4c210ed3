"""The drift: a dense average over all models with plain numpy, invariances and limits."""

from itertools import product

import numpy as np
import pytest

from pyspar.core.drift import fit_drift
from pyspar.core.drift_models import RATIOS


def make_rows(n=12, m=40, d=3, seed=0):
    """Return features and predictions of m target rows, and labels of the first n."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, d)) * np.geomspace(1.0, 30.0, d) + 5.0
    f = Z @ np.linspace(1.0, -0.2, d) + rng.normal(size=m)
    y = f + 1.0 + 0.3 * f + 0.4 * Z[:, 0] + rng.normal(size=m)
    return Z, f, y[:n]


def fit(Z, f, y, **options):
    n = len(y)
    return fit_drift(Z[:n], f[:n], y, target_features=Z, target_prediction=f, **options)


def average_densely(Z, f, y):
    """Return corrections and predictive scales, with one dense covariance matrix per model."""
    n = len(y)
    q = (f - f.mean()) / f.std()
    P = (Z - Z.mean(axis=0)) / Z.std(axis=0) / np.sqrt(Z.shape[1])
    r = y - f[:n]
    logs, means, variances = [], [], []
    for a, b, d in product(RATIOS, repeat=3):
        K = a + b * np.outer(q, q) + d * P @ P.T
        C = K[:n, :n] + np.eye(n)
        solved = np.linalg.solve(C, np.column_stack([r, K[:n]]))
        s2 = r @ solved[:, 0] / n
        logs.append(-0.5 * np.linalg.slogdet(C)[1] - n / 2 * np.log(s2) - np.log((1 + a) * (1 + b) * (1 + d)))
        means.append(K[:, :n] @ solved[:, 0])
        variances.append(s2 * (1.0 + np.diag(K) - np.einsum("ij,ji->i", K[:, :n], solved[:, 1:])))
    p = np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    means = np.array(means)
    mean = p @ means
    return mean, np.sqrt(p @ (np.array(variances) + (means - mean) ** 2))


@pytest.mark.parametrize(("n", "d"), [(12, 3), (4, 9)])
def test_the_average_over_models_is_the_dense_one(n, d):
    Z, f, y = make_rows(n=n, d=d)
    drift = fit(Z, f, y)
    mean, scale = average_densely(Z, f, y)
    np.testing.assert_allclose(drift.correct(Z, f) - f, mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(drift.predictive_scale(Z, f), scale, rtol=1e-8)
    assert drift.expected_variance() + drift.noise2 == pytest.approx(np.mean(scale**2))
    np.testing.assert_allclose(drift.shares.sum(axis=1), 1.0)
