"""Files of rows that are read in batches of bounded size: the base class of all formats.

A batch of features is an array. It is float32 if every chosen column is float32, otherwise float64; whole numbers and
booleans become float64. Columnar formats return it in Fortran order, so that copying column by column is fast. Bad
cells, missing and infinite values raise an InputError that names the file, the column and the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.arrays import EPS64
from pyspar.errors import InputError
from pyspar.sources.files.formats import describe_file
from pyspar.sources.files.messages import BadCell, bad_cells_error, describe_rows, suggest_column, suggest_drop
from pyspar.sources.files.number_text import NumberFormat
from pyspar.sources.stream import read_ahead
from pyspar.wording import list_some

BATCH_BYTES = 16_000_000
"""Large enough for a fast matrix product, small enough that several batches fit into memory."""

MAX_MAGNITUDE = 1e60
"""The estimators refuse larger values (``VALUE_RANGE`` in ``core/arrays.py``)."""

ProgressCallback = Callable[[int, int], None]
"""Called with the number of rows and the number of bytes that are finished."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its numpy dtype (None if it is not numeric), and the name of its type in the file.

    ``eps`` is the relative precision of the values. It is coarser than that of the dtype if files differ. ``style`` is
    the format of text that is read as numbers, and ``example`` one of its cells with separators or signs, or ''.
    """

    name: str
    dtype: np.dtype[Any] | None
    type_name: str
    eps: float = EPS64
    style: NumberFormat | None = None
    example: str = ""

    @classmethod
    def of(cls, name: str, dtype: np.dtype[Any] | None, type_name: str) -> Column:
        floating = dtype is not None and dtype.kind == "f"
        return cls(name, dtype, type_name, max(EPS64, float(np.finfo(dtype).eps)) if floating else EPS64)


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Some rows of one file: features and labels with NaN for missing values, and ids that are passed through.

    ``first`` is the number of the first row in the file ``path``. ``rows`` and ``n_bytes`` count everything that is
    read so far, over all files. ``bad`` are the bad cells of this batch, which are NaN.
    """

    X: Any
    y: Any
    ids: Any
    path: Path
    first: int
    n_bytes: int
    rows: int = 0
    bad: Sequence[BadCell] = ()


@dataclass(frozen=True)
class ReadPlan:
    """The columns to read, the dtype of the features, and whether labels and features may be missing.

    With ``missing_features``, bad cells are treated as missing. The values of ``unchecked`` features are arbitrary.
    """

    features: tuple[str, ...]
    label: str | None
    identity: str | None
    dtype: np.dtype[Any]
    missing_labels: bool
    missing_features: bool
    unchecked: frozenset[str] = frozenset()

    @property
    def numbers(self) -> list[str]:
        """The features and the label."""
        return list(dict.fromkeys([*self.features, *([] if self.label is None else [self.label])]))

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.numbers, *([] if self.identity is None else [self.identity])]))

    def rows_within(self, n_bytes: int) -> int:
        width = len(self.features) * self.dtype.itemsize + 8
        return max(1, n_bytes // width)


@dataclass(frozen=True, eq=False)
class RowFile(ABC):
    """A file of rows, or a folder of such files; :func:`pyspar.sources.files.open_rows` returns one.

    ``role`` is the name of the file in messages: "source", "target" or "file". ``n_rows`` is None if the number is only
    known after reading. ``n_bytes`` is the size on disk, and ``batch_bytes`` the approximate size of a batch.
    """

    path: Path
    role: str
    columns: tuple[Column, ...]
    n_rows: int | None
    n_bytes: int
    batch_bytes: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def numeric(self) -> tuple[str, ...]:
        """The names of the numeric columns."""
        return tuple(column.name for column in self.columns if column.dtype is not None)

    def column(self, name: str) -> Column:
        """Return a column by name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"{self._where}: no column {name!r}; {suggest_column(name, self.names)}")

    def read(
        self,
        columns: Sequence[str],
        *,
        label: str | None = None,
        identity: str | None = None,
        missing_labels: bool = False,
        missing_features: bool = False,
        unchecked: Collection[str] = (),
        progress: ProgressCallback | None = None,
    ) -> Generator[RowBatch]:
        """Check the columns, and return a generator of batches. A thread reads ahead; closing the generator stops it.

        The column ``identity`` is passed through unchanged. With ``missing_labels`` a missing label is NaN instead of
        an error. With ``missing_features`` missing values and bad cells are NaN, in the label too. In the columns
        ``unchecked`` they are always NaN, and infinity is not an error.
        """
        numbers = {name: self.column(name) for name in [*columns, *([] if label is None else [label])]}
        for name, column in numbers.items():
            if column.dtype is None:
                raise InputError(
                    f"{describe_file(self.role, self.path, name)}: the column must be numeric, got {column.type_name}; "
                    "convert it, or choose other columns"
                )
        if identity is not None:
            self.column(identity)
        if not columns:
            raise InputError(f"{self._where}: no numeric column to use as a feature; add one")
        is_single = all(np.dtype(numbers[name].dtype).name in ("float16", "float32") for name in columns)
        dtype = np.dtype(np.float32 if is_single else np.float64)
        plan = ReadPlan(tuple(columns), label, identity, dtype, missing_labels, missing_features, frozenset(unchecked))
        self._check_files(plan)
        return self._read_ahead(plan, progress)

    @abstractmethod
    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        """Yield the rows in order, with NaN for missing values and bad cells."""

    def _check_files(self, plan: ReadPlan) -> None:  # noqa: B027 - only folders need it
        """Raise InputError if files of a folder differ in the chosen columns."""

    def _read_ahead(self, plan: ReadPlan, progress: ProgressCallback | None) -> Generator[RowBatch]:
        with closing(read_ahead(self._read_checked(plan))) as batches:
            for batch in batches:
                yield batch
                if progress is not None:
                    progress(batch.rows, batch.n_bytes)

    def _read_checked(self, plan: ReadPlan) -> Iterator[RowBatch]:
        rows = 0
        for batch in self._read_batches(plan):
            if len(batch.X) == 0:
                continue
            _check_values(self.role, batch, plan)
            rows += len(batch.X)
            yield replace(batch, rows=rows)
        if rows == 0:
            raise InputError(f"{self._where}: the file has {len(self.columns)} columns and no rows")

    @property
    def _where(self) -> str:
        return describe_file(self.role, self.path)


def build_batch(
    columns: Mapping[str, Any], plan: ReadPlan, path: Path, first: int, n_bytes: int, bad: Sequence[BadCell] = ()
) -> RowBatch:
    """Return a batch of Arrow columns; the features and the label are numbers."""
    n_rows = len(next(iter(columns.values())))
    X = np.empty((n_rows, len(plan.features)), plan.dtype, order="F")
    for j, name in enumerate(plan.features):
        X[:, j] = (
            _as_floats(columns[name]) if columns[name].null_count else columns[name].to_numpy(zero_copy_only=False)
        )
    y = None if plan.label is None else _as_floats(columns[plan.label])
    return RowBatch(X, y, None if plan.identity is None else columns[plan.identity], path, first, n_bytes, bad=bad)


def _as_floats(column: Any) -> Any:
    """Return an Arrow column as float64, with NaN for missing values."""
    return column.cast("float64", safe=False).to_numpy(zero_copy_only=False)


def _check_values(role: str, batch: RowBatch, plan: ReadPlan) -> None:
    """Raise InputError for bad cells, missing values and infinity."""
    bad = [cell for cell in batch.bad if cell.column not in plan.unchecked]
    if bad and not plan.missing_features:
        raise bad_cells_error(bad, batch.path, role, label=plan.label)
    # max and min propagate NaN, and do not allocate memory of the size of the batch.
    with np.errstate(invalid="ignore"):
        high, low = batch.X.max(axis=0).astype(np.float64), batch.X.min(axis=0).astype(np.float64)
    suspects = np.flatnonzero(~((high < MAX_MAGNITUDE) & (low > -MAX_MAGNITUDE)))
    columns = {
        plan.features[j]: (batch.X[:, j], plan.missing_features)
        for j in suspects
        if plan.features[j] not in plan.unchecked
    }
    if plan.label is not None:
        columns[plan.label] = (batch.y, plan.missing_labels)
    incomplete = [name for name, (values, may_be_missing) in columns.items()
                  if not may_be_missing and np.isnan(values).any()]  # fmt: skip
    for name, (values, _) in columns.items():
        wrong = np.isnan(values) if name in incomplete else np.abs(values, dtype=np.float64) >= MAX_MAGNITUDE
        if not wrong.any():
            continue
        row = int(np.flatnonzero(wrong)[0])
        where, place = describe_file(role, batch.path, name), describe_rows([batch.first + row], batch.path)
        if name not in incomplete:
            raise InputError(
                f"{where}: values must be finite and below {MAX_MAGNITUDE:g}, got {values[row]:g} in {place}; "
                "correct it, or drop such rows"
            )
        if name == plan.label:
            raise InputError(f"{where}: missing value or nan in {place}; ignore such rows with --drop-unlabelled")
        features = [other for other in incomplete if other != plan.label]
        others = f"; values are also missing in {list_some(features[1:], 20)}" if len(features) > 1 else ""
        raise InputError(
            f"{where}: missing value or nan in {place}{others}; impute missing values with --bad-cells impute, drop "
            f"such rows, or {suggest_drop(features)}"
        )
