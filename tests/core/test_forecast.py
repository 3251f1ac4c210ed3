"""Forecasts, compared with brute-force formulas, Theorem 1, and simulated targets with labels."""

import copy

import numpy as np
import pytest
from scipy.stats import multivariate_t

from pyspar import BayesSpARRegressor, Moments, SpARRegressor
from pyspar.core.forecast import Forecaster
from pyspar.core.posterior import posterior_of_fit, predictive
from pyspar.core.regression import Prior, fit_ridge, least_squares, units_of_features
from pyspar.core.separation import measure_separation
from pyspar.core.spectrum import Spectrum
from pyspar.estimators.validation import weights_of
from pyspar.theory import ols_risk


def shifted(rng, n=120, m=100, d=8, sigma=1.0):
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    X = rng.normal(size=(n, d)) * np.geomspace(1.0, 0.05, d) @ turn
    Z = rng.normal(size=(m, d)) * np.geomspace(0.05, 1.0, d) @ turn + 0.3
    w = rng.normal(size=d) / X.std(axis=0)
    return X, X @ w + sigma * rng.normal(size=n), Z, Z @ w + sigma * rng.normal(size=m), w


def posterior_of(X, y, *, fit_intercept):
    source = Moments.of(X, y)
    return posterior_of_fit(least_squares(source, fit_intercept=fit_intercept))


def prior_at_zero(units, n_outputs):
    return Prior(units, np.zeros((len(units), n_outputs)), np.zeros(n_outputs))


def forecaster_of(X, y, Z, *, prior_scale="max", fit_intercept=True, **how):
    source, target = Moments.of(X, y), Moments.of(Z)
    spread = target.spread_about(source.mean[: source.n_features] if fit_intercept else np.zeros(source.n_features))
    unit = units_of_features(source, spread, prior_scale, fit_intercept=fit_intercept, include_unseen=True)
    return Forecaster(source, target, [prior_at_zero(unit, source.n_outputs)], fit_intercept=fit_intercept, **how)


def test_the_plausibility_of_kappa_is_that_of_the_integrated_likelihood(rng):
    X, y, *_ = shifted(rng, n=12, d=3)
    posterior = posterior_of(X, y, fit_intercept=False)
    U = X / posterior.fit.x.largest
    fine = np.abs(np.log10(posterior.kappa)) < 10  # beyond, the plain formula runs out of digits
    log = np.array(
        [
            # Integrated over sigma^2 with the prior 1 / sigma^2, the labels are a t variable with df -> 0; its kernel
            # is |S|^(-1/2) (y' S^-1 y)^(-n/2), which any two kappas compare.
            -0.5 * np.linalg.slogdet(S)[1] - 6.0 * np.log(y @ np.linalg.solve(S, y))
            for S in (np.eye(12) + U @ U.T / k for k in posterior.kappa[fine])
        ]
    )
    energy = (posterior.data.lam**2).sum() / 12
    share = energy / (energy + posterior.kappa[fine])
    log = log + 0.5 * np.log(share) + 0.1 * np.log(1.0 - share)
    expected = np.exp(log - log.max())
    np.testing.assert_allclose(posterior.probability[fine, 0], expected / expected.sum(), atol=1e-8)
    assert posterior.probability.sum() == pytest.approx(1.0)


def test_rows_have_the_t_distribution_of_the_conjugate_posterior(rng):
    X, y, Z, *_ = shifted(rng, n=20, d=3)
    posterior = posterior_of(X, y, fit_intercept=False)
    found = predictive([posterior], [Z[:1]], 7.0)
    middle = found.centre.shape[0] // 2
    share = (middle + 0.5) / found.centre.shape[0]
    kappa = posterior.kappa[np.searchsorted(np.cumsum(posterior.probability[:, 0]), share)]
    U, z = X / posterior.fit.x.largest, Z[0] / posterior.fit.x.largest
    precision = U.T @ U + kappa * np.eye(3)
    centre = z @ np.linalg.solve(precision, U.T @ y)
    residual = y @ y - (U.T @ y) @ np.linalg.solve(precision, U.T @ y)
    scale = np.sqrt(residual / 20 * (1.0 + z @ np.linalg.solve(precision, z)))
    np.testing.assert_allclose([found.centre[middle, 0], found.scale[middle, 0]], [centre + 7.0, scale], rtol=1e-8)
    one = multivariate_t(loc=[centre + 7.0], shape=[[scale**2]], df=20)
    low = type(found)(found.centre[[middle]], found.scale[[middle]], found.degrees).quantile(0.2)
    np.testing.assert_allclose(one.cdf(low), 0.2, atol=1e-3)  # scipy integrates this one numerically


@pytest.mark.parametrize("units", ["max", "source", "equal"])
@pytest.mark.parametrize("shape", [(60, 8), (6, 8)])
def test_the_expectation_is_the_formula_of_the_belief(rng, units, shape):
    """(w - mu)' T (w - mu) + tr(Sigma T) + sigma^2, with the textbook posterior and every matrix written out."""
    X, y, Z, *_ = shifted(rng, n=shape[0], d=shape[1])
    X = X - X.mean(axis=0)
    unit = units_of_features(Moments.of(X), Moments.of(Z).spread_about(np.zeros(8)), units, fit_intercept=False)
    belief = fit_ridge(Moments.of(X / unit, y), fit_intercept=False).evidence
    precision = (X / unit).T @ (X / unit) / belief.sigma2 + np.eye(8) / belief.tau2
    covariance = np.linalg.inv(precision)
    mean = covariance @ (X / unit).T @ y / belief.sigma2
    T, w = (Z / unit).T @ (Z / unit) / len(Z), rng.normal(size=8)
    found = forecaster_of(X, y, Z, prior_scale=units, fit_intercept=False).forecast("", w[:, None], np.zeros(1))
    away = w * unit - mean
    assert found.bias == pytest.approx(away @ T @ away, rel=1e-8)
    assert found.variance == pytest.approx(np.trace(covariance @ T), rel=1e-8)
    assert found.noise == pytest.approx(belief.sigma2[0], rel=1e-12)
    assert found.rmse**2 == pytest.approx(found.bias + found.variance + found.noise)


def test_the_intercept_adds_its_distance_and_its_uncertainty(rng):
    X, y, Z, *_ = shifted(rng)
    forecaster = forecaster_of(X, y, Z)
    coef, intercept = forecaster.best()
    best, moved = forecaster.forecast("", coef, intercept), forecaster.forecast("", coef, intercept + 0.5)
    assert moved.bias == pytest.approx(best.bias + 0.25)
    without = forecaster_of(X - X.mean(axis=0), y - y.mean(), Z - X.mean(axis=0), fit_intercept=False)
    assert best.variance > without.forecast("", coef, np.zeros(1)).variance * (1 - 1e-6)


def test_with_a_flat_prior_least_squares_is_forecast_as_theorem_1_says(rng):
    """Labels without bound on the weights: a strong signal makes the evidence choose a prior that is nearly flat."""
    X, y, Z, *_ = shifted(rng, n=400, d=5)
    y = y + 1e6 * X @ np.ones(5)
    est = SpARRegressor(fit_intercept=False).fit(X, y)
    forecaster = forecaster_of(X, y, Z, fit_intercept=False)
    found = forecaster.forecast("OLS", *weights_of(est))
    theorem = ols_risk(Spectrum.of(X), Spectrum.of(Z), np.array([found.noise]))[0] / len(Z)
    assert found.rmse_noiseless**2 == pytest.approx(theorem, rel=1e-3)


@pytest.mark.parametrize("units", ["max", "source", "equal"])
def test_no_weights_have_a_smaller_expected_error_than_the_adapted_ones(shifts, rng, units):
    """So a recommendation and a forecast cannot contradict each other."""
    data = shifts(offset=1.0)
    est = BayesSpARRegressor(units, centre=data.w_star + 0.2).fit(data.X, data.y).adapt(data.Z)
    best = est.expected_rmse(data.Z)
    assert best.bias == pytest.approx(0.0, abs=1e-12)
    forecaster = est._model.forecaster(Moments.of(data.Z))
    coef, intercept = weights_of(est)
    for _ in range(50):
        change = 0.01 * rng.normal(size=coef.shape)
        assert forecaster.forecast("", coef + change, intercept + 0.01 * rng.normal()).rmse > best.rmse
    for other in (SpARRegressor().fit(data.X, data.y), SpARRegressor().fit(data.X, data.y).adapt(data.Z)):
        assert forecaster.forecast("", *weights_of(other)).rmse >= best.rmse


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
def test_the_unit_of_a_feature_changes_no_forecast_and_no_interval(rng, kind):
    X, y, Z, *_ = shifted(rng)
    factors = np.geomspace(1e-6, 1e6, 8)
    plain, other = kind().fit(X, y).adapt(Z), kind().fit(X * factors, y)
    if kind is BayesSpARRegressor:  # the paper's directions depend on units
        other.adapt(Z * factors)
        assert other.expected_rmse(Z * factors).interval95 == pytest.approx(plain.expected_rmse(Z).interval95, rel=1e-6)
    else:
        plain.fit(X, y)
    np.testing.assert_allclose(other.predict_interval(Z * factors), plain.predict_interval(Z), rtol=1e-6)


@pytest.mark.parametrize("factor", [1e-50, 1e-3, 1e50])
def test_units_do_not_matter(rng, factor):
    X, y, Z, *_ = shifted(rng)
    plain = SpARRegressor().fit(X, y).expected_rmse(Z)
    labels = SpARRegressor().fit(X, factor * y).expected_rmse(Z)
    features = SpARRegressor().fit(factor * X, y).expected_rmse(factor * Z)
    assert labels.rmse == pytest.approx(factor * plain.rmse, rel=1e-6)
    assert features.rmse == pytest.approx(plain.rmse, rel=1e-6)


def test_intervals_have_their_nominal_coverage_on_simulated_targets():
    """Linear labels whose weights are alike in units of the source, as the default prior does not assume."""
    rng = np.random.default_rng(7)
    inside = {"OLS": 0, "SpAR": 0, "Bayes-SpAR": 0}
    rows = []
    for _ in range(500):
        X, y, Z, yz, _ = shifted(rng, n=80, m=50, d=6, sigma=10.0 ** rng.uniform(-1.0, 1.0))
        ols, ours = SpARRegressor().fit(X, y), BayesSpARRegressor().fit(X, y)
        forecaster = ours._model.forecaster(Moments.of(Z))
        low, high = ours._model.row_intervals(Z, 0.9)[:, :, 0]
        rows.append(np.mean((yz >= low) & (yz <= high)))
        for name, est in (("OLS", ols), ("SpAR", copy.copy(ols).adapt(Z)), ("Bayes-SpAR", ours.adapt(Z))):
            low, high = forecaster.forecast(name, *weights_of(est)).interval95_if_linear
            inside[name] += low <= np.sqrt(np.mean((est.predict(Z) - yz) ** 2)) <= high
    assert all(0.92 <= count / 500 <= 0.98 for count in inside.values()), inside
    assert 0.88 <= np.mean(rows) <= 0.92


@pytest.mark.parametrize("kind", ["least squares", "adapted"])
@pytest.mark.parametrize("weights", [(0.001, 1.0), (1.0, 0.001), (1.0, 2.0)])
def test_row_intervals_hold_on_the_papers_shift_where_conformal_ones_fail(weights, kind):
    rng = np.random.default_rng(3)
    w = np.array(weights) / np.linalg.norm(weights)
    ours, conformal = [], []
    for _ in range(150):
        X, Z = rng.normal(size=(400, 2)) * np.sqrt([5, 1e-5]), rng.normal(size=(40, 2)) * np.sqrt([1, 40])
        y, yz = X @ w + rng.normal(size=400), Z @ w + rng.normal(size=40)
        if kind == "adapted":
            est = BayesSpARRegressor(fit_intercept=False).fit(X, y).adapt(Z)
        else:
            est = SpARRegressor(fit_intercept=False).fit(X, y)
        low, high = est.predict_interval(Z, 0.9)
        ours.append(np.mean((low <= yz) & (yz <= high)))
        half = SpARRegressor(fit_intercept=False).fit(X[:200], y[:200])
        radius = np.quantile(np.abs(half.predict(X[200:]) - y[200:]), 0.9)
        conformal.append(np.mean(np.abs(half.predict(Z) - yz) <= radius))
    assert np.mean(conformal) < 0.1
    # One direction decides each draw, so the mean of 150 has an error of 0.025. The source has little information on
    # it, so the intervals are wide, and cover too much where its weight happens to be small.
    assert np.mean(ours) >= 0.85


def test_labels_that_do_not_vary_are_forecast_without_error(rng):
    X, _, Z, *_ = shifted(rng)
    found = SpARRegressor().fit(X, np.full(len(X), 3.0)).expected_rmse(Z)
    assert found.rmse == 0.0
    assert found.interval95 == (0.0, 0.0)


def test_a_column_that_is_constant_in_the_source_adds_the_uncertainty_of_the_prior(rng):
    X, y, Z, *_ = shifted(rng, d=3)
    X, Z = np.column_stack([X, np.full(len(X), 2.0)]), np.column_stack([Z, 2.0 + 10.0 * rng.normal(size=len(Z))])
    est = BayesSpARRegressor().fit(X, y).adapt(Z)
    with_it, without = est.expected_rmse(Z), BayesSpARRegressor().fit(X[:, :3], y).adapt(Z[:, :3])
    # In units of its spread over the target the column has a mean square of one.
    assert with_it.variance - without.expected_rmse(Z[:, :3]).variance == pytest.approx(est.tau2_, rel=1e-6)
    forecaster = est._model.forecaster(Moments.of(Z))
    coef, intercept = weights_of(est)
    moved = coef + np.array([[0.0], [0.0], [0.0], [0.5]])
    after = forecaster.forecast("", moved, intercept - 2.0 * 0.5)
    assert after.bias == pytest.approx(0.25 * np.mean((Z[:, 3] - 2.0) ** 2), rel=1e-6)


def few_rows(seed, n=60, d=150, noise=0.5):
    """Fewer rows than features, of a decaying spectrum, and the same rows with every fifth of them twice."""
    rng = np.random.default_rng(seed)
    turn = np.geomspace(1.0, 1e-3, d)[:, None] * np.linalg.qr(rng.normal(size=(d, d)))[0]
    X, Z = rng.normal(size=(n, d)) @ turn, 1.5 * rng.normal(size=(80, d)) @ turn
    y = X @ rng.normal(size=d) + noise * rng.normal(size=n)
    copies = np.r_[np.arange(n), np.arange(0, n, 5)]
    return X, y, X[copies], y[copies], Z


@pytest.mark.parametrize("seed", [0, 1, 2])  # the evidence for copies must be very strong, which it is not in each draw
def test_copies_of_rows_do_not_imply_noiseless_labels(seed):
    X, y, X2, y2, Z = few_rows(seed)
    twice, once = BayesSpARRegressor().fit(X2, y2), BayesSpARRegressor().fit(X, y)
    assert twice.evidence_.limit == ("repeated-rows",)
    forecasts = [est.expected_rmse(Z) for est in (once, twice)]
    widths = [np.median(np.subtract(*est.predict_interval(Z)[::-1])) for est in (once, twice)]
    # Twelve rows of 72 count twice, which moves the standard deviations by about that share.
    assert np.sqrt(forecasts[1].noise) == pytest.approx(np.sqrt(forecasts[0].noise), rel=0.4)
    assert widths[1] == pytest.approx(widths[0], rel=0.4)


def test_repeated_rows_are_detected_for_each_output_separately():
    _, _, X2, y2, _ = few_rows(0)
    exact = X2 @ np.linalg.svd(X2 - X2.mean(axis=0))[2][0]  # along one direction, and exactly so
    both = posterior_of(X2, np.column_stack([y2, exact]), fit_intercept=True)
    np.testing.assert_array_equal(both.labels, [both.fit.x.rank, 71.0])


def test_rows_that_differ_all_count(rng):
    X, y, *_ = shifted(rng)
    assert posterior_of(X, y, fit_intercept=True).labels.tolist() == [119.0]
    assert posterior_of(X, y, fit_intercept=False).labels.tolist() == [120.0]


def test_other_rows_are_forecast_by_the_same_draws_as_if_they_were_forecast_alone(rng):
    X, y, Z, *_ = shifted(rng)
    Y = np.column_stack([y, y[::-1]])
    est, source = SpARRegressor().fit(X, Y), Moments.of(X, Y)
    priors = [prior_at_zero(np.ones(8), 2)]
    whole = Forecaster(source, Moments.of(Z), priors, fit_intercept=True)
    for rows in (Z[:1], Z[20:27], Z):
        part = whole.on(Moments.of(rows))
        alone = Forecaster(source, Moments.of(rows), priors, fit_intercept=True)
        for output in (0, 1):
            assert part.forecast("OLS", *weights_of(est), output) == alone.forecast("OLS", *weights_of(est), output)
    again = whole.forecast("OLS", *weights_of(est), 0)  # what was kept for the last output does not linger
    assert again == Forecaster(source, Moments.of(Z), priors, fit_intercept=True).forecast("OLS", *weights_of(est), 0)


def test_few_rows_of_a_shifted_target_have_its_separation(rng):
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    forecaster = BayesSpARRegressor().fit(X, y)._model.forecaster(Moments.of(rng.normal(size=(200, 3)) + 2.0))
    few = Moments.of(rng.normal(size=(4, 3)))
    assert not measure_separation(Moments.of(X), few).found
    assert forecaster.on(few).separation == forecaster.separation


def test_an_interval_contains_its_expectation(rng):
    for seed in range(30):
        X, y, Z, *_ = shifted(np.random.default_rng(seed), n=12, m=9, d=5, sigma=3.0)
        for est in (BayesSpARRegressor().fit(X, y), BayesSpARRegressor().fit(X, y).adapt(Z)):
            found = est.expected_rmse(Z)
            assert found.interval95[0] <= found.interval80[0] <= found.rmse <= found.interval80[1]
            assert found.interval80[1] <= found.interval95[1]
    constant = BayesSpARRegressor().fit(np.full((200, 5), 0.3), rng.normal(size=200))
    found = constant.expected_rmse(rng.normal(size=(9, 5)))
    assert found.interval95[0] <= found.rmse <= found.interval95[1]


def test_a_forecast_prints_both_ends_of_an_interval_in_the_same_form():
    X, y, Z, _, _ = shifted(np.random.default_rng(0), sigma=3.0)
    model = BayesSpARRegressor().fit(X, 5000.0 * y).adapt(Z)
    text = repr(model.expected_rmse(Z))
    assert "e+" not in text
    assert text.count(",") == 5
