"""Read a file into a table: delimited text, Parquet, workbooks and numpy arrays.

Text columns with mostly numbers or dates are read as such. A column is never ignored or encoded as a category because
of a few bad cells: the run stops and names them, or imputes them on request (``--bad-cells impute``).

The columns of a 2-D array are named x0, x1, ...; in an .npz file those of the array ``X`` too, those of another array
``A`` are A0, A1, ..., and a 1-D array is one column with the name of its key.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.core.arrays import EPS64
from pyspar.errors import InputError, need
from pyspar.io.archives import ArrayHeader, check_entries, read_entry, read_npy_header
from pyspar.sources.files.formats import (
    ARRAY,
    ARRAYS,
    INPUT_SUFFIXES,
    PARQUET,
    TEXT,
    WORKBOOK,
    check_file,
    check_unique,
    describe_file,
    format_of,
    free_memory,
)
from pyspar.sources.files.messages import BadCell, bad_cells_error, unreadable_file_error
from pyspar.sources.files.npy import array_file_error
from pyspar.sources.files.number_text import MISSING_MARKS
from pyspar.sources.files.rows import BATCH_BYTES, Column, signs_of
from pyspar.tables.dates import date_format, read_mostly_dates
from pyspar.tables.encode import NumberCells, read_number_cells
from pyspar.tables.inputs import BadCells
from pyspar.wording import count_noun, list_some


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
        notes = [note for column in self.columns if column.name in used for note in column.describe_example(self.role)]
        for name in dict.fromkeys(cell.column for cell in bad):
            texts = [cell.text for cell in bad if cell.column == name]
            notes.append(
                f"{self.role}: {name}: {count_noun(len(texts), 'bad cell is', 'bad cells are')} treated as missing "
                f"({list_some(dict.fromkeys(texts), 3, max_length=40)})"
            )
        return tuple(notes)


def check_input(path: Path, role: str) -> None:
    """Raise InputError if a file does not exist, is empty, or has an unknown format. Nothing is read."""
    check_file(path, role, INPUT_SUFFIXES)
    if package := format_of(path).package:
        need(package, "cli")


def load_table(
    path: Path,
    role: str,
    *,
    as_text: Collection[str] = (),
    verbatim: str | None = None,
    skip: Collection[str | None] = (),
) -> LoadedTable:
    """Check and read a file, and read its text columns with mostly numbers or dates as such.

    The columns ``as_text`` stay text even if they look like numbers, so that ``007`` stays ``007``. The column
    ``verbatim`` is kept unchanged, including the marks of missing values. The columns ``skip`` have no bad cells.
    """
    check_input(path, role)
    where, is_delimited = describe_file(role, path), format_of(path) == TEXT
    bad: list[BadCell] = []
    if is_delimited:
        from pyspar.sources.files.text import open_file  # here, because it imports pyarrow

        file = open_file(path, role, BATCH_BYTES)
        content, bad = file.read_columns(as_text, (verbatim,))
        frame, notes = content.to_pandas(), file.notes
        columns = {column.name: column for column in file.columns}
        columns |= {name: Column(name, None, "text") for name in {*as_text, verbatim} if name in columns}
    else:
        frame, notes = _READERS[format_of(path)](path, role, as_text, verbatim)
        frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
        check_unique(frame.columns, where)
        columns = {name: _describe_column(frame[name]) for name in frame.columns}
    if len(frame) == 0:
        raise InputError(f"{where}: the file has {len(frame.columns)} columns and no rows")
    for name in frame.columns:
        if columns[name].dtype is None and name not in {*as_text, *skip, verbatim} and _is_text(frame[name]):
            wrong: Iterable[tuple[int, str]] = ()
            if not is_delimited and (cells := _read_numbers(frame[name])) is not None:
                frame[name], wrong = cells.values, cells.bad
                columns[name] = Column(name, np.dtype(np.float64), "text", EPS64, cells.style, cells.example)
            elif date_format(frame[name]) is None and (dates := read_mostly_dates(frame[name])) is not None:
                texts = frame[name]
                frame[name], wrong = dates[0], [(int(row), str(texts.iloc[row])) for row in dates[1]]
            bad += [BadCell(name, row, text) for row, text in wrong]
    return LoadedTable(path, role, frame, tuple(columns.values()), notes, tuple(bad))


def read_cells(path: Path) -> pd.DataFrame:
    """Return all cells of delimited text as they are in the file."""
    from pyspar.sources.files.text import open_file  # here, because it imports pyarrow

    file = open_file(path, "file", BATCH_BYTES)
    return pd.DataFrame(file.read_columns((), file.names)[0].to_pandas())


def _describe_column(column: pd.Series[Any]) -> Column:
    dtype = column.dtype
    is_number = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    return Column.of(str(column.name), dtype if is_number else None, str(dtype))


def _is_text(column: pd.Series[Any]) -> bool:
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    return not is_category and pd.api.types.infer_dtype(column, skipna=True) in ("string", "mixed-integer", "mixed")


def _read_numbers(column: pd.Series[Any]) -> NumberCells | None:
    """Return the numbers of a text column in a format with types. Text of whole numbers only is a code."""
    if column.dropna().map(lambda cell: isinstance(cell, str) and cell.isdigit()).all():
        return None
    cells = read_number_cells(column)
    return None if cells.style is None else cells


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
        names = table.column_names
        # pandas does not have all values of ids, for example dates after the year 9999.
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
    if array.ndim == 1 or (array.shape[1] == 1 and stem != "x"):
        return pd.DataFrame({key: array.reshape(-1)})
    return pd.DataFrame(array, columns=[f"{stem}{j}" for j in range(array.shape[1])])


_READERS = {PARQUET: _read_parquet, WORKBOOK: _read_workbook, ARRAY: _read_arrays, ARRAYS: _read_arrays}
"""The readers of the formats with types: path, role, columns that stay text, and the column that is kept unchanged."""
