"""Wording: numbers as the terminal, the page, its figures and every sentence write them: the same digits everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

PLAIN = 9
"""From this power of ten on a number is written as a power; smaller ones with commas."""
TOO_LARGE = "too large to compute"
"""How infinity is written: an error that was computed, and is larger than float64 reaches."""
_EXPONENT = re.compile(r"(?<![\w.])(-?\d(?:\.\d+)?)e([+-]\d+)(?!\w)")
_POWER = re.compile(r"·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_DIGITS, _RAISED = "-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_ROUNDING = 1e-9


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with four digits unless told otherwise, or say that it is too large or unknown.

    >>> number(12.34567), number(251234.0), number(3e12), number(None), number(math.inf)
    ('12.35', '251,200', '3·10¹²', 'unknown', 'too large to compute')
    """
    if value == math.inf:
        return TOO_LARGE
    return "unknown" if value is None or not math.isfinite(value) else spelt(f"{value:.{digits}g}")


def between(ends: Sequence[float | None]) -> str:
    """Return an interval as text.

    >>> between((1.0, 2.5e5))
    '1 to 250,000'
    """
    low, high = map(number, ends)
    if low == TOO_LARGE:
        return TOO_LARGE
    return "unknown" if "unknown" in (low, high) else f"{low} to {high}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share of one in per cent; what rounds to nothing is not called nothing, nor what rounds to all all.

    >>> percent(0.1234), percent(0.0), percent(1e-5), percent(0.99999)
    ('12.3 %', '0 %', 'under 0.1 %', 'over 99.9 %')
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
    return f"{text} %"


def times(factor: float) -> str:
    """Return how many times, with two digits: more would be read as if they were sure.

    >>> times(17123456.0), times(3.14), times(1e12)
    ('17,000,000', '3.1', '10¹²')
    """
    return number(factor, 2).removeprefix("1·")


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
    shown = ", ".join(map(repr, names[:limit]))
    return f"{shown} and {len(names) - limit:,} more" if len(names) > limit else shown or "none"


def suggest_name(name: str, known: Iterable[str], *, cutoff: float = 0.75) -> str:
    """Return "did you mean ...?" with the known names that are closest to a misspelt one, or an empty string.

    >>> suggest_name("Pirce", ["rooms", "price"]), suggest_name("area", ["rooms", "price"])
    ("did you mean 'price'?", '')
    """
    lowered = {other.lower(): other for other in reversed(list(known))}
    key = name.lower()
    close = [key] if key in lowered else get_close_matches(key, list(lowered), n=3, cutoff=cutoff)
    return f"did you mean {' or '.join(repr(lowered[c]) for c in close)}?" if close else ""


def in_new_categories(rows: int, categories: Sequence[str]) -> str:
    """Return the number of target rows in categories that do not occur in the source, and these categories.

    >>> in_new_categories(685, ["farm"])
    "685 target rows in a new category ('farm')"
    >>> in_new_categories(1, ["farm", "barn"])
    "1 target row in 2 new categories ('farm', 'barn')"
    """
    new = "a new category" if len(categories) == 1 else f"{len(categories):,} new categories"
    return f"{rows:,} target row{'' if rows == 1 else 's'} in {new} ({list_some(categories, 3, max_length=40)})"


def spelt(text: str, plain: int = PLAIN) -> str:
    """Write the exponents in a text as people do: with commas below a power of ten, as powers from there on.

    >>> spelt("2.512e+04 of 3e+12, 4.1e-07")
    '25,120 of 3·10¹², 4.1·10⁻⁷'
    """
    return _EXPONENT.sub(lambda found: _spelt(found, plain), text)


def without_raised(text: str) -> str:
    """Write powers of ten with an e again, for a terminal that has no raised digits.

    >>> without_raised("25,120 of 3·10¹², 4.1·10⁻⁷")
    '25,120 of 3e12, 4.1e-7'
    """
    return _POWER.sub(lambda found: "e" + found[1].translate(str.maketrans(_RAISED, _DIGITS)), text)


def _spelt(found: re.Match[str], plain: int) -> str:
    digits, exponent = found[1], int(found[2])
    if 0 <= exponent < plain:
        return f"{float(found[0]):,.0f}"
    return f"{digits}·10{str(exponent).translate(str.maketrans(_DIGITS, _RAISED))}"
