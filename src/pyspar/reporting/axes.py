"""Limits and ticks of axes, for numbers of any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from pyspar.reporting.formatting import format_log_tick, format_tick

MAX_DECADES = 8
"""A logarithmic axis shows at most this many decades. Smaller values are drawn at its edge."""
_EQUAL_STEP_DECADES = 0.6
"""Over fewer decades than this, equal steps are easier to read than 1, 2, 5."""
_MIN_PLAIN_TICK, _MAX_PLAIN_TICK = 1e-3, 1e6
"""If a tick is outside these limits, all ticks of a logarithmic axis are written as powers of ten."""


def compute_log_limits(values: Sequence[float]) -> tuple[float, float]:
    """Return the limits of a logarithmic axis; values that are zero are drawn at its edge."""
    positive = [v for v in values if v > 0.0]
    if not positive:
        return 0.1, 10.0
    high = max(positive)
    low = max(min(positive), high * 10.0**-MAX_DECADES)
    return low / 1.6, high * 1.6


def include_line(x: tuple[float, float], y: tuple[float, float], slope: float) -> tuple[float, float]:
    """Return y limits that show the line ``y = slope * x``, or the same limits if the line is too far away."""
    reach = min((x[1] / x[0]) ** 0.5, 10.0)  # half the width or one decade of the line, whichever is less
    low, high = min(y[0], slope * x[1] / reach), max(y[1], slope * x[0] * reach)
    return (low, high) if low > 0.0 and high / low < 10.0 ** (1.5 * MAX_DECADES) else y


def choose_log_ticks(low: float, high: float, max_ticks: int) -> list[float]:
    """Return the ticks of a logarithmic axis, at least two.

    >>> choose_log_ticks(0.004, 30.0, 7)
    [0.01, 0.1, 1.0, 10.0]
    >>> choose_log_ticks(0.4, 3.0, 7)
    [0.5, 1.0, 2.0]
    """
    span = math.log10(high) - math.log10(low)  # the ratio may exceed float64
    if span < _EQUAL_STEP_DECADES:
        unit = 10.0 ** math.floor(math.log10(low))  # MaxNLocator treats tiny numbers as zero
        steps = MaxNLocator(min(max_ticks, 5) - 1).tick_values(low / unit, high / unit)
        return [float(t) * unit for t in steps if low <= t * unit <= high]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if span <= max_ticks / 3.0:
        ticks = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in (1, 2, 5)]
    else:
        step = math.ceil(span / max_ticks)
        ticks = [float(f"1e{power}") for power in range(first, last + 1) if power % step == 0]
    return [t for t in ticks if low <= t <= high]


def set_log_scale(axis: Any, limits: tuple[float, float], max_ticks: int = 7) -> None:
    """Give an axis a logarithmic scale. Ticks are plain text, because mathtext interprets dollar signs in names."""
    name = axis.axis_name
    axis.axes.set(**{f"{name}scale": "log", f"{name}lim": limits})
    ticks = choose_log_ticks(*limits, max_ticks)
    as_power = bool(ticks) and not (min(ticks) >= _MIN_PLAIN_TICK and max(ticks) < _MAX_PLAIN_TICK)
    _set_ticks(axis, FixedLocator(ticks), lambda value: format_log_tick(value, as_power=as_power))


def set_linear_scale(axis: Any, max_steps: int = 5, *, integers: bool = False) -> None:
    """Give an axis at most this many equal steps."""
    _set_ticks(axis, MaxNLocator(max_steps, integer=integers, min_n_ticks=1 if integers else 2), format_tick)


def _set_ticks(axis: Any, locator: Any, format_value: Callable[[float], str]) -> None:
    axis.set_major_locator(locator)
    axis.set_major_formatter(lambda value, _: format_value(value))
    axis.set_minor_locator(NullLocator())
