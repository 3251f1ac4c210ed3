"""Dates of a table: the formats that are read, and dates as days."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyspar.errors import InputError

ISO = "YYYY-MM-DD"
_DATE_FORMATS = {
    ISO: (r"\d{4}-\d{1,2}(-\d{1,2}.*)?", "ISO8601"),
    "YYYY/MM/DD": (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    "DD.MM.YYYY": (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
}
"""The date formats that are read, each with a pattern and a strptime format. 03/04/2021 is ambiguous and not read."""
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE_LIKE = (
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d{2}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|"
    rf"\d{{1,2}}[ -]{_MONTH},?[ -]\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}})([ T].*)?"
)


def as_days(column: pd.Series[Any], layout: str | None = None, fix: str | None = None) -> NDArray[np.float64]:
    """Return dates as days since 1970 in UTC, with NaN for missing dates. Text must have the date format ``layout``."""
    layout = layout or date_format(column) or ISO
    expected = f"a date in the format {layout}"
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        stamps = pd.to_datetime(column, utc=True)
    elif pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
        raise value_error(column, column.notna().to_numpy(), expected, fix)
    else:
        stamps = _parse_dates(column, layout)
    invalid = (stamps.isna() & column.notna()).to_numpy()
    if invalid.any():
        raise value_error(column, invalid, expected, fix)
    elapsed = stamps.dt.tz_localize(None).to_numpy() - np.datetime64(0, "D")
    return np.asarray(elapsed / np.timedelta64(1, "D"))  # in the unit of the column, because others may overflow


def date_format(column: pd.Series[Any]) -> str | None:
    """Return the format in which all values of a text column are dates, or None.

    Digits alone ('2024') are not dates, because they are more often a code.
    """
    values = _text_values(column)
    for layout, (pattern, _) in _DATE_FORMATS.items():
        if _all_match(values, pattern):
            return layout if bool(_parse_dates(values, layout).notna().all()) else None
    return None


def looks_like_dates(column: pd.Series[Any]) -> bool:
    """Return whether all values of a text column look like dates, in any format."""
    return _all_match(_text_values(column), _DATE_LIKE)


def read_mostly_dates(column: pd.Series[Any]) -> tuple[pd.Series[Any], NDArray[np.intp]] | None:
    """Return a text column of which most values are dates in one format, and the rows of the others; otherwise None.

    The other values are missing in the returned column.
    """
    values = _text_values(column)
    for layout, (pattern, _) in _DATE_FORMATS.items():
        matches = values.str.fullmatch(pattern)
        if 2 * int(matches.sum()) > len(values):
            valid = column.notna() & _parse_dates(column, layout).notna()
            return column.where(valid, None), np.flatnonzero((~valid & column.notna()).to_numpy())
    return None


def is_text(column: pd.Series[Any]) -> bool:
    """Return whether a column contains text, or text among other values."""
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    return not is_category and pd.api.types.infer_dtype(column, skipna=True) in ("string", "mixed-integer", "mixed")


def _text_values(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of a text column, or an empty series for other columns."""
    values = column.dropna()
    text = isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.infer_dtype(values) == "string"
    return values.astype(str) if text else values[:0]


def _all_match(values: pd.Series[Any], pattern: str) -> bool:
    """Return whether all values match a pattern. The first value decides most columns."""
    return (
        len(values) > 0
        and re.fullmatch(pattern, values.iloc[0]) is not None
        and bool(values.str.fullmatch(pattern).all())
    )


def _parse_dates(column: pd.Series[Any], layout: str) -> pd.Series[Any]:
    pattern, strptime = _DATE_FORMATS[layout]
    values = column.astype(object)
    # The ISO8601 format of pandas accepts other formats too, so the pattern is checked first.
    text = values.map(lambda value: isinstance(value, str))
    valid = ~text | values.where(text, "").str.fullmatch(pattern)
    return pd.to_datetime(values.where(column.notna() & valid, None), format=strptime, errors="coerce", utc=True)


def is_later(target: pd.Series[Any], source: pd.Series[Any]) -> bool:
    """Return whether all dates of the target are after those of the source."""
    if target.isna().all():
        return False
    return bool(np.nanmin(as_days(target, date_format(source))) > np.nanmax(as_days(source)))


def value_error(
    column: pd.Series[Any], invalid: NDArray[np.bool_], expected: str, fix: str | None = None
) -> InputError:
    """Return an InputError for the first invalid value of a column, with the number of invalid values."""
    row = int(np.flatnonzero(invalid)[0])
    name = str(column.name)
    count = f"{int(invalid.sum())} of {len(column)} values; the first row is 0"
    # A saved model is also used from Python, where the command line's --drop does not exist.
    fix = "correct the values, or drop the column before fitting" if fix is None else fix
    return InputError(
        f"column {name!r}: {column.iloc[row]!r} in row {row} is not {expected} ({count}){'; ' if fix else ''}{fix}"
    )
