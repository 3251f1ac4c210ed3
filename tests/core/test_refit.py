"""The refit along the kept directions: an explicit solution, the second test, and the scale."""

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.adapt import chi2_threshold
from pyspar.core.refit import error_roots_of, refit, refit_head, scale_factor
from pyspar.core.regression import fit_ridge


def fit_of(X, y, *, robust):
    """Return the posterior about a centre of zero, so that the labels are the errors of the centre, and the roots."""
    roots = error_roots_of(X, y, np.zeros((y.shape[1], X.shape[1]))) if robust else ()
    return fit_ridge(Moments.of(X, y), fit_intercept=False), roots


def refit_explicitly(X, r, V, fit, output, *, robust):
    """Return the refitted weights along V and their standard deviations, by matrices of all rows."""
    penalty = float(fit.kappa[output]) * fit.x.lam[0] ** 2
    gains = X @ V @ np.linalg.inv(V.T @ (X.T @ X + penalty * np.eye(X.shape[1])) @ V)
    sigma = fit.sigma[output]
    std = sigma * np.sqrt(np.diag(np.linalg.inv(V.T @ (X.T @ X + penalty * np.eye(X.shape[1])) @ V)))
    noise2 = sigma**2 * r**2 / np.mean(r**2)
    return gains.T @ r, np.maximum(std, np.sqrt(noise2 @ gains**2)) if robust else std


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_refit_is_that_of_explicit_matrices_and_drops_what_is_not_significant(seed, robust):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 6)) @ rng.normal(size=(6, 6))
    y = X @ rng.normal(size=(6, 2)) * [0.2, 0.3] + rng.standard_t(3, size=(150, 2))
    directions, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    fit, roots = fit_of(X, y, robust=robust)
    assert np.isfinite(fit.kappa).all()
    kept = rng.random((6, 2)) < 0.8
    weights, remaining = refit(fit, directions, kept, 2.0, roots)
    assert not (remaining & ~kept).any()
    for output in range(2):
        left = kept[:, output].copy()
        while left.any():
            V = directions[:, left]
            along, std = refit_explicitly(X, y[:, output], V, fit, output, robust=robust)
            if (np.abs(along) > 2.0 * std).all():
                break
            left[left] = np.abs(along) > 2.0 * std
        np.testing.assert_array_equal(remaining[:, output], left)
        expected = directions[:, left] @ along if left.any() else np.zeros(6)
        np.testing.assert_allclose(weights[:, output], expected, rtol=1e-8, atol=1e-12)


def test_a_threshold_of_zero_drops_nothing_and_an_infinite_one_everything(rng):
    X = rng.normal(size=(50, 3))
    fit, roots = fit_of(X, X @ rng.normal(size=(3, 1)) + rng.normal(size=(50, 1)), robust=True)
    kept = np.array([[True], [False], [True]])
    weights, remaining = refit(fit, np.eye(3), kept, 0.0, roots)
    np.testing.assert_array_equal(remaining, kept)
    assert weights[1] == 0.0
    assert weights[[0, 2]].all()
    weights, remaining = refit(fit, np.eye(3), kept, np.inf, roots)
    assert not weights.any()
    assert not remaining.any()


def test_an_exact_fit_is_kept(rng):
    X = rng.normal(size=(50, 3))
    fit, roots = fit_of(X, X @ np.ones((3, 1)), robust=True)
    assert fit.sigma[0] == 0.0
    weights, remaining = refit(fit, np.eye(3), np.ones((3, 1), dtype=bool), chi2_threshold(0.999), roots)
    assert remaining.all()
    np.testing.assert_allclose(weights, 1.0, rtol=1e-9)


def rows_with_an_outlier():
    """Return rows of which one has most of the squared errors, and a target without it.

    The outlier lies along the third feature. The other rows show a weight of 0.1 of the first feature. The correction
    of the third feature is not significant, because only one row supports it. A refit of the first feature alone
    attributes the error of the outlier to the first feature.
    """
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(400, 3)), rng.normal(size=(200, 3)) * [3.0, 2.0, 1.0]
    y = 0.1 * X[:, :1] + 0.4 * rng.normal(size=(400, 1))
    X[0], y[0] = [10.0, 0.0, 100.0], 20.0
    return X, y, Z


def test_one_row_does_not_determine_a_correction_that_other_rows_support():
    X, y, Z = rows_with_an_outlier()
    fit, roots = fit_of(X, y, robust=True)
    kept = np.array([[True], [False], [False]])
    once, _ = refit(fit, np.eye(3), kept, 0.0, roots)
    assert once[0, 0] > 0.4  # without the second test
    _, remaining = refit(fit, np.eye(3), kept, chi2_threshold(0.999), roots)
    assert not remaining.any()
    trained = np.zeros((1, 3))
    roots = error_roots_of(X, y, trained)
    change = refit_head(Moments.of(X, y), Moments.of(Z), trained, np.zeros(1), error_roots=roots)
    before, after = (np.mean((y[1:] - X[1:] @ coef.T) ** 2) for coef in (trained, trained + change.w_proj.T))
    assert after <= before


@pytest.mark.parametrize("seed", range(5))
def test_the_factor_is_that_of_the_mean_squared_changes_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(80, 4)) + 1.0, 2.0 * rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4))
    weights = np.column_stack([rng.normal(size=(4, 2)), np.zeros(4)])
    factor = scale_factor(weights, Moments.of(X), Moments.of(Z))
    source, target = np.mean((X @ weights) ** 2, axis=0), np.mean((Z @ weights) ** 2, axis=0)
    np.testing.assert_allclose(factor[:2], np.minimum(1.0, source[:2] / target[:2]), rtol=1e-12)
    assert factor[2] == 1.0
    assert scale_factor(weights, Moments.of(X), Moments.of(0.01 * Z)).tolist() == [1.0, 1.0, 1.0]


def test_a_scaled_correction_is_harmless_while_half_of_the_mean_product_remains():
    """The bound of the derivation, by brute force: target errors with half of the mean product."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        X, Z = rng.normal(size=(40, 3)), rng.normal(size=(20, 3)) @ rng.normal(size=(3, 3)) * rng.uniform(0.3, 5.0)
        r = X @ rng.normal(size=3) + rng.normal(size=40)
        beta = np.linalg.solve(X.T @ X + rng.uniform(0, 20) * np.eye(3), X.T @ r)
        covariance = np.mean(r * (X @ beta))
        assert covariance >= np.mean((X @ beta) ** 2)
        factor = scale_factor(beta[:, None], Moments.of(X), Moments.of(Z))[0]
        change = factor * (Z @ beta)
        # Errors of the trained head on the target with half of that covariance, and any other part.
        other = rng.normal(size=20)
        other -= change * (other @ change) / (change @ change)
        errors = other + (Z @ beta) * 0.5 * covariance / np.mean((Z @ beta) ** 2)
        assert np.mean((errors - change) ** 2) <= np.mean(errors**2) * (1 + 1e-12)
        assert np.mean(change**2) <= np.mean((X @ beta) ** 2) * (1 + 1e-12)
        # The error on the source does not grow either.
        assert np.mean((r - factor * (X @ beta)) ** 2) <= np.mean(r**2)


def test_a_correction_that_does_not_hold_far_from_the_source_does_little_harm():
    """The labels are a parabola: a line through the source, which has values near one, is far off at ten."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(1.0, 0.3, size=400), rng.normal(10.0, 0.3, size=200)
    X, Z = np.column_stack([np.ones(400), x]), np.column_stack([np.ones(200), z])
    y, truth = (0.2 * np.minimum(v, 2.0) ** 2 for v in (x, z))
    y = y + 0.05 * rng.normal(size=400)
    trained = np.zeros((1, 2))
    roots = error_roots_of(X, y[:, None], trained)
    change = refit_head(Moments.of(X, y), Moments.of(Z), trained, np.zeros(1), error_roots=roots)
    assert not change.removed.all()
    scale = float(change.scale[0])
    assert scale < 0.1
    before, after, unscaled = (
        np.mean((truth - Z @ w) ** 2) for w in (trained[0], change.w_proj[:, 0], change.w_proj[:, 0] / scale)
    )
    assert after < before < unscaled
