"""Theorems 1 to 3, compared with Monte Carlo averages and enumeration of all sets."""

import dataclasses
import itertools

import numpy as np
import pytest

from pyspar.theory import (
    Moments,
    OLSFit,
    Spectrum,
    adapt,
    bias_terms,
    fit_ols,
    ols_risk,
    oracle_rule,
    projected_risk,
    variance_terms,
)

DRAWS = 20_000

# n, m, d, rank of the source, sigma, seed; N < D and rank-deficient sources among them.
GEOMETRIES = [
    (40, 30, 6, 6, 1.0, 1),
    (200, 50, 12, 12, 0.3, 2),
    (13, 7, 12, 12, 2.0, 3),
    (12, 40, 12, 12, 0.7, 4),
    (8, 20, 15, 8, 1.0, 5),
    (5, 60, 30, 5, 0.1, 6),
    (60, 25, 10, 4, 1.5, 7),
    (100, 3, 9, 7, 1.0, 8),
    (30, 1, 5, 5, 10.0, 9),
    (50, 80, 1, 1, 0.5, 10),
    (6, 2, 20, 3, 1.0, 11),
    (80, 80, 20, 20, 3.0, 12),
]


def geometry(n, m, d, rank, sigma, seed):
    """Return X of the given rank, and Z and w* in the span of its rows."""
    rng = np.random.default_rng(seed)
    span = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    X = (rng.normal(size=(n, rank)) * np.geomspace(1.0, 0.1, rank)) @ span.T
    Z = (rng.normal(size=(m, rank)) * rng.uniform(0.2, 3.0, size=rank)) @ span.T
    return X, Z, span @ rng.normal(size=rank), rng


def simulated_weights(X, w_star, sigma, rng, draws=DRAWS):
    """Return least squares by the pseudoinverse for many draws of the label noise, one column each."""
    Y = (X @ w_star)[:, None] + sigma * rng.normal(size=(X.shape[0], draws))
    return np.linalg.pinv(X) @ Y


def assert_within_five_standard_errors(samples, expected):
    # Five standard errors of the mean: a right formula fails once in two million times. They are at most six per cent
    # of the mean (a squared normal variable spreads by sqrt(2) of its mean), so a formula wrong by a tenth fails.
    error = samples.std(ddof=1) / np.sqrt(samples.size)
    assert abs(samples.mean() - expected) < 5 * error
    assert 5 * error < 0.06 * expected


@pytest.mark.parametrize(("n", "m", "d", "rank", "sigma", "seed"), GEOMETRIES)
def test_theorem_1_predicts_the_average_target_loss_of_ols(n, m, d, rank, sigma, seed):
    X, Z, w_star, rng = geometry(n, m, d, rank, sigma, seed)
    w_hat = simulated_weights(X, w_star, sigma, rng)
    losses = ((Z @ w_hat - (Z @ w_star)[:, None]) ** 2).sum(axis=0)
    predicted = ols_risk(Spectrum.of(X), Spectrum.of(Z), np.array([sigma**2]))
    assert predicted.shape == (1,)
    assert_within_five_standard_errors(losses, predicted[0])


@pytest.mark.parametrize(("n", "m", "d", "rank", "sigma", "seed"), GEOMETRIES)
def test_theorem_2_predicts_the_average_loss_after_removing_any_set(n, m, d, rank, sigma, seed):
    X, Z, w_star, rng = geometry(n, m, d, rank, sigma, seed)
    x, z = Spectrum.of(X), Spectrum.of(Z)
    removed = rng.random(z.rank) < 0.5
    E = np.linalg.svd(Z)[2][: z.rank].T[:, removed]
    w_hat = simulated_weights(X, w_star, sigma, rng)
    w_proj = w_hat - E @ (E.T @ w_hat)
    losses = ((Z @ w_proj - (Z @ w_star)[:, None]) ** 2).sum(axis=0)
    predicted = projected_risk(x, z, np.array([sigma**2]), w_star, removed)[0]
    if removed.all():  # only bias is left, and no draw differs from another; 1e-9: rounding of the two SVDs
        np.testing.assert_allclose(losses, predicted, rtol=1e-9)
    else:
        assert abs(losses.mean() - predicted) < 5 * losses.std(ddof=1) / np.sqrt(DRAWS) + 1e-9 * predicted


def test_theorem_2_holds_for_each_of_several_outputs_with_its_own_set_and_noise(rng):
    X, Z, _, _ = geometry(40, 30, 6, 6, 1.0, 21)
    w_star, sigma = rng.normal(size=(6, 3)), np.array([0.5, 1.0, 2.0])
    x, z = Spectrum.of(X), Spectrum.of(Z)
    removed = rng.random((6, 3)) < 0.5
    predicted = projected_risk(x, z, sigma**2, w_star, removed)
    for k in range(3):
        one = projected_risk(x, z, sigma[k : k + 1] ** 2, w_star[:, k], removed[:, k])
        assert predicted[k] == pytest.approx(one[0], rel=1e-13)  # the same sums, in the same order up to rounding


@pytest.mark.parametrize("seed", range(10))
def test_theorem_3_no_subset_beats_the_oracle_set(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    X, Z, w_star, _ = geometry(20, 15, d, d, 1.0, 100 + seed)
    x, z, sigma2 = Spectrum.of(X), Spectrum.of(Z), np.array([rng.uniform(0.01, 3.0)])
    subsets = [np.array(bits) for bits in itertools.product([False, True], repeat=d)]
    risks = [projected_risk(x, z, sigma2, w_star, removed)[0] for removed in subsets]
    best = projected_risk(x, z, sigma2, w_star, oracle_rule(x, z, sigma2, w_star))[0]
    assert len(risks) == 2**d
    assert best == pytest.approx(min(risks), rel=1e-13)  # the same d numbers summed: only rounding may differ


def test_the_oracle_enumeration_would_notice_a_wrong_set():
    X, Z, w_star, _ = geometry(20, 15, 6, 6, 1.0, 5)
    x, z, sigma2 = Spectrum.of(X), Spectrum.of(Z), np.array([0.05])
    oracle = oracle_rule(x, z, sigma2, w_star)
    assert oracle.any()
    assert not oracle.all()
    best = projected_risk(x, z, sigma2, w_star, oracle)
    for j in range(6):
        other = oracle.copy()
        other[j] = ~other[j]
        assert projected_risk(x, z, sigma2, w_star, other) > best


@pytest.mark.parametrize("centre_shift", [0.0, 3.0])
def test_with_an_intercept_the_risk_before_is_the_average_loss_of_least_squares_on_the_target(rng, centre_shift):
    n, m, d, sigma = 40, 25, 4, 0.8
    X = rng.normal(size=(n, d)) + 5.0
    Z = rng.normal(size=(m, d)) * 2.0 + 5.0 + centre_shift
    w_star, intercept = rng.normal(size=d), 7.0
    truth = intercept + X @ w_star
    fit = fit_ols(Moments.of(X, truth + sigma * rng.normal(size=n)), fit_intercept=True)
    known = dataclasses.replace(fit, sigma=np.array([sigma]))
    adaptation = adapt(known, Moments.of(Z), lambda terms: np.zeros(terms.mean.shape, dtype=bool))

    ones_X, ones_Z = np.column_stack([np.ones(n), X]), np.column_stack([np.ones(m), Z])
    Y = truth[:, None] + sigma * rng.normal(size=(n, DRAWS))
    predictions = ones_Z @ (np.linalg.pinv(ones_X) @ Y)
    losses = ((predictions - (intercept + Z @ w_star)[:, None]) ** 2).sum(axis=0)
    assert_within_five_standard_errors(losses, adaptation.risk_before[0])
    # The part that the intercept adds is no small change here, or leaving it out would go unnoticed.
    assert adaptation.mean_risk[0] == pytest.approx(m * sigma**2 / n, rel=1e-12)


def test_the_estimated_bias_exceeds_the_bias_by_the_variance_on_average(rng):
    X, Z, w_star, _ = geometry(30, 20, 5, 5, 1.0, 31)
    sigma, draws = 0.6, 40_000
    w_hat = simulated_weights(X, w_star, sigma, rng, draws)
    x = Spectrum.of(X)
    zero = np.zeros(5)
    fit = OLSFit(w_hat, x, zero, np.zeros(draws), 30.0, False, sigma=np.full(draws, sigma))
    samples = adapt(fit, Moments.of(Z), lambda terms: np.zeros(terms.mean.shape, dtype=bool)).terms.bias_hat
    # Bias and Var by their definitions, from a plain SVD and the covariance of the pseudoinverse.
    _, lam, Vt = np.linalg.svd(Z, full_matrices=False)
    bias = (Vt @ w_star) ** 2 * lam**2
    var = sigma**2 * ((Vt @ np.linalg.pinv(X)) ** 2).sum(axis=1) * lam**2
    error = samples.std(axis=1, ddof=1) / np.sqrt(draws)
    assert (np.abs(samples.mean(axis=1) - (bias + var)) < 5 * error).all()
    assert (var > 10 * error).any()  # the excess is visible


def test_variance_and_bias_terms_are_the_sums_of_the_paper(rng):
    X, Z, w = rng.normal(size=(30, 4)), rng.normal(size=(20, 4)), rng.normal(size=4)
    _, lx, Vx = np.linalg.svd(X, full_matrices=False)
    _, lz, Vz = np.linalg.svd(Z, full_matrices=False)
    var = [sum(2.0 * lz[j] ** 2 / lx[i] ** 2 * (Vx[i] @ Vz[j]) ** 2 for i in range(4)) for j in range(4)]
    bias = [(w @ Vz[j]) ** 2 * lz[j] ** 2 for j in range(4)]
    x, z = Spectrum.of(X), Spectrum.of(Z)
    # 1e-11: the spectra come from squared matrices, whose relative error here is 1e-13.
    np.testing.assert_allclose(variance_terms(x, z, np.array([2.0]))[:, 0], var, rtol=1e-11)
    np.testing.assert_allclose(bias_terms(z, w)[:, 0], bias, rtol=1e-9)
