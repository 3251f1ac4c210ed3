"""Delimited text (CSV, TSV, gzipped or not) as a stream of blocks.

Types are inferred from the first block. Whole numbers are read as float64 from then on, so that a first fraction far
down is no surprise; a word among numbers is refused with its row.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.sources.files.names import check_names
from pyspar.sources.files.parquet import column_of, converted
from pyspar.sources.files.rows import Column, Part, Rows, Wanted

MISSING = ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"]
"""What stands for a missing value, but not in a column that is kept to the letter."""

_SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True, eq=False)
class TextRows(Rows):
    """Rows of one delimited text file."""

    separator: str
    point: str

    def _parts(self, wanted: Wanted) -> Iterator[Part]:
        arrow: Any = need("pyarrow", "cli")
        boolean = {column.name for column in self.columns if column.dtype == np.bool_}
        types = {name: arrow.bool_() if name in boolean else arrow.float64() for name in wanted.names}
        if wanted.keep is not None:
            types[wanted.keep] = arrow.string()
        first = 0
        try:
            with _Counting(self.path) as file:
                for batch in _reader(file, self.separator, self.point, self.batch_bytes, types):
                    yield converted(batch, wanted, self.role, self.path, first, file.position)
                    first += batch.num_rows
                if file.quotes and first + 1 < file.lines:
                    _refuse_open_quote(self.path, self.role, self.separator)
        except _broken_kinds() as error:
            raise _broken(error, self.path, self.role, self.names) from error


def open_text(path: Path, role: str, batch_bytes: int) -> TextRows:
    """Read the header and infer the types from the first block."""
    try:
        separator = separator_of(path)
        point, schema = _inferred(path, separator, batch_bytes)
    except _broken_kinds() as error:
        raise _broken(error, path, role, ()) from error
    check_names([name for name in schema.names if name], f"{role} {str(path)!r}")
    columns = tuple(_widened(column_of(field)) for field in schema)
    return TextRows(path, role, columns, None, path.stat().st_size, batch_bytes, separator, point)


def separator_of(path: Path) -> str:
    """Return what separates the fields: what the suffix says, unless another one is in the header and that is not."""
    said = "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes[-2:]] else ","
    with text_of(path) as file:
        header = next((line for line in file if line.strip()), "")
    fields = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in _SEPARATORS}
    if fields[said] > 1:
        return said
    most = max(fields, key=lambda mark: fields[mark])
    return most if fields[most] > 1 else said


def text_of(path: Path) -> IO[str]:
    """Open text, gzipped or not; a byte order mark is not part of the first name."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


class _Counting:
    """A file for Arrow that counts quotes and lines as they pass, and knows how far into the file on disk it is."""

    closed = False

    def __init__(self, path: Path) -> None:
        self._raw = path.open("rb")
        self._bytes: Any = gzip.GzipFile(fileobj=self._raw) if path.suffix.lower() == ".gz" else self._raw
        self.quotes = self.lines = 0

    def __enter__(self) -> _Counting:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def position(self) -> int:
        return self._raw.tell()

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._bytes.read(size)
        self.quotes += data.count(b'"')
        self.lines += data.count(b"\n")
        return data

    def close(self) -> None:
        self.closed = True
        self._bytes.close()
        self._raw.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def _inferred(path: Path, separator: str, block: int) -> tuple[str, Any]:
    """Return the decimal point and the types; a semicolon between fields is there to leave the comma to decimals."""
    found = []
    for point in (".", ",") if separator == ";" else (".",):
        with _Counting(path) as file:
            schema = _reader(file, separator, point, block, None).schema
        found.append((sum(column_of(field).dtype is not None for field in schema), point, schema))
    _, point, schema = max(found, key=lambda one: one[0])
    return point, schema


def _reader(file: _Counting, separator: str, point: str, block: int, types: dict[str, Any] | None) -> Any:
    text: Any = need("pyarrow.csv", "cli")
    return text.open_csv(
        need("pyarrow", "cli").PythonFile(file, mode="r"),
        # One thread, because only then are rows numbered in messages; the parser is not what takes the time.
        read_options=text.ReadOptions(block_size=block, use_threads=False),
        parse_options=text.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=text.ConvertOptions(
            null_values=MISSING, decimal_point=point, column_types=types,
            include_columns=None if types is None else list(types),
        ),
    )  # fmt: skip


def _widened(column: Column) -> Column:
    """Whole numbers become float64, and so does a column without any value so far: numbers may follow."""
    whole = column.kind == "null" or (column.dtype is not None and column.dtype.kind in "iu")
    return Column(column.name, np.dtype(np.float64), column.kind) if whole else column


def _refuse_open_quote(path: Path, role: str, separator: str) -> None:
    """Look for a quote that never closes, in a file with fewer records than lines.

    Arrow takes the rest of the file for the text in that quote, and rows would be lost without a word.
    """
    line = 0
    with text_of(path) as file:
        try:
            for record in (reader := csv.reader(file, delimiter=separator, strict=True)):
                line = reader.line_num if record else line
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise InputError(
                    f"{role} {str(path)!r}, after line {line}: expected every quote to be closed. Got the end of the "
                    "file inside one; look for a quote too many."
                ) from error


def _broken_kinds() -> tuple[type[Exception], ...]:
    return (need("pyarrow", "cli").ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)


def _broken(error: Exception, path: Path, role: str, names: tuple[str, ...]) -> InputError:
    """Say in our words what Arrow says in its own."""
    where, said = f"{role} {str(path)!r}", " ".join(str(error).split())
    if isinstance(error, InputError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return InputError(f"{where}: expected text in UTF-8. Got a byte that is not ({said}); save the file as UTF-8.")
    if "Empty CSV" in said:
        return InputError(f"{where}: expected a header and rows. Got an empty file.")
    if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said):
        row, expected, got = ragged.groups()
        return InputError(
            f"{where}, record {row}: expected {expected} fields, as in the header (record 1). Got {got}; mend that "
            "line, and quote fields that hold the separator."
        )
    if wrong := re.search(r"In CSV column #(\d+):(?: Row #(\d+):)? .*?invalid value (.*)$", said):
        column, row, value = wrong.groups()
        name = names[int(column)] if int(column) < len(names) else column
        place = f" in record {row}" if row else ""
        return InputError(
            f"{where}, column {name!r}: expected numbers, as in the first rows. Got {value}{place} (the header is "
            "record 1); mend it, or choose other columns."
        )
    if isinstance(error, PermissionError):
        return InputError(f"{where}: expected a file that may be read. Got {error.strerror}.")
    what = "a whole gzip file" if path.suffix.lower() == ".gz" else "delimited text"
    return InputError(f"{where}: expected {what}. Got a broken one ({said[:200]}); save it again.")
