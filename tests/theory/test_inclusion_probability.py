"""Proposition 1 and Lemma 1: the probability that the rule removes a direction."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from pyspar.theory import Moments, OLSFit, Spectrum, Terms, adapt, chi2_rule, inclusion_probability, level_with_mle

DRAWS = 20_000
RATIOS = np.array([0.0, 1e-4, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0])
ALPHAS = [0.01, 0.3, 0.9, 0.99, 0.999]


@pytest.fixture(scope="module")
def simulated():
    """The rule at work on directions of known Bias / Var: noise, pseudoinverse, adaptation with the true sigma."""
    rng = np.random.default_rng(7)
    d, n, sigma = RATIOS.size, 25, 0.7
    X = rng.normal(size=(n, d))
    V = np.linalg.qr(rng.normal(size=(d, d)))[0]
    Z = (np.linalg.qr(rng.normal(size=(15, d)))[0] * np.geomspace(10.0, 1.0, d)) @ V.T
    std = sigma * np.sqrt(((np.linalg.pinv(X).T @ V) ** 2).sum(axis=0))
    w_star = V @ (np.sqrt(RATIOS) * std)  # so that Bias_j / Var_j is RATIOS[j]
    w_hat = np.linalg.pinv(X) @ ((X @ w_star)[:, None] + sigma * rng.normal(size=(n, DRAWS)))
    fit = OLSFit(
        w_hat, Spectrum.of(X), np.zeros(d), np.zeros(DRAWS), float(n), centred=False, sigma=np.full(DRAWS, sigma)
    )
    target = Moments.of(Z)
    return lambda alpha: adapt(fit, target, partial(chi2_rule, alpha=alpha)).removed.mean(axis=1)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_proposition_1_predicts_how_often_noise_makes_the_rule_remove_a_direction(simulated, alpha):
    predicted = inclusion_probability(RATIOS, np.ones_like(RATIOS), alpha)
    # Five standard errors of a frequency; the last term is the resolution of one draw, for predictions near 0 and 1.
    slack = 5 * np.sqrt(predicted * (1 - predicted) / DRAWS) + 5 / DRAWS
    assert (np.abs(simulated(alpha) - predicted) < slack).all()


@pytest.mark.parametrize("alpha", [*ALPHAS, 1e-9, 0.5, 1 - 1e-9])
def test_the_probability_is_the_tail_of_a_noncentral_chi_squared_variable(alpha):
    ratio = np.array([1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0])
    reference = ncx2.cdf(chi2.ppf(alpha, df=1), df=1, nc=ratio)
    # 1e-9: what the series behind scipy's ncx2 is good for; 1e-14 absolute for tails that both round away.
    np.testing.assert_allclose(
        inclusion_probability(3.0 * ratio, np.full(8, 3.0), alpha), reference, rtol=1e-9, atol=1e-14
    )


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.2, 0.9, 0.999, 1.0])
def test_lemma_1_a_direction_of_pure_noise_is_removed_with_probability_alpha(alpha):
    ratio = np.array([0.0, 1e-30, 1e-12])
    # The departure from the limit is of the order of the ratio.
    np.testing.assert_allclose(inclusion_probability(ratio, np.ones(3), alpha), alpha, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.9, 0.999, 1 - 1e-12])
def test_lemma_1_a_direction_of_pure_signal_is_never_removed(alpha):
    probability = inclusion_probability(np.array([1e4, 1e12, np.inf, 1.0]), np.array([1.0, 1.0, 1.0, 0.0]), alpha)
    assert (probability < 1e-300).all()


def test_the_probability_falls_from_alpha_to_zero_as_the_signal_grows():
    probability = inclusion_probability(np.geomspace(1e-8, 1e4, 200), np.ones(200), 0.9)
    assert (np.diff(probability) <= 0).all()
    assert probability[0] == pytest.approx(0.9, abs=1e-8)  # the departure from the limit is of the order of the ratio


@pytest.mark.parametrize("degrees", [20.0, 200.0])
def test_the_probability_with_estimated_noise_is_finite_and_falls_at_every_distance(degrees):
    """The tail of scipy's noncentral t distribution is NaN at some distances above five standard deviations."""
    probability = inclusion_probability(np.linspace(0.0, 8.0, 4001) ** 2, np.ones(4001), 0.999, degrees=degrees)
    assert probability[0] == pytest.approx(0.999, abs=1e-9)
    assert (np.diff(probability) <= 1e-12).all()


@pytest.mark.parametrize("ratio", [0.0, 1.0, 1e6, np.inf])
def test_alpha_one_always_removes_and_alpha_zero_never_does(ratio):
    assert inclusion_probability(np.array([ratio]), np.array([1.0]), 1.0) == 1.0
    assert inclusion_probability(np.array([ratio]), np.array([1.0]), 0.0) == 0.0


@pytest.mark.parametrize("alpha", [-0.1, 1.5, np.nan])
@pytest.mark.parametrize("degrees", [np.inf, 7.0])
def test_an_alpha_outside_0_and_1_raises(alpha, degrees):
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match=f"alpha.*{alpha}"):
        chi2_rule(Terms(np.ones(1), one, one, degrees), alpha=alpha)
    with pytest.raises(ValueError, match=f"alpha.*{alpha}"):
        inclusion_probability(one, one, alpha, degrees=degrees)
    with pytest.raises(ValueError, match=f"alpha.*{alpha}"):
        level_with_mle(alpha, 40, 20)
