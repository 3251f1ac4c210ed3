"""Delimited text (CSV, TSV, gzipped or not), read in blocks, and columns of text that are read as numbers.

Arrow splits the records, and every cell is read as text. The first block determines the decimal mark of the file, and
which columns are numbers. Arrow then parses plain numbers. ``number_text`` parses separators and signs.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.arrays import EPS64
from pyspar.errors import InputError, need
from pyspar.sources.files.formats import (
    check_unique,
    describe_file,
    expected_separator,
    open_text,
    read_header,
    separator_of,
)
from pyspar.sources.files.messages import BadCell, shorten_error, unreadable_file_error
from pyspar.sources.files.number_text import (
    MISSING_MARKS,
    PLAIN,
    NumberFormat,
    infer_format,
    is_plain,
    parse_number,
    show_decimal_mark,
)
from pyspar.sources.files.rows import Column, ReadPlan, RowBatch, RowFile, build_batch

arrow: Any = need("pyarrow", "cli")
compute: Any = need("pyarrow.compute", "cli")
csv_reader: Any = need("pyarrow.csv", "cli")

_READ_ERRORS = (arrow.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)
_SAMPLE_CELLS = 20_000
"""The approximate number of cells at the start of a file from which its decimal mark is inferred."""

_READ_BYTES = 1 << 20
"""The bytes of decompressed text that are in memory at once when the end of a gzip file is read."""


@dataclass(frozen=True, eq=False)
class DelimitedFile(RowFile):
    """The rows of one delimited text file.

    ``decimal_mark`` is '' unless semicolons separate the fields. ``header`` are the names in the file, where several
    may be empty.
    """

    separator: str
    decimal_mark: str
    header: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        expected, notes = expected_separator(self.path), []
        if self.separator != expected:
            notes.append(f"the fields are separated by {self.separator!r} instead of {expected!r}")
        if self.decimal_mark == ",":
            notes.append("decimal commas are read as decimal points")
        return (f"{self.role}: {'; '.join(notes)}",) if notes else ()

    def read_columns(self, as_text: Collection[str], verbatim: Collection[str | None]) -> tuple[Any, list[BadCell]]:
        """Return all rows as an Arrow table of numbers and text, and the bad cells, which are missing in it.

        The columns ``as_text`` stay text. Those in ``verbatim`` are unchanged, including marks of missing values.
        """
        names = [column.name for column in self.columns]
        styles = {column.name: column.style for column in self.columns if column.name not in verbatim}
        styles |= {name: None for name in as_text if name in styles}
        blocks, bad, first = [], [], 0
        for block, _ in self._read_cells(range(len(names))):
            columns, wrong = parse_columns(dict(zip(names, block.columns)), styles, first)
            blocks.append(arrow.record_batch(list(columns.values()), names))
            bad += wrong
            first += block.num_rows
        if first == 0:
            raise InputError(f"{describe_file(self.role, self.path)}: the file has a header and no rows")
        return arrow.Table.from_batches(blocks), bad

    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        styles, first = {name: self.column(name).style for name in plan.numbers}, 0
        for block, position in self._read_cells([self.names.index(name) for name in plan.names]):
            columns, bad = parse_columns(dict(zip(plan.names, block.columns)), styles, first)
            yield build_batch(columns, plan, self.path, first, position, bad)
            first += block.num_rows

    def _read_cells(self, positions: Collection[int]) -> Iterator[tuple[Any, int]]:
        """Yield blocks of some columns as text, and the position in the file on disk after each.

        A block may end with the last column of the file in addition.
        """
        last, last_cell = len(self.header) - 1, ""
        positions = [*positions, *([] if last in positions else [last])]
        last_column = positions.index(last)
        try:
            with arrow.OSFile(str(self.path)) as file:
                for block in _read_blocks(file, self.path, self.separator, self.header, positions, self.batch_bytes):
                    if block.num_rows:
                        last_cell = block.column(last_column)[-1].as_py() or ""
                    yield block, file.tell()
            if _may_end_in_quotes(self.path, last_cell):
                _check_quotes(self.path, self.role, self.separator)
        except _READ_ERRORS as error:
            raise _text_file_error(error, self.path, self.role) from error


def open_file(path: Path, role: str, batch_bytes: int) -> DelimitedFile:
    """Read the header, and infer the decimal mark and the columns of numbers from the first block."""
    try:
        separator = separator_of(path)
        header = read_header(path, separator)
        with arrow.OSFile(str(path)) as file:
            block = next(_read_blocks(file, path, separator, header, range(len(header)), batch_bytes), None)
    except _READ_ERRORS as error:
        raise _text_file_error(error, path, role) from error
    where = describe_file(role, path)
    # An empty name becomes the name that pandas gives it.
    names = [name or f"Unnamed: {j}" for j, name in enumerate(header)]
    check_unique(names, where)
    if block is None:
        raise InputError(f"{where}: the file has a header and no rows")
    # Programs that write semicolons often write decimal commas.
    mark = _find_decimal_mark(block.columns, where) if separator == ";" else ""
    columns = tuple(describe_text_column(name, column, mark) for name, column in zip(names, block.columns))
    n_bytes = path.stat().st_size
    return DelimitedFile(path, role, columns, None, n_bytes, batch_bytes, separator, mark, tuple(header))


def describe_text_column(name: str, cells: Any, file_mark: str = "") -> Column:
    """Return the column of some text cells: numbers with their format, or text. Without values it is numbers."""
    known, dtype = _remove_marks(cells), np.dtype(np.float64)
    usual = NumberFormat(decimal_comma=file_mark == ",")
    if known.null_count == len(known):
        return Column(name, dtype, "null", EPS64, usual)
    if _parse_plain(known, usual) is not None:
        return Column(name, dtype, "string", EPS64, usual)
    counts = Counter(text for text in known.to_pylist() if text is not None)
    style = infer_format(counts, file_mark)
    if style is None:
        return Column(name, None, "string")
    numbers = (text for text in counts if not np.isnan(parse_number(text, style) or np.nan))
    marked = (text for text in numbers if not is_plain(text.replace(",", ".") if usual.decimal_comma else text))
    return Column(name, dtype, "string", EPS64, style, next(marked, ""))


def read_text_cells(name: str, texts: Sequence[str | None]) -> tuple[Column, Any, list[tuple[int, str]]]:
    """Return the column of some texts, their numbers with NaN for missing and bad cells, and the bad cells."""
    cells = arrow.array(texts, arrow.string())
    column = describe_text_column(name, cells)
    values, bad = _parse(cells, column.style or PLAIN)
    return column, values.to_numpy(zero_copy_only=False), bad


def _remove_marks(cells: Any) -> Any:
    """Return text with null for the marks of missing values."""
    return compute.if_else(compute.is_in(cells, arrow.array(MISSING_MARKS, cells.type)), None, cells)


def parse_columns(
    columns: Mapping[str, Any], styles: Mapping[str, NumberFormat | None], first: int
) -> tuple[dict[str, Any], list[BadCell]]:
    """Return columns with numbers in place of the text in ``styles``, and the bad cells; ``first`` is the first row.

    Text without a format only loses its marks of missing values. Other columns do not change.
    """
    read, bad = dict(columns), []
    for name, style in styles.items():
        if is_text(columns[name]):
            read[name], wrong = (_remove_marks(columns[name]), []) if style is None else _parse(columns[name], style)
            bad += [BadCell(name, first + row, text) for row, text in wrong]
    return read, bad


def is_text(cells: Any) -> bool:
    """Return whether an Arrow column is text."""
    return bool(arrow.types.is_string(cells.type) or arrow.types.is_large_string(cells.type))


def _parse(cells: Any, style: NumberFormat) -> tuple[Any, list[tuple[int, str]]]:
    """Return text as numbers, with null for missing values and bad cells; and rows and texts of the bad cells."""
    values = _parse_plain(cells, style)
    if values is not None:
        return values, []
    known = _remove_marks(cells)
    values = _parse_plain(known, style)
    if values is not None:
        return values, []
    encoded = known.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    numbers = [parse_number(text, style) for text in texts]
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(np.isin(codes, [code for code, number in enumerate(numbers) if number is None]))
    values = arrow.array(numbers, arrow.float64(), from_pandas=True).take(encoded.indices)  # NaN is missing
    return values, [(int(row), texts[codes[row]]) for row in rows]


def _parse_plain(cells: Any, style: NumberFormat) -> Any:
    """Return cells without separators and signs as numbers, or None if a cell has any or should have a sign."""
    if style.sign:
        return None
    if style.decimal_comma:
        if compute.any(compute.match_substring(cells, ".")).as_py():
            return None
        cells = compute.replace_substring(cells, ",", ".")
    try:
        return cells.cast(arrow.float64())
    except arrow.ArrowInvalid:
        return None


def _find_decimal_mark(columns: Sequence[Any], where: str) -> str:
    """Return the decimal mark that most of the first cells of a file show. Raise InputError if it is ambiguous."""
    n_rows = _SAMPLE_CELLS // max(len(columns), 1) + 1
    cells = [text for column in columns for text in column.slice(0, n_rows).to_pylist()]
    shown = {text: show_decimal_mark(text) for text in cells}
    counts = Counter(shown[text] for text in cells)
    if counts["?"] and counts[","] == counts["."]:
        undecided = next(text for text, mark in shown.items() if mark == "?")
        raise InputError(
            f"{where}: {undecided!r} may have a decimal mark or a thousands separator, and the other cells do not show "
            "which; write numbers without thousands separators, or separate the fields by commas to use decimal points"
        )
    return "," if counts[","] > counts["."] else "."


def _read_blocks(
    file: Any, path: Path, separator: str, header: Sequence[str], positions: Sequence[int], block_bytes: int
) -> Iterator[Any]:
    """Yield blocks of some columns. ``file`` is a file of Arrow, because threads of Arrow read ahead from it.

    These threads may still run when the interpreter ends. Releasing a Python object there would abort the process.
    """
    has_unique_names = len(set(header)) == len(header)
    blocks = csv_reader.open_csv(
        arrow.CompressedInputStream(file, "gzip") if path.suffix.lower() == ".gz" else file,
        # Arrow numbers the rows in its messages only with one thread.
        read_options=csv_reader.ReadOptions(block_size=block_bytes, use_threads=False),
        parse_options=csv_reader.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=csv_reader.ConvertOptions(
            column_types=dict.fromkeys(header, arrow.string()),
            # Arrow selects columns by name, and takes the first of several columns with the same name.
            include_columns=[header[j] for j in positions] if has_unique_names else [],
        ),
    )
    yield from blocks if has_unique_names else (block.select(positions) for block in blocks)


def _may_end_in_quotes(path: Path, last_cell: str) -> bool:
    """Return whether the last cell of a file, in its last column, may begin with a quote that is never closed.

    The cell then contains the rest of the file. A quote in another column leaves too few fields, which Arrow reports.
    """
    if "\n" in last_cell or "\r" in last_cell:
        return True
    end = _read_end(path, 2 * len(last_cell.encode()) + 1)  # a quote inside quotes is written twice
    return b'"' in end and not end.endswith((b"\n", b"\r"))


def _read_end(path: Path, n_bytes: int) -> bytes:
    """Return the last bytes of the text in a file. A gzip file is decompressed, which is fast compared with parsing."""
    with arrow.OSFile(str(path)) as file:
        if path.suffix.lower() != ".gz":
            file.seek(max(0, file.size() - n_bytes))
            return bytes(file.read())
        end, stream = b"", arrow.CompressedInputStream(file, "gzip")
        while data := stream.read(_READ_BYTES):
            end = (end + data)[-n_bytes:]
        return end


def _check_quotes(path: Path, role: str, separator: str) -> None:
    """Raise InputError for a quote that is never closed.

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


def _text_file_error(error: Exception, path: Path, role: str) -> InputError:
    """Return an InputError for an error of Arrow, gzip or the operating system."""
    where, reason = describe_file(role, path), shorten_error(error)
    if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in reason:
        return InputError(f"{where}: the text is not UTF-8 ({reason}); save the file as UTF-8")
    if "Empty CSV" in reason:
        return InputError(f"{where}: the file is empty; it must have a header and rows")
    if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason):
        row, expected, fields = ragged.groups()
        return InputError(
            f"{where}: record {row} must have {expected} fields as in the header (record 1), got {fields}; correct the "
            "line, and quote fields that contain the separator"
        )
    return unreadable_file_error(path, role, error, "gzip" if path.suffix.lower() == ".gz" else "delimited text")
