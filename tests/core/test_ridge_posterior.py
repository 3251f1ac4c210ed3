"""The ridge posterior, compared with its textbook formula, its limits and least squares."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pyspar import Moments, SpARRegressor
from pyspar.core.adapt import adapt, chi2_rule, keep_rule
from pyspar.core.regression import fit_ols, fit_ridge


def textbook(X, y, sigma2, tau2):
    covariance = np.linalg.inv(X.T @ X / sigma2 + np.eye(X.shape[1]) / tau2)
    return covariance @ X.T @ y / sigma2, covariance


@pytest.mark.parametrize("shape", [(40, 6), (5, 9), (9, 9), (30, 1)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_mean_and_covariance_are_those_of_the_textbook(rng, shape, fit_intercept):
    X = rng.normal(size=shape) + 3.0
    Y = X @ rng.normal(size=(shape[1], 10)) + rng.normal(size=(shape[0], 10))
    posterior = fit_ridge(Moments.of(X, Y), fit_intercept=fit_intercept)
    interior = [j for j, limit in enumerate(posterior.limit) if limit == "interior"]
    assert interior
    X, Y, E = X - fit_intercept * X.mean(axis=0), Y - fit_intercept * Y.mean(axis=0), rng.normal(size=(shape[1], 4))
    for j in interior:
        mean, covariance = textbook(X, Y[:, j], posterior.sigma2[j], posterior.tau2[j])
        np.testing.assert_allclose(posterior.w_hat[:, j], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(posterior.std_along(E)[:, j] ** 2, np.diag(E.T @ covariance @ E), rtol=1e-9)


def test_directions_outside_the_source_keep_the_variance_of_the_prior(rng):
    X = np.column_stack([rng.normal(size=(50, 2)), np.zeros(50)])
    posterior = fit_ridge(Moments.of(X, X @ [3.0, 1.0, 0.0] + rng.normal(size=50)), fit_intercept=True)
    unseen = np.array([[0.0], [0.0], [1.0]])
    np.testing.assert_allclose(posterior.std_along(unseen)[:, 0], posterior.tau, rtol=1e-12)
    assert (posterior.std_along(np.eye(3)[:, :2]) < 0.5 * posterior.tau).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [None, 3])
def test_with_a_very_wide_prior_it_is_least_squares_and_the_rule_is_algorithm_1(shifts, fit_intercept, outputs):
    shift = shifts(outputs=outputs, offset=0.5)
    source, target = Moments.of(shift.X, shift.y), Moments.of(shift.Z)
    flat = fit_ols(source, fit_intercept=fit_intercept)
    rule = partial(chi2_rule, alpha=0.999)
    expected = SpARRegressor(fit_intercept=fit_intercept).fit(shift.X, shift.y).adapt(shift.Z)
    assert expected.adaptation_.removed.any()
    ridge = fit_ridge(source, fit_intercept=fit_intercept)
    posterior = replace(ridge, w_hat=flat.w_hat, sigma=flat.sigma, kappa=np.full_like(flat.sigma, 1e-12))
    ours = adapt(posterior, target, rule)
    np.testing.assert_allclose(posterior.std_along(ours.z.V), flat.std_along(ours.z.V), rtol=1e-8)
    np.testing.assert_array_equal(ours.removed, expected.adaptation_.removed)
    np.testing.assert_allclose(ours.w_proj, expected.coef_.reshape(ours.w_proj.T.shape).T, atol=1e-8)


def test_rotating_the_features_rotates_the_posterior(rng):
    X, y = rng.normal(size=(40, 5)) * [5, 2, 1, 0.5, 0.1], rng.normal(size=40)
    y = y + X @ rng.normal(size=5)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    plain, turned = (fit_ridge(Moments.of(R, y), fit_intercept=True) for R in (X, X @ turn))
    np.testing.assert_allclose(turned.w_hat, turn.T @ plain.w_hat, rtol=1e-7, atol=1e-9)
    E = rng.normal(size=(5, 8))
    np.testing.assert_allclose(turned.std_along(turn.T @ E), plain.std_along(E), rtol=1e-9)


@pytest.mark.parametrize("rule", [keep_rule, partial(chi2_rule, alpha=0.9), partial(chi2_rule, alpha=0.999)])
def test_the_risks_are_the_expected_squared_errors_under_the_posterior(shifts, rule):
    shift = shifts(n=40)
    Z = shift.Z
    posterior = fit_ridge(Moments.of(shift.X, shift.y), fit_intercept=False)
    ours = adapt(posterior, Moments.of(Z), rule)
    _, covariance = textbook(shift.X, shift.y, posterior.sigma2[0], posterior.tau2[0])
    spread = np.trace(Z @ covariance @ Z.T)
    np.testing.assert_allclose(ours.risk_before, spread, rtol=1e-9)
    moved = np.sum((Z @ (ours.w_proj - ours.w_hat)) ** 2)
    np.testing.assert_allclose(ours.bias_taken, moved, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.risk_after, spread + moved, rtol=1e-9)


def test_keeping_everything_is_the_posterior_mean_and_alpha_one_removes_what_the_target_has(shifts):
    shift = shifts()
    posterior = fit_ridge(Moments.of(shift.X, shift.y), fit_intercept=False)
    kept = adapt(posterior, Moments.of(shift.Z), keep_rule)
    np.testing.assert_array_equal(kept.w_proj, kept.w_hat)
    none = adapt(posterior, Moments.of(shift.Z), partial(chi2_rule, alpha=1.0))
    np.testing.assert_allclose(shift.Z @ none.w_proj, 0.0, atol=1e-10)
    assert kept.n_kept.tolist() == [5]
    assert none.n_kept.tolist() == [0]
