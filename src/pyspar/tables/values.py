"""The values of one column: which kind they are, and how they become numbers, words or dates.

The kind is decided on the source alone. A target column is then read as that kind, and a value that is not of it is
refused by name, never turned into a missing one.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyspar.errors import InputError

Kind = Literal["numeric", "categorical", "date"]

_NUMBERS = "numbers, as in the source"
_DATES = "dates such as 2024-05-31, as in the source"
_ISO = r"\d{4}-\d{1,2}(-\d{1,2}.*)?"
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
        return "date" if _all_iso(column) else "categorical"
    return f"holds {held} values"


def as_numbers(column: pd.Series[Any], expected: str = _NUMBERS) -> NDArray[np.floating[Any]]:
    """Return a column as floats, missing values as NaN; float32 stays float32."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds(), dtype=np.float64) / 86400.0
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise _refused(column, expected, column.notna().to_numpy())
    single = str(column.dtype).lower() in ("float32", "float16")
    numbers = pd.to_numeric(column, errors="coerce")
    text = (numbers.isna() & column.notna()).to_numpy()
    if text.any():
        raise _refused(column, expected, text)
    return np.asarray(numbers.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))


def as_words(column: pd.Series[Any]) -> NDArray[np.object_]:
    """Return a column as strings, missing values as None; whole numbers without a decimal point."""
    values = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    words = np.empty(len(values), dtype=object)
    words[:] = [None if gone else _word(value) for value, gone in zip(values, missing)]
    return words


def as_days(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Return dates as days since 1970 in UTC, missing ones as NaN."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        stamps = pd.to_datetime(column, utc=True)
    elif pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
        raise _refused(column, _DATES, column.notna().to_numpy())
    else:
        stamps = _parsed(column)
    bad = (stamps.isna() & column.notna()).to_numpy()
    if bad.any():
        raise _refused(column, _DATES, bad)
    micro = stamps.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / _MICROSECONDS_PER_DAY)


def _word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _parsed(column: pd.Series[Any]) -> pd.Series[Any]:
    return pd.to_datetime(
        column.astype(object).where(column.notna(), None), format="ISO8601", errors="coerce", utc=True
    )


def _all_iso(column: pd.Series[Any]) -> bool:
    """Say whether all values are ISO dates; digits alone ('2024') are not, they are more often a code."""
    values = column.dropna().astype(str)
    return bool(values.str.fullmatch(_ISO).all()) and bool(_parsed(values).notna().all())


def _refused(column: pd.Series[Any], expected: str, bad: NDArray[np.bool_]) -> InputError:
    row = int(np.flatnonzero(bad)[0])
    return InputError(
        f"column {str(column.name)!r}: expected {expected}. Got {column.iloc[row]!r} in row {row} "
        f"({int(bad.sum())} such of {len(column)}; the first row is 0); mend these values or leave the column out."
    )
