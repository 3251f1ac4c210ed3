"""The test of a head's correction without the assumption that all rows have the same noise."""

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.refit import error_roots_of, sandwich_std
from pyspar.core.regression import Prior, fit_ridge, make_prior
from pyspar.errors import collect_warnings
from pyspar.estimators.heads import new_head_weights


def make_rows(rng, n=200, d=5):
    return rng.normal(size=(n, d)) * np.geomspace(3.0, 0.3, d), rng.normal(size=(80, d))


def wrong_head(rng, X, outputs=1):
    """Return a wrong head, and labels of rows with noise of heavy tails that grows with the first feature."""
    coef = rng.normal(size=(outputs, X.shape[1]))
    noise = rng.standard_t(3, size=(len(X), outputs)) * np.abs(X[:, :1])
    return coef, X @ (coef + rng.normal(size=coef.shape)).T + 0.2 * noise


def correct(X, y, Z, coef, *, robust=True, **options):
    """Return the corrected head, with the test that uses the errors of the rows or with that for equal noise."""
    roots = error_roots_of(X, y, coef) if robust else ()
    with collect_warnings():
        return new_head_weights(Moments.of(X, y), Moments.of(Z), coef, error_roots=roots, **options)


@pytest.mark.parametrize("n", [60, 200])
def test_the_standard_deviation_is_the_sum_over_the_rows(rng, n):
    """With it, k rows can move a correction by at most the root of k times the ratio of errors to noise."""
    X, Z = make_rows(rng, n)
    coef, y = wrong_head(rng, X, 2)
    source = Moments.of(X, y)
    units = make_prior(source, None, "equal", fit_intercept=False).units
    fit = fit_ridge(source, Prior(units, coef.T, np.zeros(2)), fit_intercept=False)
    V, errors, along = np.linalg.svd(Z)[2].T, y - X @ coef.T, X / units
    std = sandwich_std(fit, V, error_roots_of(X, y, coef))
    for k in range(2):
        penalty = float(fit.kappa[k] * fit.x.lam[0] ** 2)
        gains = along @ np.linalg.solve(along.T @ along + penalty * np.eye(5), V)
        noise2 = fit.sigma2[k] * errors[:, k] ** 2 / np.mean(errors[:, k] ** 2)
        np.testing.assert_allclose(std[:, k], np.sqrt(noise2 @ gains**2), rtol=1e-9)
        np.testing.assert_allclose(V.T @ fit.w_hat[:, k], gains.T @ errors[:, k], rtol=1e-7, atol=1e-12)
        parts = np.sort(np.abs(gains * errors[:, [k]]), axis=0)[::-1].cumsum(axis=0)
        ratio = np.sqrt(np.mean(errors[:, k] ** 2) / fit.sigma2[k])
        assert (parts <= np.sqrt(np.arange(1, n + 1))[:, None] * ratio * std[:, k] * (1 + 1e-9)).all()


def outlier(rng, X):
    """Normal noise, and one row with ten times the features and twenty times the noise of others."""
    X[0] *= 10.0
    return rng.normal(size=len(X)) * np.where(np.arange(len(X)) == 0, 20.0, 1.0)


def normal(rng, X):
    """Normal noise that is larger in rows with larger features."""
    size = np.exp(rng.normal(size=len(X)))
    X *= size[:, None]
    return rng.normal(size=len(X)) * size


def heavy(rng, X):
    """Noise as in ``normal``, but with heavy tails."""
    size = np.exp(rng.normal(size=len(X)))
    X *= size[:, None]
    return rng.standard_t(3, size=len(X)) * size


@pytest.mark.parametrize("noise", [outlier, normal, heavy])
def test_a_correct_head_is_rarely_changed_if_the_noise_differs_between_rows(noise):
    rng = np.random.default_rng(0)
    changed = {True: 0, False: 0}
    for _ in range(60):
        X, Z = make_rows(rng)
        errors = noise(rng, X)
        coef = rng.normal(size=(1, 5))
        y = X @ coef.T + errors[:, None]
        for robust in changed:
            changed[robust] += correct(X, y, Z, coef, robust=robust).changed.directions > 0
    assert changed[False] >= 20  # of 60, with the test for equal noise at confidence 0.999
    assert changed[True] <= 3


def test_the_error_on_the_source_does_not_rise_and_a_wrong_head_is_corrected(rng):
    for _ in range(10):
        X, Z = make_rows(rng)
        coef, y = wrong_head(rng, X)
        head = correct(X, y, Z, coef)
        assert head.changed.directions
        assert np.sum((y - X @ head.coef.T) ** 2) < np.sum((y - X @ coef.T) ** 2)


def test_rotations_and_scales_do_not_change_the_correction(rng):
    X, Z = make_rows(rng)
    coef, y = wrong_head(rng, X)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    head = correct(X, y, Z, coef, alpha=0.999)
    assert 0 < head.changed.directions < 5
    turned = correct(X @ turn, y, Z @ turn, coef @ turn, alpha=0.999)
    np.testing.assert_allclose(turned.coef, head.coef @ turn, rtol=0, atol=1e-9)
    scaled = correct(1e-3 * X, 1e5 * y, 1e-3 * Z, 1e8 * coef, alpha=0.999)
    np.testing.assert_allclose(scaled.coef, 1e8 * head.coef, rtol=1e-8)


def test_exact_labels_correct_the_head_and_labels_that_it_predicts_change_nothing(rng):
    X, Z = make_rows(rng, n=8)
    coef, wrong = rng.normal(size=(1, 5)), np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    exact = correct(X, X @ (coef + wrong).T, Z, coef, cutoff=0.0)
    np.testing.assert_allclose(exact.coef, coef + wrong, atol=1e-9)
    same = correct(X, X @ coef.T, Z, coef)
    assert same.changed.directions == 0
    np.testing.assert_array_equal(same.coef, coef)
    assert not error_roots_of(X, X @ coef.T, coef)[0].any()


@pytest.mark.parametrize("method", ["bayes", "spar"])
def test_only_least_squares_does_without_a_target(rng, method):
    X, _ = make_rows(rng)
    coef, y = wrong_head(rng, X)
    with pytest.raises(ValueError, match=method):
        new_head_weights(Moments.of(X, y), None, coef, method=method)
    expected = np.linalg.lstsq(X, y)[0].T
    np.testing.assert_allclose(new_head_weights(Moments.of(X, y), None, coef, method="ols").coef, expected, rtol=1e-9)
