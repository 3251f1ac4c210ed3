"""Tables of strings, and their text as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspar.persist import write_atomically

NO_VALUE = "-"
"""The text of a cell without a number."""


@dataclass(frozen=True)
class Sheet:
    """One table: a title, a header, rows, and notes below it."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of a suite: tables, remarks, runs that were not done, notices for the user, and written files."""

    name: str
    title: str
    sheets: list[Sheet]
    remarks: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)


def format_sheet(sheet: Sheet) -> str:
    """Return a sheet as Markdown."""
    lines = [f"**{sheet.title}**", ""] if sheet.title else []
    lines += [_row(sheet.header), "|" + "---|" * len(sheet.header), *map(_row, sheet.rows)]
    for note in sheet.notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def format_result(result: Result) -> str:
    """Return the tables, remarks and failures of a suite as Markdown. The text does not depend on the time."""
    parts = [format_sheet(sheet) for sheet in result.sheets]
    for heading, lines in (("", result.remarks), ("Not done:", result.failures)):
        if lines:
            parts.append("\n".join([heading, ""] * bool(heading) + [f"- {line}" for line in lines]) + "\n")
    return "\n".join(parts)


def write_text(path: Path, text: str) -> Path:
    """Write a text file whole or not at all."""
    with write_atomically(path) as (temporary,):
        temporary.write_text(text, encoding="utf-8")
    return path


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
