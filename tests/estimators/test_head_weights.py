"""Heads from moments: along directions of the features below the cutoff, no head gets a new weight."""

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.spectrum import directions_above
from pyspar.estimators.heads import new_head_weights

CUTOFF = 1e-3


def faint_features(seed, dtype):
    """Return positive features with few strong directions, columns over 12 decades, and noise along the others."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(30, 60)), int(rng.integers(2, 10))
    signal = np.abs(1.0 + rng.normal(size=(d + 20, k)) * 10.0 ** -rng.uniform(0, 3)) @ np.abs(rng.normal(size=(k, d)))
    signal = signal * 10.0 ** (rng.uniform(0, 12, size=d) * rng.integers(-1, 2))
    noise = np.abs(signal).max() * 10.0 ** -rng.uniform(5, 16)
    return rng, (signal + noise * rng.normal(size=signal.shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["ols", "bayes"])
def test_weights_along_cut_directions_are_zero_or_those_of_the_trained_head(dtype, method):
    for seed in range(40):
        rng, X = faint_features(seed, dtype)
        n, d = X.shape
        y = rng.normal(size=(n, 2))
        source, target = Moments.of(X, y), Moments.of((X[::2] * rng.normal(size=d)).astype(dtype))
        kept = directions_above(source, CUTOFF)
        assert len(kept) < d
        trained = rng.normal(size=(2, d))
        head = new_head_weights(source, target, trained, None, method, alpha=0.0, cutoff=CUTOFF)
        # A changed head keeps a share of its trained weights along these directions, or none.
        share = np.zeros((2, 1))
        if method == "bayes":
            adaptation = head.adaptation
            share[:, 0] = np.where(adaptation.n_kept > 0, 1.0 - adaptation.scale, 1.0)
        weights = head.coef - share * trained
        # The two projections round each weight by a few machine epsilons of the longest.
        size = max(np.linalg.norm(weights), np.linalg.norm(trained))
        assert np.abs(weights - (weights @ kept.T) @ kept).max() < 1e-13 * size, seed
        # Least squares along the kept directions, by an independent route.
        along = X.astype(np.float64) @ kept.T
        if method == "ols" and dtype == "float64":
            expected = np.linalg.lstsq(along, y, rcond=None)[0].T @ kept
            np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("method", ["ols", "bayes"])
def test_units_that_are_dead_in_the_source_get_no_new_weight(rng, method):
    X, Z = rng.random((300, 20)).astype("f4"), 1e3 * rng.random((100, 20)).astype("f4")
    X[:, :3] = 0.0
    X[:, 3:6] *= np.float32(1e-25)
    y = X @ rng.normal(size=20) + 0.1 * rng.normal(size=300)
    coef = np.linalg.lstsq(X.astype(float), y, rcond=1e-6)[0][None] * 1.5
    head = new_head_weights(Moments.of(X, y), Moments.of(Z), coef, None, method)
    assert head.changed.directions
    new = head.coef[0] - (1.0 - head.adaptation.scale[0]) * coef[0] if method == "bayes" else head.coef[0]
    without = Z.copy()
    without[:, :6] = 0.0
    np.testing.assert_allclose(Z @ new, without @ new, rtol=1e-6, atol=1e-6)
