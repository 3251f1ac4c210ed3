"""Squared errors by groups: estimates without bias, and intervals that contain the error on new groups."""

import numpy as np
import pytest

from pyspar.core.group_errors import GroupErrors

SIZES = {
    "equal": np.full(10, 20.0),
    "unequal": np.array([400.0, 150.0, 60.0, 40.0, 20.0, 10.0, 5.0, 2.0]),
    "one large": np.r_[900.0, np.full(20, 5.0)],
    "two": np.array([50.0, 50.0]),
    "two unequal": np.array([90.0, 10.0]),
}


def left_out_errors(rng, sizes, offset):
    """Errors of a mean that is fitted without each group: sums of squares and means, and the mean of all groups."""
    means = offset * rng.normal(size=len(sizes)) + rng.normal(size=len(sizes)) / np.sqrt(sizes)
    within = np.where(sizes > 1.0, rng.chisquare(np.maximum(sizes - 1.0, 1.0)), 0.0)
    total = sizes @ means
    errors = means - (total - sizes * means) / (sizes.sum() - sizes)
    return within + sizes * errors**2, errors, total / sizes.sum()


@pytest.mark.parametrize("folds", [3, 8])
def test_variance_and_offset_have_no_bias_for_groups_of_any_size(folds):
    """The mean squared errors of groups have the mean 1 and the variance 0.01, and their mean errors the variance 1."""
    rng, sizes = np.random.default_rng(0), SIZES["unequal"]
    part, shares = np.arange(8) % folds, SIZES["unequal"] / SIZES["unequal"].sum()
    variances, offsets = [], []
    for _ in range(4000):
        own, mean = 1.0 + 0.1 * rng.normal(size=8), rng.normal(size=8)
        squares, means = np.bincount(part, sizes * own), np.bincount(part, sizes * mean) / np.bincount(part, sizes)
        errors = GroupErrors.of(sizes, part, squares[:, None], means[:, None])
        variances.append(errors.variance[0])
        offsets.append(errors.offset[0])
    assert errors.concentration == pytest.approx(np.sum(shares**2))
    assert np.mean(variances) == pytest.approx(0.01 * np.sum(shares**2), rel=0.1)  # three standard errors: 0.07
    assert np.mean(offsets) == pytest.approx(1.0, rel=0.1)


# A Student t interval with one degree of freedom less than groups covered 0.04 to 0.94 of these errors.
@pytest.mark.parametrize("offset", [0.0, 0.5, 1.5, 5.0])
@pytest.mark.parametrize("name", list(SIZES))
def test_the_interval_contains_errors_on_new_groups(name, offset):
    """The nominal coverage is 0.95. Three standard errors of 1000 targets are 0.02."""
    rng, sizes, inside = np.random.default_rng(1), SIZES[name], []
    n = sizes.sum()
    reach = np.exp(1.96 * np.sqrt(1.0 / n))  # of independent normal errors
    for _ in range(1000):
        squares, means, fitted = left_out_errors(rng, sizes, offset)
        rmse = np.sqrt(squares.sum() / n)
        errors = GroupErrors.of(sizes, np.arange(len(sizes)), squares[:, None], means[:, None])
        low, high = errors.widen((rmse / reach, rmse * reach), rmse, level=0.95, n_source=n, n_target=n)
        new = offset * rng.normal(size=len(sizes)) - fitted
        actual = np.sqrt(rng.noncentral_chisquare(sizes, sizes * new**2).sum() / n)
        inside.append(low <= actual <= high)
    assert np.mean(inside) > 0.92


def test_groups_without_an_effect_change_the_interval_little():
    rng, sizes = np.random.default_rng(2), np.full(30, 100.0)
    squares, means, _ = left_out_errors(rng, sizes, 0.0)
    errors = GroupErrors.of(sizes, np.arange(30), squares[:, None], means[:, None])
    low, high = errors.widen((0.96, 1.04), 1.0, level=0.95, n_source=3000, n_target=3000)
    assert 0.93 < low <= 0.96
    assert 1.04 <= high < 1.08


def test_groups_of_one_row_keep_the_interval_of_independent_rows(rng):
    sizes, errors = np.ones(200), rng.normal(size=200)
    groups = GroupErrors.of(sizes, np.arange(200) % 10, *grouped_by_ten(errors))
    interval = groups.widen((0.8, 1.25), 1.0, level=0.95, n_source=200, n_target=200)
    assert interval == pytest.approx((0.8, 1.25), rel=0.02)


def grouped_by_ten(errors):
    part = np.arange(len(errors)) % 10
    return np.bincount(part, errors**2)[:, None], (np.bincount(part, errors) / np.bincount(part))[:, None]


def test_two_groups_and_one_large_group_have_a_very_wide_interval():
    rng = np.random.default_rng(3)
    for name in ("two", "two unequal", "one large"):
        highs = []
        for _ in range(100):
            squares, means, _ = left_out_errors(rng, SIZES[name], 1.5)
            errors = GroupErrors.of(SIZES[name], np.arange(len(means)), squares[:, None], means[:, None])
            highs.append(errors.widen((0.9, 1.1), 1.0, level=0.95, n_source=100, n_target=100)[1])
        assert np.median(highs) > 5.0
        assert max(highs) < 30.0  # sqrt of the 97.5 % quantile of F with 2 and 1 degrees of freedom: 28.3


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_scale_of_weights_and_the_unit_of_errors_do_not_matter(rng, factor):
    sizes = SIZES["unequal"]
    squares, means, _ = left_out_errors(rng, sizes, 1.0)
    one = GroupErrors.of(sizes, np.arange(8), squares[:, None], means[:, None])
    other = GroupErrors.of(factor * sizes, np.arange(8), factor * 9.0 * squares[:, None], 3.0 * means[:, None])
    for field in ("concentration", "offset", "variance"):
        np.testing.assert_allclose(getattr(other, field), getattr(one, field), rtol=1e-12)


def test_small_targets_have_fewer_groups_and_wider_intervals(rng):
    squares, means, _ = left_out_errors(rng, SIZES["equal"], 1.5)
    errors = GroupErrors.of(SIZES["equal"], np.arange(10), squares[:, None], means[:, None])
    widths = [errors.widen((0.9, 1.1), 1.0, level=0.95, n_source=200, n_target=m)[1] for m in (1, 20, 200, 2000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == widths[1]  # at least one group


@pytest.mark.parametrize("rmse", [0.0, np.inf])
def test_an_error_of_zero_or_infinity_keeps_its_interval(rmse):
    errors = GroupErrors(0.5, np.ones(1), np.ones(1))
    assert errors.widen((rmse, rmse), rmse, level=0.95, n_source=9, n_target=9) == (rmse, rmse)
