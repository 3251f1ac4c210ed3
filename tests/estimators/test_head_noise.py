"""The test of a head's correction without the assumption that all rows have the same noise."""

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.adapt import chi2_threshold
from pyspar.core.refit import sandwich_std
from pyspar.errors import collect_warnings
from pyspar.estimators.head_weights import error_roots_of, fit_head


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
        return fit_head(Moments.of(X, y), Moments.of(Z), "bayes", coef=coef, error_roots=roots, **options)


def gains_of(head, X, output=0):
    """Return how much the error of each row contributes to the correction along each direction, rows x directions."""
    belief = head.estimator._belief
    kept = head.directions
    along = X @ kept.T
    k = float(belief.evidence.kappa[output] * belief.x.lam[0] ** 2)
    return along @ np.linalg.solve(along.T @ along + k * np.eye(len(kept)), kept @ head.estimator.adaptation_.z.V)


@pytest.mark.parametrize("cutoff", [0.0, 0.5])
def test_the_standard_deviation_is_the_sum_over_the_rows(rng, cutoff):
    X, Z = make_rows(rng)
    coef, y = wrong_head(rng, X, 2)
    head = correct(X, y, Z, coef, cutoff=cutoff)
    assert (len(head.directions) < 5) == bool(cutoff)
    terms, fit = head.estimator.adaptation_.terms, head.estimator._fit
    sigma, robust_std = fit.sigma, sandwich_std(fit, head.estimator.adaptation_.z.V, error_roots_of(X, y, coef))
    errors = y - X @ coef.T
    for output in range(2):
        noise2 = sigma[output] ** 2 * errors[:, output] ** 2 / np.mean(errors[:, output] ** 2)
        gains = gains_of(head, X, output)
        np.testing.assert_allclose(robust_std[:, output], np.sqrt(noise2 @ gains**2), rtol=1e-9)
        if not cutoff:  # the errors of the rows are those of the centre
            np.testing.assert_allclose(terms.mean[:, output], gains.T @ errors[:, output], rtol=1e-7, atol=1e-12)
    assert (robust_std > terms.std).any()
    adaptation, tested = head.estimator.adaptation_, terms.std > 0.0  # zero without any signal, where the mean is too
    removed = np.abs(terms.mean) <= chi2_threshold(0.999) * np.maximum(terms.std, robust_std)
    assert (adaptation.removed >= (removed & tested)).all()


def test_k_rows_contribute_at_most_the_root_of_k_times_the_ratio_of_errors_to_noise(rng):
    X, Z = make_rows(rng, n=60)
    coef = rng.normal(size=(1, 5))
    y = X @ coef.T + rng.standard_cauchy(size=(60, 1)) + 0.5 * X[:, :1]
    head = correct(X, y, Z, coef)
    errors, fit = (y - X @ coef.T)[:, 0], head.estimator._fit
    ratio = np.sqrt(np.mean(errors**2)) / head.estimator._belief.sigma[0]
    assert ratio >= 1.0
    parts = np.sort(np.abs(gains_of(head, X) * errors[:, None]), axis=0)[::-1].cumsum(axis=0)
    limits = (
        np.sqrt(np.arange(1, 61))[:, None]
        * ratio
        * sandwich_std(fit, head.estimator.adaptation_.z.V, error_roots_of(X, y, coef))[:, 0]
    )
    assert (parts <= limits * (1 + 1e-9)).all()
    assert (parts[0] > 0.5 * limits[0]).any()  # the bound is nearly attained by one row of Cauchy noise


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
