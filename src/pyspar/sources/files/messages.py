"""Messages about files, rows and columns, with the fixes that they suggest."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspar.errors import InputError
from pyspar.sources.files.formats import describe_file, format_of
from pyspar.wording import list_some, suggest_name

_MIN_SIMILARITY = 0.78
"""Allows one wrong letter in five ('prize' for 'price'), but not one in four ('rate' for 'date')."""
_MAX_CELLS = _MAX_ROWS = 5
"""The largest number of bad cells, and of row numbers, in a message."""
_MAX_DROP_OPTIONS = 20
"""The largest number of ``--drop`` options in a message."""


class BadCell(NamedTuple):
    """A cell among numbers or dates that is neither a number nor a date nor a missing value."""

    column: str
    row: int
    text: str


def describe_rows(rows: Sequence[int], path: Path) -> str:
    """Return the numbers of some rows: as a spreadsheet shows the file, and as data rows.

    >>> describe_rows([3, 10], Path("homes.csv"))
    'rows 5, 12 (the header is row 1; data rows 3, 10 counted from 0)'
    >>> describe_rows([3], Path("homes.parquet"))
    'row 3 (counted from 0)'
    """
    plural, more = "" if len(rows) == 1 else "s", ", ..." if len(rows) > _MAX_ROWS else ""
    data = ", ".join(str(row) for row in rows[:_MAX_ROWS]) + more
    if not format_of(path).has_header:
        return f"row{plural} {data} (counted from 0)"
    shown = ", ".join(str(row + 2) for row in rows[:_MAX_ROWS]) + more
    return f"row{plural} {shown} (the header is row 1; data row{plural} {data} counted from 0)"


def suggest_column(name: str, names: Iterable[str]) -> str:
    """Return the fix for a column name that does not exist: similar names, or all names.

    >>> suggest_column("Pirce", ["rooms", "price"])
    "did you mean 'price'?"
    >>> suggest_column("rate", ["date", "price"])
    "the columns are 'date', 'price'"
    """
    names = list(names)
    return suggest_name(name, names, cutoff=_MIN_SIMILARITY) or f"the columns are {list_some(names, 12)}"


def check_column(name: str | None, option: str, names: Iterable[str], where: str) -> None:
    """Raise InputError if the column that an option names does not exist. None means that it was not passed."""
    names = list(names)
    if name is not None and name not in names:
        raise InputError(f"{where}: no {option} column {name!r}; {suggest_column(name, names)}")


def suggest_drop(names: Sequence[str]) -> str:
    """Return the options of the command line that ignore some columns.

    >>> suggest_drop(["tax", "living area"])
    "ignore the columns with --drop tax --drop 'living area'"
    >>> suggest_drop(["tax"])
    'ignore the column with --drop tax'
    """
    options = " ".join(f"--drop {shlex.quote(name)}" for name in names[:_MAX_DROP_OPTIONS])
    more = f" and so on ({len(names)} columns)" if len(names) > _MAX_DROP_OPTIONS else ""
    return f"ignore the column{'' if len(names) == 1 else 's'} with {options}{more}"


def bad_cells_error(cells: Sequence[BadCell], path: Path, role: str, *, label: str | None = None) -> InputError:
    """Return an InputError that lists bad cells and fixes.

    In the column ``label`` of a source, a bad cell can only be ignored together with its row. The commands that read a
    "file", a "batch" or "labels" have fewer options than those that read a source and a target.
    """
    names = list(dict.fromkeys(name for name, _, _ in cells))
    listed = "; ".join(
        f"{text[:40]!r} in column {name!r}, {describe_rows([row], path)}" for name, row, text in cells[:_MAX_CELLS]
    )
    more = f"; and {len(cells) - _MAX_CELLS:,} more" if len(cells) > _MAX_CELLS else ""
    count = "1 bad cell" if len(cells) == 1 else f"{len(cells):,} bad cells"
    fix = "correct the file, or pass --bad-cells impute"
    if role in ("batch", "labels"):
        fix = "correct the file"
    elif role == "file":
        fix += " to treat such cells as missing" + (", or leave out --label" if label in names else "")
    elif label in names:
        fix += " --drop-unlabelled to ignore such rows" if role == "source" else " to treat such cells as missing"
    else:
        name = shlex.quote(names[0])
        fix += f" to treat such cells as missing, --drop {name} to ignore the column, or --category {name}"
    return InputError(f"{describe_file(role, path)}: {count} among numbers or dates: {listed}{more}; {fix}")


def shorten_error(error: BaseException) -> str:
    """Return the text of an exception on one line, at most 200 characters."""
    return " ".join(str(error).split())[:200]


def unreadable_file_error(
    path: Path, role: str, error: BaseException, format_name: str, cure: str = "save it again"
) -> InputError:
    """Return an InputError for a file that a library or the operating system cannot read.

    Raise MemoryError if that is the cause, because the file may be intact.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        raise MemoryError(str(error)) from error
    if isinstance(error, PermissionError):
        return InputError(f"cannot read {describe_file(role, path)}: {(error.strerror or 'permission denied').lower()}")
    reason = f"no array {error.args[0]!r}" if isinstance(error, KeyError) and error.args else shorten_error(error)
    return InputError(f"{describe_file(role, path)}: damaged or not a {format_name} file ({reason}); {cure}")
