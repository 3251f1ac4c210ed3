"""The test for a changed relation: exact distributions, a martingale, and the uncertainty of the model."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, linregress
from scipy.stats import t as student

from pyspar.core.concept_shift import evidence_p_values, log_bayes_factor, ratio_tail, run_shift_test
from pyspar.core.drift_models import TEST_RATIOS, log_bayes_factors


def make_target(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n), rng


def test_the_distribution_of_a_ratio_is_exact():
    for degrees, ratio in product((2.0, 5.0, 40.0, 1000.5), (0.01, 0.3, 0.9)):
        expected = beta.sf(ratio, 0.5, (degrees - 1.0) / 2.0)
        assert ratio_tail(np.array([1.0]), degrees, ratio) == pytest.approx(expected, abs=1e-9)
    assert ratio_tail(np.array([2.0, 2.0]), 2.0, 1.0) == 1.0
    assert ratio_tail(np.array([2.0, 1.0]), 9.0, 2.5) == 0.0
    rng = np.random.default_rng(0)
    mu, squares = np.array([3.0, 1.0, 0.2]), rng.chisquare(1.0, (200_000, 3))
    drawn = squares @ mu / (squares.sum(axis=1) + rng.chisquare(4.0, 200_000))
    assert ratio_tail(mu, 7.0, 0.8) == pytest.approx(np.mean(drawn > 0.8), abs=0.004)


@pytest.mark.parametrize("n", [5, 10, 30])
def test_the_evidence_test_has_its_level_for_every_number_of_labels(n):
    rejected = []
    for seed in range(4):
        features, q, rng = make_target(n, seed=seed)
        residuals = 7.0 * rng.normal(size=(n, 500))
        rejected.append(np.mean(evidence_p_values(np.column_stack([np.ones(n), q]), features, residuals, n) <= 0.05))
    assert np.mean(rejected) == pytest.approx(0.05, abs=0.015)


def test_the_p_value_does_not_depend_on_the_order_of_rows_and_columns_or_on_signs():
    features, q, rng = make_target(12)
    residual = rng.normal(size=12) + 0.5
    expected = run_shift_test(features, q, residual).p_value
    assert 0.01 < expected < 0.99
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, columns, signs = rng.permutation(12), rng.permutation(3), rng.choice([-1.0, 1.0], 3)
        moved = run_shift_test((features * signs)[rows][:, columns], q[rows], residual[rows]).p_value
        assert moved == expected


def test_component_tests_find_their_component():
    features, q, rng = make_target(20)
    r = 0.1 * rng.normal(size=20)
    names = ("offset", "slope", "weights")
    for k, drift in enumerate((np.ones(20), q, features @ [1.0, -1.0, 1.0])):
        test = run_shift_test(features, q, drift + r)
        assert getattr(test, names[k]) < 0.001
        assert test.p_value < 0.001
    plain = run_shift_test(features, q, 3.0 + r)
    assert min(plain.slope, plain.weights) > 0.01


def test_offset_and_slope_are_those_of_least_squares():
    features, q, rng = make_target(20)
    r = rng.normal(size=20) + 0.5
    test, line = run_shift_test(features, q, r), linregress(q, r)
    assert test.slope == pytest.approx(line.pvalue)
    assert test.offset == pytest.approx(2.0 * student.sf(abs(line.intercept / line.intercept_stderr), 18))


def test_known_errors_of_the_model_are_no_change():
    """Residuals with the model's own error look like a drift, unless the test knows the error."""
    n = 30
    features, q, rng = make_target(n)
    line, root = np.column_stack([np.ones(n), q]), np.column_stack([np.ones(n), features])
    residuals = rng.normal(size=(n, 15)) + root @ rng.normal(size=(4, 15))
    assert np.mean(evidence_p_values(line, features, residuals, n) <= 0.05) > 0.4
    p_values = [run_shift_test(features, q, r, error_root=root).p_value for r in residuals.T]
    assert np.sum(np.array(p_values) <= 0.05) <= 4  # P(more) = 0.06 % at level 5 %


def test_the_bayes_factor_is_that_of_dense_covariances():
    features, q, rng = make_target(6)
    r, root = rng.normal(size=6) + 1.0, rng.normal(size=(6, 2))
    null = np.eye(6) + root @ root.T

    def log_evidence(C):
        return -0.5 * np.linalg.slogdet(C)[1] - 3.0 * np.log(r @ np.linalg.solve(C, r))

    terms = [
        (1.0 / ((1 + a) * (1 + b) * (1 + d)), null + a + b * np.outer(q, q) + d * features @ features.T)
        for a, b, d in product(TEST_RATIOS, repeat=3)
    ]
    factor = sum(p * np.exp(log_evidence(C)) for p, C in terms) / sum(p for p, _ in terms)
    expected = np.log(factor) - log_evidence(null)
    assert log_bayes_factor(features, q, r, error_root=root) == pytest.approx(expected)


def test_the_bayes_factor_is_a_martingale_that_seldom_exceeds_twenty():
    looks, sequences = 200, 150
    features, q, rng = make_target(looks)
    line, residuals = np.column_stack([np.ones(looks), q]), rng.normal(size=(looks, sequences))
    largest = np.zeros(sequences)
    for n in range(1, looks + 1):
        lengths = np.square(residuals[:n]).sum(axis=0)
        factors = log_bayes_factors(features[:n], line[:n], residuals[:n], float(n), lengths)
        if n == 1:
            np.testing.assert_allclose(factors, 0.0, atol=1e-12)  # one label shows nothing
        largest = np.maximum(largest, factors)
    assert np.mean(largest >= np.log(20.0)) <= 0.05
