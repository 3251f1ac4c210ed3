"""Read a file into a table: delimited text here, other formats in ``other_formats``.

Text columns with mostly numbers or dates are read as such. A column is never ignored or encoded as a category because
of a few bad cells: the run stops and names them, or imputes them on request (``--bad-cells impute``).
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError, need
from pyspar.sources.files.header import (
    ARRAY,
    ARRAYS,
    INPUT_SUFFIXES,
    MISSING_MARKS,
    PARQUET,
    TEXT,
    WORKBOOK,
    bad_cells_error,
    check_file,
    check_unique,
    describe_file,
    expected_separator,
    format_of,
    open_text,
    separator_of,
    shorten_error,
    unreadable_file_error,
)
from pyspar.sources.files.number_text import (
    MIN_NUMBER_SHARE,
    PLAIN,
    NumberFormat,
    infer_format,
    is_plain,
    parse_cells,
    parse_number,
)
from pyspar.tables.dates import date_format, read_mostly_dates
from pyspar.tables.inputs import BadCells
from pyspar.tables.other_formats import read_arrays, read_parquet, read_workbook
from pyspar.wording import count_noun, list_some

_MAX_FIELD = 2**27
"""The longest field in characters. A quote that is never closed exceeds it in large files."""
_CHUNK_ROWS = 10_000
"""The rows of text that are searched at once for the decimal mark."""
_MAX_EXACT = 1e9
"""Larger numbers have no reliable thousandths in float64, and are no groups of three digits after one point."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A text column that is read as numbers or dates; cells that are missing or bad are missing values now.

    ``bad`` are rows and texts of the bad cells. ``share`` is the share of numbers among the cells with a value.
    ``n_marked`` numbers have separators or signs, for example ``example``. ``style`` is None for dates.
    """

    values: Any
    bad: tuple[tuple[int, str], ...]
    share: float = 0.0
    style: NumberFormat | None = None
    n_marked: int = 0
    example: str = ""


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """The rows of a file in memory.

    ``notes`` say how the file was read, ``text`` are the text columns that were read as numbers or dates, and
    ``formats`` are the formats of all columns of numbers.
    """

    path: Path
    role: str
    frame: pd.DataFrame
    notes: tuple[str, ...]
    text: dict[str, TextColumn]
    formats: dict[str, NumberFormat]

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    @property
    def where(self) -> str:
        return describe_file(self.role, self.path)

    def check_cells(
        self, used: Collection[str], policy: BadCells = "stop", *, label: str | None = None
    ) -> tuple[str, ...]:
        """Raise InputError for bad cells in columns that are used, or return notes if they are imputed.

        The notes also list numbers that were read without their separators and signs.
        """
        chosen = {name: column for name, column in self.text.items() if name in used}
        cells = [(name, row, text) for name, column in chosen.items() for row, text in column.bad]
        if cells and policy == "stop":
            raise bad_cells_error(cells, self.path, self.role, label=label)
        notes = [
            f"{self.role}: {name}: {column.n_marked:,} numbers with separators or signs, {column.example!r} is "
            f"read as {parse_number(column.example, column.style or PLAIN):g}"
            for name, column in chosen.items()
            if column.n_marked
        ]
        notes += [
            f"{self.role}: {name}: {count_noun(len(column.bad), 'bad cell is', 'bad cells are')} treated as missing "
            f"({list_some(dict.fromkeys(text for _, text in column.bad), 3, max_length=40)})"
            for name, column in chosen.items()
            if column.bad
        ]
        return tuple(notes)


def check_input(path: Path, role: str) -> None:
    """Raise InputError if a file does not exist, is empty, or has an unknown format. Nothing is read."""
    check_file(path, role, INPUT_SUFFIXES)
    if package := format_of(path).package:
        need(package, "cli")


def load_table(
    path: Path, role: str, *, as_text: Collection[str] = (), verbatim: str | None = None,
    skip: Collection[str] = (), expected: Mapping[str, NumberFormat] | None = None,
) -> LoadedTable:  # fmt: skip
    """Check and read a file, and read its text columns with mostly numbers or dates as such, except ``skip``.

    ``as_text`` and ``verbatim`` are columns that stay text, as in :func:`read_table`.
    """
    check_input(path, role)
    frame, notes = read_table(path, role, as_text=as_text, verbatim=verbatim)
    skip = {*as_text, *skip, verbatim or ""}
    frame, text, formats = convert_text_columns(frame, path, skip=skip, expected=expected)
    return LoadedTable(path, role, frame, notes, text, formats)


def read_table(
    path: Path, role: str, *, as_text: Collection[str] = (), verbatim: str | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read a file into a data frame with unique column names and at least one row; return it with notes.

    In delimited text, the columns ``as_text`` stay text even if they look like numbers, so that ``007`` stays ``007``.
    The column ``verbatim`` is kept unchanged, including the marks of missing values.
    """
    where = describe_file(role, path)
    frame, notes = _READERS[format_of(path)](path, role, as_text=as_text, verbatim=verbatim)
    frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    check_unique(frame.columns, where)
    if len(frame) == 0:
        raise InputError(f"{where}: the file has {len(frame.columns)} columns and no rows")
    return frame, notes


def read_cells(path: Path, names: Collection[str], *, chunksize: int | None = None) -> Any:
    """Return columns of delimited text as they are in the file, without missing values; or their chunks of rows."""
    return pd.read_csv(
        path, sep=separator_of(path), encoding="utf-8-sig", index_col=False, dtype=str, keep_default_na=False,
        usecols=lambda name: name in names, chunksize=chunksize,
    )  # fmt: skip


def describe_separator(path: Path, role: str, separator: str) -> tuple[str, ...]:
    """Return a note if the separator is not the one of the suffix."""
    expected = expected_separator(path)
    if separator == expected:
        return ()
    decimal = "; decimal commas are read as decimal points" if separator == ";" else ""
    return (f"{role}: the fields are separated by {separator!r} instead of {expected!r}{decimal}",)


def _read_delimited(
    path: Path, role: str, *, as_text: Collection[str], verbatim: str | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read CSV or TSV, gzipped or not.

    pandas silently pads short records and shifts long ones, so the fields of each record are counted first.
    """
    where = describe_file(role, path)
    try:
        separator = separator_of(path)
        header = _read_header(path, role, separator)
        marks = {name: MISSING_MARKS for name in header if name != verbatim}
        frame = pd.read_csv(
            path, sep=separator, encoding="utf-8-sig", index_col=False, low_memory=False,
            keep_default_na=False, na_values=marks,
            dtype={name: str for name in {*as_text, verbatim} if name in header},
        )  # fmt: skip
    except (pd.errors.ParserError, csv.Error) as error:
        if "out of memory" in str(error):
            raise MemoryError(str(error)) from error
        reason = shorten_error(error)
        raise InputError(f"{where}: cannot parse a record ({reason}); look for a quote that is never closed") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: the text is not UTF-8 (byte 0x{error.object[error.start]:02x}); save the file as UTF-8"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile, PermissionError) as error:
        raise unreadable_file_error(path, role, error, "gzip") from error
    return frame, describe_separator(path, role, separator)


_READERS = {
    TEXT: _read_delimited,
    PARQUET: read_parquet,
    WORKBOOK: read_workbook,
    ARRAY: read_arrays,
    ARRAYS: read_arrays,
}
"""The reader of each format: path, role, columns that stay text, and the column that is kept unchanged."""


def _read_header(path: Path, role: str, separator: str) -> list[str]:
    """Return the header; raise InputError for a file without rows, and for the first record of another width."""
    where = describe_file(role, path)
    header: list[str] = []
    records, line = 0, 1
    limit = csv.field_size_limit(_MAX_FIELD)
    try:
        with open_text(path) as file:
            for fields in (reader := csv.reader(file, delimiter=separator)):
                start, line = line, reader.line_num + 1
                if not header:
                    header = fields  # empty for a blank line, which pandas skips too
                elif fields and len(fields) != len(header):
                    raise InputError(
                        f"{where}: line {start} must have {len(header)} fields as in the header, got {len(fields)}; "
                        "correct the line, and quote fields that contain the separator"
                    )
                else:
                    records += bool(fields)
    finally:
        csv.field_size_limit(limit)
    check_unique([name for name in header if name], where)
    if records == 0:
        missing = "has a header and no rows" if header else "is empty; it must have a header and rows"
        raise InputError(f"{where}: the file {missing}")
    return header


def read_number_cells(
    column: pd.Series[Any], *, prefer_comma: bool = False, decimal_comma: bool | None = None
) -> TextColumn:
    """Read a column of text, or of text and numbers, as numbers; with ``decimal_comma`` the decimal mark is known."""
    cells = column.to_numpy(dtype=object, na_value=None)
    numeric = np.array([isinstance(cell, (int, float, np.number)) for cell in cells], dtype=bool)
    counts = Counter(str(cell) for cell, is_number in zip(cells, numeric) if cell is not None and not is_number)
    style = infer_format(counts, prefer_comma=prefer_comma, decimal_comma=decimal_comma)
    numbers, bad_texts, share = parse_cells(counts, style)
    numbers |= dict.fromkeys(bad_texts, np.nan)
    values = [
        cell if is_number else np.nan if cell is None else numbers[str(cell)] for cell, is_number in zip(cells, numeric)
    ]
    unreadable = set(bad_texts)
    bad = tuple((row, str(cell)) for row, cell in enumerate(cells) if not numeric[row] and str(cell) in unreadable)
    share = (share * counts.total() + numeric.sum()) / max(counts.total() + numeric.sum(), 1)
    marked = [text for text, number in numbers.items() if not np.isnan(number) and not is_plain(text)]
    if prefer_comma and style == NumberFormat(decimal_comma=True):
        marked = []  # decimal commas are usual in such a file
    n_marked = sum(counts[text] for text in marked)
    return TextColumn(np.array(values, dtype=np.float64), bad, float(share), style, n_marked, next(iter(marked), ""))


def convert_text_columns(
    table: pd.DataFrame, path: Path, *, skip: Collection[str] = (), expected: Mapping[str, NumberFormat] | None = None
) -> tuple[pd.DataFrame, dict[str, TextColumn], dict[str, NumberFormat]]:
    """Read text columns with mostly numbers as numbers, and set bad cells among numbers and dates to missing.

    Return the table, the converted columns, and the formats of all columns of numbers. ``path`` is the file of the
    table. If its format has types, text that consists of whole numbers only is a code and stays text. ``expected`` are
    the formats of the source. A decimal mark that no cell of a column proves is that of the source if it is proven
    there, otherwise that of the other columns, otherwise a comma if semicolons separate the columns.
    """
    types, is_text_file = pd.api.types, format_of(path) == TEXT
    formats = {
        name: PLAIN for name in table.columns if types.is_numeric_dtype(table[name]) and table[name].notna().any()
    }
    if is_text_file:
        floats = [name for name in table.columns if types.is_float_dtype(table[name].dtype) and name not in skip]
        formats |= _find_decimal_points(table[floats], path)
    prefer_comma = is_text_file and separator_of(path) == ";"
    read = {
        str(name): _read_text_column(column, prefer_comma, is_typed=not format_of(path).has_header)
        for name, column in table.items()
        if name not in skip
    }
    converted = {name: cells for name, cells in read.items() if cells is not None}
    formats |= {name: cells.style for name, cells in converted.items() if cells.style is not None}
    for name, comma in _correct_decimal_marks(formats, expected or {}).items():
        texts = table[name] if name in converted else read_cells(path, [name])[name].replace("", None)
        converted[name] = read_number_cells(texts, decimal_comma=comma)
        formats[name] = converted[name].style or PLAIN
    table = table.copy(deep=False)
    for name, cells in converted.items():
        table[name] = cells.values
    return table, converted, formats


def _correct_decimal_marks(
    formats: Mapping[str, NumberFormat], expected: Mapping[str, NumberFormat]
) -> dict[str, bool]:
    """Return the columns whose decimal mark no cell proves and that need the other one; True is a comma."""
    marks = {style.decimal_comma for style in formats.values() if style.proof}
    commas = {}
    for name, style in formats.items():
        source = expected.get(name, PLAIN)
        comma = source.decimal_comma if source.proof else marks == {True} or style.decimal_comma
        if comma != style.decimal_comma and style.is_unproven:
            commas[name] = comma
    return commas


def _read_text_column(column: pd.Series[Any], prefer_comma: bool, *, is_typed: bool) -> TextColumn | None:
    """Return a text column of mostly numbers or dates as such, otherwise None."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    if pd.api.types.infer_dtype(column, skipna=True) not in ("string", "mixed-integer", "mixed"):
        return None
    if is_typed and column.dropna().map(lambda cell: isinstance(cell, str) and cell.isdigit()).all():
        return None
    cells = read_number_cells(column, prefer_comma=prefer_comma)
    if cells.style is not None and cells.share > MIN_NUMBER_SHARE:
        return cells
    if date_format(column) is not None or (dates := read_mostly_dates(column)) is None:
        return None
    return TextColumn(dates[0], tuple((int(row), str(column.iloc[row])) for row in dates[1]))


def _find_decimal_points(numbers: pd.DataFrame, path: Path) -> dict[str, NumberFormat]:
    """Return the formats of columns that were read as floats, with a cell that proves the point, or an ambiguous one.

    '1.234' is 1234 with a decimal comma. Values below 1 or from 1,000 on, or with four decimals, exclude it. Otherwise
    the text of the file decides; it is read until a cell of every column proves the point.
    """
    formats = {}
    for name in numbers.columns:
        values = numbers[name].to_numpy(dtype=np.float64, na_value=np.nan)
        fractions = values[np.isfinite(values) & (values != np.floor(values)) & (np.abs(values) < _MAX_EXACT)]
        thousandths = fractions * 1000.0
        is_group = (np.abs(fractions) >= 1.0) & (np.abs(fractions) < 1000.0)
        is_group &= np.abs(thousandths - np.round(thousandths)) < 1e-6
        formats[name] = PLAIN if is_group.all() else NumberFormat(proof=f"{fractions[~is_group][0]:g}")
    unclear = {name for name, style in formats.items() if not style.proof}
    if not unclear:
        return formats
    with read_cells(path, unclear, chunksize=_CHUNK_ROWS) as chunks:
        for cells in chunks:
            for name in unclear:
                style = infer_format(Counter(cells[name]), decimal_comma=False)
                formats[name] = replace(style, ambiguous=formats[name].ambiguous or style.ambiguous)
            unclear = {name for name in unclear if not formats[name].proof}
            if not unclear:
                break
    return formats
