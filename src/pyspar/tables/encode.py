"""Encode columns: the kind of a column, its values as numbers, words or days, and the transformers that use them.

The kind is determined by the source alone. A target value of another kind raises an InputError and never becomes a
missing value. The transformers of this module convert raw columns, so that a saved pipeline accepts a raw data frame,
and impute categories. scikit-learn imputes numbers, scales and one-hot encodes (``columns.py``). The state of the
transformers is numpy arrays, strings and numbers, which skops can save.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer

from pyspar.errors import InputError
from pyspar.sources.files.header import suggest_column
from pyspar.sources.files.number_text import NumberFormat, infer_format, is_plain, parse_cells
from pyspar.wording import list_some

Kind = Literal["numeric", "categorical", "date"]

MISSING_CATEGORY = "(missing)"
"""The category of rows without a value, if the source has such rows."""

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
_MICROSECONDS_PER_DAY = 86_400_000_000.0
_DAYS_PER_YEAR = 365.2425
_DATE_PARTS = ("days", "year_sin", "year_cos", "weekday_sin", "weekday_cos", "hour_sin", "hour_cos")


def infer_kind(column: pd.Series[Any]) -> Kind | str:
    """Return the kind of a column with at least one value, or ``"contains ..."`` if its type is not supported."""
    types = pd.api.types
    if types.is_complex_dtype(column.dtype):
        return "contains complex numbers"
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
    value_type = types.infer_dtype(column, skipna=True)
    if value_type in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):
        return "numeric"
    if value_type in ("date", "datetime", "datetime64"):
        return "date"
    if value_type == "string":
        return "date" if date_format(column) else "categorical"
    return f"contains {value_type} values"


@dataclass(frozen=True, eq=False)
class NumberCells:
    """A column of text read as numbers: NaN where a cell is missing or bad, and the rows of the bad cells.

    ``share`` is the share of numbers among the cells with a value. ``n_marked`` cells have separators or signs, and
    ``example`` is one of them.
    """

    values: NDArray[np.float64]
    bad: NDArray[np.intp]
    share: float
    style: NumberFormat
    n_marked: int
    example: str


def read_number_cells(
    column: pd.Series[Any], *, prefer_comma: bool = False, decimal_comma: bool | None = None
) -> NumberCells:
    """Read a column of text, or of text and numbers, as numbers; with ``decimal_comma`` the decimal mark is known."""
    cells = column.to_numpy(dtype=object, na_value=None)
    numeric = np.array([isinstance(cell, (int, float, np.number)) and cell is not None for cell in cells], dtype=bool)
    counts = Counter(str(cell) for cell, is_number in zip(cells, numeric) if cell is not None and not is_number)
    style = infer_format(counts, prefer_comma=prefer_comma, decimal_comma=decimal_comma)
    numbers, bad_texts, share = parse_cells(counts, style)
    unreadable = set(bad_texts)
    values, bad = np.full(len(cells), np.nan), []
    for row, cell in enumerate(cells):
        if numeric[row]:
            values[row] = cell
        elif cell is not None and str(cell) in unreadable:
            bad.append(row)
        elif cell is not None:
            values[row] = numbers[str(cell)]
    n_text = counts.total()
    share = (share * n_text + numeric.sum()) / max(n_text + numeric.sum(), 1)
    marked = [text for text, number in numbers.items() if not np.isnan(number) and not is_plain(text)]
    n_marked = sum(counts[text] for text in marked)
    return NumberCells(values, np.array(bad, dtype=np.intp), float(share), style, n_marked, marked[0] if marked else "")


def as_numbers(column: pd.Series[Any], fix: str | None = None) -> NDArray[np.floating[Any]]:
    """Return a column as floats, with NaN for missing values. float32 stays float32.

    ``fix`` replaces the end of the error message.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds(), dtype=np.float64) / 86400.0
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise _value_error(column, column.notna().to_numpy(), "a number", fix)
    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except OverflowError as error:  # pandas keeps integers of more than 308 digits as objects
        raise _value_error(column, column.map(_overflows).to_numpy(), "a number below 1e308", fix) from error
    invalid = (numbers.isna() & column.notna()).to_numpy()
    if invalid.any():
        cells = read_number_cells(column)
        if not cells.bad.size:
            return cells.values
        raise _value_error(column, np.isin(np.arange(len(column)), cells.bad), "a number", fix)
    return np.asarray(numbers.to_numpy(dtype=np.float32 if is_single(column) else np.float64, na_value=np.nan))


def _overflows(value: Any) -> bool:
    try:
        pd.to_numeric(pd.Series([value], dtype=object), errors="coerce")
    except OverflowError:
        return True
    return False


def is_single(column: pd.Series[Any]) -> bool:
    """Return whether the values of a column have the precision of float32 or less."""
    return str(column.dtype).lower() in ("float32", "float16")


def as_words(column: pd.Series[Any]) -> NDArray[np.object_]:
    """Return a column as strings, with None for missing values. Whole numbers have no decimal point."""
    values = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    words = np.empty(len(values), dtype=object)
    words[:] = [None if is_missing else _as_word(value) for value, is_missing in zip(values, missing)]
    return words


def as_days(column: pd.Series[Any], layout: str | None = None, fix: str | None = None) -> NDArray[np.float64]:
    """Return dates as days since 1970 in UTC, with NaN for missing dates. Text must have the date format ``layout``."""
    layout = layout or date_format(column) or ISO
    expected = f"a date in the format {layout}"
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        stamps = pd.to_datetime(column, utc=True)
    elif pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
        raise _value_error(column, column.notna().to_numpy(), expected, fix)
    else:
        stamps = _parse_dates(column, layout)
    invalid = (stamps.isna() & column.notna()).to_numpy()
    if invalid.any():
        raise _value_error(column, invalid, expected, fix)
    micro = stamps.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / _MICROSECONDS_PER_DAY)


def date_format(column: pd.Series[Any]) -> str | None:
    """Return the format in which all values of a text column are dates, or None.

    Digits alone ('2024') are not dates, because they are more often a code.
    """
    values = _text_values(column)
    for layout, (pattern, _) in _DATE_FORMATS.items():
        if _all_match(values, pattern):
            return layout if bool(_parse_dates(values, layout).notna().all()) else None
    return None


def date_like_form(column: pd.Series[Any]) -> tuple[str, bool] | None:
    """Return the separator of text that looks like dates, and whether the year comes first; otherwise None."""
    values = _text_values(column)
    if not _all_match(values, _DATE_LIKE):
        return None
    start = str(values.iloc[0])
    if start[0].isalpha():
        return "", False
    year_first = start[:4].isdigit()
    return start[4] if year_first else start.lstrip("0123456789")[0], year_first


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


class TableEncoder(ColumnTransformer):  # type: ignore[misc]  # sklearn is untyped
    """The preprocessing of a table. A table without some of its columns raises an InputError that names them.

    ``formats_`` are the formats in which the numbers of the source's file are written, including those of the label.
    """

    formats_: dict[str, NumberFormat]

    def transform(self, X: Any, **params: Any) -> Any:
        """Encode the rows of a data frame."""
        if not hasattr(X, "columns"):
            raise InputError(
                f"X must be a data frame with the columns {list_some(self.feature_names_in_)}, got {type(X).__name__}; "
                "pass pandas.DataFrame(rows, columns=...)"
            )
        missing = [name for name in self.feature_names_in_ if name not in set(X.columns)]
        if missing:
            raise InputError(
                f"X lacks {len(missing)} of {len(self.feature_names_in_)} columns of the fit: {list_some(missing)}; "
                f"{suggest_column(missing[0], map(str, X.columns))}"
            )
        return super().transform(X, **params)


class Numbers(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Convert numbers, booleans, decimals and durations (in days) to floats of one precision.

    ``dtype`` is "float32" if all columns have that precision, so that rounding errors are recognised as such.
    """

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = dtype

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.asarray([str(c) for c in X.columns], dtype=object)
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        if all(dtype in (np.float64, np.float32) for dtype in set(X.dtypes)):
            return X.to_numpy(dtype=self.dtype)
        return np.column_stack([as_numbers(X.iloc[:, j]) for j in range(X.shape[1])]).astype(self.dtype)


class Words(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Convert categories to strings.

    A missing value becomes a category of its own if the source has missing values, otherwise the most frequent one.
    """

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.asarray([str(c) for c in X.columns], dtype=object)
        self.fill_ = [_fill_value(as_words(X.iloc[:, j])) for j in range(X.shape[1])]
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        words = np.empty(X.shape, dtype=object)
        for j, fill in enumerate(self.fill_):
            column = as_words(X.iloc[:, j])
            column[pd.isna(column)] = fill
            words[:, j] = column
        return words


class DateParts(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Split one date column into days since the mean date of the source, and sine and cosine of year, week and day.

    Parts that are constant in the source are omitted. A missing date is NaN in every part.
    """

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = dtype

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        self.n_features_in_ = 1
        self.name_ = str(X.columns[0])
        self.form_ = date_format(X.iloc[:, 0]) or ""  # empty if the file stores dates as dates
        days = as_days(X.iloc[:, 0], self.form_)
        self.origin_ = float(np.nanmean(days))
        parts = _split_dates(days, self.origin_)
        # A smaller range than 1e-9 is the rounding error of an angle.
        self.parts_ = [part for part in _DATE_PARTS if np.nanmax(parts[part]) - np.nanmin(parts[part]) > 1e-9]
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        parts = _split_dates(as_days(X.iloc[:, 0], self.form_), self.origin_)
        return np.column_stack([parts[part] for part in self.parts_]).astype(self.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        return np.asarray([f"{self.name_}_{part}" for part in self.parts_], dtype=object)


def _fill_value(words: Any) -> str:
    if pd.isna(words).any():
        return MISSING_CATEGORY
    values, counts = np.unique(words.astype(str), return_counts=True)
    return str(values[counts.argmax()])


def _split_dates(days: Any, origin: float) -> dict[str, Any]:
    # Day 0 of 1970 was a Thursday; this only shifts the phase.
    angles = {"year": days / _DAYS_PER_YEAR, "weekday": np.floor(days) / 7.0, "hour": days - np.floor(days)}
    parts = {"days": days - origin}
    for name, turns in angles.items():
        parts[f"{name}_sin"], parts[f"{name}_cos"] = np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)
    return parts


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


def _as_word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _parse_dates(column: pd.Series[Any], layout: str) -> pd.Series[Any]:
    pattern, strptime = _DATE_FORMATS[layout]
    values = column.astype(object)
    # The ISO8601 format of pandas accepts other formats too, so the pattern is checked first.
    text = values.map(lambda value: isinstance(value, str))
    valid = ~text | values.where(text, "").str.fullmatch(pattern)
    return pd.to_datetime(values.where(column.notna() & valid, None), format=strptime, errors="coerce", utc=True)


def _value_error(
    column: pd.Series[Any], invalid: NDArray[np.bool_], expected: str, fix: str | None = None
) -> InputError:
    row = int(np.flatnonzero(invalid)[0])
    name = str(column.name)
    count = f"{int(invalid.sum())} of {len(column)} values; the first row is 0"
    # A saved model is also used from Python, where the command line's --drop does not exist.
    fix = fix or "correct the values, or drop the column before fitting"
    return InputError(f"column {name!r}: {column.iloc[row]!r} in row {row} is not {expected} ({count}); {fix}")
