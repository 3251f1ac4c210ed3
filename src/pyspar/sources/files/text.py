"""Delimited text (CSV, TSV, gzipped or not), read in blocks.

Types are inferred from the first block. Whole numbers are then read as float64, so that fractions may follow later. A
word among numbers raises an InputError that names its row.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.sources.files.header import (
    MISSING_MARKS,
    check_names,
    describe_file,
    open_text,
    separator_of,
    shorten_error,
    unreadable_file_error,
)
from pyspar.sources.files.parquet import convert_batch, convert_field
from pyspar.sources.files.rows import Column, ReadPlan, RowBatch, RowFile


@dataclass(frozen=True, eq=False)
class DelimitedFile(RowFile):
    """The rows of one delimited text file."""

    separator: str
    decimal_point: str

    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        arrow: Any = need("pyarrow", "cli")
        boolean = {column.name for column in self.columns if column.dtype == np.bool_}
        types = {name: arrow.bool_() if name in boolean else arrow.float64() for name in plan.names}
        if plan.identity is not None:
            types[plan.identity] = arrow.string()
        first = 0
        try:
            with _CountingReader(self.path) as file:
                for batch in _open_csv(file, self.separator, self.decimal_point, self.batch_bytes, types):
                    yield convert_batch(batch, plan, self.role, self.path, first, file.position)
                    first += batch.num_rows
                if file.quotes and first + 1 < file.lines:
                    _check_quotes(self.path, self.role, self.separator)
        except _read_errors() as error:
            raise _text_file_error(error, self.path, self.role, self.names) from error


def open_delimited(path: Path, role: str, batch_bytes: int) -> DelimitedFile:
    """Read the header, and infer the types from the first block."""
    try:
        separator = separator_of(path)
        decimal_point, schema = _infer_schema(path, separator, batch_bytes)
    except _read_errors() as error:
        raise _text_file_error(error, path, role, ()) from error
    check_names([name for name in schema.names if name], describe_file(role, path))
    columns = tuple(_widen(convert_field(field)) for field in schema)
    return DelimitedFile(path, role, columns, None, path.stat().st_size, batch_bytes, separator, decimal_point)


class _CountingReader(io.RawIOBase):
    """A binary file for Arrow that counts quotes and lines, and reports the position in the file on disk."""

    def __init__(self, path: Path) -> None:
        self._raw = path.open("rb")
        self._bytes: Any = gzip.GzipFile(fileobj=self._raw) if path.suffix.lower() == ".gz" else self._raw
        self.quotes = self.lines = 0

    @property
    def position(self) -> int:
        return self._raw.tell()

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._bytes.read(size)
        self.quotes += data.count(b'"')
        self.lines += data.count(b"\n")
        return data

    def close(self) -> None:
        super().close()
        self._bytes.close()
        self._raw.close()

    def readable(self) -> bool:
        return True


def _infer_schema(path: Path, separator: str, block: int) -> tuple[str, Any]:
    """Return the decimal point and the types. With a semicolon as separator the decimal point may be a comma."""
    candidates = []
    for point in (".", ",") if separator == ";" else (".",):
        with _CountingReader(path) as file:
            schema = _open_csv(file, separator, point, block, None).schema
        candidates.append((sum(convert_field(field).dtype is not None for field in schema), point, schema))
    _, point, schema = max(candidates, key=lambda candidate: candidate[0])
    return point, schema


def _open_csv(
    file: _CountingReader, separator: str, decimal_point: str, block: int, types: dict[str, Any] | None
) -> Any:
    text: Any = need("pyarrow.csv", "cli")
    return text.open_csv(
        need("pyarrow", "cli").PythonFile(file, mode="r"),
        # Arrow numbers the rows in its messages only with one thread.
        read_options=text.ReadOptions(block_size=block, use_threads=False),
        parse_options=text.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=text.ConvertOptions(
            null_values=MISSING_MARKS, decimal_point=decimal_point, column_types=types,
            include_columns=None if types is None else list(types),
        ),
    )  # fmt: skip


def _widen(column: Column) -> Column:
    """Return float64 for whole numbers and for columns without values in the first block."""
    whole = column.type_name == "null" or (column.dtype is not None and column.dtype.kind in "iu")
    return Column(column.name, np.dtype(np.float64), column.type_name) if whole else column


def _check_quotes(path: Path, role: str, separator: str) -> None:
    """Raise InputError for a quote that is never closed, in a file with fewer records than lines.

    Arrow reads the rest of the file as the text inside that quote, and silently loses rows.
    """
    line = 0
    with open_text(path) as file:
        try:
            for record in (reader := csv.reader(file, delimiter=separator, strict=True)):
                line = reader.line_num if record else line
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise InputError(
                    f"{describe_file(role, path)}: a quote after line {line} is never closed; remove or close it"
                ) from error


def _read_errors() -> tuple[type[Exception], ...]:
    return (need("pyarrow", "cli").ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)


def _text_file_error(error: Exception, path: Path, role: str, names: tuple[str, ...]) -> InputError:
    """Return an InputError for an error of Arrow, gzip or the operating system."""
    where, reason = describe_file(role, path), shorten_error(error)
    if isinstance(error, UnicodeDecodeError):
        return InputError(f"{where}: the text is not UTF-8 ({reason}); save the file as UTF-8")
    if "Empty CSV" in reason:
        return InputError(f"{where}: the file is empty; it must have a header and rows")
    if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason):
        row, expected, fields = ragged.groups()
        return InputError(
            f"{where}: record {row} must have {expected} fields as in the header (record 1), got {fields}; correct the "
            "line, and quote fields that contain the separator"
        )
    if invalid := re.search(r"In CSV column #(\d+):(?: Row #(\d+):)? .*?invalid value (.*)$", reason):
        column, row, value = invalid.groups()
        name = names[int(column)] if int(column) < len(names) else column
        record = f" in record {row}" if row else ""
        return InputError(
            f"{describe_file(role, path, name)}: the column must be numeric as in the first rows, got {value}{record} "
            "(the header is record 1); correct the value, or choose other columns"
        )
    return unreadable_file_error(path, role, error, "gzip" if path.suffix.lower() == ".gz" else "delimited text")
