"""Words: numbers and sentences as a page shows them, without the exponents that a terminal is content with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspar.wording import between, number

PLAIN = 9
"""From this power of ten on a number is written as a power; smaller ones with commas."""
AT_AXIS = 7
"""The same where a number stands at an axis, and has less room."""
_EXPONENT = re.compile(r"(?<![\w.])(-?\d(?:\.\d+)?)e([+-]\d+)(?!\w)")
_ROUNDING = 1e-9
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tidy(text: str) -> str:
    """Write exponents as people do, and keep a percent sign with its number.

    >>> tidy("2.512e+04 of 3e+12, 4.1e-07")
    '25,120 of 3·10¹², 4.1·10⁻⁷'
    """
    return _EXPONENT.sub(lambda found: _spelt(found, PLAIN), text).replace(" %", "\N{NO-BREAK SPACE}%")


def shown(value: float | None) -> str:
    """Return a number with four digits for people.

    >>> shown(251234.0), shown(0.25), shown(None)
    ('251,200', '0.25', 'unknown')
    """
    return tidy(number(value))


def shown_between(ends: Sequence[float | None]) -> str:
    """Return an interval for people.

    >>> shown_between((1.0, 2e5))
    '1 to 200,000'
    """
    return tidy(between(ends))


def tick(value: float) -> str:
    """Return a number as it stands at an axis with even steps.

    >>> tick(-0.02), tick(20000.0), tick(5e7)
    ('-0.02', '20,000', '5·10⁷')
    """
    return _bare(_EXPONENT.sub(lambda found: _spelt(found, AT_AXIS), f"{value:.4g}"))


def log_tick(value: float) -> str:
    """Return a number as it stands at a logarithmic axis: small and large powers of ten as powers.

    >>> log_tick(0.02), log_tick(1000.0), log_tick(1e-4), log_tick(8e-4), log_tick(2e5)
    ('0.02', '1000', '10⁻⁴', '0.0008', '2·10⁵')
    """
    digits, exponent = f"{value:.3e}".split("e")
    if 1e-3 <= value < 1e4 or (1e-4 < value < 1e-3 and float(digits) != 1.0):
        return f"{value:.4g}"
    return _bare(f"{float(digits):g}·10{str(int(exponent)).translate(_RAISED)}")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share of one in per cent; what rounds to nothing is not called nothing, nor what rounds to all all.

    >>> percent(0.1234), percent(0.0), percent(1e-5), percent(0.99999)
    ('12.3\\xa0%', '0\\xa0%', 'under 0.1\\xa0%', 'over 99.9\\xa0%')
    """
    if value is None:
        return "unknown"
    least, hundred = 10.0**-digits, 100.0 * value
    if abs(value - round(value)) < _ROUNDING:  # none or all of it
        text = f"{hundred:.0f}"
    elif 0.0 < hundred < least / 2.0:
        text = f"under {least:g}"
    elif 100.0 - least / 2.0 < hundred < 100.0:
        text = f"over {100.0 - least:g}"
    else:
        text = f"{hundred:.{digits}f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def hundredths(value: float | None) -> str:
    """Return a share of one in per cent with three digits and no sign, for a table that sorts.

    >>> hundredths(0.12345), hundredths(1e-16)
    ('12.3', '0')
    """
    if value is not None and abs(value) < _ROUNDING:
        return "0"
    return number(None if value is None else float(f"{100.0 * value:.3g}"))


def confidence(alpha: float | None, doubt: float | None) -> str:
    """Return a confidence, and what is close to one by what it lacks: nothing that is not one is called one.

    >>> confidence(0.5, 0.5), confidence(1.0, 2.5e-7), confidence(1.0, 0.0)
    ('0.5', '1 − 2.5·10⁻⁷', '1')
    """
    if alpha is None or not doubt or doubt >= 1e-4:
        return number(alpha)
    return f"1 \N{MINUS SIGN} {tidy(f'{doubt:.1e}').replace('.0·', '·')}"


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


def _spelt(found: re.Match[str], plain: int) -> str:
    digits, exponent = found[1], int(found[2])
    if 0 <= exponent < plain:
        return f"{float(found[0]):,.0f}"
    return f"{digits}·10{str(exponent).translate(_RAISED)}"
