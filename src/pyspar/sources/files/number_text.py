"""Numbers that are written as text: '1,599', '$8.33', '12 %', '8,33', and the marks of missing values.

A column is read as numbers if more than half of its cells that are not missing are numbers (``MIN_NUMBER_SHARE``). The
other cells are bad cells. Every column has one format, which is inferred from all of its cells, so that a cell in
another format is a bad cell.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MISSING_WORDS = frozenset(
    ["", "-", "--", "\u2013", "\u2014", "?", ".", "na", "n/a", "n.a.", "#na", "#n/a", "<na>", "nan", "-nan", "null"]
) | {"none", "nil", "missing", "unknown"}
"""Text that is a missing value in a column of numbers, in lower case."""

MIN_NUMBER_SHARE = 0.5
"""A column is read as numbers if a larger share of its cells is numbers; the majority shows what the column is."""


def _compile(point: str, group: str) -> re.Pattern[str]:
    """Return the pattern of a number with a decimal point and group marks; a space and ' are group marks too."""
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?P<mark>[{group}' ])\d{{3}}(?:(?P=mark)\d{{3}})*)"
    return re.compile(rf"(?:{whole}(?:[{point}]\d*)?|[{point}]\d+)(?:[eE][-+]?\d+)?", re.ASCII)


_PATTERNS = {False: _compile(".", ","), True: _compile(",", ".")}
_GROUP_MARKS = str.maketrans("", "", ".,' ")
_PLAIN_SPACES = str.maketrans("\u00a0\u2009\u202f\u2019\u2212", "   '-")


@dataclass(frozen=True)
class NumberFormat:
    """The decimal mark of a column, whether its cells have a percent sign, and its currency sign or ''.

    ``proof`` is a cell that is a number with this decimal mark only, such as '8,33', or ''. ``ambiguous`` is a cell
    that is another number with the other decimal mark, such as '1,599', or ''.
    """

    decimal_comma: bool = False
    percent: bool = False
    currency: str = ""
    proof: str = field(default="", repr=False, compare=False)
    ambiguous: str = field(default="", repr=False, compare=False)

    @property
    def is_unproven(self) -> bool:
        """Whether cells would be other numbers with the other decimal mark, and no cell excludes it."""
        return bool(self.ambiguous) and not self.proof

    @property
    def ambiguous_mark(self) -> str:
        """The comma or point of the ambiguous cell, or '' without one."""
        return next((mark for mark in ",." if mark in str(self.ambiguous)), "")


PLAIN = NumberFormat()
"""A decimal point, no percent sign, no currency."""


def infer_format(
    counts: Mapping[str, int], *, prefer_comma: bool = False, decimal_comma: bool | None = None
) -> NumberFormat:
    """Return the format of a column from its cells and how often each occurs.

    The decimal mark is a comma if most cells with a comma can only be read so. If no cell decides ('1,599'), it is a
    point unless ``prefer_comma``. With ``decimal_comma`` it is known.

    >>> infer_format({"1,599": 3, "12": 1}), infer_format({"1,5": 1, "2,25": 1, "1,599": 1}).decimal_comma
    (NumberFormat(decimal_comma=False, percent=False, currency=''), True)
    """
    proofs: dict[bool, str] = {}
    ambiguous, n_comma, n_decimal_comma, has_group_comma = "", 0, 0, False
    for text, n in counts.items():
        with_point, with_comma = _split(text, False), _split(text, True)
        if with_point == with_comma:
            continue
        n_comma += n if "," in text else 0
        if with_point is not None and with_comma is not None:
            ambiguous = ambiguous or text
        elif with_point is None:
            proofs.setdefault(True, text)
            n_decimal_comma += n if "," in text else 0
        else:
            proofs.setdefault(False, text)
            has_group_comma |= "," in text
    comma = 2 * n_decimal_comma > n_comma or (prefer_comma and n_comma > 0 and not has_group_comma)
    comma = comma if decimal_comma is None else decimal_comma
    signs = _count_signs(counts, comma)
    if comma and decimal_comma is None and (points := _count_signs(counts, False)).total() > signs.total():
        comma, signs = False, points
    percent = 2 * signs["%"] > signs.total()
    currencies = Counter({sign: n for sign, n in signs.items() if sign not in ("", "%")})
    currency = currencies.most_common(1)[0][0] if currencies else ""
    return NumberFormat(comma, percent, currency, proofs.get(comma, ""), ambiguous)


def parse_number(text: str, style: NumberFormat = PLAIN) -> float | None:
    """Return the number in a cell, NaN for a missing value, or None for a bad cell. Per cent are hundredths.

    >>> parse_number("$1,599.50", NumberFormat(currency="$")), parse_number("12 %", NumberFormat(percent=True))
    (1599.5, 0.12)
    >>> parse_number("n/a?"), parse_number("12 %"), parse_number("N/A")
    (None, None, nan)
    """
    text = text.strip()
    if text.lower() in MISSING_WORDS:
        return math.nan
    split = _split(text, style.decimal_comma)
    if split is None:
        return None
    sign, number = split
    if style.percent:
        return number / 100.0 if sign == "%" else 0.0 if number == 0.0 else None
    return number if sign in ("", style.currency) else None


def parse_cells(counts: Mapping[str, int], style: NumberFormat) -> tuple[dict[str, float], list[str], float]:
    """Return the numbers of different cells, the bad cells, and the share of numbers among the cells with a value.

    The share includes cells that are numbers in another format.
    """
    numbers: dict[str, float] = {}
    bad: list[str] = []
    n_numbers = n_bad = 0
    for text, n in counts.items():
        number = parse_number(text, style)
        if number is None:
            bad.append(text)
            is_number = _split(text, False) is not None or _split(text, True) is not None
            n_numbers, n_bad = n_numbers + n * is_number, n_bad + n * (not is_number)
        else:
            numbers[text] = number
            n_numbers += 0 if math.isnan(number) else n
    return numbers, bad, n_numbers / max(n_numbers + n_bad, 1)


def is_plain(text: str) -> bool:
    """Return whether a cell is a number without separators and signs, as most programs write it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _count_signs(counts: Mapping[str, int], decimal_comma: bool) -> Counter[str]:
    """Return how often each sign occurs in the cells that are numbers."""
    signs: Counter[str] = Counter()
    for text, n in counts.items():
        split = _split(text, decimal_comma)
        if split is not None:
            signs[split[0]] += n
    return signs


def _split(text: str, decimal_comma: bool) -> tuple[str, float] | None:
    """Return the sign of a cell (a currency, '%' or '') and its number, or None if it is not a number."""
    body = text.strip().translate(_PLAIN_SPACES)
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
