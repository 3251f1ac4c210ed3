"""Parquet: one file, or a folder of files with the same columns, of which only the chosen columns are read.

Every footer is read before any row. A column that is whole numbers in one file and floating in another, or float32 in
one and float64 in another, is read as float64 and counts as measured in the coarser; one that is not numeric in some
file is refused with the file's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.sources.files.names import check_names
from pyspar.sources.files.rows import Column, Part, Rows, Wanted, missing

_READ_AT_ONCE = 16_000_000
"""Bytes of encoded pages held at a time, over all columns; without a bound whole row groups are held."""


@dataclass(frozen=True)
class _File:
    path: Path
    n_rows: int
    n_bytes: int
    columns: dict[str, Column]


@dataclass(frozen=True, eq=False)
class ParquetRows(Rows):
    """Rows of Parquet files, in the order of their names."""

    files: tuple[_File, ...]

    def _check_files(self, wanted: Wanted) -> None:
        for file in self.files:
            where = f"{self.role} {str(file.path)!r}"
            for name in wanted.names:
                column = file.columns.get(name)
                if column is None:
                    raise InputError(
                        f"{where}: expected the column {name!r}, as in {self.files[0].path.name!r}. Got a file "
                        "without it; add it, or choose other columns."
                    )
                if column.dtype is None and name != wanted.keep:
                    raise InputError(
                        f"{where}, column {name!r}: expected numbers, as in {self.files[0].path.name!r}. Got "
                        f"{column.kind}; write that file again."
                    )

    def _parts(self, wanted: Wanted) -> Iterator[Part]:
        before = 0
        for file in self.files:
            first = 0
            for batch in self._batches(file, wanted):
                rows = first + batch.num_rows
                done = before + file.n_bytes * rows // file.n_rows
                yield converted(batch, wanted, self.role, file.path, first, done)
                first = rows
            before += file.n_bytes

    def _batches(self, file: _File, wanted: Wanted) -> Iterator[Any]:
        parquet: Any = need("pyarrow.parquet", "cli")
        buffer = max(4096, min(1 << 17, _READ_AT_ONCE // len(wanted.names)))
        try:
            with parquet.ParquetFile(file.path, pre_buffer=False, buffer_size=buffer) as opened:
                yield from opened.iter_batches(wanted.rows_within(self.batch_bytes), columns=wanted.names)
        except (need("pyarrow", "cli").ArrowException, OSError) as error:
            raise _broken(file.path, self.role, error) from error


def open_parquet(path: Path, role: str, batch_bytes: int) -> ParquetRows:
    """Read the footers."""
    files = tuple(_footer(each, role) for each in _listed(path, role))
    n_rows = sum(file.n_rows for file in files)
    if n_rows == 0:
        raise InputError(f"{role} {str(path)!r}: expected rows. Got {len(files[0].columns)} columns and no row.")
    columns = tuple(_joint(name, files) for name in files[0].columns)
    return ParquetRows(path, role, columns, n_rows, sum(file.n_bytes for file in files), batch_bytes, files)


def column_of(field: Any) -> Column:
    """Return how a column of Arrow is read; half, single and double precision, whole numbers and booleans are."""
    types: Any = need("pyarrow", "cli").types
    kind = field.type
    plain = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
    return Column.of(field.name, np.dtype(kind.to_pandas_dtype()) if plain else None, str(kind))


def converted(batch: Any, wanted: Wanted, role: str, path: Path, first: int, n_bytes: int) -> Part:
    """Return a record batch of Arrow as arrays, or refuse its missing values."""
    place = {name: j for j, name in enumerate(batch.schema.names)}

    def refused(names: list[str], *, needed: bool = False) -> InputError:
        gone = batch.column(place[names[0]]).is_null().to_numpy(zero_copy_only=False)
        return missing(role, path, names, first + int(np.flatnonzero(gone)[0]), needed=needed)

    with_gaps = [name for name in wanted.features if batch.column(place[name]).null_count]
    if with_gaps:
        raise refused(with_gaps)
    X = np.empty((batch.num_rows, len(wanted.features)), wanted.dtype, order="F")
    for j, name in enumerate(wanted.features):
        X[:, j] = batch.column(place[name]).to_numpy(zero_copy_only=False)
    y = None
    if wanted.label is not None:
        double = need("pyarrow", "cli").float64()
        labels = batch.column(place[wanted.label])
        if labels.null_count and not wanted.gaps:
            raise refused([wanted.label], needed=True)
        y = labels.cast(double, safe=False).to_numpy(zero_copy_only=False)
    kept = None if wanted.keep is None else batch.column(place[wanted.keep])
    return Part(X, y, kept, path, first, n_bytes)


def _listed(path: Path, role: str) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.iterdir() if p.suffix.lower() == ".parquet" and not p.name.startswith((".", "_")))
    if not found:
        deeper = next(path.glob("*/*.parquet"), None)
        what = (
            "Got a folder without any" if deeper is None else f"Got a folder of folders ({deeper.parent.name!r}, ...)"
        )
        raise InputError(f"{role} {str(path)!r}: expected .parquet files in the folder. {what}; name the file itself.")
    return found


def _footer(path: Path, role: str) -> _File:
    parquet: Any = need("pyarrow.parquet", "cli")
    if path.stat().st_size == 0:
        raise InputError(f"{role} {str(path)!r}: expected rows. Got an empty file (0 bytes).")
    try:
        with parquet.ParquetFile(path) as file:
            schema, n_rows = file.schema_arrow, int(file.metadata.num_rows)
    except (need("pyarrow", "cli").ArrowException, OSError) as error:
        raise _broken(path, role, error) from error
    check_names(schema.names, f"{role} {str(path)!r}")
    return _File(path, n_rows, path.stat().st_size, {field.name: column_of(field) for field in schema})


def _joint(name: str, files: tuple[_File, ...]) -> Column:
    """Return a column as all files together have it; what one lacks or spoils is refused when it is asked for."""
    first, *others = (file.columns[name] for file in files if name in file.columns)
    if first.dtype is None or all(other.dtype in (first.dtype, None) for other in others):
        return first
    kinds = " or ".join(sorted({column.kind for column in (first, *others)}))
    return Column(name, np.dtype(np.float64), kinds, max(column.eps for column in (first, *others)))


def _broken(path: Path, role: str, error: BaseException) -> InputError:
    if isinstance(error, PermissionError):
        return InputError(f"{role} {str(path)!r}: expected a file that may be read. Got {error.strerror}.")
    reason = " ".join(str(error).split())[:200]
    return InputError(
        f"{role} {str(path)!r}: expected a whole Parquet file. Got a broken one ({reason}); save it again."
    )
