"""Load a table: read text columns with mostly numbers or dates as such, and name the cells that are neither.

A column is never ignored or encoded as a category because of a few bad cells. The run stops and names them, or imputes
them on request (``--bad-cells impute``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.sources.files.header import (
    bad_cells_error,
    describe_file,
    has_header,
    separator_of,
    suffix_of,
    suggest_drop,
)
from pyspar.sources.files.number_text import MIN_NUMBER_SHARE, PLAIN, NumberFormat, infer_format
from pyspar.tables.encode import NumberCells, date_format, read_mostly_dates, read_number_cells
from pyspar.tables.read import check_input, read_cells, read_table
from pyspar.tables.request import BadCells
from pyspar.wording import list_some

_SAMPLE_ROWS = 1000
"""The rows of which the text shows how a column of floats is written."""
_MAX_EXACT = 1e9
"""Larger numbers have no reliable thousandths in float64, and are no groups of three digits after one point."""


@dataclass(frozen=True)
class TextColumn:
    """A text column that was read as numbers or dates.

    ``bad`` are rows and texts of the bad cells, which are missing values now. ``n_marked`` numbers have separators or
    signs, for example ``example``, which was read as ``number``. ``style`` is None for dates.
    """

    name: str
    bad: tuple[tuple[int, str], ...]
    style: NumberFormat | None = None
    n_marked: int = 0
    example: str = ""
    number: float = 0.0


@dataclass(frozen=True, eq=False)
class Table:
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

    def check_cells(
        self, used: Collection[str], policy: BadCells = "stop", *, label: str | None = None
    ) -> tuple[str, ...]:
        """Raise InputError for bad cells in columns that are used, or return notes if they are imputed.

        The notes also list numbers that were read without their separators and signs.
        """
        chosen = [column for name, column in self.text.items() if name in used]
        cells = [(column.name, row, text) for column in chosen for row, text in column.bad]
        if cells and policy == "stop":
            raise bad_cells_error(cells, self.path, self.role, label=label)
        notes = [
            f"{self.role}: {column.name}: {column.n_marked:,} numbers with separators or signs, {column.example!r} is "
            f"read as {column.number:g}"
            for column in chosen
            if column.n_marked
        ]
        notes += [
            f"{self.role}: {column.name}: {len(column.bad):,} bad cells are treated as missing "
            f"({list_some(dict.fromkeys(text for _, text in column.bad), 3, max_length=40)})"
            for column in chosen
            if column.bad
        ]
        return tuple(notes)

    def check_formats(
        self, source: Mapping[str, NumberFormat], names: Iterable[str], *, label: str | None = None
    ) -> None:
        """Raise InputError if numbers cannot be compared with those of the source, as :func:`check_formats` does."""
        check_formats(source, self.formats, names, self.path, self.role, label)


def load_table(
    path: Path,
    role: str,
    *,
    as_text: Collection[str] = (),
    verbatim: str | None = None,
    skip: Collection[str] = (),
    expected: Mapping[str, NumberFormat] | None = None,
) -> Table:
    """Check and read a file, and read its text columns with mostly numbers or dates as such, except ``skip``.

    ``as_text`` and ``verbatim`` are columns that stay text, as in :func:`pyspar.tables.read.read_table`.
    """
    check_input(path, role)
    frame, notes = read_table(path, role, as_text=as_text, verbatim=verbatim)
    skip = {*as_text, *skip, verbatim or ""}
    frame, text, formats = convert_text_columns(frame, path, skip=skip, expected=expected)
    return Table(path, role, frame, notes, text, formats)


def convert_text_columns(
    table: pd.DataFrame, path: Path, *, skip: Collection[str] = (), expected: Mapping[str, NumberFormat] | None = None
) -> tuple[pd.DataFrame, dict[str, TextColumn], dict[str, NumberFormat]]:
    """Read text columns with mostly numbers as numbers, and set bad cells among numbers and dates to missing.

    Return the table, the converted columns, and the formats of all columns of numbers. ``path`` is the file of the
    table. If its format has types, text that consists of whole numbers only is a code and stays text. ``expected`` are
    the formats of the source. A decimal mark that no cell of a column proves is that of the source if it is proven
    there, otherwise that of the other columns, otherwise a comma if semicolons separate the columns.
    """
    typed, delimited = not has_header(path), has_header(path) and suffix_of(path) != ".xlsx"
    prefer_comma = delimited and separator_of(path) == ";"
    expected = expected or {}
    converted: dict[str, TextColumn] = {}
    table = table.copy(deep=False)
    numbers = [name for name in table.columns if name not in skip and pd.api.types.is_float_dtype(table[name].dtype)]
    numeric = [name for name in table.columns if pd.api.types.is_numeric_dtype(table[name].dtype)]
    formats = {name: PLAIN for name in numeric if table[name].notna().any()}
    formats |= _find_decimal_points(table[numbers], path) if delimited else {}
    texts: dict[str, pd.Series[Any]] = {}
    for name in table.columns:
        if name in skip or not _has_text(table[name]):
            continue
        column = table[name]
        if typed and column.dropna().map(lambda cell: isinstance(cell, str) and cell.isdigit()).all():
            continue
        cells = read_number_cells(column, prefer_comma=prefer_comma)
        if cells.share > MIN_NUMBER_SHARE:
            texts[name], formats[name] = column, cells.style
            table[name], converted[name] = cells.values, _describe_cells(name, column, cells, prefer_comma)
        elif date_format(column) is None and (dates := read_mostly_dates(column)) is not None:
            bad = tuple((int(row), str(column.iloc[row])) for row in dates[1])
            converted[name] = TextColumn(name, bad)
            table[name] = dates[0]
    marks = {style.decimal_comma for style in formats.values() if style.proof}
    for name, style in list(formats.items()):
        source = expected.get(name, PLAIN)
        comma = source.decimal_comma if source.proof else marks == {True} or style.decimal_comma
        if style.is_unproven and comma != style.decimal_comma:
            column = texts.get(name) if name in texts else read_cells(path, [name])[name].replace("", None)
            cells = read_number_cells(column, decimal_comma=comma)
            formats[name], table[name] = cells.style, cells.values
            converted[name] = _describe_cells(name, column, cells, False)
    return table, converted, formats


def _describe_cells(name: str, column: pd.Series[Any], cells: NumberCells, prefer_comma: bool) -> TextColumn:
    """Return the account of a text column. Decimal commas are no remark where they are usual (``prefer_comma``)."""
    bad = tuple((int(row), str(column.iloc[row])) for row in cells.bad)
    n_marked = cells.n_marked
    if prefer_comma and cells.style == NumberFormat(decimal_comma=True):
        n_marked = 0
    first = 0.0 if not n_marked else float(cells.values[(column == cells.example).to_numpy().argmax()])
    return TextColumn(name, bad, cells.style, n_marked, cells.example, first)


def _find_decimal_points(numbers: pd.DataFrame, path: Path) -> dict[str, NumberFormat]:
    """Return the formats of columns that were read as floats, with a cell that proves the point, or an ambiguous one.

    '1.234' is 1234 with a decimal comma. Values below 1 or from 1,000 on, or with four decimals, exclude it; otherwise
    the first cells of the file decide.
    """
    formats, unclear = {}, []
    for name in numbers.columns:
        values = numbers[name].to_numpy(dtype=np.float64, na_value=np.nan)
        fractions = values[np.isfinite(values) & (values != np.floor(values)) & (np.abs(values) < _MAX_EXACT)]
        thousandths = fractions * 1000.0
        is_group = (np.abs(fractions) >= 1.0) & (np.abs(fractions) < 1000.0)
        is_group &= np.abs(thousandths - np.round(thousandths)) < 1e-6
        if is_group.all():
            unclear.append(name)
        else:
            formats[name] = NumberFormat(proof=f"{fractions[~is_group][0]:g}")
    if unclear:
        cells = read_cells(path, unclear, limit=_SAMPLE_ROWS)
        formats |= {name: infer_format(Counter(cells[name]), decimal_comma=False) for name in cells.columns}
    return formats


def check_formats(
    source: Mapping[str, NumberFormat],
    target: Mapping[str, NumberFormat],
    names: Iterable[str],
    path: Path,
    role: str = "target",
    label: str | None = None,
) -> None:
    """Raise InputError if the numbers of a column cannot be compared with those of the source.

    These are percent signs in one file only, different currencies, different decimal marks of which one is a guess, and
    ambiguous cells with different marks ('3,447' and '2.752') that no other cell explains. ``label`` is the label.
    """
    for name in names:
        if name not in source or name not in target:
            continue
        ours, theirs = source[name], target[name]
        where, fix = describe_file(role, path, name), "write the column in the same way in both files"
        fix += _suggest_ignoring(name, role, label)
        if ours.percent != theirs.percent:
            place = f"the {role}" if theirs.percent else "the source"
            raise InputError(f"{where}: percent signs only in {place}; {fix}")
        if ours.currency and theirs.currency and ours.currency != theirs.currency:
            raise InputError(f"{where}: the currency is {theirs.currency}, in the source {ours.currency}; {fix}")
        has_guess = (ours.is_unproven and (theirs.proof or theirs.ambiguous)) or (theirs.is_unproven and ours.proof)
        are_guesses = ours.is_unproven and theirs.is_unproven and ours.ambiguous_mark != theirs.ambiguous_mark
        if are_guesses or (ours.decimal_comma != theirs.decimal_comma and has_guess):
            raise InputError(
                f"{where}: {_describe_mark(theirs)}, but in the source {_describe_mark(ours)}, so that one of them may "
                f"be read a thousand times too large or too small; {fix}"
            )


def _suggest_ignoring(name: str, role: str, label: str | None) -> str:
    """Return how the command that reads a file of this role can ignore a column, or '' if it cannot."""
    if name == label:
        return {"target": ", or remove it from the target", "file": ", or leave out --label"}.get(role, "")
    return f", or {suggest_drop([name])}" if role in ("source", "target") else ""


def _describe_mark(style: NumberFormat) -> str:
    mark = "comma" if style.decimal_comma else "point"
    reading = f"is read with a decimal {mark}"
    if style.proof:
        return f"{style.proof!r} {reading}"
    return f"{style.ambiguous!r} {reading}, which no cell proves"


def _has_text(column: pd.Series[Any]) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return pd.api.types.infer_dtype(column, skipna=True) in ("string", "mixed-integer", "mixed")
