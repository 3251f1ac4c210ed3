"""The values of one column: which kind they are, and how they become numbers, words or dates.

The kind is decided on the source alone. A target column is then read as that kind, and a value that is not of it is
refused by name, never turned into a missing one.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyspar.errors import InputError
from pyspar.sources.files.names import left_out

Kind = Literal["numeric", "categorical", "date"]

_NUMBERS = "numbers, as in the source"
_LEAVE_OUT = "mend these values, or {drop}"
ISO = "YYYY-MM-DD"
_FORMS = {
    ISO: (r"\d{4}-\d{1,2}(-\d{1,2}.*)?", "ISO8601"),
    "YYYY/MM/DD": (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    "DD.MM.YYYY": (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
}
"""The forms of dates that are read, each as a pattern and a format; 03/04/2021 may be March or April, and is none."""

_LIKE_DATES = r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d{2}|\d{4}[./-]\d{1,2}[./-]\d{1,2})([ T].*)?"
_MICROSECONDS_PER_DAY = 86_400_000_000.0


def kind_of(column: pd.Series[Any]) -> Kind | str:
    """Return the kind of a source column with at least one value, or ``"holds ..."`` where it has none of ours."""
    types = pd.api.types
    if types.is_complex_dtype(column.dtype):
        return "holds complex numbers"
    if (
        types.is_bool_dtype(column.dtype)
        or types.is_numeric_dtype(column.dtype)
        or types.is_timedelta64_dtype(column.dtype)
    ):
        return "numeric"
    if types.is_datetime64_any_dtype(column.dtype):
        return "date"
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "categorical"
    held = types.infer_dtype(column, skipna=True)
    if held in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):
        return "numeric"
    if held in ("date", "datetime", "datetime64"):
        return "date"
    if held == "string":
        return "date" if date_form(column) else "categorical"
    return f"holds {held} values"


def as_numbers(column: pd.Series[Any], expected: str = _NUMBERS, cure: str = _LEAVE_OUT) -> NDArray[np.floating[Any]]:
    """Return a column as floats, missing values as NaN; float32 stays float32."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds(), dtype=np.float64) / 86400.0
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise _refused(column, expected, column.notna().to_numpy(), cure)
    single = str(column.dtype).lower() in ("float32", "float16")
    numbers = pd.to_numeric(column, errors="coerce")
    text = (numbers.isna() & column.notna()).to_numpy()
    if text.any():
        raise _refused(column, expected, text, cure)
    return np.asarray(numbers.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))


def as_words(column: pd.Series[Any]) -> NDArray[np.object_]:
    """Return a column as strings, missing values as None; whole numbers without a decimal point."""
    values = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    words = np.empty(len(values), dtype=object)
    words[:] = [None if gone else _word(value) for value, gone in zip(values, missing)]
    return words


def as_days(column: pd.Series[Any], form: str | None = None) -> NDArray[np.float64]:
    """Return dates as days since 1970 in UTC, missing ones as NaN; text must be in the form, where one is given."""
    form = form or date_form(column) or ISO
    expected = f"dates written as {form}, as in the source"
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        stamps = pd.to_datetime(column, utc=True)
    elif pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
        raise _refused(column, expected, column.notna().to_numpy())
    else:
        stamps = _parsed(column, form)
    bad = (stamps.isna() & column.notna()).to_numpy()
    if bad.any():
        raise _refused(column, expected, bad)
    micro = stamps.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / _MICROSECONDS_PER_DAY)


def date_form(column: pd.Series[Any]) -> str | None:
    """Return the form in which all values of a text column are dates, or None.

    Digits alone ('2024') are none, they are more often a code.
    """
    values = _texts(column)
    for form, (pattern, _) in _FORMS.items():
        if _all_match(values, pattern):
            return form if bool(_parsed(values, form).notna().all()) else None
    return None


def looks_like_dates(column: pd.Series[Any]) -> tuple[str, bool] | None:
    """Return the separator, and whether the year comes first, of text that looks like dates in any form."""
    values = _texts(column)
    if not _all_match(values, _LIKE_DATES):
        return None
    start = str(values.iloc[0])
    year_first = start[:4].isdigit()
    return start[4] if year_first else start.lstrip("0123456789")[0], year_first


def all_commas(column: pd.Series[Any]) -> bool:
    """Say whether all values of a text column are numbers, with a comma for the point."""
    values = _texts(column)
    return _all_match(values, r"[-+]?\d+(,\d+)?([eE][-+]?\d+)?")


def _texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of a column of text, or nothing where it is not text."""
    values = column.dropna()
    text = isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.infer_dtype(values) == "string"
    return values.astype(str) if text else values[:0]


def _all_match(values: pd.Series[Any], pattern: str) -> bool:
    """Try the first value first: most columns of text end there."""
    return (
        len(values) > 0
        and re.fullmatch(pattern, values.iloc[0]) is not None
        and bool(values.str.fullmatch(pattern).all())
    )


def _word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _parsed(column: pd.Series[Any], form: str) -> pd.Series[Any]:
    pattern, layout = _FORMS[form]
    values = column.astype(object)
    # pandas reads more than one form as ISO; what is not in the form must not pass.
    text = values.map(lambda value: isinstance(value, str))
    right = ~text | values.where(text, "").str.fullmatch(pattern)
    return pd.to_datetime(values.where(column.notna() & right, None), format=layout, errors="coerce", utc=True)


def _refused(column: pd.Series[Any], expected: str, bad: NDArray[np.bool_], cure: str = _LEAVE_OUT) -> InputError:
    row = int(np.flatnonzero(bad)[0])
    name = str(column.name)
    return InputError(
        f"column {name!r}: expected {expected}. Got {column.iloc[row]!r} in row {row} "
        f"({int(bad.sum())} such of {len(column)}; the first row is 0); {cure.format(drop=left_out([name]))}."
    )
