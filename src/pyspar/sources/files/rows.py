"""Rows in files, read in batches of bounded size: what every kind of row file shares.

A batch of features is a plain array: float32 where every chosen column was measured so, otherwise float64; whole
numbers and booleans count as float64. Column files give it in Fortran order, because copying column by column is then
a copy at the speed of memory. Values that a fit cannot use are refused here, where file, column and row are known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.arrays import EPS64, Vector
from pyspar.errors import InputError
from pyspar.sources.files.names import few, left_out, meant
from pyspar.sources.stream import read_ahead

BATCH_BYTES = 16_000_000
"""Large enough for a matrix product, small enough that a few batches in flight are little memory."""

LARGEST = 1e150
"""Beyond it the square of a number is near the limit of floating point; infinity is beyond it too."""

Progress = Callable[[int, int], None]
"""Told how many rows and how many bytes of the file have been worked on so far."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its numpy dtype (None where it is not numeric), and the file's own word for its type.

    ``eps`` is the precision it was measured in, which is coarser than the dtype's where files differ in it.
    """

    name: str
    dtype: np.dtype[Any] | None
    kind: str
    eps: float = EPS64

    @classmethod
    def of(cls, name: str, dtype: np.dtype[Any] | None, kind: str) -> Column:
        floating = dtype is not None and dtype.kind == "f"
        return cls(name, dtype, kind, max(EPS64, float(np.finfo(dtype).eps)) if floating else EPS64)


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of one file: where they lie in it, and how many bytes of all files lie before their end."""

    X: Any
    y: Any
    kept: Any
    path: Path
    first: int
    n_bytes: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Features, labels and the column that is passed through, with the rows and bytes so far."""

    X: Any
    y: Any
    kept: Any
    rows: int
    n_bytes: int


@dataclass(frozen=True)
class Wanted:
    """Which columns a reader is to deliver, and in which form."""

    features: tuple[str, ...]
    label: str | None
    keep: str | None
    dtype: np.dtype[Any]
    gaps: bool

    @property
    def names(self) -> list[str]:
        extra = [name for name in (self.label, self.keep) if name is not None and name not in self.features]
        return list(dict.fromkeys([*self.features, *extra]))

    def rows_within(self, n_bytes: int) -> int:
        width = len(self.features) * self.dtype.itemsize + 8
        return max(1, n_bytes // width)


@dataclass(frozen=True, eq=False)
class Rows(ABC):
    """A file, or a folder of files, of rows; opened with :func:`pyspar.sources.files.open_rows`.

    Attributes
    ----------
    path : Path
    role : str
        What messages call it: "source", "target", "file".
    columns : tuple of Column
    n_rows : int or None
        None where only reading tells.
    n_bytes : int
        The size on disk.
    batch_bytes : int
        About how large a batch is.
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
        """The names of the columns that can be features."""
        return tuple(column.name for column in self.columns if column.dtype is not None)

    def eps(self, features: Sequence[str]) -> Vector:
        """Return the precision that each feature was measured in; whole numbers are exact."""
        return np.array([self._column(name).eps for name in features])

    def batches(self, columns: Sequence[str], label: str | None = None) -> Iterator[Any]:
        """Yield the features ``X``, or ``(X, y)`` with a label, batch by batch; the next one is read meanwhile."""
        for batch in read_ahead(self.read(columns, label=label)):
            yield batch.X if label is None else (batch.X, batch.y)

    def read(
        self, columns: Sequence[str], *, label: str | None = None, keep: str | None = None, gaps: bool = False
    ) -> Iterator[Batch]:
        """Check that the columns are there and numeric, at once, and then yield batches.

        ``keep`` is passed through as it is; with ``gaps`` a label may be missing, and is NaN.
        """
        for name in [*columns, *([] if label is None else [label])]:
            self._check_numeric(name)
        if keep is not None:
            self._column(keep)
        if not columns:
            raise InputError(f"{self._where}: expected at least one numeric column to use as a feature. Got none.")
        dtypes = [self._column(name).dtype for name in columns]
        single = all(dtype is not None and dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes)
        wanted = Wanted(tuple(columns), label, keep, np.dtype(np.float32 if single else np.float64), gaps)
        self._check_files(wanted)
        return self._finite(wanted)

    @abstractmethod
    def _parts(self, wanted: Wanted) -> Iterator[Part]:
        """Yield the rows in order, refusing missing values."""

    def _check_files(self, wanted: Wanted) -> None:  # noqa: B027 - one file has nothing to differ from
        """Refuse files of a folder that differ in what is wanted, before any row is read."""

    def _finite(self, wanted: Wanted) -> Iterator[Batch]:
        rows = 0
        for part in self._parts(wanted):
            if len(part.X) == 0:
                continue
            _refuse_infinite(self.role, part, wanted)
            rows += len(part.X)
            yield Batch(part.X, part.y, part.kept, rows, part.n_bytes)
        if rows == 0:
            raise InputError(f"{self._where}: expected rows. Got {len(self.columns)} columns and no row.")

    @property
    def _where(self) -> str:
        return f"{self.role} {str(self.path)!r}"

    def _column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"{self._where}: expected a column {name!r}. Got none; {meant(name, self.names)}")

    def _check_numeric(self, name: str) -> None:
        column = self._column(name)
        if column.dtype is None:
            raise InputError(
                f"{self._where}, column {name!r}: expected numbers. Got {column.kind}; convert the column, or choose "
                "others."
            )


def missing(role: str, path: Path, names: Sequence[str], row: int, *, needed: bool = False) -> InputError:
    """Return the refusal of missing values: all columns that have some, the first with its first row, and the cure.

    A column that is ``needed``, such as the label, cannot be left out.
    """
    also = f", and none in some rows of {few(names[1:], 20)}" if len(names) > 1 else ""
    cure = "fill it in, or drop such rows" if needed else f"fill them in, drop such rows, or {left_out(names)}"
    return InputError(
        f"{role} {str(path)!r}, column {names[0]!r}: expected a number in every row. Got no value in row {row} (the "
        f"first row is 0){also}; {cure}."
    )


def _refuse_infinite(role: str, part: Part, wanted: Wanted) -> None:
    # Largest and smallest find NaN too, because both hand it on; nothing of the size of the batch is allocated.
    with np.errstate(invalid="ignore"):
        high, low = part.X.max(axis=0).astype(np.float64), part.X.min(axis=0).astype(np.float64)
    bad = np.flatnonzero(~((high < LARGEST) & (low > -LARGEST)))
    for name, values in [(wanted.features[j], part.X[:, j]) for j in bad[:1]] + [(wanted.label, part.y)]:
        if values is None:
            continue
        wrong = ~(np.abs(values, dtype=np.float64) < LARGEST)
        if wanted.gaps and name == wanted.label:
            wrong &= ~np.isnan(values)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"{role} {str(part.path)!r}, column {name!r}: expected finite numbers that can be squared. Got "
                f"{values[row]:g} in row {part.first + row} (the first row is 0); mend it, or drop such rows."
            )
