"""Axes: limits and ticks that can be read, for numbers of any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from pyspar.reporting.words import log_tick, tick

DECADES = 8
"""A logarithmic axis shows at most so many; what is smaller lies on its edge."""
_FEW = 0.6
"""Over fewer decades than this even steps are easier to read than 1, 2, 5."""


def decades(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis for some values, of which those that are zero lie on its edge."""
    positive = [v for v in values if v > 0.0]
    if not positive:
        return 0.1, 10.0
    high = max(positive)
    low = max(min(positive), high * 10.0**-DECADES)
    return low / 1.6, high * 1.6


def with_line(x: tuple[float, float], y: tuple[float, float], slope: float) -> tuple[float, float]:
    """Return y stretched so that the line ``y = slope * x`` is to be seen, unless it is too far away for that."""
    reach = min((x[1] / x[0]) ** 0.5, 10.0)  # half the width or a decade of the line, whichever is less
    low, high = min(y[0], slope * x[1] / reach), max(y[1], slope * x[0] * reach)
    return (low, high) if low > 0.0 and high / low < 10.0 ** (1.5 * DECADES) else y


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return where the ticks of a logarithmic axis stand: at least two of them.

    >>> log_ticks(0.004, 30.0, 7)
    [0.01, 0.1, 1.0, 10.0]
    >>> log_ticks(0.4, 3.0, 7)
    [0.5, 1.0, 2.0]
    """
    span = math.log10(high) - math.log10(low)  # their ratio may exceed float64
    if span < _FEW:
        unit = 10.0 ** math.floor(math.log10(low))  # the locator takes tiny numbers for zero
        even = MaxNLocator(min(most, 5) - 1).tick_values(low / unit, high / unit)
        return [float(t) * unit for t in even if low <= t * unit <= high]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if span <= most / 3.0:
        found = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in (1, 2, 5)]
    else:
        step = math.ceil(span / most)
        found = [float(f"1e{power}") for power in range(first, last + 1) if power % step == 0]
    return [t for t in found if low <= t <= high]


def logarithmic(axis: Any, ends: tuple[float, float], most: int = 7) -> None:
    """Give an axis a logarithmic scale with ticks in plain text: names may hold a dollar, so no mathtext."""
    ax = axis.axes
    set_scale, set_ends = (ax.set_xscale, ax.set_xlim) if axis.axis_name == "x" else (ax.set_yscale, ax.set_ylim)
    set_scale("log")
    set_ends(*ends)
    _ticked(axis, FixedLocator(log_ticks(*ends, most)), log_tick)


def linear(axis: Any, most: int = 5, *, whole: bool = False) -> None:
    """Give an axis at most so many even steps, whole numbers on request."""
    _ticked(axis, MaxNLocator(most, integer=whole, min_n_ticks=1 if whole else 2), tick)


def _ticked(axis: Any, locator: Any, written: Callable[[float], str]) -> None:
    axis.set_major_locator(locator)
    axis.set_major_formatter(lambda value, _: written(value))
    axis.set_minor_locator(NullLocator())
