"""Files of rows that are read in batches of bounded size: the base class of all formats.

A batch of features is an array. It is float32 if every chosen column is float32, otherwise float64; whole numbers and
booleans become float64. Columnar formats return it in Fortran order, so that copying column by column is fast. Missing
and infinite values raise an InputError that names the file, the column and the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.arrays import EPS64
from pyspar.errors import InputError
from pyspar.sources.files.header import describe_file, describe_rows, suggest_column
from pyspar.sources.files.number_text import PLAIN, NumberFormat
from pyspar.sources.stream import read_ahead

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
    the format of numbers that are read as text. ``written`` is the format of others, if it is known.
    """

    name: str
    dtype: np.dtype[Any] | None
    type_name: str
    eps: float = EPS64
    style: NumberFormat | None = None
    written: NumberFormat = PLAIN

    @classmethod
    def of(cls, name: str, dtype: np.dtype[Any] | None, type_name: str) -> Column:
        floating = dtype is not None and dtype.kind == "f"
        return cls(name, dtype, type_name, max(EPS64, float(np.finfo(dtype).eps)) if floating else EPS64)

    def with_format(self, style: NumberFormat) -> Column:
        """Return a text column as a column of numbers in a format; other columns do not change."""
        is_text = self.dtype is None and self.type_name.endswith("string")
        return replace(self, dtype=np.dtype(np.float64), style=style) if is_text else self


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Some rows of one file: features, labels, and the ids that are passed through.

    ``first`` is the number of the first row in the file ``path``. ``rows`` and ``n_bytes`` count everything that is
    read so far, over all files. ``n_bad`` counts the bad cells of this batch that are NaN now.
    """

    X: Any
    y: Any
    ids: Any
    path: Path
    first: int
    n_bytes: int
    rows: int = 0
    n_bad: int = 0


@dataclass(frozen=True)
class ReadPlan:
    """The columns to read, the dtype of the features, and whether labels and features may be missing.

    With ``missing_features`` missing values and bad cells are NaN instead of an error. ``formats`` are the formats of
    text columns that are read as numbers.
    """

    features: tuple[str, ...]
    label: str | None
    identity: str | None
    dtype: np.dtype[Any]
    missing_labels: bool
    missing_features: bool
    formats: Mapping[str, NumberFormat]

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
        progress: ProgressCallback | None = None,
    ) -> Generator[RowBatch]:
        """Check the columns, and return a generator of batches. A thread reads ahead; closing the generator stops it.

        The column ``identity`` is passed through unchanged. With ``missing_labels`` a missing label is NaN instead of
        an error. With ``missing_features`` missing values and bad cells are NaN, in the label too.
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
        formats = {name: column.style for name, column in numbers.items() if column.style is not None}
        plan = ReadPlan(tuple(columns), label, identity, dtype, missing_labels, missing_features, formats)
        self._check_files(plan)
        return self._read_ahead(plan, progress)

    @abstractmethod
    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        """Yield the rows in order, and raise InputError for missing values."""

    def _check_files(self, plan: ReadPlan) -> None:  # noqa: B027 - only folders need it
        """Raise InputError if files of a folder differ in the chosen columns."""

    def _read_ahead(self, plan: ReadPlan, progress: ProgressCallback | None) -> Generator[RowBatch]:
        with closing(read_ahead(self._read_finite(plan))) as batches:
            for batch in batches:
                yield batch
                if progress is not None:
                    progress(batch.rows, batch.n_bytes)

    def _read_finite(self, plan: ReadPlan) -> Iterator[RowBatch]:
        rows = 0
        for batch in self._read_batches(plan):
            if len(batch.X) == 0:
                continue
            _check_finite(self.role, batch, plan)
            rows += len(batch.X)
            yield replace(batch, rows=rows)
        if rows == 0:
            raise InputError(f"{self._where}: the file has {len(self.columns)} columns and no rows")

    @property
    def _where(self) -> str:
        return describe_file(self.role, self.path)


def _check_finite(role: str, batch: RowBatch, plan: ReadPlan) -> None:
    # max and min propagate NaN, and do not allocate memory of the size of the batch.
    with np.errstate(invalid="ignore"):
        high, low = batch.X.max(axis=0).astype(np.float64), batch.X.min(axis=0).astype(np.float64)
    suspects = np.flatnonzero(~((high < MAX_MAGNITUDE) & (low > -MAX_MAGNITUDE)))
    columns = [(plan.features[j], batch.X[:, j], plan.missing_features) for j in suspects]
    if plan.label is not None:
        columns.append((plan.label, batch.y, plan.missing_labels))
    for name, values, may_be_missing in columns:
        wrong = ~(np.abs(values, dtype=np.float64) < MAX_MAGNITUDE) & ~(may_be_missing & np.isnan(values))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"{describe_file(role, batch.path, name)}: values must be finite and below {MAX_MAGNITUDE:g}, got "
                f"{values[row]:g} in {describe_rows([batch.first + row], batch.path)}; correct it, or drop such rows"
            )
