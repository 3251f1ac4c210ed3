"""Numbers that are written as text: '1,599', '$8.33', '12 %', '8,33', 'true', and the marks of missing values.

A column is read as numbers if more than half of its cells that are not missing are numbers. The other cells, and cells
in another format, are bad cells. The format of a column does not change within a file.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

MISSING_MARKS = ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"]
MISSING_MARKS += ["na", "n.a.", "N.A.", "Null", "-", "--", "?", "."]
"""Text that is a missing value in every column except the id column."""
_MISSING_WORDS = {mark.lower() for mark in MISSING_MARKS} | {"\u2013", "\u2014", "nil", "missing", "unknown"}
"""Text that is a missing value in a column of numbers, in lower case."""
_TRUTH = {"true": 1.0, "false": 0.0}


def _compile(point: str, group: str) -> re.Pattern[str]:
    """Return the pattern of a number with a decimal point and group marks; a space and ' are group marks too."""
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?P<mark>[{group}' ])\d{{3}}(?:(?P=mark)\d{{3}})*)"
    return re.compile(rf"(?:{whole}(?:[{point}]\d*)?|[{point}]\d+)(?:[eE][-+]?\d+)?", re.ASCII)


_PATTERNS = {False: _compile(".", ","), True: _compile(",", ".")}
_GROUP_MARKS = str.maketrans("", "", ".,' ")
_PLAIN_SPACES = str.maketrans("\u00a0\u2009\u202f\u2019\u2212", "   '-")


class NumberFormat(NamedTuple):
    """The decimal mark of a column, and the sign of its cells: '%', a currency, 'true' for truth values, or ''."""

    decimal_comma: bool = False
    sign: str = ""


PLAIN = NumberFormat()


def show_decimal_mark(text: str) -> str:
    """Return the decimal mark that a cell shows, '?' if it is a number with either mark, or '' if it shows nothing.

    >>> [show_decimal_mark(text) for text in ("8,33", "8.33", "1,599", "12", "many")]
    [',', '.', '?', '', '']
    """
    with_point, with_comma = _split(text, False), _split(text, True)
    if with_point == with_comma:
        return ""
    return "," if with_point is None else "." if with_comma is None else "?"


def infer_format(counts: Mapping[str, int], file_mark: str = "") -> NumberFormat | None:
    """Return the format of a column from its cells and how often each occurs, or None if most are not numbers.

    The decimal mark is a comma if more cells show a decimal comma than a decimal point. Numbers with either mark
    ('1,599') count for the point. In a file with semicolons, whose mark is ``file_mark``, they do not count.

    >>> infer_format({"$8.33": 3, "12": 1, "n/a?": 1})
    NumberFormat(decimal_comma=False, sign='$')
    >>> infer_format({"1,599": 1}).decimal_comma, infer_format({"1,599": 1}, file_mark=",").decimal_comma
    (False, True)
    """
    marks: Counter[str] = Counter()
    for text, n in counts.items():
        marks[show_decimal_mark(text)] += n
    others = marks["."] + (0 if file_mark else marks["?"])
    comma = marks[","] > others or (marks[","] == others and file_mark == ",")
    signs: Counter[str] = Counter()
    n_words = 0
    for text, n in counts.items():
        split = _split(text, comma) or _split(text, not comma)
        if split is not None:
            signs[split[0]] += n
        elif not _is_missing(text):
            n_words += n
    if signs.total() <= n_words:
        return None
    common = [sign for sign, _ in signs.most_common()]
    # A cell without a currency sign may be an amount of money, but a cell without a percent sign is not a percentage.
    sign = common[0] or next((sign for sign in common if sign not in ("", "%", "true")), "")
    return NumberFormat(comma, sign)


def parse_number(text: str, style: NumberFormat = PLAIN) -> float | None:
    """Return the number in a cell, NaN for a missing value, or None for a bad cell. Percentages are divided by 100.

    >>> parse_number("$1,599.50", NumberFormat(sign="$")), parse_number("12 %", NumberFormat(sign="%"))
    (1599.5, 0.12)
    >>> parse_number("n/a?"), parse_number("12 %"), parse_number("N/A")
    (None, None, nan)
    """
    if _is_missing(text):
        return math.nan
    split = _split(text, style.decimal_comma)
    if split is None:
        return None
    sign, number = split
    if style.sign == "%":
        return number / 100.0 if sign == "%" else 0.0 if number == 0.0 else None
    return number if sign in ("", style.sign) else None


def is_plain(text: str) -> bool:
    """Return whether a cell is a number without separators and signs, as most programs write it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING_WORDS


def _split(text: str, decimal_comma: bool) -> tuple[str, float] | None:
    """Return the sign of a cell (a currency, '%', 'true' or '') and its number, or None if it is not a number."""
    body = text.strip().translate(_PLAIN_SPACES)
    if body.lower() in _TRUTH:
        return "true", _TRUTH[body.lower()]
    if re.fullmatch(r"(?i)[-+]?inf(inity)?", body):
        return "", float(body)
    factor, body = _take_minus(body)
    sign = ""
    if body and unicodedata.category(body[0]) == "Sc":
        sign, body = body[0], body[1:].lstrip()
    elif body and (body[-1] == "%" or unicodedata.category(body[-1]) == "Sc"):
        sign, body = body[-1], body[:-1].rstrip()
    if sign and factor is None:
        factor, body = _take_minus(body)
    if _PATTERNS[decimal_comma].fullmatch(body) is None:
        return None
    whole, _, fraction = body.partition("," if decimal_comma else ".")
    return sign, (factor or 1.0) * float(whole.translate(_GROUP_MARKS) + (f".{fraction}" if fraction else ""))


def _take_minus(text: str) -> tuple[float | None, str]:
    """Return the factor of a leading plus or minus, or None, and the rest of a text."""
    if text[:1] in ("-", "+"):
        return (-1.0 if text[0] == "-" else 1.0), text[1:].lstrip()
    return None, text
