"""Words: numbers and sentences as a page shows them: those of :mod:`pyspar.wording`, and what only a page needs."""

from __future__ import annotations

import re

from pyspar import wording
from pyspar.wording import number, spelt

AT_AXIS = 7
"""From this power of ten on a number at an axis, where there is less room, is written as a power."""
_NOTHING = 1e-9


def unbroken(text: str) -> str:
    """Keep a percent sign with its number where lines break.

    >>> unbroken("95 % of them")
    '95\\xa0% of them'
    """
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share of one in per cent, unbroken.

    >>> percent(0.1234), percent(1e-5)
    ('12.3\\xa0%', 'under 0.1\\xa0%')
    """
    return unbroken(wording.percent(value, digits))


def tick(value: float) -> str:
    """Return a number as it stands at an axis with even steps.

    >>> tick(-0.02), tick(20000.0), tick(5e7)
    ('-0.02', '20,000', '5·10⁷')
    """
    return _bare(spelt(f"{value:.4g}", AT_AXIS))


def log_tick(value: float) -> str:
    """Return a number as it stands at a logarithmic axis: small and large powers of ten as powers.

    >>> log_tick(0.02), log_tick(1000.0), log_tick(1e-4), log_tick(8e-4), log_tick(2e5)
    ('0.02', '1000', '10⁻⁴', '0.0008', '2·10⁵')
    """
    digits, exponent = f"{value:.3e}".split("e")
    if 1e-3 <= value < 1e4 or (1e-4 < value < 1e-3 and float(digits) != 1.0):
        return f"{value:.4g}"
    return _bare(spelt(f"{float(digits):g}e{int(exponent):+d}", 0))


def hundredths(value: float | None) -> str:
    """Return a share of one in per cent with three digits and no sign.

    >>> hundredths(0.12345), hundredths(1e-16)
    ('12.3', '0')
    """
    if value is not None and abs(value) < _NOTHING:
        return "0"
    return number(None if value is None else float(f"{100.0 * value:.3g}"))


def sortable(value: float | None) -> str:
    """Return a number as a program reads it, for a table that sorts.

    >>> sortable(251234.0), sortable(None)
    ('251234', 'unknown')
    """
    return "unknown" if value is None else f"{value:.6g}"


def confidence(alpha: float | None, doubt: float | None) -> str:
    """Return a confidence, and what is close to one by what it lacks: nothing that is not one is called one.

    >>> confidence(0.5, 0.5), confidence(1.0, 2.5e-7), confidence(1.0, 0.0)
    ('0.5', '1 − 2.5·10⁻⁷', '1')
    """
    if alpha is None or not doubt or doubt >= 1e-4:
        return number(alpha)
    return f"1 \N{MINUS SIGN} {spelt(f'{doubt:.1e}').replace('.0·', '·')}"


def count(value: float) -> str:
    """Return a count with commas.

    >>> count(12000.0)
    '12,000'
    """
    return f"{value:,.0f}"


def shortened(name: str, limit: int = 20) -> str:
    """Return a name cut in its middle: long names often differ only at their ends.

    >>> shortened("the model in use since spring", 20)
    'the model in… spring'
    """
    if len(name) <= limit:
        return name
    end = (limit - 1) * 2 // 5
    return f"{name[: limit - 1 - end]}…{name[-end:]}"


def _bare(text: str) -> str:
    """Write 1·10⁷ as 10⁷."""
    return re.sub(r"^(-?)1·", r"\1", text)
