"""Forecasts and scales of rows, compared with brute-force formulas, Theorem 1, and simulated targets with labels."""

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.forecast import BLOCK_ROWS, Forecast, expected_square, row_scale, source_square
from pyspar.core.regression import fit_ols, fit_ridge, make_prior, spread_about_source
from pyspar.core.spectrum import Spectrum
from pyspar.theory import ols_risk


def shifted(rng, n=120, m=100, d=8, sigma=1.0):
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    X = rng.normal(size=(n, d)) * np.geomspace(1.0, 0.05, d) @ turn
    Z = rng.normal(size=(m, d)) * np.geomspace(0.05, 1.0, d) @ turn + 0.3
    w = rng.normal(size=d) / X.std(axis=0)
    return X, X @ w + sigma * rng.normal(size=n), Z, Z @ w + sigma * rng.normal(size=m), w


def posterior_of(X, y, Z, *, scale="max", fit_intercept=True):
    """Return the posterior in the scales of a target."""
    source, target = Moments.of(X, y), Moments.of(Z)
    spread = spread_about_source(source, target, fit_intercept)
    prior = make_prior(source, spread, scale, fit_intercept=fit_intercept, unseen=True)
    return fit_ridge(source, prior, fit_intercept=fit_intercept)


@pytest.mark.parametrize("scale", ["max", "source", "equal"])
@pytest.mark.parametrize("shape", [(120, 8), (12, 20)], ids=["tall", "wide"])
def test_the_expectation_is_the_formula_of_the_posterior(rng, scale, shape):
    """(w - mu)' T (w - mu) + tr(Sigma T) + sigma^2, with the textbook posterior and every matrix written out."""
    n, d = shape
    X, y, Z, *_ = shifted(rng, n=n, d=d)
    posterior = posterior_of(X, y, Z, scale=scale, fit_intercept=False)
    sigma2, precision = posterior.sigma2[0], np.diag(posterior.prior.units**2) / posterior.tau2[0]
    cov = np.linalg.inv(X.T @ X / sigma2 + precision)
    mean, T, w = cov @ X.T @ y / sigma2, Z.T @ Z / len(Z), rng.normal(size=d)
    expected = (w - mean) @ T @ (w - mean) + np.trace(cov @ T) + sigma2
    got = expected_square(posterior, w[:, None], np.zeros(1), Moments.of(Z))
    np.testing.assert_allclose(got, [expected], rtol=1e-7)


def test_the_mean_square_of_the_scales_of_rows_is_the_expectation(rng):
    """One posterior gives both, so an interval of a row cannot contradict the forecast. Blocks change nothing."""
    X, y, Z, *_ = shifted(rng, m=BLOCK_ROWS + 7)
    Y = np.column_stack([y, 3.0 * y**2])
    posterior = posterior_of(X, Y, Z)
    coef, intercept = rng.normal(size=(8, 2)), rng.normal(size=2)
    scale = row_scale(posterior, Z, Z @ coef + intercept)
    mean_square = expected_square(posterior, coef, intercept, Moments.of(Z))
    np.testing.assert_allclose(np.mean(scale**2, axis=0), mean_square, rtol=1e-9)
    assert (scale**2 >= posterior.sigma2).all()


def test_with_a_flat_prior_least_squares_is_forecast_as_theorem_1_says(rng):
    """A strong signal makes the evidence choose a prior that is nearly flat."""
    X, _, Z, _, w = shifted(rng, n=200, sigma=0.0)
    y = 1e4 * X @ w + rng.normal(size=200)
    posterior = posterior_of(X, y, Z, fit_intercept=False)
    fit = fit_ols(Moments.of(X, y), fit_intercept=False)
    noise = posterior.sigma2[0]
    x, z = (Spectrum.of(rows) for rows in (X, Z))
    expected = float(np.squeeze(ols_risk(x, z, noise))) / len(Z) + noise
    got = expected_square(posterior, fit.w_hat, np.zeros(1), Moments.of(Z))
    np.testing.assert_allclose(got, [expected], rtol=1e-3)


def test_no_weights_have_a_smaller_expected_error_than_the_posterior_mean(rng):
    """So a recommendation and a forecast cannot contradict each other."""
    X, y, Z, *_ = shifted(rng)
    posterior, target = posterior_of(X, y, Z), Moments.of(Z)
    coef, intercept = posterior.weights()
    best = expected_square(posterior, coef, intercept, target)
    for _ in range(20):
        step = 0.1 * rng.normal(size=coef.shape)
        assert expected_square(posterior, coef + step, intercept + 0.1 * rng.normal(), target) > best


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_of_features_and_labels_do_not_matter(rng, factor):
    X, y, Z, *_ = shifted(rng)
    columns = np.geomspace(1.0, factor, 8)
    one, other = posterior_of(X, y, Z), posterior_of(X * columns, y * factor, Z * columns)
    scales = [
        row_scale(of, rows, rows @ of.weights()[0] + of.weights()[1]) for of, rows in ((one, Z), (other, Z * columns))
    ]
    np.testing.assert_allclose(scales[1], factor * scales[0], rtol=1e-6)


def test_scales_of_rows_are_right_for_linear_labels_whose_weights_follow_the_prior():
    rng, squares = np.random.default_rng(0), []
    for _ in range(150):
        X, Z = rng.normal(size=(40, 5)), rng.normal(size=(30, 5)) * [1.0, 1.0, 1.0, 4.0, 4.0]
        w = rng.normal(size=5) / np.maximum(X.std(axis=0), np.sqrt(np.mean(Z**2, axis=0)))
        y, yz = X @ w + rng.normal(size=40), Z @ w + rng.normal(size=30)
        posterior = posterior_of(X, y, Z)
        coef, intercept = posterior.weights()
        prediction = Z @ coef + intercept
        squares.append(np.mean(((yz[:, None] - prediction) / row_scale(posterior, Z, prediction)) ** 2))
    assert 0.9 < np.mean(squares) < 1.25  # the variances count as known, so scales are a little too small


def test_a_column_that_is_constant_in_the_source_adds_the_uncertainty_of_the_prior(rng):
    X, Z = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    X[:, 2] = 20.0
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    posterior = posterior_of(X, y, Z)
    coef, intercept = posterior.weights()
    scale = row_scale(posterior, Z, Z @ coef + intercept)[:, 0]
    far, near = scale[np.abs(Z[:, 2] - 20.0) > 21.0], scale[np.abs(Z[:, 2] - 20.0) < 19.5]
    assert far.min() > near.max() > np.sqrt(posterior.sigma2[0] + posterior.tau2[0] * 0.5)
    total = expected_square(posterior, coef, intercept, Moments.of(Z))
    np.testing.assert_allclose(np.mean(scale**2), total, rtol=1e-9)


@pytest.mark.parametrize("shape", [(3, 2), (11, 10)])
def test_a_source_that_is_fitted_exactly_is_not_forecast_without_error(shape):
    n, d = shape
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(n, d)), rng.normal(size=(100, d))
        y = X[:, 0] + rng.normal(size=n)
        posterior = posterior_of(X, y, Z)
        coef, intercept = posterior.weights()
        assert expected_square(posterior, coef, intercept, Moments.of(Z)) > 0.0
        assert row_scale(posterior, Z, Z @ coef + intercept).min() > 0.0


def test_on_new_rows_like_those_of_the_source_the_expectation_is_that_of_left_out_rows(rng):
    """With fewer rows than features, generalised cross-validation replaces the expectation on rows fitted exactly."""
    for n, d in ((300, 10), (30, 60)):
        X, y = rng.normal(size=(n, d)), rng.normal(size=n)
        posterior = posterior_of(X, y, X)
        source = Moments.of(X, y)
        square = source_square(posterior, posterior, *posterior.weights(), source)
        new = rng.normal(size=(2000, d))
        coef, intercept = posterior.weights()
        actual = np.mean((rng.normal(size=(2000, 1)) - new @ coef - intercept) ** 2)
        assert 0.5 < square[0] / actual < 1.6


def test_a_forecast_prints_its_intervals():
    forecast = Forecast("ridge", 2.0, (1.0, 4.0), (0.5, 8000.0), 1.0, 1.5)
    assert repr(forecast) == "Forecast(ridge: RMSE 2; 80 %: 1 to 4; 95 %: 0.5 to 8,000)"
