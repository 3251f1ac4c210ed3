"""A ``.npy`` file with one array of numbers. Its columns are named x0, x1, ...

The file is mapped again for each batch, so that pages which were read do not stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError
from pyspar.sources.files.header import describe_file, unreadable_file_error
from pyspar.sources.files.rows import Column, ReadPlan, RowBatch, RowFile


@dataclass(frozen=True, eq=False)
class ArrayFile(RowFile):
    """The rows of one array."""

    def rename(self, names: Sequence[str]) -> ArrayFile:
        """Return the same rows with other column names."""
        return replace(self, columns=tuple(replace(column, name=name) for column, name in zip(self.columns, names)))

    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        step = plan.rows_within(self.batch_bytes)
        position = {name: j for j, name in enumerate(self.names)}
        features = _as_slice([position[name] for name in plan.features])
        for start in range(0, self.n_rows or 0, step):
            rows = _map_array(self.path, self.role)[start : start + step]
            X = np.array(rows[:, features], dtype=plan.dtype)
            y = None if plan.label is None else np.array(rows[:, position[plan.label]], dtype=np.float64)
            ids = None if plan.identity is None else np.array(rows[:, position[plan.identity]])
            done = self.n_bytes * (start + len(rows)) // max(self.n_rows or 1, 1)
            del rows  # closes the mapping
            yield RowBatch(X, y, ids, self.path, start, done)


def open_npy(path: Path, role: str, batch_bytes: int) -> ArrayFile:
    """Read the header of an array file."""
    array = _map_array(path, role)
    where = describe_file(role, path)
    if array.ndim != 2:
        raise InputError(f"{where}: the array must be 2-D (rows x columns), got shape {array.shape}; reshape it")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{where}: the array must contain real numbers, got dtype {array.dtype}; save it as float64")
    if 0 in array.shape:
        raise InputError(f"{where}: the array must have rows and columns, got shape {array.shape}")
    dtype = array.dtype.newbyteorder("=")
    columns = tuple(Column.of(f"x{j}", dtype, str(dtype)) for j in range(array.shape[1]))
    return ArrayFile(path, role, columns, len(array), path.stat().st_size, batch_bytes)


def _map_array(path: Path, role: str) -> Any:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError, OSError, SyntaxError) as error:
        raise array_file_error(path, role, error) from error


def array_file_error(path: Path, role: str, error: BaseException) -> InputError:
    """Return an InputError for a file that numpy cannot read, or refuses to read."""
    if isinstance(error, ValueError) and ("object" in str(error).lower() or "allow_pickle" in str(error)):
        return InputError(
            f"{describe_file(role, path)}: the array holds Python objects, which can run code when read; save it as "
            "float64, or as Parquet"
        )
    return unreadable_file_error(path, role, error, path.suffix)


def _as_slice(positions: list[int]) -> slice | list[int]:
    """Return consecutive positions as a slice, which numpy copies faster."""
    run = list(range(positions[0], positions[0] + len(positions)))
    return slice(positions[0], positions[-1] + 1) if positions == run else positions
