"""Read files whose format has types into a data frame: Parquet, workbooks and numpy arrays.

The columns of a 2-D array are named x0, x1, ...; in an .npz file those of the array ``X`` too, those of another array
``A`` are A0, A1, ..., and a 1-D array is one column with the name of its key.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pyspar.errors import InputError, need
from pyspar.io.archives import ArrayHeader, check_entries, read_entry, read_npy_header
from pyspar.sources.files.formats import (
    ARRAY,
    ARRAYS,
    PARQUET,
    WORKBOOK,
    check_unique,
    describe_file,
    format_of,
    free_memory,
)
from pyspar.sources.files.messages import BadCell, shorten_error, unreadable_file_error
from pyspar.sources.files.npy import array_file_error
from pyspar.sources.files.number_text import MISSING_MARKS
from pyspar.sources.files.rows import BATCH_BYTES, Column, ReadPlan, RowBatch, RowFile
from pyspar.tables.dates import is_text
from pyspar.tables.encode import as_numbers, read_number_cells


class TypedTable(NamedTuple):
    """The rows of a file whose format has types, its columns, notes, and the bad cells, which are missing values."""

    frame: pd.DataFrame
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    bad: list[BadCell]


@dataclass(frozen=True, eq=False)
class WholeFile(RowFile):
    """The rows of a file whose format can only be read as a whole: arrays in .npz, and workbooks."""

    table: TypedTable

    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        frame, bad = self.table.frame, [cell for cell in self.table.bad if cell.column in plan.numbers]
        X = frame[list(plan.features)].to_numpy(dtype=plan.dtype, na_value=np.nan)
        y = None if plan.label is None else as_numbers(frame[plan.label]).astype(np.float64)
        ids = None if plan.identity is None else frame[plan.identity]
        yield RowBatch(X, y, ids, self.path, 0, self.n_bytes, bad=bad)


def open_whole_file(path: Path, role: str, identity: str | None) -> WholeFile:
    """Read a whole file, as rows that are reduced like those of a stream."""
    table = read_typed(path, role, (), identity, ())
    return WholeFile(path, role, table.columns, len(table.frame), path.stat().st_size, BATCH_BYTES, table)


def read_typed(
    path: Path, role: str, as_text: Collection[str], verbatim: str | None, skip: Collection[str | None]
) -> TypedTable:
    """Read a file whose format has types. Text columns with mostly numbers are read as such, except ``skip``.

    The columns ``as_text`` stay text, and the column ``verbatim`` is kept unchanged.
    """
    frame, notes = _READERS[format_of(path)](path, role, as_text, verbatim)
    frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    check_unique(frame.columns, describe_file(role, path))
    if len(frame) == 0:
        raise InputError(f"{describe_file(role, path)}: the file has {len(frame.columns)} columns and no rows")
    columns, bad = [], []
    for name in frame.columns:
        dtype = frame[name].dtype
        is_number = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
        column = Column.of(name, dtype if is_number else None, str(dtype))
        if not is_number and name not in {*as_text, *skip, verbatim} and is_text(frame[name]):
            read, numbers, wrong = read_number_cells(frame[name])
            is_code = frame[name].dropna().map(lambda cell: isinstance(cell, str) and cell.isdigit()).all()
            if read.dtype is not None and not is_code:
                column, frame[name] = read, numbers
                bad += [BadCell(name, row, text) for row, text in wrong]
        columns.append(column)
    return TypedTable(frame, tuple(columns), notes, bad)


def _read_parquet(
    path: Path, role: str, as_text: Collection[str], verbatim: str | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read a Parquet file. A named index is a column.

    Integers stay exact beside nulls. The column ``verbatim`` keeps the type and the values of the file.
    """
    parquet: Any = need("pyarrow.parquet", "cli")
    from pyspar.sources.files.parquet import without_views  # here, because it imports pyarrow

    try:
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        check_unique(file.schema_arrow.names, describe_file(role, path))
        table = file.read()
        table.validate(full=True)  # Arrow does not check the encoding of text before
        names = table.column_names
        # pandas cannot represent all ids, for example dates after the year 9999.
        frame = (table.drop_columns([verbatim]) if verbatim in names else table).to_pandas()
        # pandas stores a named index as a column; an index without a name only counts the rows.
        frame = frame.reset_index(drop=not any(name is not None for name in frame.index.names))
        for name, column in zip(names, table.columns):
            # Nullable integers, because pandas would read floats.
            if name in frame.columns and column.null_count and need("pyarrow", "cli").types.is_integer(column.type):
                sign = "U" if str(column.type).startswith("u") else ""
                dtype = pd.api.types.pandas_dtype(f"{sign}Int{column.type.bit_width}")
                frame[name] = column.to_pandas(types_mapper={column.type: dtype}.get)
        if verbatim in names:
            ids = without_views(table[verbatim])
            exact = pd.array(ids.combine_chunks(), dtype=pd.ArrowDtype(ids.type))
            frame.insert(min(names.index(verbatim), frame.shape[1]), verbatim, pd.Series(exact))
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a damaged description of the columns raises errors of many types in pandas
        raise unreadable_file_error(path, role, error, "Parquet") from error
    return frame, ()


def _read_workbook(
    path: Path, role: str, as_text: Collection[str], verbatim: str | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the first sheet of a workbook. Its first row contains the column names."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_entries(archive, path.stat().st_size, describe_file(role, path), compressed=True)
            if damaged := archive.testzip():  # openpyxl ignores missing entries: without styles, dates become numbers
                raise zipfile.BadZipFile(f"{damaged} does not match its checksum or its name")
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            header = [str(name) for name in pd.read_excel(book, nrows=0).columns]
            frame = pd.read_excel(
                book, keep_default_na=False, na_values={name: MISSING_MARKS for name in header if name != verbatim},
                dtype={name: str for name in {*as_text, verbatim} if name in header},
            )  # fmt: skip
    except (InputError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises errors of many types for malformed files
        raise unreadable_file_error(path, role, error, ".xlsx", "save the sheet as CSV") from error
    frame = frame.dropna(how="all", ignore_index=False)
    notes = (f"{role}: the first of {len(sheets)} sheets is read ({sheets[0]!r})",) if len(sheets) > 1 else ()
    return frame.reset_index(drop=True), notes


def _read_arrays(
    path: Path, role: str, as_text: Collection[str], verbatim: str | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the arrays of an .npy or .npz file as the columns of one table. The array of an .npy file must be a matrix.

    The sizes in all headers are compared with the file and with the free memory before an array is allocated.
    """
    where, size = describe_file(role, path), path.stat().st_size
    try:
        if format_of(path) == ARRAYS:
            with zipfile.ZipFile(path) as archive:
                entries = check_entries(archive, size, where, compressed=True)
                headers = []
                for info in entries.values():
                    with archive.open(info) as file:
                        headers.append(read_npy_header(file, info.file_size))
                _check_memory(headers, where)
                arrays = {name.removesuffix(".npy"): read_entry(archive, info) for name, info in entries.items()}
        else:
            with path.open("rb") as file:
                header = read_npy_header(file, size)
                if len(header.shape) != 2:
                    raise InputError(
                        f"{where}: the array must be 2-D (rows x columns), got shape {header.shape}; reshape it"
                    )
                _check_memory([header], where)
                file.seek(0)
                arrays = {"X": np.lib.format.read_array(file, allow_pickle=False)}
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy raise errors of many types for malformed files
        raise array_file_error(path, role, error) from error
    if not arrays:
        raise InputError(f"{where}: the file has no arrays; save arrays such as X and y")
    frames = [_to_frame(key, array, len(arrays), where) for key, array in arrays.items()]
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{where}: all arrays must have the same length, got {lengths}; save one table per file")
    return pd.concat(frames, axis=1), ()


def _check_memory(headers: Iterable[ArrayHeader], where: str) -> None:
    needed, free = sum(header.n_bytes for header in headers), free_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{where}: the arrays need {needed / 1e9:.3g} GB of memory, but {free / 1e9:.3g} GB are free; save fewer "
            "rows or columns, or one .npy file for --stream"
        )


def _to_frame(key: str, array: Any, n_arrays: int, where: str) -> pd.DataFrame:
    if array.ndim not in (1, 2):
        raise InputError(f"{where}: arrays must be 1-D or 2-D, got {key!r} of shape {array.shape}; remove it")
    if array.dtype.kind not in "biufUM":
        raise InputError(
            f"{where}, array {key!r}: the array must contain real numbers, got dtype {array.dtype}; save it as "
            "float64, or as Parquet"
        )
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    stem = "x" if key in ("X", "x") or n_arrays == 1 else key
    try:
        if array.ndim == 1 or (array.shape[1] == 1 and stem != "x"):
            return pd.DataFrame({key: array.reshape(-1)})
        return pd.DataFrame(array, columns=[f"{stem}{j}" for j in range(array.shape[1])])
    except pd.errors.OutOfBoundsDatetime as error:  # pandas counts seconds where numpy counts minutes, days or years
        raise InputError(
            f"{where}, array {key!r}: a date is out of range ({shorten_error(error)}); correct it"
        ) from error


_READERS = {PARQUET: _read_parquet, WORKBOOK: _read_workbook, ARRAY: _read_arrays, ARRAYS: _read_arrays}
"""The readers of the formats with types: path, role, columns that stay text, and the column that is kept unchanged."""
