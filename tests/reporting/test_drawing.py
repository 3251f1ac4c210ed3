"""Ticks and limits of axes."""

from __future__ import annotations

import pytest

from pyspar.reporting.drawing import choose_log_ticks, include_line


@pytest.mark.parametrize("low", [1e-300, 3e-9, 0.37, 1.0, 99.0, 4e250])
@pytest.mark.parametrize("ratio", [1.3, 2.6, 8.0, 40.0, 1e3, 1e9, 1e30])
def test_a_logarithmic_axis_has_a_few_ticks_whatever_its_range(low, ratio):
    ticks = choose_log_ticks(low, low * ratio, 7)
    assert 2 <= len(ticks) <= 8
    assert all(low <= tick <= low * ratio for tick in ticks)


def test_a_line_that_is_too_far_away_does_not_change_the_limits():
    assert include_line((1.0, 10.0), (1.0, 10.0), 1e30) == (1.0, 10.0)
