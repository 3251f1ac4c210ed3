"""Numbers and lists of names as text, in one form for messages, the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches


def format_number(value: float | None) -> str:
    """Return a number with three digits, and "unknown" for None and NaN.

    >>> format_number(12.3456), format_number(1234.5), format_number(251234.0), format_number(3e12), format_number(None)
    ('12.3', '1,230', '251,000', '3e+12', 'unknown')
    """
    if value is None or math.isnan(value):
        return "unknown"
    if not 1e3 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{float(f'{value:.3g}'):,.0f}"


def format_percent(value: float) -> str:
    """Return a fraction in per cent; a value that only rounds to 0 or 100 is written as "under" or "over".

    >>> format_percent(0.1234), format_percent(0.0), format_percent(1e-5), format_percent(0.99999)
    ('12.3 %', '0 %', 'under 0.1 %', 'over 99.9 %')
    """
    if 0.0 < value < 0.0005 or 0.9995 < value < 1.0:
        return "under 0.1 %" if value < 0.5 else "over 99.9 %"
    return f"{100.0 * value:.1f} %".replace(".0 %", " %")


def count_noun(n: int, one: str, many: str | None = None) -> str:
    """Return a number with a noun in singular or plural.

    >>> count_noun(1, "row"), count_noun(2500, "row"), count_noun(2, "column is", "columns are")
    ('1 row', '2,500 rows', '2 columns are')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def list_some(names: Iterable[object], limit: int = 8, *, max_length: int = 60) -> str:
    """Return the first names in quotation marks, and the number of the others. Long names are cut.

    >>> list_some(["a", "b", "c"], limit=2), list_some([])
    ("'a', 'b' and 1 more", 'none')
    """
    cut = [name if len(name) <= max_length else f"{name[: max_length - 1]}…" for name in map(str, names)]
    listed = ", ".join(map(repr, cut[:limit]))
    return f"{listed} and {len(cut) - limit:,} more" if len(cut) > limit else listed or "none"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with the known names closest to a misspelt name, or an empty string.

    >>> suggest_name("Pirce", ["rooms", "price"]), suggest_name("area", ["rooms", "price"])
    ("did you mean 'price'?", '')
    """
    lowered = {other.lower(): other for other in reversed(list(known))}
    close = [key] if (key := name.lower()) in lowered else get_close_matches(key, list(lowered), n=3, cutoff=0.75)
    return f"did you mean {' or '.join(repr(lowered[c]) for c in close)}?" if close else ""


def printable(text: str) -> str:
    r"""Return a text with control characters escaped, because names from files must not control the terminal.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
