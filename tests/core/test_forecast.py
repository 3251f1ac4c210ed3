"""Forecasts against what they forecast: brute-force integration, Theorem 1, and simulated targets with their labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

from pyspar import BayesSpARRegressor, Moments, SpARRegressor
from pyspar._forecasting import weights_of
from pyspar.core.forecast import Forecaster, forecaster_for
from pyspar.core.posterior import posterior_of, posteriors_for
from pyspar.core.predictive import predictive
from pyspar.core.risk import ols_risk
from pyspar.core.spectrum import Spectrum


def shifted(rng, n=120, m=100, d=8, sigma=1.0):
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    X = rng.normal(size=(n, d)) * np.geomspace(1.0, 0.05, d) @ turn
    Z = rng.normal(size=(m, d)) * np.geomspace(0.05, 1.0, d) @ turn + 0.3
    w = rng.normal(size=d) / X.std(axis=0)
    return X, X @ w + sigma * rng.normal(size=n), Z, Z @ w + sigma * rng.normal(size=m), w


def test_the_plausibility_of_kappa_is_that_of_the_integrated_likelihood(rng):
    X, y, *_ = shifted(rng, n=12, d=3)
    posterior = posterior_of(Moments.of(X, y), fit_intercept=False)
    U = X / posterior.spread / posterior.reach
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
    np.testing.assert_allclose(posterior.weight[fine, 0], expected / expected.sum(), atol=1e-8)
    assert posterior.weight.sum() == pytest.approx(1.0)


def test_rows_have_the_t_distribution_that_conjugate_algebra_gives_them(rng):
    X, y, Z, *_ = shifted(rng, n=20, d=3)
    posterior = posterior_of(Moments.of(X, y), fit_intercept=False)
    found = predictive(posterior, Z[:1])
    kappa = posterior.kappa[np.searchsorted(np.cumsum(posterior.weight[:, 0]), 0.5)]
    U, z = X / posterior.spread / posterior.reach, Z[0] / posterior.spread / posterior.reach
    precision = U.T @ U + kappa * np.eye(3)
    centre = z @ np.linalg.solve(precision, U.T @ y)
    residual = y @ y - (U.T @ y) @ np.linalg.solve(precision, U.T @ y)
    scale = np.sqrt(residual / 20 * (1.0 + z @ np.linalg.solve(precision, z)))
    middle = found.centre.shape[0] // 2
    np.testing.assert_allclose([found.centre[middle, 0], found.scale[middle, 0]], [centre, scale], rtol=1e-8)
    one = multivariate_t(loc=[centre], shape=[[scale**2]], df=20)
    low = type(found)(found.centre[[middle]], found.scale[[middle]], found.degrees).quantile(0.2)
    np.testing.assert_allclose(one.cdf(low), 0.2, atol=1e-3)  # scipy integrates this one numerically


def test_with_a_flat_belief_least_squares_is_forecast_as_theorem_1_says(rng):
    X, y, Z, *_ = shifted(rng, n=200, d=5)
    est = SpARRegressor(fit_intercept=False).fit(X, y)
    posterior = posterior_of(est.moments_, fit_intercept=False)
    flat = np.zeros_like(posterior.weight)
    flat[-1] = 1.0  # the smallest kappa: a prior twelve decades wider than the weights
    posterior = replace(posterior, weight=flat)
    found = Forecaster(posterior, Moments.of(Z)).of("OLS", *weights_of(est))
    sigma2 = np.array([est.sigma2_ * 200 / 198])  # the mean of the noise variance given RSS has the divisor n - 2
    theorem = ols_risk(Spectrum.of(X), Spectrum.of(Z), sigma2)[0] / len(Z)
    assert found.rmse_noiseless**2 == pytest.approx(theorem, rel=1e-8)


def test_the_parts_of_the_expected_error_sum_to_it_and_the_best_guess_has_no_bias(rng):
    X, y, Z, *_ = shifted(rng)
    forecaster = Forecaster(posterior_of(Moments.of(X, y), fit_intercept=True), Moments.of(Z))
    guess = forecaster.of("guess", *forecaster.guess())
    assert guess.rmse**2 == pytest.approx(guess.variance + guess.bias + guess.noise)
    assert guess.bias == pytest.approx(0.0, abs=1e-12)
    other = forecaster.of("zero", np.zeros((8, 1)), np.zeros(1))
    assert other.rmse > guess.rmse
    assert other.variance == pytest.approx(guess.variance)


def test_the_expectation_is_the_mean_of_the_draws(rng):
    X, y, Z, *_ = shifted(rng, n=60)
    forecaster = Forecaster(posterior_of(Moments.of(X, y), fit_intercept=True), Moments.of(Z))
    found = forecaster.of("zero", np.zeros((8, 1)), np.zeros(1))
    errors, _ = forecaster._errors(np.zeros(8), 0.0, 0)
    assert (found.bias + found.variance) / forecaster.posterior.unit[0] ** 2 == pytest.approx(errors.mean(), rel=0.05)


@pytest.mark.parametrize(("d", "louder"), [(30, 3), (100, 8), (300, 8)])
def test_units_that_the_labels_speak_against_do_not_forecast(d, louder):
    """In units of the target the loud columns, which matter as much as the others, would hardly matter at all."""
    rng = np.random.default_rng(2)
    X, w = rng.normal(size=(900, d)), 0.2 * rng.normal(size=d)
    y = X @ w + rng.normal(size=900)
    Z = rng.normal(size=(500, d)) * np.where(np.arange(d) < louder, 10.0, 1.0)
    est = SpARRegressor(0.0).fit(X, y)
    forecaster, weights = forecaster_for(est.moments_, Moments.of(Z), fit_intercept=True), (est.coef_[:, None],)
    found = forecaster.of("OLS", *weights, np.atleast_1d(est.intercept_))
    assert found.interval95[0] < found.rmse < found.interval95[1]
    truth = np.sqrt(1.0 + np.mean((Z @ (est.coef_ - w) + est.intercept_) ** 2))
    assert found.rmse == pytest.approx(truth, rel=0.2)  # one draw; the wrong units have 1.6 to 3.3 times it
    assert found.bias + found.variance + found.noise == pytest.approx(found.rmse**2)


def test_the_expectation_over_several_beliefs_is_the_mean_of_their_draws(rng):
    X, y, Z, *_ = shifted(rng)
    forecaster = forecaster_for(Moments.of(X, y), Moments.of(Z), fit_intercept=True)
    w = rng.normal(size=8)
    shares = forecaster._draws.shares(0)
    bias, variance, _ = forecaster._split(w, 0.5, 0, shares)
    drawn, _ = forecaster._errors(w, 0.5, 0)
    assert bias + variance == pytest.approx(drawn.mean(), rel=0.05)  # of 2,000 draws
    alone = [sum(forecaster._split(w, 0.5, 0, one)[:2]) for one in np.eye(3)]
    assert bias + variance == pytest.approx(shares @ alone)


@pytest.mark.parametrize("factor", [1e-100, 1e-3, 1e100])
def test_units_do_not_matter(rng, factor):
    X, y, Z, *_ = shifted(rng)
    plain = SpARRegressor().fit(X, y).expected_rmse(Z)
    labels = SpARRegressor().fit(X, factor * y).expected_rmse(Z)
    features = SpARRegressor().fit(factor * X, y).expected_rmse(factor * Z)
    assert labels.rmse == pytest.approx(factor * plain.rmse, rel=1e-6)
    assert features.rmse == pytest.approx(plain.rmse, rel=1e-6)


def test_intervals_cover_what_they_promise_on_simulated_targets():
    rng = np.random.default_rng(7)
    inside = {"OLS": 0, "SpAR": 0, "guess": 0}
    rows = []
    for _ in range(500):
        X, y, Z, yz, _ = shifted(rng, n=80, m=50, d=6, sigma=10.0 ** rng.uniform(-1.0, 1.0))
        est = SpARRegressor().fit(X, y)
        target = Moments.of(Z)
        posterior = posterior_of(est.moments_, fit_intercept=True)
        forecaster = forecaster_for(est.moments_, target, fit_intercept=True)
        weights = {"OLS": weights_of(est), "SpAR": weights_of(est.adapted(Z)), "guess": forecaster.guess()}
        for name, (w, b) in weights.items():
            low, high = forecaster.of(name, w, b).interval95
            inside[name] += low <= np.sqrt(np.mean((Z @ w[:, 0] + b[0] - yz) ** 2)) <= high
        found = predictive(posterior, Z)
        rows.append(np.mean((yz >= found.quantile(0.05)) & (yz <= found.quantile(0.95))))
    assert all(0.92 <= count / 500 <= 0.98 for count in inside.values()), inside
    assert 0.88 <= np.mean(rows) <= 0.92


@pytest.mark.parametrize("weights", [(0.001, 1.0), (1.0, 0.001), (1.0, 2.0)])
def test_row_intervals_hold_on_the_papers_shift_where_conformal_ones_fail(weights):
    rng = np.random.default_rng(3)
    w = np.array(weights) / np.linalg.norm(weights)
    ours, conformal = [], []
    for _ in range(150):
        X, Z = rng.normal(size=(400, 2)) * np.sqrt([5, 1e-5]), rng.normal(size=(200, 2)) * np.sqrt([1, 40])
        y, yz = X @ w + rng.normal(size=400), Z @ w + rng.normal(size=200)
        est = SpARRegressor(fit_intercept=False).fit(X, y)
        low, high = est.predict_interval(Z, 0.9)
        ours.append(np.mean((low <= yz) & (yz <= high)))
        half = SpARRegressor(fit_intercept=False).fit(X[:200], y[:200])
        radius = np.quantile(np.abs(half.predict(X[200:]) - y[200:]), 0.9)
        conformal.append(np.mean(np.abs(half.predict(Z) - yz) <= radius))
    assert np.mean(conformal) < 0.1
    assert 0.85 <= np.mean(ours) <= 0.97  # one direction decides each draw: the mean of 150 has an error of 0.025


def test_labels_that_do_not_vary_are_forecast_without_error(rng):
    X, _, Z, *_ = shifted(rng)
    found = SpARRegressor().fit(X, np.full(len(X), 3.0)).expected_rmse(Z)
    assert found.rmse == 0.0
    assert found.interval95 == (0.0, 0.0)


def test_a_weight_on_a_column_that_the_source_never_moved_counts_in_full(rng):
    X, y, Z, *_ = shifted(rng, d=3)
    X, Z = np.column_stack([X, np.full(len(X), 2.0)]), np.column_stack([Z, 2.0 + 10.0 * rng.normal(size=len(Z))])
    forecaster = Forecaster(posterior_of(Moments.of(X, y), fit_intercept=True), Moments.of(Z))
    coef, intercept = forecaster.guess()
    moved = coef + np.array([[0.0], [0.0], [0.0], [0.5]])
    before, after = (forecaster.of("", w, intercept - 2.0 * (w[3] - coef[3])) for w in (coef, moved))
    # The source says nothing of that column, so the best guess has no weight there, and any weight is all error.
    assert after.rmse**2 - before.rmse**2 == pytest.approx(0.25 * np.mean((Z[:, 3] - 2.0) ** 2), rel=1e-6)


def few_rows(seed, n=60, d=150, noise=0.5):
    """Fewer rows than features, of a decaying spectrum, and the same rows with every fifth of them twice."""
    rng = np.random.default_rng(seed)
    turn = np.geomspace(1.0, 1e-3, d)[:, None] * np.linalg.qr(rng.normal(size=(d, d)))[0]
    X, Z = rng.normal(size=(n, d)) @ turn, 1.5 * rng.normal(size=(80, d)) @ turn
    y = X @ rng.normal(size=d) + noise * rng.normal(size=n)
    copies = np.r_[np.arange(n), np.arange(0, n, 5)]
    return X, y, X[copies], y[copies], Z


@pytest.mark.parametrize("seed", [0, 1, 2, 7])
def test_copies_of_rows_are_no_proof_that_labels_have_no_noise(seed):
    X, y, X2, y2, Z = few_rows(seed)
    twice = BayesSpARRegressor(rule="positive-part").fit(X2, y2)
    once = BayesSpARRegressor(rule="positive-part").fit(X, y)
    assert twice.evidence_.limit == ("repeated-rows",)
    forecasts = [est.expected_rmse(Z) for est in (once, twice)]
    widths = [np.median(np.subtract(*est.predict_interval(Z)[::-1])) for est in (once, twice)]
    # Twelve rows of 72 count twice, which moves the standard deviations by about that share.
    assert np.sqrt(forecasts[1].noise) == pytest.approx(np.sqrt(forecasts[0].noise), rel=0.4)
    assert widths[1] == pytest.approx(widths[0], rel=0.4)


def test_each_output_knows_for_itself_whether_rows_repeat():
    _, _, X2, y2, _ = few_rows(0)
    exact = X2 @ np.linalg.svd(X2 - X2.mean(axis=0))[2][0]  # along one direction, and exactly so
    both = posterior_of(Moments.of(X2, np.column_stack([y2, exact])), fit_intercept=True)
    np.testing.assert_array_equal(both.labels, [both.V.shape[1], 71.0])
    assert 1e6 * both.noise2(1) @ both.weight[:, 1] < both.noise2(0) @ both.weight[:, 0]


def test_rows_that_differ_all_count(rng):
    X, y, *_ = shifted(rng)
    assert posterior_of(Moments.of(X, y), fit_intercept=True).labels.tolist() == [119.0]
    assert posterior_of(Moments.of(X, y), fit_intercept=False).labels.tolist() == [120.0]


@pytest.mark.parametrize(
    ("feature", "size", "est", "side"),
    [(0, 1.0, SpARRegressor(), "below"), (-1, 0.2, BayesSpARRegressor(rule="positive-part"), "above")],
)
def test_where_one_feature_of_many_carries_everything_intervals_of_adapted_weights_miss(feature, size, est, side):
    """The limit that the documentation states: no prior that treats features alike expects it."""
    missed = {"below": 0, "above": 0}
    spread = np.geomspace(1.0, 0.05, 50)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(200, 50)) * spread, rng.normal(size=(100, 50)) * spread[::-1]
        y, yz = (size * rows[:, feature] / spread[feature] + 0.5 * rng.normal(size=len(rows)) for rows in (X, Z))
        est.fit(X, y).adapt(Z)
        low, high = est.expected_rmse(Z).interval95
        rmse = np.sqrt(np.mean((est.predict(Z) - yz) ** 2))
        missed["below"] += rmse < low
        missed["above"] += rmse > high
    assert missed[side] >= 10  # one of twenty is what they promise
    assert not missed["above" if side == "below" else "below"]


def test_other_rows_are_forecast_by_the_same_draws_as_if_they_were_asked_for_alone(rng):
    X, y, Z, *_ = shifted(rng)
    source = Moments.of(X, np.column_stack([y, y[::-1]]))
    est = SpARRegressor().fit_moments(source)
    first, *others = posteriors_for(source, Moments.of(Z), fit_intercept=True)
    whole = Forecaster(first, Moments.of(Z), beside=others)
    for rows in (Z[:1], Z[20:27], Z):
        part, alone = whole.on(Moments.of(rows)), Forecaster(first, Moments.of(rows), beside=others)
        for output in (0, 1):
            assert part.of("OLS", *weights_of(est), output) == alone.of("OLS", *weights_of(est), output)
    again = whole.of("OLS", *weights_of(est), 0)  # what was kept for the last output does not linger
    assert again == Forecaster(first, Moments.of(Z), beside=others).of("OLS", *weights_of(est), 0)


def test_shares_of_one_are_no_counts_whatever_their_rounding(rng):
    X, y, Z, *_ = shifted(rng, m=50)
    est = BayesSpARRegressor().fit(X, y)
    exact, less = (est.expected_rmse(Z, sample_weight=np.full(50, w / 50)) for w in (1.0, 1.0 - 1e-12))
    np.testing.assert_allclose(exact.interval95, less.interval95, rtol=1e-6)


def test_a_target_too_far_for_numbers_has_an_infinite_error_and_not_none(rng):
    X, y, Z, *_ = shifted(rng)
    found = BayesSpARRegressor().fit(X, y).expected_rmse(1e200 * Z)
    assert not np.isnan([found.rmse, *found.interval95, *found.interval80_noiseless, found.bias, found.variance]).any()


def test_a_mean_that_a_few_draws_make_alone_is_cut_at_its_interval(rng):
    found = (
        BayesSpARRegressor().fit(np.full((200, 5), 0.3), rng.normal(size=200)).expected_rmse(rng.normal(size=(9, 5)))
    )
    assert found.interval95[0] <= found.rmse <= found.interval95[1]
    assert found.bias + found.variance + found.noise == pytest.approx(found.rmse**2)
