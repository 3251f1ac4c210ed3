"""Metrics over all rows and in the worst group."""

import numpy as np
import pytest

from pyspar.paper.runs.metrics import measure


def test_the_worst_group_has_the_largest_error_or_the_lowest_correlation(rng):
    y, prediction, group = rng.normal(size=30), rng.normal(size=30), np.arange(30) % 3
    groups = [group == g for g in range(3)]
    errors = [measure("rmse", prediction[rows], y[rows], group) for rows in groups]
    assert measure("worst-group rmse", prediction, y, group) == max(errors)
    correlations = [np.corrcoef(prediction[rows], y[rows])[0, 1] for rows in groups]
    assert measure("worst-group r", prediction, y, group) == min(correlations)
    assert measure("spearman", prediction**3, y, group) == pytest.approx(measure("spearman", prediction, y, group))
    assert np.isnan(measure("r", np.ones(30), y, group))
    assert np.isnan(measure("spearman", np.ones(30), y, group))


def test_a_group_without_a_correlation_is_ignored_at_any_position(rng):
    y, prediction = rng.normal(size=21), rng.normal(size=21)
    for single in (0, 9):  # the first group, or the last
        group = np.where(np.arange(21) == 20, single, 1 + np.arange(21) % 2)
        expected = min(np.corrcoef(prediction[group == g], y[group == g])[0, 1] for g in (1, 2))
        assert measure("worst-group r", prediction, y, group) == pytest.approx(expected)
        constant = np.where(group == 1, 0.5, prediction)
        assert np.isnan(measure("worst-group r", constant, y, group))
    assert np.isnan(measure("worst-group r", prediction[:1], y[:1], np.zeros(1)))
    assert np.isnan(measure("worst-group rmse", np.array([np.nan, 1.0]), y[:2], np.arange(2)))
