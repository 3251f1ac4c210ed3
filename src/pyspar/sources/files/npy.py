"""A ``.npy`` file with one array of numbers. Its columns are named x0, x1, ...

The file is read, not mapped into memory: if another process truncates a mapped file, the operating system kills the
reader.
"""

from __future__ import annotations

import os
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError
from pyspar.io.archives import ArrayHeader, read_npy_header
from pyspar.sources.files.formats import describe_file
from pyspar.sources.files.messages import unreadable_file_error
from pyspar.sources.files.rows import Column, ReadPlan, RowBatch, RowFile

_READ_ERRORS = (ValueError, TypeError, EOFError, OSError, SyntaxError, tokenize.TokenError, RecursionError)
"""What numpy raises for damaged headers."""


@dataclass(frozen=True, eq=False)
class ArrayFile(RowFile):
    """The rows of one array."""

    header: ArrayHeader

    def rename(self, names: Sequence[str]) -> ArrayFile:
        """Return the same rows with other column names."""
        return replace(self, columns=tuple(replace(column, name=name) for column, name in zip(self.columns, names)))

    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        n_rows = self.header.shape[0]
        step = plan.rows_within(self.batch_bytes)
        position = {name: j for j, name in enumerate(self.names)}
        features: Any = [position[name] for name in plan.features]
        if features == list(range(features[0], features[-1] + 1)):
            features = slice(features[0], features[-1] + 1)  # which numpy copies faster
        try:
            with self.path.open("rb") as file:
                if read_npy_header(file, os.fstat(file.fileno()).st_size) != self.header:
                    raise ValueError("the file was replaced while it was read")
                for start in range(0, n_rows, step):
                    rows = _read_block(file, self.header, start, min(start + step, n_rows))
                    X = np.array(rows[:, features], dtype=plan.dtype)
                    y = None if plan.label is None else rows[:, position[plan.label]].astype(np.float64)
                    ids = None if plan.identity is None else rows[:, position[plan.identity]].copy()
                    done = self.n_bytes * (start + len(rows)) // n_rows
                    yield RowBatch(X, y, ids, self.path, start, done)
        except _READ_ERRORS as error:
            raise array_file_error(self.path, self.role, error) from error


def open_file(path: Path, role: str, batch_bytes: int) -> ArrayFile:
    """Read the header of an array file, and compare it with the size of the file."""
    where, size = describe_file(role, path), path.stat().st_size
    try:
        with path.open("rb") as file:
            header = read_npy_header(file, size)
    except _READ_ERRORS as error:
        raise array_file_error(path, role, error) from error
    shape, dtype = header.shape, header.dtype
    if len(shape) != 2:
        raise InputError(f"{where}: the array must be 2-D (rows x columns), got shape {shape}; reshape it")
    if dtype.kind not in "biuf":
        raise InputError(f"{where}: the array must contain real numbers, got dtype {dtype}; save it as float64")
    if 0 in shape:
        raise InputError(f"{where}: the array must have rows and columns, got shape {shape}")
    native = dtype.newbyteorder("=")
    columns = tuple(Column.of(f"x{j}", native, str(native)) for j in range(shape[1]))
    return ArrayFile(path, role, columns, shape[0], size, batch_bytes, header)


def _read_block(file: IO[bytes], header: ArrayHeader, start: int, stop: int) -> NDArray[Any]:
    """Return some rows of an array that is stored by rows or by columns."""

    def read(first: int, count: int) -> NDArray[Any]:
        file.seek(header.offset + first * header.dtype.itemsize)
        data = file.read(count * header.dtype.itemsize)
        if len(data) < count * header.dtype.itemsize:
            raise ValueError("the file became shorter while it was read")
        return np.frombuffer(data, header.dtype)

    n_rows, n_columns = header.shape
    if header.by_columns:
        return np.stack([read(j * n_rows + start, stop - start) for j in range(n_columns)], axis=1)
    return read(start * n_columns, (stop - start) * n_columns).reshape(-1, n_columns)


def array_file_error(path: Path, role: str, error: BaseException) -> InputError:
    """Return an InputError for a file that numpy cannot read, or refuses to read."""
    if isinstance(error, ValueError) and ("object" in str(error).lower() or "allow_pickle" in str(error)):
        return InputError(
            f"{describe_file(role, path)}: the array holds Python objects, which can run code when read; save it as "
            "float64, or as Parquet"
        )
    return unreadable_file_error(path, role, error, path.suffix)
