"""Heads from moments: along directions of the features below the cutoff, no head gets a new weight."""

import pickle

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.spectrum import Spectrum, directions_above
from pyspar.estimators.head_weights import fit_head

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
        head = fit_head(source, target, method, coef=trained, alpha=0.0, cutoff=CUTOFF)
        np.testing.assert_array_equal(head.coef, head.estimator.coef_)
        # A changed head keeps a share of its trained weights along these directions, or none.
        share = np.zeros((2, 1))
        if method == "bayes":
            adaptation = head.estimator.adaptation_
            share[:, 0] = np.where(adaptation.n_kept > 0, 1.0 - adaptation.scale, 1.0)
        weights = head.coef - share * trained
        # The two projections round each weight by a few machine epsilons of the longest.
        size = max(np.linalg.norm(weights), np.linalg.norm(trained))
        assert np.abs(weights - (weights @ kept.T) @ kept).max() < 1e-13 * size, seed
        assert head.estimator.rank_ <= len(kept)
        assert Spectrum.of(head.estimator.moments_).rank <= len(kept), seed
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
    head = fit_head(Moments.of(X, y), Moments.of(Z), method, coef=coef)
    assert head.changed.directions
    new = head.coef[0] - (1.0 - head.estimator.adaptation_.scale[0]) * coef[0] if method == "bayes" else head.coef[0]
    without = Z.copy()
    without[:, :6] = 0.0
    np.testing.assert_allclose(Z @ new, without @ new, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bias", [None, np.array([0.3])])
@pytest.mark.parametrize("method", ["spar", "bayes"])
def test_the_estimator_of_a_cut_head_works_on_the_features(rng, method, bias):
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    X = rng.normal(size=(200, 8)) * [9.0, 5.0, 3.0, 2.0, 1.0, 1e-5, 1e-6, 1e-7] @ turn
    Z = rng.normal(size=(90, 8)) * [1.0, 5.0, 3.0, 4.0, 1.0, 2.0, 2.0, 1.0] @ turn
    y = X @ rng.normal(size=8) + rng.normal(size=200)
    source = Moments.of(X, y)
    coef = rng.normal(size=(1, 8))
    head = fit_head(source, Moments.of(Z), method, coef=coef, intercept=bias, cutoff=1e-3)
    estimator = head.estimator
    assert estimator.n_features_in_ == 8
    np.testing.assert_allclose(estimator.predict(Z), Z @ head.coef[0] + head.intercept[0])
    assert np.isfinite(float(estimator.expected_rmse(Z)))
    assert np.isfinite(estimator.predict(Z, return_std=True)[1]).all()
    assert estimator.adaptation_.w_proj.shape == (8, 1)
    assert pickle.loads(pickle.dumps(estimator)).separation_.found
    fitted, kept = estimator.coef_source_, directions_above(source, 1e-3)
    assert len(kept) == 5
    change = fitted - (coef[0] if method == "bayes" else 0.0)
    np.testing.assert_allclose((change @ kept.T) @ kept, change, rtol=0, atol=1e-13)
