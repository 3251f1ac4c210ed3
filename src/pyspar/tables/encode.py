"""Encode the columns of a table: values as numbers and words, and the preprocessing that a model stores.

``build_encoder`` imputes, scales and one-hot encodes. The state of its transformers is numpy arrays, strings and
numbers, which skops can save, and they accept raw data frames.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pyspar.errors import InputError
from pyspar.estimators.row_features import MAX_CATEGORIES, MISSING_CATEGORY
from pyspar.sources.files.messages import suggest_column
from pyspar.sources.files.rows import Column
from pyspar.tables.dates import as_days, date_format, value_error
from pyspar.wording import list_some


def read_number_cells(column: pd.Series[Any]) -> tuple[Column, NDArray[np.float64], list[tuple[int, str]]]:
    """Read a column of text, or of text and numbers, as numbers.

    Return its description, its numbers with NaN for missing and bad cells, and rows and texts of the bad cells.
    """
    from pyspar.sources.files.text import read_text_cells  # here, because it imports pyarrow

    cells = column.to_numpy(dtype=object, na_value=None)
    return read_text_cells(str(column.name), [None if cell is None else str(cell) for cell in cells])


def as_numbers(column: pd.Series[Any], fix: str | None = None) -> NDArray[np.floating[Any]]:
    """Return a column as floats, with NaN for missing values. float32 stays float32.

    ``fix`` replaces the end of the error message.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds(), dtype=np.float64) / 86400.0
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise value_error(column, column.notna().to_numpy(), "a number", fix)
    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except OverflowError as error:  # pandas keeps integers of more than 308 digits as objects
        invalid = column.map(lambda value: isinstance(value, int) and abs(value) > 10**308).to_numpy()
        raise value_error(column, invalid, "a number below 1e308", fix) from error
    invalid = (numbers.isna() & column.notna()).to_numpy()
    if invalid.any():
        _, values, bad = read_number_cells(column)
        if not bad:
            return values
        raise value_error(column, np.isin(np.arange(len(column)), [row for row, _ in bad]), "a number", fix)
    return np.asarray(numbers.to_numpy(dtype=np.float32 if is_single(column) else np.float64, na_value=np.nan))


def is_single(column: pd.Series[Any]) -> bool:
    """Return whether the values of a column have the precision of float32 or less."""
    return str(column.dtype).lower() in ("float32", "float16")


def as_words(column: pd.Series[Any]) -> NDArray[np.object_]:
    """Return a column as strings, with None for missing values. Whole numbers have no decimal point.

    Programs write whole numbers as '3.0' if other cells of the column are missing, so the text '3.0' is '3' too.
    """
    values = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    words = np.empty(len(values), dtype=object)
    words[:] = [None if is_missing else _as_word(value) for value, is_missing in zip(values, missing)]
    return words


def _as_word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    word = text[:-2] if re.fullmatch(r"-?[0-9]+\.0", text) else text
    return "0" if word == "-0" else word


def build_encoder(
    source: pd.DataFrame, numeric: Sequence[str], categorical: Sequence[str] = (), date: Sequence[str] = ()
) -> TableEncoder:
    """Return the unfitted preprocessing: impute and scale numbers, one-hot encode categories, split dates.

    Categories and dates have one transformer per column, so that each encoded feature has one raw column.
    """
    # float32 only if all numbers have that precision, so that a float32 column does not round the other columns.
    single = bool(numeric) and all(is_single(source[name]) for name in numeric)
    dtype = "float32" if single else "float64"
    steps: list[tuple[str, Any, list[str]]] = []
    if numeric:
        steps.append(("numeric", _impute_and_scale(Numbers(dtype)), list(numeric)))
    for j, name in enumerate(categorical):
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False,
            dtype=np.float32 if single else np.float64,
        )  # fmt: skip
        steps.append((f"category{j}", Pipeline([("read", Words()), ("encode", encoder)]), [name]))
    for j, name in enumerate(date):
        steps.append((f"date{j}", _impute_and_scale(DateParts(dtype)), [name]))
    return TableEncoder(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def _impute_and_scale(first: Any) -> Pipeline:
    return Pipeline([("read", first), ("fill", SimpleImputer(strategy="mean")), ("scale", StandardScaler())])


def list_raw_columns(encoder: ColumnTransformer) -> list[str]:
    """Return the raw column of each encoded feature."""
    names: list[str] = []
    for step, _, columns in encoder.transformers_:
        if step == "remainder":
            continue
        width = encoder.output_indices_[step].stop - encoder.output_indices_[step].start
        names += list(columns) if width == len(columns) else [columns[0]] * width
    return names


def encode(encoder: ColumnTransformer, table: pd.DataFrame, role: str) -> Any:
    """Return the encoded rows; raise InputError if they exceed float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        encoded = encoder.transform(table)
    bad = np.flatnonzero(~np.isfinite(encoded).all(axis=0))
    if bad.size:
        raise InputError(
            f"{role}, column {list_raw_columns(encoder)[int(bad[0])]!r}: the values are too large to standardise; "
            "rescale the column"
        )
    return encoded


def describe_fills(encoder: ColumnTransformer) -> dict[str, str]:
    """Return what replaces the missing values of each raw column."""
    texts: dict[str, str] = {}
    for step, transformer, columns in encoder.transformers_:
        if step == "numeric":
            means = transformer["fill"].statistics_
            texts |= {name: f"the source mean {mean:.4g}" for name, mean in zip(columns, means)}
        elif step.startswith("category"):
            fill = transformer["read"].fill_[0]
            is_own = fill == MISSING_CATEGORY
            texts[columns[0]] = "a separate category" if is_own else f"the most frequent source value {fill!r}"
        elif step.startswith("date"):
            texts[columns[0]] = "the source mean of each date part"
    return texts


class TableEncoder(ColumnTransformer):  # type: ignore[misc]  # sklearn is untyped
    """The preprocessing of a table. A table without some of its columns raises an InputError that names them.

    ``signs_`` are the percent and currency signs of the numbers in the source's file, and ``label_`` is its label.
    """

    signs_: dict[str, str]
    label_: str

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


class _Columns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A transformer that returns one feature for each column."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.asarray([str(c) for c in X.columns], dtype=object)
        return self


class Numbers(_Columns):
    """Convert numbers, booleans, decimals and durations (in days) to floats of one precision.

    ``dtype`` is "float32" if all columns have that precision, so that rounding errors are recognised as such.
    """

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = dtype

    def transform(self, X: pd.DataFrame) -> Any:
        if all(dtype in (np.float64, np.float32) for dtype in set(X.dtypes)):
            return np.ascontiguousarray(X.to_numpy(dtype=self.dtype))
        return np.column_stack([as_numbers(X.iloc[:, j]) for j in range(X.shape[1])]).astype(self.dtype)


class Words(_Columns):
    """Convert categories to strings.

    A missing value becomes a category of its own if the source has missing values, otherwise the most frequent one.
    """

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        super().fit(X)
        self.fill_ = [_fill_value(as_words(X.iloc[:, j])) for j in range(X.shape[1])]
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        words = np.empty(X.shape, dtype=object)
        for j, fill in enumerate(self.fill_):
            column = as_words(X.iloc[:, j])
            column[pd.isna(column)] = fill
            words[:, j] = column
        return words


def _fill_value(words: Any) -> str:
    if pd.isna(words).any():
        return MISSING_CATEGORY
    values, counts = np.unique(words.astype(str), return_counts=True)
    return str(values[counts.argmax()])


_DAYS_PER_YEAR = 365.2425
_DATE_PARTS = ("days", "year_sin", "year_cos", "weekday_sin", "weekday_cos", "hour_sin", "hour_cos")


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


def _split_dates(days: Any, origin: float) -> dict[str, Any]:
    # Day 0 of 1970 was a Thursday; this only shifts the phase.
    angles = {"year": days / _DAYS_PER_YEAR, "weekday": np.floor(days) / 7.0, "hour": days - np.floor(days)}
    parts = {"days": days - origin}
    for name, turns in angles.items():
        parts[f"{name}_sin"], parts[f"{name}_cos"] = np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)
    return parts
