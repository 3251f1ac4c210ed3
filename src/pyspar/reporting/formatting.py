"""Numbers and names in the form that only the page and its figures need; :mod:`pyspar.wording` has the common forms."""

from __future__ import annotations

import re

from pyspar.wording import format_number, replace_exponents

AXIS_EXPONENT = 7
"""On an axis, numbers from this power of ten on are written as powers, because space is limited."""
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


def format_log_tick(value: float) -> str:
    """Return a number for a logarithmic axis: small and large powers of ten are written as powers.

    >>> format_log_tick(0.02), format_log_tick(1000.0), format_log_tick(1e-4), format_log_tick(8e-4)
    ('0.02', '1000', '10⁻⁴', '0.0008')
    >>> format_log_tick(2e5)
    '2·10⁵'
    """
    digits, exponent = f"{value:.3e}".split("e")
    if 1e-3 <= value < 1e4 or (1e-4 < value < 1e-3 and float(digits) != 1.0):
        return f"{value:.4g}"
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
    """Return a confidence; a confidence close to one is written as one minus its doubt.

    >>> format_alpha(0.5, 0.5), format_alpha(1.0, 2.5e-7), format_alpha(1.0, 0.0)
    ('0.5', '1 − 2.5·10⁻⁷', '1')
    """
    if alpha is None or not doubt or doubt >= 1e-4:
        return format_number(alpha)
    return f"1 \N{MINUS SIGN} {replace_exponents(f'{doubt:.1e}').replace('.0·', '·')}"


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
