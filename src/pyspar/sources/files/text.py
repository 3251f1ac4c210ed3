"""Delimited text (CSV, TSV, gzipped or not), read in blocks.

Types are inferred from the first block. Whole numbers are then read as float64, so that fractions may follow later.
Arrow parses numbers. A column with a cell that Arrow rejects is read as text from there on and parsed by
``number_text``, which reads separators and signs, and names bad cells.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.sources.files.header import (
    MISSING_MARKS,
    check_unique,
    describe_file,
    open_text,
    separator_of,
    shorten_error,
    unreadable_file_error,
)
from pyspar.sources.files.number_text import NumberFormat, infer_format
from pyspar.sources.files.parquet import convert_batch, convert_field, find_number_text, is_text
from pyspar.sources.files.rows import Column, ReadPlan, RowBatch, RowFile

arrow: Any = need("pyarrow", "cli")
csv_reader: Any = need("pyarrow.csv", "cli")

_READ_ERRORS = (arrow.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)
_SAMPLE_CELLS = 20_000
"""The number of cells at the start of a file whose text shows how numbers are written."""

_INVALID_CELL = re.compile(r"In CSV column #(\d+):(?: Row #(\d+):)? .*?invalid value (.*)$")
"""What Arrow says of a cell that has not the type of its column."""


@dataclass(frozen=True, eq=False)
class DelimitedFile(RowFile):
    """The rows of one delimited text file."""

    separator: str
    decimal_point: str

    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        formats = dict(plan.formats)
        first = 0
        fractional: set[str] = set()  # columns with fractions, which prove the decimal mark
        while True:
            try:
                for batch in self._read_from(first, replace(plan, formats=formats)):
                    yield batch
                    first += len(batch.X)
                    if self.separator == ";":
                        columns = dict(zip(plan.features, batch.X.T))
                        columns |= {} if plan.label is None else {plan.label: batch.y}
                        fractional |= {name for name, x in columns.items() if (x[np.isfinite(x)] % 1.0).any()}
                return
            except _READ_ERRORS as error:
                name = self._rejected_column(error)
                if name is None or name in formats:
                    raise _text_file_error(error, self.path, self.role, self.names) from error
                # As in memory, a comma that could be either is a decimal comma if semicolons separate the fields.
                is_open = self.separator == ";" and name not in fractional
                formats[name] = NumberFormat(decimal_comma=self.decimal_point == "," or is_open)

    def _read_from(self, start: int, plan: ReadPlan) -> Iterator[RowBatch]:
        """Yield the batches from a row on, which is the first row of a batch."""
        boolean = {column.name for column in self.columns if column.dtype == np.bool_}
        types = {name: arrow.bool_() if name in boolean else arrow.float64() for name in plan.names}
        types |= {name: arrow.string() for name in [*plan.formats, plan.identity] if name is not None}
        first = 0
        with _CountingReader(self.path) as file:
            for batch in _open_csv(file, self.separator, self.decimal_point, self.batch_bytes, types):
                if first >= start:
                    yield convert_batch(batch, plan, self.role, self.path, first, file.position)
                first += batch.num_rows
            if file.quotes and first + 1 < file.lines:
                _check_quotes(self.path, self.role, self.separator)

    def _rejected_column(self, error: Exception) -> str | None:
        """Return the column of floats in which Arrow found another cell, or None if the error has another cause."""
        invalid = _INVALID_CELL.search(shorten_error(error))
        name = None if invalid is None or int(invalid[1]) >= len(self.names) else self.names[int(invalid[1])]
        return None if name is None or self.column(name).dtype == np.bool_ else name


def open_file(path: Path, role: str, batch_bytes: int) -> DelimitedFile:
    """Read the header, and infer the types from the first block."""
    try:
        separator = separator_of(path)
        decimal_point, schema, formats = _infer_schema(path, separator, batch_bytes)
    except _READ_ERRORS as error:
        raise _text_file_error(error, path, role, ()) from error
    check_unique([name for name in schema.names if name], describe_file(role, path))
    columns = _describe_columns(schema, formats, path, separator, decimal_point)
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


def _open_csv(
    file: _CountingReader, separator: str, decimal_point: str, block: int, types: dict[str, Any] | None
) -> Any:
    return csv_reader.open_csv(
        arrow.PythonFile(file, mode="r"),
        # Arrow numbers the rows in its messages only with one thread.
        read_options=csv_reader.ReadOptions(block_size=block, use_threads=False),
        parse_options=csv_reader.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=csv_reader.ConvertOptions(
            null_values=MISSING_MARKS, decimal_point=decimal_point, column_types=types,
            include_columns=None if types is None else list(types),
        ),
    )  # fmt: skip


def _infer_schema(path: Path, separator: str, block: int) -> tuple[str, Any, dict[str, NumberFormat]]:
    """Return the decimal point, the types, and the formats of text columns that contain mostly numbers.

    With a semicolon as separator the decimal point may be a comma.
    """
    candidates = []
    for point in (".", ",") if separator == ";" else (".",):
        formats: dict[str, NumberFormat] = {}
        with _CountingReader(path) as file:
            reader = _open_csv(file, separator, point, block, None)
            if any(is_text(kind) for kind in reader.schema.types):
                with suppress(StopIteration):  # a header without rows
                    formats = find_number_text(reader.read_next_batch(), prefer_comma=separator == ";")
        n_numeric = 0.5 * len(formats) + sum(convert_field(field).dtype is not None for field in reader.schema)
        candidates.append((n_numeric, point, reader.schema, formats))
    return max(candidates, key=lambda candidate: candidate[0])[1:]


def _describe_columns(
    schema: Any, formats: dict[str, NumberFormat], path: Path, separator: str, decimal_point: str
) -> tuple[Column, ...]:
    """Return the columns, with the formats in which the first rows are written.

    Whole numbers, text with numbers, and columns without values in the first block are read as float64.
    """
    counts: list[Counter[str]] = [Counter() for _ in schema]
    with open_text(path) as file:
        for record in islice(csv.reader(file, delimiter=separator), 1, max(2, _SAMPLE_CELLS // max(len(counts), 1))):
            for cells, cell in zip(counts, record):
                cells[cell] += bool(cell)
    columns = []
    for field, cells in zip(schema, counts):
        column = convert_field(field)
        if column.name in formats:
            column = column.with_format(formats[column.name])
        elif column.dtype != np.bool_ and (column.dtype is not None or column.type_name == "null"):
            written = infer_format(+cells, decimal_comma=decimal_point == ",")
            column = replace(column, dtype=np.dtype(np.float64), written=written)
        columns.append(column)
    return tuple(columns)


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
    if invalid := _INVALID_CELL.search(reason):
        column, row, value = invalid.groups()
        name = names[int(column)] if int(column) < len(names) else column
        record = f" in record {row}" if row else ""
        return InputError(
            f"{describe_file(role, path, name)}: the column must be numeric as in the first rows, got {value}{record} "
            "(the header is record 1); correct the value, or choose other columns"
        )
    return unreadable_file_error(path, role, error, "gzip" if path.suffix.lower() == ".gz" else "delimited text")
