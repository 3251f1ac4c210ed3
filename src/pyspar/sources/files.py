"""Rows in files: opened without reading them, and read in batches of Arrow.

Text files and workbooks have text cells, which ``pyspar.cells`` parses. Parquet and ``.npy`` have types.
"""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.cells import PLAIN, ReadOptions, describe_file, suffix_of
from pyspar.errors import InputError, need
from pyspar.text import list_some

arrow = need("pyarrow", "cli")

BATCH_BYTES = 16_000_000  # the size of a batch, and of the longest record of a text file
Opened = tuple[Sequence[str], Callable[[Sequence[str]], Iterator[Any]], int | None]
"""The stripped names of columns, a function that reads some of them as batches of Arrow, and the rows if known."""


@dataclass(frozen=True, eq=False)
class RowFile:
    """An open file, or a folder of Parquet files. ``role`` is its name in messages."""

    path: Path
    role: str
    names: tuple[str, ...]
    options: ReadOptions
    read: Callable[[Sequence[str]], Iterator[Any]]
    n_rows: int | None = None

    @property
    def where(self) -> str:
        return describe_file(self.role, self.path)


def open_rows(path: str | os.PathLike[str], options: ReadOptions = PLAIN, role: str = "file") -> RowFile:
    """Open a file of rows, or a folder of Parquet files. Only headers are read, except of workbooks."""
    path = Path(path)
    where, suffix = describe_file(role, path), ".parquet" if path.is_dir() else suffix_of(path)
    if not path.exists():
        raise InputError(f"{'' if role == 'file' else f'{role} '}file not found: {str(path)!r}; check the path")
    if suffix not in READERS:
        raise InputError(f"{where}: unsupported suffix {suffix or 'none'!r}; use {', '.join(READERS)}")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{where}: the file is empty (0 bytes)")
    try:
        names, read, n_rows = READERS[suffix](path, options, where)
    except (InputError, MemoryError, ImportError):
        raise
    except Exception as error:  # damaged files raise errors of many types
        raise _unreadable(error, where) from error
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{where}: duplicate column names {list_some(repeated)}; rename the columns")

    def checked(columns: Sequence[str]) -> Iterator[Any]:
        try:
            yield from read(columns)
        except (InputError, MemoryError):
            raise
        except Exception as error:
            raise _unreadable(error, where) from error

    return RowFile(path, role, tuple(names), options, checked, n_rows)


def _unreadable(error: Exception, where: str) -> InputError:
    reason = " ".join(str(error).split())[:200]
    if isinstance(error, PermissionError):
        return InputError(f"cannot read {where}: permission denied")
    if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in reason:
        return InputError(f"{where}: the text is not UTF-8 ({reason}); save the file as UTF-8")
    if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason):
        return InputError(
            f"{where}: record {ragged[1]} must have {ragged[2]} fields as in the header (record 1), got {ragged[3]}; "
            "correct the line, and quote fields that contain the separator; another separator is passed with --sep"
        )
    if "field larger than" in reason:
        return InputError(f"{where}: a column name has over {csv.field_size_limit():,} characters; shorten it")
    if "straddl" in reason:
        return InputError(f"{where}: a record is longer than {BATCH_BYTES:,} bytes; a quote may not be closed")
    return InputError(f"{where} cannot be read ({reason}); save the file again")


def _open_text(path: Path, options: ReadOptions, where: str) -> Opened:
    text = need("pyarrow.csv", "cli")

    def open_stream() -> Any:
        # By bytes, because names need not be UTF-8. A Python file would be released in a thread of Arrow.
        file = arrow.OSFile(os.fsencode(path))
        return arrow.CompressedInputStream(file, "gzip") if path.suffix.lower() == ".gz" else file

    start = open_stream().read(BATCH_BYTES)
    if not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"{where}: the file is empty; it must have a header and rows")
    if b"\n" not in start.strip() and b"\r" not in start.strip():
        fault = f"the first line is longer than {BATCH_BYTES:,} bytes"
        raise InputError(f"{where}: {fault if len(start) == BATCH_BYTES else 'the file has a header and no rows'}")
    head = start[: 1 << 20].decode("utf-8-sig", errors="ignore" if len(start) > 1 << 20 else "strict")
    head = head[len(blank := re.match(r"(\s*[\r\n])?", head)[0]) :]  # type: ignore[index]  # empty lines
    usual = options.sep or ("\t" if ".tsv" in suffix_of(path) else ",")
    headers = {
        sep: next(csv.reader(io.StringIO(head, newline=None), delimiter=sep))
        for sep in (usual, *("" if options.sep else ",;\t|"))
    }
    sep = usual if len(headers[usual]) > 1 else max(headers, key=lambda sep: len(headers[sep]))
    names = [name.strip() or f"Unnamed: {j}" for j, name in enumerate(headers[sep])]
    # Arrow numbers the rows in its messages only with one thread.
    layout = text.ReadOptions(use_threads=False, block_size=BATCH_BYTES, column_names=names, skip_rows_after_names=1)
    layout.skip_rows = len(blank.splitlines())

    def read(columns: Sequence[str]) -> Iterator[Any]:
        last = ""
        for block in text.open_csv(
            open_stream(),
            layout,
            text.ParseOptions(delimiter=sep, newlines_in_values=True),
            text.ConvertOptions(column_types=dict.fromkeys(names, arrow.string())),
        ):
            last = block.column(block.num_columns - 1)[-1].as_py() if block.num_rows else last
            yield block.select(list(columns))
        stream = open_stream()  # after a quote that is never closed, Arrow reads the rest of the file as one cell
        if "\n" in last and sum(part.count(b'"') for part in iter(lambda: stream.read(1 << 20), b"")) % 2:
            raise InputError(f"{where}: a quote is never closed, before {last[:40]!r}; remove or close it")

    return names, read, None


def _open_parquet(path: Path, options: ReadOptions, where: str) -> Opened:
    parquet = need("pyarrow.parquet", "cli")
    files = sorted(path.glob("[!.]*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{where}: the folder has no .parquet files; pass a file or another folder")

    def open_file(file: Path, **settings: Any) -> Any:
        return parquet.ParquetFile(arrow.OSFile(os.fsencode(file)), page_checksum_verification=True, **settings)

    schemas = {file.name: open_file(file).schema_arrow.names for file in files}
    names, n_rows = schemas[files[0].name], sum(open_file(file).metadata.num_rows for file in files)
    written = {name.strip(): name for name in names}
    for name, own in schemas.items():
        if missing := [column for column in names if column not in own]:
            raise InputError(f"{where}: {name} lacks {list_some(missing)}, which {files[0].name} has; add them")
    if n_rows == 0:
        raise InputError(f"{where}: the file has {len(names)} columns and no rows")

    def read(columns: Sequence[str]) -> Iterator[Any]:
        own, rows = [written[name] for name in columns], max(1, BATCH_BYTES // (8 * len(columns)))
        buffer = min(1 << 17, max(4096, BATCH_BYTES // len(columns)))  # without it, whole row groups are in memory
        for file in files:
            opened = open_file(file, pre_buffer=False, buffer_size=buffer)
            for batch in opened.iter_batches(rows, columns=own):
                batch.validate(full=True)  # Arrow does not check the encoding of text before
                yield batch.select(own).rename_columns(list(columns))

    return [name.strip() for name in names if not name.startswith("__index_level_")], read, n_rows


def _open_array(path: Path, options: ReadOptions, where: str) -> Opened:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        raise InputError(f"{where}: the array must be 2-D with numbers, got {array.dtype} and shape {array.shape}")
    names = [f"x{j}" for j in range(array.shape[1])]

    def read(columns: Sequence[str]) -> Iterator[Any]:
        places, rows = [names.index(name) for name in columns], max(1, BATCH_BYTES // (8 * len(names)))
        for first in range(0, len(array), rows):
            block = array[first : first + rows].astype(array.dtype.newbyteorder("="))
            yield arrow.record_batch([np.ascontiguousarray(block[:, j]) for j in places], names=list(columns))

    return names, read, len(array)


def _open_workbook(path: Path, options: ReadOptions, where: str) -> Opened:
    """Read the first sheet as text, so that its cells mean the same as in a text file."""
    openpyxl = need("openpyxl", "cli")
    with zipfile.ZipFile(path) as archive:
        if damaged := archive.testzip():  # without its styles, dates would become numbers
            raise zipfile.BadZipFile(f"{damaged} does not match its checksum")
    with path.open("rb") as file:
        sheets = openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets
        rows = [list(row) for row in sheets[0].iter_rows(values_only=True)] if sheets else []
    width = max((j + 1 for row in rows for j, cell in enumerate(row) if cell is not None), default=0)
    while rows and not any(cell is not None for cell in rows[-1]):
        rows.pop()
    if len(rows) < 2:
        raise InputError(f"{where}: the first sheet must have a header and rows")
    table = list(zip(*([_cell_text(cell, options) for cell in [*row, *[None] * width][:width]] for row in rows)))
    names = [(column[0] or "").strip() or f"Unnamed: {j}" for j, column in enumerate(table)]

    def read(columns: Sequence[str]) -> Iterator[Any]:
        texts = [arrow.array(table[names.index(name)][1:], arrow.string()) for name in columns]
        yield arrow.record_batch(texts, names=list(columns))

    return names, read, len(rows) - 1


def _cell_text(cell: Any, options: ReadOptions) -> str | None:
    """Return a cell of a workbook as a text file has it: whole numbers without a point, dates in ISO format."""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else str(cell).replace(".", options.decimal or ".")
    return None if cell is None else str(cell).removesuffix(" 00:00:00" if isinstance(cell, datetime) else "\0")


READERS = dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _open_text)
READERS |= {".parquet": _open_parquet, ".xlsx": _open_workbook, ".npy": _open_array}  # all formats that are read
