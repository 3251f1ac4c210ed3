"""Separation of source and target, compared with textbook tests, simulations and held-out discriminants."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import f, ttest_ind
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

from pyspar import Moments
from pyspar.core.separation import LEVEL, MATCHED_LEVEL, _held_out_auc, measure_separation

DRAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "balanced": lambda rng, shape: (rng.random(shape) < 0.5) * 1.0,
    "rare": lambda rng, shape: (rng.random(shape) < 0.03) * 1.0,
}


def separation(X, Z):
    return measure_separation(Moments.of(X), Moments.of(Z))


def share_explained(columns, target):
    """Return R^2 of the regression of the indicator of the target on columns, with an intercept."""
    rows = np.column_stack([np.ones(len(target)), columns])
    residual = target - rows @ np.linalg.lstsq(rows, target)[0]
    return 1.0 - residual @ residual / np.sum((target - target.mean()) ** 2)


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("step", [0.3, 0.6])
def test_the_means_are_compared_by_the_f_tests_of_regressions_on_the_indicator(rng, d, step):
    X, Z = rng.normal(size=(60, d)), rng.normal(size=(40, d)) + step
    X, Z = X / X.std(axis=0), Z / Z.std(axis=0)  # the spreads are equal, so the means have the smallest p-values
    rows, target = np.vstack([X, Z]), np.repeat([0.0, 1.0], [60, 40])
    r2 = share_explained(rows, target)
    together = f.sf(r2 / (1.0 - r2) * (99 - d) / d, d, 99 - d)
    singly = min(ttest_ind(X[:, j], Z[:, j]).pvalue for j in range(d))
    assert separation(X, Z).p_value == pytest.approx(min(1.0, 3.0 * min(together, d * singly)), rel=1e-9)


def test_a_shift_of_one_column_of_many_is_found(rng):
    """The joint test of 39 components alone has p = 0.14 here."""
    X, Z = rng.normal(size=(100, 80)), rng.normal(size=(60, 80))
    Z[:, 17] += 0.8
    assert separation(X, Z).found


def test_rows_of_a_balanced_experiment_are_matched_and_random_rows_are_not(rng):
    design = np.array(list(product([0.0, 1.0], [-1.0, 0.0, 1.0], range(5), range(3))))
    again = separation(design, design[rng.permutation(len(design))])
    assert again.matched
    assert not again.found
    assert not separation(design, design * [1.0, 1.0, 1.0, 50.0]).matched  # found, so not matched
    random = [separation(rng.normal(size=(40, 3)), rng.normal(size=(30, 3))) for _ in range(300)]
    assert sum(drawn.matched for drawn in random) <= 3


def test_matched_means_differ_less_than_those_of_random_samples_at_the_stated_level(rng):
    X, Z = rng.normal(size=(60, 4)), rng.normal(size=(40, 4))
    Z -= Z.mean(axis=0) - X.mean(axis=0)
    levels = []
    for step in np.geomspace(1e-3, 0.3, 25):
        rows = np.vstack([X, Z + step])
        r2 = share_explained(rows, np.repeat([0.0, 1.0], [60, 40]))
        levels.append((f.cdf(r2 / (1.0 - r2) * 95 / 4, 4, 95), separation(X, Z + step).matched))
    assert {matched for _, matched in levels} == {True, False}
    assert all(matched == (level <= MATCHED_LEVEL) for level, matched in levels)


@pytest.mark.parametrize("shape", [(40, 25, 3), (30, 30, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("kind", ["normal", "exponential", "rare"])
def test_the_level_holds_for_several_distributions(rng, shape, kind):
    n, m, d = shape
    found = sum(separation(*(DRAWS[kind](rng, (k, d)) for k in (n, m))).found for _ in range(200))
    assert found <= 200 * LEVEL + 3 * np.sqrt(200 * LEVEL * (1 - LEVEL))


def test_the_auc_is_that_of_a_fitted_discriminant_on_new_rows(rng):
    shift = np.array([0.8, 0.0, 0.0, 0.4, 0.0])
    stated, actual = [], []
    new = np.vstack([rng.normal(size=(2000, 5)), rng.normal(size=(2000, 5)) + shift])
    for _ in range(40):
        X, Z = rng.normal(size=(60, 5)), rng.normal(size=(40, 5)) + shift
        stated.append(separation(X, Z).auc)
        discriminant = LinearDiscriminantAnalysis().fit(np.vstack([X, Z]), np.repeat([0, 1], [60, 40]))
        actual.append(roc_auc_score(np.repeat([0, 1], 2000), discriminant.decision_function(new)))
    assert np.mean(stated) == pytest.approx(np.mean(actual), abs=0.02)


def test_it_depends_neither_on_units_nor_on_how_the_moments_were_computed(rng):
    X, Z = rng.normal(size=(80, 4)), rng.normal(size=(50, 4)) + 0.3
    factors = np.array([1e-6, 1.0, 1e6, -3.0])
    whole = separation(X, Z)
    assert separation(X * factors + 5.0, Z * factors + 5.0).auc == pytest.approx(whole.auc, rel=1e-6)
    parts = measure_separation(Moments.of(X[:20]) + Moments.of(X[20:]), Moments.of(Z[:7]) + Moments.of(Z[7:]))
    assert (parts.auc, parts.p_value) == pytest.approx((whole.auc, whole.p_value), rel=1e-9)


def test_a_column_that_is_constant_in_both_and_differs_separates_all_rows(rng):
    X, Z = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    X[:, 1], Z[:, 1] = 2019.0, 2020.0
    assert separation(X, Z).auc == _held_out_auc(1.0, 2, 30.0, 20.0) == 1.0
    Z[:, 1] = 2019.0
    assert separation(X, Z).auc < 1.0


@pytest.mark.parametrize(("n", "m", "d"), [(50, 50, 5), (30, 300, 3), (200, 200, 10), (100, 1000, 10), (500, 5000, 10)])
def test_a_column_that_varies_twenty_times_as_much_or_as_little_is_found(rng, n, m, d):
    for factor in (20.0, 1.0 / 20.0):
        X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
        Z[:, 0] *= factor
        assert separation(X, Z).found


@pytest.mark.parametrize(("n", "m"), [(60, 200), (200, 60)])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "t3", "rare"])
def test_spreads_of_equal_distributions_are_rarely_found(n, m, kind):
    """All tests together have the level 5 %. With heavy tails they are approximate."""
    rng = np.random.default_rng(0)
    found = sum(separation(*(DRAWS[kind](rng, (k, 5)) for k in (n, m))).found for _ in range(300))
    assert found <= 300 * LEVEL + 3.0 * np.sqrt(300 * LEVEL * (1.0 - LEVEL))


@pytest.mark.parametrize(("n", "m"), [(1000, 10), (1000, 100), (50, 20)])
def test_balanced_categories_of_the_same_distribution_are_rarely_found(n, m):
    """Their kurtosis is 1, so the squares of their deviations do not vary."""
    rng = np.random.default_rng(0)
    found = sum(separation(*(DRAWS["balanced"](rng, (k, 10)) for k in (n, m))).found for _ in range(200))
    assert found <= 200 * LEVEL + 3.0 * np.sqrt(200 * LEVEL * (1.0 - LEVEL))


def compare_rows(X, Z):
    return measure_separation(Moments.of(X), Moments.of(Z), (X, Z))


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("n", "m"), [(300, 200), (40, 25), (1500, 60)])
def test_a_comparison_of_rows_has_its_level_for_any_distribution(kind, n, m):
    rng = np.random.default_rng(0)
    found = sum(compare_rows(*(DRAWS[kind](rng, (k, 4)) for k in (n, m))).found for _ in range(200))
    assert found <= 200 * LEVEL + 3.0 * np.sqrt(200 * LEVEL)


@pytest.mark.parametrize("kind", ["normal", "t3"])
@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0, 0.5])
def test_a_comparison_of_rows_finds_changes_of_the_spread(kind, factor, rng):
    X, Z = (DRAWS[kind](rng, (k, 4)) for k in (300, 200))
    Z[:, 1] *= factor
    after = compare_rows(X, Z)
    assert (after.found, after.matched) == (True, False)


def test_a_comparison_of_rows_finds_a_broken_collinearity_and_ignores_constant_columns(rng):
    X, Z = rng.normal(size=(300, 2)), rng.normal(size=(200, 2))
    assert compare_rows(X[:, [0, 0]], Z).found
    assert not compare_rows(np.full((9, 3), 2019.3), np.full((5, 3), 2019.3)).found
    assert not compare_rows(X[:1], Z[:1]).found
