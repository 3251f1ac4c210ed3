"""Text columns that contain mostly numbers or dates: read them as such, and name the cells that are neither.

A column is never ignored or encoded as a category because of a few bad cells. The run stops and names them, or imputes
them on request (``--bad-cells impute``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from pyspar.sources.files.number_text import MIN_NUMBER_SHARE, NumberFormat
from pyspar.tables.encode import date_format, read_mostly_dates, read_number_cells
from pyspar.tables.request import BadCells
from pyspar.wording import list_some


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


def convert_text_columns(
    table: pd.DataFrame, path: Path, *, skip: Collection[str] = ()
) -> tuple[pd.DataFrame, dict[str, TextColumn]]:
    """Read text columns with mostly numbers as numbers, and set bad cells among numbers and dates to missing.

    ``path`` is the file of the table. If it separates its columns by semicolons, a comma that could be either is a
    decimal comma. If its format has types, text that consists of whole numbers only is a code and stays text.
    """
    typed = not has_header(path)
    prefer_comma = not typed and suffix_of(path) != ".xlsx" and separator_of(path) == ";"
    converted: dict[str, TextColumn] = {}
    table = table.copy(deep=False)
    for name in table.columns:
        if name in skip or not _has_text(table[name]):
            continue
        column = table[name]
        if typed and column.dropna().map(lambda cell: isinstance(cell, str) and cell.isdigit()).all():
            continue
        cells = read_number_cells(column, prefer_comma=prefer_comma)
        if cells.share > MIN_NUMBER_SHARE:
            bad = tuple((int(row), str(column.iloc[row])) for row in cells.bad)
            first = 0.0 if not cells.n_marked else float(cells.values[(column == cells.example).to_numpy().argmax()])
            converted[name] = TextColumn(name, bad, cells.style, cells.n_marked, cells.example, first)
            table[name] = cells.values
        elif date_format(column) is None and (dates := read_mostly_dates(column)) is not None:
            bad = tuple((int(row), str(column.iloc[row])) for row in dates[1])
            converted[name] = TextColumn(name, bad)
            table[name] = dates[0]
    return table, converted


def check_cells(
    columns: Mapping[str, TextColumn],
    used: Collection[str],
    path: Path,
    role: str,
    policy: BadCells,
    *,
    label: str | None = None,
) -> tuple[str, ...]:
    """Raise InputError for bad cells in columns that are used, or return notes if they are imputed.

    The notes also list numbers that were read without their separators and signs.
    """
    chosen = [column for name, column in columns.items() if name in used]
    cells = [(column.name, row, text) for column in chosen for row, text in column.bad]
    if cells and policy == "stop":
        raise bad_cells_error(cells, path, role, label=label)
    notes = [
        f"{role}: {column.name}: {column.n_marked:,} numbers with separators or signs, {column.example!r} is read as "
        f"{column.number:g}"
        for column in chosen
        if column.n_marked
    ]
    notes += [
        f"{role}: {column.name}: {len(column.bad):,} bad cells are treated as missing "
        f"({list_some(dict.fromkeys(text for _, text in column.bad), 3, max_length=40)})"
        for column in chosen
        if column.bad
    ]
    return tuple(notes)


def check_percent(
    source: Mapping[str, NumberFormat | None],
    target: Mapping[str, NumberFormat | None],
    names: Iterable[str],
    path: Path,
) -> None:
    """Raise InputError if a column has percent signs in one file only, because its units differ then."""
    for name in names:
        styles = (source.get(name), target.get(name))
        if sum(style is not None and style.percent for style in styles) == 1:
            raise InputError(
                f"{describe_file('target', path, name)}: percent signs in one of source and target only; write the "
                f"column in the same way in both files, or {suggest_drop([name])}"
            )


def _has_text(column: pd.Series[Any]) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return pd.api.types.infer_dtype(column, skipna=True) in ("string", "mixed-integer", "mixed")
