"""Numbers and names in the form that only the page and its figures need; :mod:`pyspar.wording` has the common forms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from pyspar.wording import POWER_EXPONENT, format_number, replace_exponents

AXIS_EXPONENT = 7
"""On an axis, numbers from this power of ten on are written as powers, because space is limited."""
COLUMN_EXPONENT = 4
"""In a column with very large numbers, numbers from this power of ten on are written as powers."""
MIN_DOUBT = 1e-4
_ROUNDING = 1e-9


def keep_percent(text: str) -> str:
    """Replace the space before each percent sign by a no-break space.

    >>> keep_percent("95 % of them")
    '95\\xa0% of them'
    """
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def format_tick(value: float) -> str:
    """Return a number for an axis with equal steps.

    >>> format_tick(-0.02), format_tick(20000.0), format_tick(5e7)
    ('-0.02', '20,000', '5·10⁷')
    """
    return _drop_unit_factor(replace_exponents(f"{value:.4g}", AXIS_EXPONENT))


def format_log_tick(value: float, *, as_power: bool) -> str:
    """Return a number for a logarithmic axis, with all digits or as a power of ten.

    >>> format_log_tick(0.02, as_power=False), format_log_tick(1000.0, as_power=False)
    ('0.02', '1,000')
    >>> format_log_tick(2e5, as_power=True), format_log_tick(1e-4, as_power=True), format_log_tick(10.0, as_power=True)
    ('2·10⁵', '10⁻⁴', '10')
    """
    if not as_power:
        return f"{value:,.4g}" if value < 1.0 else f"{value:,.0f}" if value >= 100.0 else f"{value:g}"
    digits, exponent = f"{value:.3e}".split("e")
    if int(exponent) in (0, 1):
        return f"{value:g}"
    return _drop_unit_factor(replace_exponents(f"{float(digits):g}e{int(exponent):+d}", 0))


def format_hundredths(value: float | None) -> str:
    """Return a fraction in per cent with three digits and without the sign.

    >>> format_hundredths(0.12345), format_hundredths(1e-16)
    ('12.3', '0')
    """
    if value is not None and abs(value) < _ROUNDING:
        return "0"
    return format_number(None if value is None else float(f"{100.0 * value:.3g}"))


def format_sort_key(value: float | None) -> str:
    """Return a number that JavaScript can parse, for tables that sort.

    >>> format_sort_key(251234.0), format_sort_key(None)
    ('251234', 'unknown')
    """
    return "unknown" if value is None else f"{value:.6g}"


def format_alpha(alpha: float | None, doubt: float | None) -> str:
    """Return the confidence from which a direction is removed; confidences close to one are not distinguished.

    >>> format_alpha(0.5, 0.5), format_alpha(1.0, 2.5e-7), format_alpha(1.0, 0.0)
    ('0.5', 'over 0.9999', '1')
    """
    if alpha is not None and doubt and doubt < MIN_DOUBT:
        return f"over {1.0 - MIN_DOUBT:g}"
    return format_number(alpha)


def choose_power_exponent(values: Iterable[float | None]) -> int:
    """Return the power of ten from which the numbers of one column are written as powers, so that they look alike.

    >>> choose_power_exponent([12.0, 4e7]), choose_power_exponent([40_200_000.0, 7.3e9])
    (9, 4)
    """
    return COLUMN_EXPONENT if any(abs(value or 0.0) >= 10.0**POWER_EXPONENT for value in values) else POWER_EXPONENT


def format_in_column(value: float | None, power_exponent: int) -> str:
    """Return a number with three digits, as a power of ten from a given exponent on.

    >>> format_in_column(40_200_000.0, 4), format_in_column(40_200_000.0, 9), format_in_column(0.25, 4)
    ('4.02·10⁷', '40,200,000', '0.25')
    """
    if value is None or not math.isfinite(value):
        return format_number(value)
    return replace_exponents(f"{value:.3g}", power_exponent)


def shorten(name: str, limit: int = 20) -> str:
    """Return a long name without its middle, because long names often differ only at their ends.

    >>> shorten("the model in use since spring", 20)
    'the model in… spring'
    """
    if len(name) <= limit:
        return name
    end = (limit - 1) * 2 // 5
    return f"{name[: limit - 1 - end]}…{name[-end:]}"


def _drop_unit_factor(text: str) -> str:
    """Return 1·10⁷ as 10⁷."""
    return re.sub(r"^(-?)1·", r"\1", text)
