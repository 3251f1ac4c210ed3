"""Cells of files: text as numbers, dates and missing values, and messages that name file, column, row and cell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyspar.errors import InputError, need
from pyspar.text import count_noun, list_some, suggest_name

arrow, compute = need("pyarrow", "cli"), need("pyarrow.compute", "cli")

MISSING_MARKS = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "Null", "None",
    "na", "n.a.", "N.A.", "-", "--", "?", ".",
)  # fmt: skip
"""Text that is a missing value in every column except the ids. ``--na`` adds others."""
MAX_VALUE = 1e60  # the estimators refuse larger values
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(inf|Inf|infinity)$"
_LIKE_NUMBER = r"^[-+(]?\s?\p{Sc}?\s?[-+]?(\d{1,3}([.,' \x{a0}]\d{3})+|\d+)?([.,]\d*)?([eE][-+]?\d+)?\s?(%|\p{Sc})?\)?$"
"""Numbers in any notation. A column with mostly such cells is numeric, and those with signs or separators are bad."""
_DATE = r"^(\d{4}-\d{1,2}-\d{1,2}|(?:1[89]|2[01])\d\d-\d\d|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4})((?:[ T].*)?)$"
"""Dates as YYYY-MM-DD, YYYY-MM, YYYY/MM/DD or DD.MM.YYYY, with or without a time. 03/04/2021 is not read."""


class ReadOptions(NamedTuple):
    """How cells are written: the separator (None: from the header), the decimal mark, and further missing marks."""

    sep: str | None = None
    decimal: str | None = None
    na: tuple[str, ...] = ()


PLAIN = ReadOptions()


class BadCell(NamedTuple):
    """A cell that is neither a value of the kind of its column nor missing."""

    column: str
    row: int
    text: str


def suffix_of(path: Path) -> str:
    """Return the suffix that determines the format, in lower case.

    >>> suffix_of(Path("rows.2024.CSV.gz"))
    '.csv.gz'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def describe_file(role: str, path: Path, column: str | None = None) -> str:
    """Return the start of a message about a file."""
    return f"{role} {str(path)!r}" + ("" if column is None else f", column {column!r}")


def describe_rows(rows: Sequence[int], path: Path) -> str:
    """Return the first five row numbers: as a spreadsheet shows the file without empty lines, and as data rows.

    >>> describe_rows([3, 10], Path("homes.csv"))
    'rows 5, 12 (the header is row 1, empty lines do not count; data rows 3, 10 counted from 0)'
    """
    plural, more = "" if len(rows) == 1 else "s", ", ..." if len(rows) > 5 else ""
    data = ", ".join(str(row) for row in rows[:5]) + more
    if suffix_of(path) in ("", ".parquet", ".npy"):  # not shown by a spreadsheet; a folder has Parquet files
        return f"row{plural} {data} (counted from 0)"
    shown = ", ".join(str(row + 2) for row in rows[:5]) + more
    empty = "" if suffix_of(path) == ".xlsx" else ", empty lines do not count"
    return f"row{plural} {shown} (the header is row 1{empty}; data row{plural} {data} counted from 0)"


def suggest_column(name: str, names: Sequence[str]) -> str:
    """Return the fix for a column that does not exist: another separator, similar names, or all names."""
    if joined := [other for other in names if name in re.split(r"[\s\"']*[,;|\t][\s\"']*", other.strip("\"' "))]:
        return f"the separator may be wrong: {list_some(joined[:1])} is one column; pass the right one with --sep"
    return suggest_name(name, names) or f"the columns are {list_some(names, 12)}"


def bad_cells_error(cells: Sequence[BadCell], file: Any, fix: str = "") -> InputError:
    """Return an InputError that names the first three bad cells of an open file, and the options that help."""
    listed = "; ".join(
        f"{text[:40]!r} in column {name!r}, {describe_rows([row], file.path)}" for name, row, text in cells[:3]
    )
    texts, column = [cell.text for cell in cells], shlex.quote(cells[0].column)
    hint = ""
    if file.options.decimal != "," and any(re.fullmatch(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+", text) for text in texts):
        hint = "if commas are decimal marks, pass --decimal ,; if they separate thousands, remove them; "
    elif file.options.decimal == "," and any(re.fullmatch(r"[-+]?[\d,]+\.\d+", text) for text in texts):
        hint = "if points are decimal marks, leave out --decimal ,; if they separate thousands, remove them; "
    elif any(re.search(r"[%$€£¥]", text) for text in texts):
        hint = "write numbers without currency and percent signs; "
    mark = shlex.quote(texts[0]) if len(texts[0]) <= 20 else "TEXT"
    fix = fix or (
        f"correct the file; pass --bad-cells impute to treat such cells as missing, --na {mark} if this text means "
        f"missing, --category {column} if the column has categories, or --drop {column}"
    )
    more = f"; and {len(cells) - 3:,} more" if len(cells) > 3 else ""
    return InputError(
        f"{describe_file(file.role, file.path)}: {count_noun(len(cells), 'bad cell')} among numbers or dates: "
        f"{listed}{more}; {hint}{fix}"
    )


def is_number(kind: str) -> bool:
    """Return whether cells of a kind become numbers: numbers, truth values and dates."""
    return kind in ("number", "float32", "truth", "date")


def as_text(cells: Any, options: ReadOptions) -> Any:
    """Return text cells without spaces at the ends, with null for the marks of missing values; None for other types."""
    cells = cells.combine_chunks() if isinstance(cells, arrow.ChunkedArray) else cells
    cells = cells.dictionary_decode() if arrow.types.is_dictionary(cells.type) else cells
    if str(cells.type) not in ("string", "large_string", "string_view"):
        return None
    cells = compute.utf8_trim_whitespace(cells.cast(arrow.large_string()))
    marks = arrow.array([*MISSING_MARKS, *options.na], cells.type)
    return compute.if_else(compute.is_in(cells, marks), None, cells)


def infer_kind(cells: Any, options: ReadOptions) -> str:
    """Return the kind of a column: number, float32, truth, date, category, empty, or another type."""
    types, kind = arrow.types, cells.type
    if types.is_null(kind) or cells.null_count == len(cells):
        return "empty"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "float32" if types.is_float32(kind) or types.is_float16(kind) else "number"
    if types.is_boolean(kind) or types.is_timestamp(kind) or types.is_date(kind):
        return "truth" if types.is_boolean(kind) else "date"
    text = as_text(cells, options)
    if text is None:
        return f"type {kind}"
    known = text.drop_null()
    if not len(known):
        return "empty"
    if not _numbers_of_text(known, "number", options)[1]:
        return "number"
    found = [compute.sum(compute.match_substring_regex(known, each)).as_py() for each in (_DATE, _LIKE_NUMBER)]
    if compute.all(compute.is_in(compute.utf8_lower(known), arrow.array(["true", "false"], known.type))).as_py():
        return "truth"
    return "date" if 2 * found[0] > len(known) else "number" if 2 * found[1] > len(known) else "category"


def to_numbers(cells: Any, kind: str, options: ReadOptions) -> tuple[Any, list[tuple[int, str]]]:
    """Return cells of a kind as float64 with NaN for missing and bad cells, and rows and texts of the bad cells.

    Dates are days since 1970 in UTC, truth values are 1 and 0. Numbers that are not finite or too large are bad.
    """
    text = as_text(cells, options)
    if text is None:
        values, bad = _typed_numbers(cells, kind)
    elif kind == "date":
        values, bad = _days_of_text(text)
    else:
        values, bad = _numbers_of_text(text, kind, options)
    if kind != "date" and options.na:  # -999 is also a mark where it is written as -999.0
        for mark in _numbers_of_text(arrow.array(options.na, arrow.large_string()), "number", options)[0]:
            mark = float(np.float32(mark)) if arrow.types.is_float32(cells.type) else mark
            values = np.where(values == mark, np.nan, values)
    if len(large := np.flatnonzero(np.abs(values) > MAX_VALUE)):
        bad = sorted([*bad, *((int(row), f"{values[row]:g}") for row in large)])
        values = np.where(np.abs(values) > MAX_VALUE, np.nan, values)
    return values, bad


def _typed_numbers(cells: Any, kind: str) -> tuple[Any, list[tuple[int, str]]]:
    cells = cells.combine_chunks() if isinstance(cells, arrow.ChunkedArray) else cells
    is_date = arrow.types.is_timestamp(cells.type) or arrow.types.is_date(cells.type)
    if is_date != (kind == "date") and cells.null_count < len(cells):  # another kind than in the source
        rows = np.flatnonzero(np.asarray(cells.is_valid()))
        return np.full(len(cells), np.nan), [(int(row), str(cells[int(row)])) for row in rows]
    if is_date:
        is_days = arrow.types.is_date32(cells.type)
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(getattr(cells.type, "unit", ""), 10**3)
        days = cells.cast(arrow.int32() if is_days else arrow.int64()).cast(arrow.float64(), safe=False)
        return days.to_numpy(zero_copy_only=False) / (1.0 if is_days else 86400.0 * per_second), []
    return cells.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64), []


def _numbers_of_text(text: Any, kind: str, options: ReadOptions) -> tuple[Any, list[tuple[int, str]]]:
    plain = text
    if kind == "truth":
        lower = compute.utf8_lower(text)
        plain = compute.replace_substring_regex(compute.replace_substring_regex(lower, "^true$", "1"), "^false$", "0")
    if options.decimal == ",":  # a point is then no decimal mark
        plain = compute.replace_substring(compute.replace_substring(plain, ".", " "), ",", ".")
    try:
        return plain.cast(arrow.float64()).to_numpy(zero_copy_only=False), []
    except arrow.ArrowInvalid:
        is_valid = compute.fill_null(compute.match_substring_regex(plain, _NUMBER), True)
    values = compute.if_else(is_valid, plain, None).cast(arrow.float64()).to_numpy(zero_copy_only=False)
    return values, [(int(row), text[int(row)].as_py()) for row in np.flatnonzero(~np.asarray(is_valid))]


def _days_of_text(text: Any) -> tuple[Any, list[tuple[int, str]]]:
    encoded = text.dictionary_encode()
    days = []
    for cell in encoded.dictionary.to_pylist():
        parts, time = match.groups() if (match := re.match(_DATE, cell)) else ("", "")
        year, month, day = [*(parts.split(".")[::-1] if "." in parts else re.split("[-/]", parts)), "1", "1"][:3]
        try:
            stamp = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}{time}")
            days.append((stamp.replace(tzinfo=stamp.tzinfo or UTC).timestamp()) / 86400.0)
        except (ValueError, OverflowError):
            days.append(np.nan)
    codes = encoded.indices.fill_null(len(days)).to_numpy(zero_copy_only=False)
    values = np.array([*days, np.nan])[codes]
    rows = np.flatnonzero(np.isnan(values) & (codes < len(days)))
    return values, [(int(row), text[int(row)].as_py()) for row in rows]
