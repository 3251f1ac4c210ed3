"""How often the rule removes a direction when the noise is estimated: exactly alpha, or the level of RSS / N.

Every output is an independent draw of the labels of one source, so one fit with many outputs is a simulation.
"""

import numpy as np
import pytest

from pyspar import SpARRegressor
from pyspar.theory import Moments, bias_terms, inclusion_probability, level_with_mle, variance_terms

N, DRAWS, SIGMA = 40, 20_000, 0.7


def removed_shares(d, *, alpha, noise, fit_intercept, distances):
    """Return how often each target direction is removed, and the adaptation with its true Bias and Var.

    The true weight along target direction j is ``distances[j]`` standard deviations of its estimate.
    """
    rng = np.random.default_rng(d)
    X = rng.normal(size=(N, d)) * np.geomspace(1.0, 0.1, d)
    Z = Moments.of(rng.normal(size=(60, d)) * np.geomspace(0.5, 2.0, d))
    shape = SpARRegressor(fit_intercept=fit_intercept).fit(X, np.arange(float(N))).adapt(Z).adaptation_
    var = variance_terms(shape.x, shape.z, np.array([SIGMA**2]))[:, 0]
    w = shape.z.V @ (distances * np.sqrt(var) / shape.z.lam)
    labels = (X @ w)[:, None] + SIGMA * rng.normal(size=(N, DRAWS)) + 3.0 * fit_intercept
    est = SpARRegressor(alpha, noise=noise, fit_intercept=fit_intercept).fit(X, labels).adapt(Z)
    return est.adaptation_.removed.mean(axis=1), bias_terms(shape.z, w[:, None])[:, 0], var


def assert_within_four_standard_errors(shares, expected):
    # The draws of one direction are independent, so its count is binomial; no direction is left out.
    assert (np.abs(shares - expected) <= 4.0 * np.sqrt(expected * (1.0 - expected) / DRAWS)).all()


@pytest.mark.parametrize("d", [20, 30])
@pytest.mark.parametrize("alpha", [0.9, 0.999])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("noise", ["exact", "mle"])
def test_a_direction_without_weight_is_removed_with_the_nominal_probability(d, alpha, fit_intercept, noise):
    # Ten directions have a weight, so that the promise does not rest on a label that is noise alone.
    distances = np.where(np.arange(d) < 10, 20.0, 0.0)
    shares, _, _ = removed_shares(d, alpha=alpha, noise=noise, fit_intercept=fit_intercept, distances=distances)
    level = alpha if noise == "exact" else level_with_mle(alpha, N, d + fit_intercept)
    assert_within_four_standard_errors(shares[10:], level)
    if noise == "mle":
        assert level < alpha - 4.0 * np.sqrt(alpha * (1.0 - alpha) / DRAWS)  # the two levels can be told apart


@pytest.mark.parametrize("d", [20, 30])
@pytest.mark.parametrize("alpha", [0.9, 0.999])
def test_the_probability_of_removal_is_that_of_proposition_1_with_degrees_of_freedom(d, alpha):
    distances = np.linspace(0.0, 6.0, d)
    shares, bias, var = removed_shares(d, alpha=alpha, noise="exact", fit_intercept=True, distances=distances)
    np.testing.assert_allclose(np.sqrt(bias / var), distances, rtol=1e-6, atol=1e-9)  # the set-up itself
    expected = inclusion_probability(bias, var, alpha, degrees=N - d - 1)
    assert_within_four_standard_errors(shares, expected)
    known = inclusion_probability(bias, var, alpha)
    assert np.abs(known - expected).max() > 0.02  # what the degrees of freedom change is seen by the test


def test_the_exact_level_tends_to_that_of_the_paper_for_many_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    Y = rng.normal(size=(20_000, 50))
    rules = [SpARRegressor(0.9, noise=noise).fit(X, Y).adapt(X).adaptation_.removed for noise in ("mle", "exact")]
    assert (rules[0] != rules[1]).mean() < 0.01  # the thresholds differ by 1 part in 10,000
    assert level_with_mle(0.9, 20_000, 4) == pytest.approx(0.9, abs=1e-4)
