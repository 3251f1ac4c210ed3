"""Numbers, intervals and lists of names as text, in one form for messages, the terminal and the report."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

POWER_EXPONENT = 9
"""Numbers from this power of ten on are written as powers, smaller numbers with commas."""
TOO_LARGE = "too large to compute"
"""The text for infinity: an error that exceeds float64."""
_EXPONENT = re.compile(r"(?<![\w.])(-?\d(?:\.\d+)?)e([+-]\d+)(?!\w)")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ROUNDING = 1e-9


def format_number(value: float | None, digits: int = 4, power_exponent: int = POWER_EXPONENT) -> str:
    """Return a number with four digits by default, "unknown" for None and NaN, or that it is too large.

    >>> format_number(12.34567), format_number(1234.5), format_number(251234.0), format_number(3e12)
    ('12.35', '1,234', '251,200', '3·10¹²')
    >>> format_number(None), format_number(math.inf), format_number(40_200_000.0, 3, power_exponent=4)
    ('unknown', 'too large to compute', '4.02·10⁷')
    """
    if value == math.inf:
        return TOO_LARGE
    if value is None or not math.isfinite(value):
        return "unknown"
    text = f"{value:.{digits}g}"
    return f"{int(text):,}" if re.fullmatch(r"-?\d{4,}", text) else replace_exponents(text, power_exponent)


def format_interval(ends: Sequence[float | None], digits: int = 4) -> str:
    """Return an interval as text.

    >>> format_interval((1.0, 2.5e5)), format_interval((5100.0, 63800.0))
    ('1 to 250,000', '5,100 to 63,800')
    """
    low, high = (format_number(end, digits) for end in ends)
    if low == TOO_LARGE:
        return TOO_LARGE
    return "unknown" if "unknown" in (low, high) else f"{low} to {high}"


def format_p_value(value: float) -> str:
    """Return a p-value; values below the range of float64 are not written as zero.

    >>> format_p_value(0.0312), format_p_value(2.1e-11), format_p_value(0.0)
    ('p = 0.031', 'p = 2.1·10⁻¹¹', 'p < 10⁻³⁰⁰')
    """
    return "p < 10⁻³⁰⁰" if value < 1e-300 else f"p = {format_number(value, 2)}"


def format_percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction in per cent. Values that round to 0 or 100 but differ are written as "under" or "over".

    >>> format_percent(0.1234), format_percent(0.0), format_percent(1e-5), format_percent(0.99999)
    ('12.3 %', '0 %', 'under 0.1 %', 'over 99.9 %')
    """
    if value is None:
        return "unknown"
    step, hundred = 10.0**-digits, 100.0 * value
    if abs(value - round(value)) < _ROUNDING:  # an integer up to rounding
        text = f"{hundred:.0f}"
    elif 0.0 < hundred < step / 2.0:
        text = f"under {step:g}"
    elif 100.0 - step / 2.0 < hundred < 100.0:
        text = f"over {100.0 - step:g}"
    else:
        text = f"{hundred:.{digits}f}"
    return f"{text} %"


def format_factor(factor: float, digits: int = 2, power_exponent: int = POWER_EXPONENT) -> str:
    """Return a number with two digits by default, and 1·10¹² as 10¹².

    >>> format_factor(17123456.0), format_factor(3.14), format_factor(1e12), format_factor(-1e7, 4, 7)
    ('17,000,000', '3.1', '10¹²', '-10⁷')
    """
    return re.sub(r"^(-?)1·", r"\1", format_number(factor, digits, power_exponent))


def count_noun(n: int, one: str, many: str | None = None) -> str:
    """Return a number with a noun in singular or plural. By default the plural ends in s.

    >>> count_noun(1, "row"), count_noun(2500, "row"), count_noun(2, "column is", "columns are")
    ('1 row', '2,500 rows', '2 columns are')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def list_some(names: Iterable[object], limit: int = 8, *, max_length: int | None = None) -> str:
    """Return the first names in quotation marks, and the number of the others; names over ``max_length`` are cut.

    >>> list_some(["a", "b", "c"], limit=2), list_some(["a", "b"]), list_some([])
    ("'a', 'b' and 1 more", "'a', 'b'", 'none')
    >>> list_some(["a long name"], max_length=6)
    "'a lon…'"
    """
    names = list(names)
    if max_length is not None:
        names = [name if len(name) <= max_length else f"{name[: max_length - 1]}…" for name in map(str, names)]
    listed = ", ".join(map(repr, names[:limit]))
    return f"{listed} and {len(names) - limit:,} more" if len(names) > limit else listed or "none"


def suggest_name(name: str, known: Iterable[str], *, cutoff: float = 0.75) -> str:
    """Return "did you mean ...?" with the known names closest to a misspelt name, or an empty string.

    >>> suggest_name("Pirce", ["rooms", "price"]), suggest_name("area", ["rooms", "price"])
    ("did you mean 'price'?", '')
    """
    lowered = {other.lower(): other for other in reversed(list(known))}
    key = name.lower()
    close = [key] if key in lowered else get_close_matches(key, list(lowered), n=3, cutoff=cutoff)
    return f"did you mean {' or '.join(repr(lowered[c]) for c in close)}?" if close else ""


def list_categories(categories: Sequence[str]) -> str:
    """Return the first three categories in quotation marks, and the number of the others; long categories are cut."""
    return list_some(categories, 3, max_length=40)


def describe_new_categories(rows: int, categories: Sequence[str]) -> str:
    """Return the number of target rows in categories that do not occur in the source, and these categories.

    >>> describe_new_categories(685, ["farm"])
    "685 target rows in a new category ('farm')"
    >>> describe_new_categories(1, ["farm", "barn"])
    "1 target row in 2 new categories ('farm', 'barn')"
    """
    new = "a new category" if len(categories) == 1 else f"{len(categories):,} new categories"
    return f"{count_noun(rows, 'target row')} in {new} ({list_categories(categories)})"


def replace_exponents(text: str, power_exponent: int = POWER_EXPONENT) -> str:
    """Replace the exponents in a text: numbers below a power of ten get commas, larger ones are written as powers.

    >>> replace_exponents("2.512e+04 of 3e+12, 4.1e-07")
    '25,120 of 3·10¹², 4.1·10⁻⁷'
    """

    def rewrite(match: re.Match[str]) -> str:
        digits, exponent = match[1], int(match[2])
        if 0 <= exponent < power_exponent:
            return f"{float(match[0]):,.0f}"
        return f"{digits}·10{str(exponent).translate(_SUPERSCRIPTS)}"

    return _EXPONENT.sub(rewrite, text)
