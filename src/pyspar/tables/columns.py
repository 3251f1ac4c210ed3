"""Columns of a table: the label, the features and their kinds.

Only the source determines features, kinds and preprocessing. The target is encoded in the same way: a value of another
kind raises an InputError and never becomes a missing value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from pyspar.core.extremes import ExtremeValues
from pyspar.errors import InputError
from pyspar.sources.files.formats import describe_file, format_of
from pyspar.sources.files.messages import BadCell, bad_cells_error, describe_rows, suggest_column, suggest_drop
from pyspar.sources.files.number_text import parse_number
from pyspar.sources.files.rows import MAX_MAGNITUDE, Column
from pyspar.tables.dates import ISO, as_days, date_format, looks_like_dates
from pyspar.tables.encode import TableEncoder, as_numbers, as_words
from pyspar.tables.inputs import BadCells, Fit, Ignored, Request
from pyspar.wording import count_noun, list_some

ColumnKind = Literal["numeric", "categorical", "date"]
_FREE_TEXT_LEVELS, _FREE_TEXT_SHARE = 100, 0.5
_MIN_ID_ROWS = 10
"""With fewer rows, consecutive whole numbers are as often a count or a year."""
DROPPED, CONSTANT = "dropped with --drop", "constant in the source"
_DATE_HINT = f"the values look like dates; write them as {ISO}"


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


@dataclass(frozen=True, eq=False)
class LearnedColumns:
    """What the rows of a source determine: features, their preprocessing, and a function that fits an estimator.

    ``n_missing`` counts the missing values of each feature. ``constants`` are the values of constant columns whose
    other values in the target are counted while it is read.
    """

    selection: Selection
    encoder: TableEncoder
    fit: Fit
    n_rows: int
    n_missing: Mapping[str, int]
    notes: tuple[str, ...]
    constants: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """The rows of a file in memory. Bad cells are missing in ``frame``. ``notes`` say how the file was read."""

    path: Path
    role: str
    frame: pd.DataFrame
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    bad: tuple[BadCell, ...]

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    @property
    def signs(self) -> dict[str, str]:
        """The signs of the columns of numbers."""
        return signs_of(self.columns)

    @property
    def where(self) -> str:
        return describe_file(self.role, self.path)

    def check_cells(
        self, used: Collection[str], policy: BadCells = "stop", *, label: str | None = None
    ) -> tuple[str, ...]:
        """Raise InputError for bad cells in columns that are used, or return notes if they are imputed.

        The notes also list numbers that were read without their separators and signs.
        """
        bad = [cell for cell in self.bad if cell.column in used]
        if bad and policy == "stop":
            raise bad_cells_error(bad, self.path, self.role, label=label)
        notes = describe_examples(self.columns, used, self.role)
        for name in dict.fromkeys(cell.column for cell in bad):
            texts = [cell.text for cell in bad if cell.column == name]
            notes.append(
                f"{self.role}: {name}: {count_noun(len(texts), 'bad cell is', 'bad cells are')} treated as missing "
                f"({list_some(dict.fromkeys(texts), 3, max_length=40)})"
            )
        return tuple(notes)


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
    if not format_of(path).has_names and re.fullmatch(r"-?\d+", label):
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


def check_features(names: Collection[str], features: Sequence[str], where: str) -> None:
    """Raise InputError if a target lacks features of the source."""
    missing = [name for name in features if name not in names]
    if missing:
        raise InputError(
            f"{where} lacks {len(missing)} of {len(features)} feature columns of the source: {list_some(missing)} "
            f"({suggest_column(missing[0], names)}); add them, or {suggest_drop(missing)}"
        )


def name_array_columns(target: Sequence[str], source: Sequence[str], label: str) -> list[str]:
    """Return the names of the columns of a target array, those of the source if it only lacks the label.

    Arrays have no column names, and the label may be at any position in the source.
    """
    expected = [name for name in source if name != label]
    numbered = all(re.fullmatch(r"x\d+", name) for name in [*expected, *target])
    return expected if numbered and len(expected) == len(target) else list(target)


def no_features_error(where: str, ignored: Sequence[Ignored]) -> InputError:
    """Return an InputError for a source without features, with the reasons."""
    reasons = "; ".join(f"{c.column!r}: {c.reason}" for c in ignored[:6]) or "the label is its only column"
    return InputError(f"{where}: no column can be used as a feature ({reasons}); add or correct columns")


def select_features(source: pd.DataFrame, label: str, request: Request) -> Selection:
    """Choose the feature columns of a source, and determine their kinds."""
    check_drop(request.categories, source.columns, label=label, identity=request.identity, option="--category")
    by_kind: dict[str, list[str]] = {kind: [] for kind in get_args(ColumnKind)}
    ignored = []
    for name in source.columns:
        if name in (label, request.identity, request.groups, request.cost):
            continue
        kind, reason = _classify(source[name], request)
        if reason is None:
            by_kind[kind].append(name)
        else:
            ignored.append(Ignored(name, reason))
    if not any(by_kind.values()):
        raise no_features_error("source", ignored)
    numeric, categorical, date = (tuple(by_kind[kind]) for kind in get_args(ColumnKind))
    dates = [f"{name}: {_DATE_HINT}; they are now categories" for name in categorical if looks_like_dates(source[name])]
    ids = [note for name in numeric if (note := _describe_id(source[name])) is not None]
    return Selection(numeric, categorical, date, tuple(ignored), (*dates, *ids))


def is_named_like_id(name: str) -> bool:
    """Return whether a column has a typical name of an id or of row numbers.

    >>> is_named_like_id("home_id"), is_named_like_id("HomeID"), is_named_like_id("index"), is_named_like_id("grid")
    (True, True, True, False)
    """
    return re.fullmatch(r"(?i:id|.*_id|index|idx|row|no|nr)|.*ID", name) is not None


def suggest_id(name: str) -> str:
    """Return the options for a column that looks like an id."""
    return f"if it is an id, pass --id {shlex.quote(name)} or --drop {shlex.quote(name)}"


def _classify(column: pd.Series[Any], request: Request) -> tuple[str, str | None]:
    """Return the kind of a column, and the reason to ignore it or None."""
    if column.name in request.drop:
        return "", DROPPED
    if str(column.name).startswith("Unnamed: "):  # the name that pandas gives to an empty header
        return "", "no name; assumed to be a row index"
    if column.isna().all():
        return "", "no values in the source"
    kind = "categorical" if column.name in request.categories else infer_kind(column)
    if kind not in get_args(ColumnKind):
        return "", kind
    if request.features == "num" and kind != "numeric":
        return kind, "not numeric, excluded by --features num"
    if kind == "numeric":
        numbers = as_numbers(column)
        constant = np.isfinite(np.nanmin(numbers)) and np.nanmin(numbers) == np.nanmax(numbers)
        return kind, f"{CONSTANT} ({np.nanmin(numbers):g})" if constant else None
    if kind == "date":
        days = as_days(column)
        return kind, CONSTANT if np.nanmin(days) == np.nanmax(days) else None
    reason = _reason_to_ignore_text(column)
    return kind, reason if reason is None or not looks_like_dates(column) else f"{reason}; {_DATE_HINT}"


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
        return f"{CONSTANT} ({words[0]!r})"
    free_text = levels == len(words) or (levels > _FREE_TEXT_LEVELS and levels > _FREE_TEXT_SHARE * len(words))
    if not free_text or levels == 1:
        return None
    return f"free text ({levels} different values in {len(words)} rows)"


def describe_other_values(ignored: Ignored, source: pd.DataFrame, target: pd.DataFrame) -> str | None:
    """Return a note if a column that is ignored because it is constant in the source has other values in the target."""
    name = ignored.column
    if name not in target or not ignored.reason.startswith(CONSTANT):
        return None
    known, cells, missing = source[name].dropna(), target[name], target[name].isna().to_numpy()
    if all(pd.api.types.is_numeric_dtype(column.dtype) for column in (known, cells)):
        differs = differ_from(as_numbers(cells), as_numbers(known)[0])
    else:
        differs = as_words(cells) != as_words(known)[0]
    return note_other_values(name, int((differs & ~missing).sum()), len(cells))


def differ_from(values: Any, constant: Any) -> Any:
    """Return which values differ from a constant by more than the precision of float32, which one of them may have."""
    return ~np.isclose(values, constant, rtol=1e-6, atol=0.0)


def note_other_values(name: str, n: int, n_rows: int) -> str | None:
    """Return a note if n target rows have another value than the source, in which the column is constant."""
    have = f"{n:,} of {count_noun(n_rows, 'target row')} {'has another value' if n == 1 else 'have other values'}"
    return f"{name}: {CONSTANT}, but {have}; the forecast does not cover this difference" if n else None


def infer_kind(column: pd.Series[Any]) -> ColumnKind | str:
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


def signs_of(columns: Iterable[Column]) -> dict[str, str]:
    """Return the signs of the columns of numbers: '%', a currency, or ''."""
    return {column.name: column.style.sign if column.style else "" for column in columns if column.dtype is not None}


def describe_examples(columns: Iterable[Column], used: Collection[str], role: str) -> list[str]:
    """Return notes about columns of numbers with separators or signs. Truth values are not noted."""
    return [
        f"{role}: {column.name}: numbers with separators or signs, {column.example!r} is read as "
        f"{parse_number(column.example, column.style):g}"
        for column in columns
        if column.name in used and column.example and column.style is not None and column.style.sign != "true"
    ]


def describe_unlabelled(n_rows: int, role: str) -> list[str]:
    """Return a note about rows that are ignored because they have no label, if there are any."""
    rows = count_noun(n_rows, "row without a label is", "rows without a label are")
    return [f"{role}: {rows} ignored"] if n_rows else []


def check_signs(
    source: Mapping[str, str],
    target: Mapping[str, str],
    names: Iterable[str],
    path: Path,
    role: str = "target",
    label: str | None = None,
) -> None:
    """Raise InputError for percent signs in one file only, and for different currencies."""
    for name in names:
        ours, theirs = source.get(name, ""), target.get(name, "")
        if ours == theirs or name not in source or name not in target:
            continue
        where, fix = describe_file(role, path, name), "write the column in the same way in both files"
        fix += _suggest_ignoring(name, role, label)
        if "%" in (ours, theirs):
            place = f"the {role}" if theirs == "%" else "the source"
            raise InputError(f"{where}: only {place} has percent signs; {fix}")
        if ours and theirs and "true" not in (ours, theirs):
            raise InputError(f"{where}: the currency is {theirs}, but {ours} in the source; {fix}")


def _suggest_ignoring(name: str, role: str, label: str | None) -> str:
    """Return how the command that reads a file of this role can ignore a column, or '' if it cannot."""
    if name == label:
        return {"target": ", or remove it from the target", "file": ", or leave out --label"}.get(role, "")
    return f", or {suggest_drop([name])}" if role in ("source", "target") else ""


@contextmanager
def explain_extremes(path: Path, role: str, columns: Sequence[str], label: str | None = None) -> Iterator[None]:
    """Raise InputError instead of ExtremeValues; ``columns`` are the columns of the file from which features come."""
    try:
        yield
    except ExtremeValues as error:
        name = [*columns, label][error.column]
        raise InputError(f"{describe_file(role, path, name)}: the column {error.problem}") from error


def check_numbers(table: pd.DataFrame, names: Iterable[str], path: Path, role: str) -> None:
    """Raise InputError for text and infinity in numeric columns. Missing values are imputed."""
    for name in names:
        check_magnitude(read_numbers(table[name], path, role), describe_file(role, path, name), path)


def read_numbers(column: pd.Series[Any], path: Path, role: str, fix: str = "") -> Any:
    """Return a column as floats; raise InputError for other values."""
    try:
        return as_numbers(column, "")
    except InputError as error:
        fix = fix or f"correct the values, or {suggest_drop([str(column.name)])}"
        raise InputError(f"{describe_file(role, path)}, {error}; {fix}") from error


def check_magnitude(values: Any, where: str, path: Path, fix: str = "correct the values, or leave them empty") -> None:
    """Raise InputError for infinity, and for values that are larger than ``MAX_MAGNITUDE``."""
    infinite = np.flatnonzero(np.abs(values, dtype=np.float64) > MAX_MAGNITUDE)
    if infinite.size:
        row = int(infinite[0])
        raise InputError(
            f"{where}: values must be finite and below {MAX_MAGNITUDE:g}, got {values[row]:g} in "
            f"{describe_rows([row], path)}, {infinite.size} of {len(values)} values; {fix}"
        )
