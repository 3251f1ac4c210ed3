"""Columns of a table: the label, the features and their kinds, and the preprocessing that encodes them.

Only the source determines features, kinds and preprocessing. The target is encoded in the same way: a value of another
kind raises an InputError and never becomes a missing value. ``build_encoder`` imputes, scales and one-hot encodes. The
state of its transformers is numpy arrays, strings and numbers, which skops can save, and they accept raw data frames.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pyspar.errors import InputError
from pyspar.sources.files.header import describe_file, suggest_column, suggest_drop
from pyspar.sources.files.number_text import NumberFormat
from pyspar.tables.dates import ISO, DateParts, as_days, date_format, date_like_form, value_error
from pyspar.tables.read import has_names, read_number_cells
from pyspar.tables.request import Features
from pyspar.wording import list_some

Kind = Literal["numeric", "categorical", "date"]
MISSING_CATEGORY = "(missing)"
"""The category of rows without a value, if the source has such rows."""
MAX_CATEGORIES = 50
"""Per column. The rarest other categories share one feature, and so do categories that only the target has."""
_FREE_TEXT_LEVELS, _FREE_TEXT_SHARE = 100, 0.5
_MIN_ID_ROWS = 10
"""With fewer rows, consecutive whole numbers are as often a count or a year."""
DROPPED = "dropped with --drop"
_DATE_HINT = f"the values look like dates; write them as {ISO}"


@dataclass(frozen=True)
class Ignored:
    """A column that is not used, and the reason."""

    column: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """The features of a source by kind, in the order of the file, with the ignored columns and notes."""

    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    date: tuple[str, ...]
    ignored: tuple[Ignored, ...]
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.numeric + self.categorical + self.date


def find_label(
    names: Sequence[str], path: Path, label: str | None, in_target: Callable[[], bool] = lambda: False
) -> str:
    """Return the name of the label column. Files without names also accept its number, negative from the end.

    ``in_target`` returns whether the target has the column, which suggests that the files are swapped.
    """
    where = describe_file("source", path)
    if label is None:
        raise InputError(f"{where}: --label is required; the columns are {list_some(names, 12)}")
    if label in names:
        return label
    if not has_names(path) and re.fullmatch(r"-?\d+", label):
        width = len(names)
        if not -width <= int(label) < width:
            raise InputError(f"{where}: --label must be in [{-width}, {width - 1}], got {label}")
        return str(names[int(label)])
    swapped = "; the target has it: are SOURCE and TARGET swapped?" if in_target() else ""
    raise InputError(f"{where}: no label column {label!r}; {suggest_column(label, names)}{swapped}")


def check_identity(identity: str | None, label: str) -> None:
    """Raise InputError if the ids are the labels."""
    if identity == label:
        raise InputError(f"--id and --label must name different columns, got {label!r} for both")


def check_drop(
    drop: Iterable[str], names: Iterable[str], *, label: str, identity: str | None, option: str = "--drop"
) -> None:
    """Raise InputError for a column of an option that is in neither file, or that is the label or the id."""
    known = list(dict.fromkeys(names))
    for name in drop:
        if name in (label, identity):
            raise InputError(f"{option} must name a feature, got {name!r}, which is the label or the id")
        if name not in known:
            raise InputError(f"{option}: no column {name!r}; {suggest_column(name, known)}")


def list_extra_columns(target: Iterable[str], known: Collection[str]) -> tuple[Ignored, ...]:
    """Return the columns that only the target has."""
    return tuple(Ignored(name, "only in the target") for name in target if name not in known)


def check_features(names: Collection[str], features: Sequence[str], where: str) -> None:
    """Raise InputError if a target lacks features of the source."""
    missing = [name for name in features if name not in names]
    if missing:
        raise InputError(
            f"{where} lacks {len(missing)} of {len(features)} feature columns of the source: {list_some(missing)} "
            f"({suggest_column(missing[0], names)}); add them, or {suggest_drop(missing)}"
        )


def no_features_error(where: str, ignored: Sequence[Ignored]) -> InputError:
    """Return an InputError for a source without features, with the reasons."""
    reasons = "; ".join(f"{c.column!r}: {c.reason}" for c in ignored[:6]) or "the label is its only column"
    return InputError(f"{where}: no column can be used as a feature ({reasons}); add or correct columns")


def select_features(
    source: pd.DataFrame,
    *,
    label: str,
    identity: str | None,
    features: Features,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    others: Collection[str | None] = (),
) -> Selection:
    """Choose the feature columns of a source, and determine their kinds.

    ``categories`` are never numbers or dates. ``others`` are columns with another purpose, which are not listed.
    """
    check_drop(categories, source.columns, label=label, identity=identity, option="--category")
    by_kind: dict[str, list[str]] = {kind: [] for kind in get_args(Kind)}
    ignored = []
    for name in source.columns:
        if name in (label, identity, *others):
            continue
        kind, reason = _classify(source[name], features, categories) if name not in drop else ("", DROPPED)
        if reason is None:
            by_kind[kind].append(name)
        else:
            ignored.append(Ignored(name, reason))
    if not any(by_kind.values()):
        raise no_features_error("source", ignored)
    numeric, categorical, date = (tuple(by_kind[kind]) for kind in get_args(Kind))
    dates = [f"{name}: {_DATE_HINT}; they are now categories" for name in categorical if date_like_form(source[name])]
    ids = [note for name in numeric if (note := _describe_id(source[name])) is not None]
    return Selection(numeric, categorical, date, tuple(ignored), (*dates, *ids))


def build_encoder(source: pd.DataFrame, selection: Selection) -> ColumnTransformer:
    """Return the unfitted preprocessing: impute and scale numbers, one-hot encode categories, split dates.

    Categories and dates have one transformer per column, so that each encoded feature has one raw column.
    """
    # float32 only if all numbers have that precision, so that a float32 column does not round the other columns.
    single = bool(selection.numeric) and all(is_single(source[name]) for name in selection.numeric)
    dtype = "float32" if single else "float64"
    steps: list[tuple[str, Any, list[str]]] = []
    if selection.numeric:
        steps.append(("numeric", _impute_and_scale(Numbers(dtype)), list(selection.numeric)))
    for j, name in enumerate(selection.categorical):
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False,
            dtype=np.float32 if single else np.float64,
        )  # fmt: skip
        steps.append((f"category{j}", Pipeline([("read", Words()), ("encode", encoder)]), [name]))
    for j, name in enumerate(selection.date):
        steps.append((f"date{j}", _impute_and_scale(DateParts(dtype)), [name]))
    return TableEncoder(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def list_raw_columns(encoder: ColumnTransformer) -> list[str]:
    """Return the raw column of each encoded feature."""
    names: list[str] = []
    for step, _, columns in encoder.transformers_:
        if step == "remainder":
            continue
        width = encoder.output_indices_[step].stop - encoder.output_indices_[step].start
        names += list(columns) if width == len(columns) else [columns[0]] * width
    return names


def is_named_like_id(name: str) -> bool:
    """Return whether a column has a typical name of an id or of row numbers.

    >>> is_named_like_id("home_id"), is_named_like_id("HomeID"), is_named_like_id("index"), is_named_like_id("grid")
    (True, True, True, False)
    """
    return re.fullmatch(r"(?i:id|.*_id|index|idx|row|no|nr)|.*ID", name) is not None


def suggest_id(name: str) -> str:
    """Return the options for a column that looks like an id."""
    return f"if it is an id, pass --id {shlex.quote(name)} or --drop {shlex.quote(name)}"


def _impute_and_scale(first: Any) -> Pipeline:
    return Pipeline([("read", first), ("fill", SimpleImputer(strategy="mean")), ("scale", StandardScaler())])


def _classify(column: pd.Series[Any], features: Features, categories: Collection[str]) -> tuple[str, str | None]:
    """Return the kind of a column, and the reason to ignore it or None."""
    if str(column.name).startswith("Unnamed: "):  # the name that pandas gives to an empty header
        return "", "no name; assumed to be a row index"
    if column.isna().all():
        return "", "no values in the source"
    kind = "categorical" if column.name in categories else infer_kind(column)
    if kind not in get_args(Kind):
        return "", kind
    if features == "num" and kind != "numeric":
        return kind, "not numeric, excluded by --features num"
    if kind == "numeric":
        numbers = as_numbers(column)
        constant = np.isfinite(np.nanmin(numbers)) and np.nanmin(numbers) == np.nanmax(numbers)
        return kind, f"constant in the source ({np.nanmin(numbers):g})" if constant else None
    if kind == "date":
        days = as_days(column)
        return kind, "constant in the source" if np.nanmin(days) == np.nanmax(days) else None
    reason = _reason_to_ignore_text(column)
    return kind, reason if reason is None or not date_like_form(column) else f"{reason}; {_DATE_HINT}"


def _describe_id(column: pd.Series[Any]) -> str | None:
    """Return a note if whole numbers look like ids: all distinct, and either in order or named like an id."""
    numbers, name = as_numbers(column), str(column.name)
    n = len(numbers)
    if n < _MIN_ID_ROWS or not (np.isfinite(numbers) & (numbers == np.floor(numbers))).all():
        return None
    steps = np.diff(numbers)
    in_order = bool((steps > 0).all() or (steps < 0).all())
    if not (in_order or is_named_like_id(name)) or len(np.unique(numbers)) < n:
        return None
    return f"{name}: {n:,} distinct whole numbers in {n:,} rows; {suggest_id(name)}"


def _reason_to_ignore_text(column: pd.Series[Any]) -> str | None:
    words = [word for word in as_words(column) if word is not None]
    levels = len(set(words))
    if levels == 1 and len(words) == len(column):
        return f"constant in the source ({words[0]!r})"
    free_text = levels == len(words) or (levels > _FREE_TEXT_LEVELS and levels > _FREE_TEXT_SHARE * len(words))
    if not free_text or levels == 1:
        return None
    return f"free text ({levels} different values in {len(words)} rows)"


def infer_kind(column: pd.Series[Any]) -> Kind | str:
    """Return the kind of a column with at least one value, or ``"contains ..."`` if its type is not supported."""
    types = pd.api.types
    if types.is_complex_dtype(column.dtype):
        return "contains complex numbers"
    numeric = (types.is_bool_dtype, types.is_numeric_dtype, types.is_timedelta64_dtype)
    if any(is_kind(column.dtype) for is_kind in numeric):
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
        cells = read_number_cells(column)
        if not cells.bad:
            return np.asarray(cells.values)
        raise value_error(column, np.isin(np.arange(len(column)), [row for row, _ in cells.bad]), "a number", fix)
    return np.asarray(numbers.to_numpy(dtype=np.float32 if is_single(column) else np.float64, na_value=np.nan))


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
            return X.to_numpy(dtype=self.dtype)
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


def _as_word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
