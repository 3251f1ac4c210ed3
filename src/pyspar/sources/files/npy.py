"""One array in a ``.npy`` file: rows of numbers without names, which are given here as x0, x1, ...

The file is mapped anew for each batch, so that what has been read does not stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError
from pyspar.sources.files.rows import Column, Part, Rows, Wanted


@dataclass(frozen=True, eq=False)
class ArrayRows(Rows):
    """Rows of one array."""

    def renamed(self, names: Sequence[str]) -> ArrayRows:
        """Return the same rows with other names."""
        return replace(self, columns=tuple(replace(column, name=name) for column, name in zip(self.columns, names)))

    def _parts(self, wanted: Wanted) -> Iterator[Part]:
        step = wanted.rows_within(self.batch_bytes)
        place = {name: j for j, name in enumerate(self.names)}
        features = _columns([place[name] for name in wanted.features])
        for start in range(0, self.n_rows or 0, step):
            rows = _mapped(self.path, self.role)[start : start + step]
            X = np.array(rows[:, features], dtype=wanted.dtype)
            y = None if wanted.label is None else np.array(rows[:, place[wanted.label]], dtype=np.float64)
            kept = None if wanted.keep is None else np.array(rows[:, place[wanted.keep]])
            done = self.n_bytes * (start + len(rows)) // max(self.n_rows or 1, 1)
            del rows  # closes the mapping
            yield Part(X, y, kept, self.path, start, done)


def open_npy(path: Path, role: str, batch_bytes: int) -> ArrayRows:
    """Read the header."""
    array = _mapped(path, role)
    where = f"{role} {str(path)!r}"
    if array.ndim != 2:
        raise InputError(f"{where}: expected a 2-D array, rows x columns. Got shape {array.shape}; reshape it.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{where}: expected real numbers. Got dtype {array.dtype}; save the table as float64.")
    if 0 in array.shape:
        raise InputError(f"{where}: expected rows. Got an array of shape {array.shape}.")
    dtype = array.dtype.newbyteorder("=")
    columns = tuple(Column.of(f"x{j}", dtype, str(dtype)) for j in range(array.shape[1]))
    return ArrayRows(path, role, columns, len(array), path.stat().st_size, batch_bytes)


def _mapped(path: Path, role: str) -> Any:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError, OSError, SyntaxError) as error:
        reason = " ".join(str(error).split())
        if "object" in reason.lower():
            what = "plain numbers. Got Python objects, which could run code when read; save the table as float64."
            raise InputError(f"{role} {str(path)!r}: expected {what}") from error
        raise InputError(
            f"{role} {str(path)!r}: expected a whole .npy file. Got a broken one ({reason}); save it again."
        ) from error


def _columns(places: list[int]) -> slice | list[int]:
    """Return a run of columns as a slice: a plain copy instead of a gathering one."""
    run = list(range(places[0], places[0] + len(places)))
    return slice(places[0], places[-1] + 1) if places == run else places
