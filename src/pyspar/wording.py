"""Wording: numbers as the terminal, the page and its figures write them, so that all three show the same digits."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float | None) -> str:
    """Return a number with four digits, or say that it is unknown.

    >>> number(12.34567), number(None)
    ('12.35', 'unknown')
    """
    return "unknown" if value is None or not math.isfinite(value) else f"{value:.4g}"


def between(ends: Sequence[float | None]) -> str:
    """Return an interval as text.

    >>> between((1.0, 2.5))
    '1 to 2.5'
    """
    low, high = map(number, ends)
    return "unknown" if "unknown" in (low, high) else f"{low} to {high}"
