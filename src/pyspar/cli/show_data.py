"""What the terminal sees of data sets: what there is, where it lies, whether it is whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspar.cli.show import printable

if TYPE_CHECKING:
    from pyspar.paper.data.check import Checked
    from pyspar.paper.data.entries import Entry
    from pyspar.paper.data.files import Found

_STYLES = {"good": "green", "missing": "yellow", "wrong": "red"}
_WIDE = 130


def listing(sets: Iterable[tuple[Entry, str]]) -> None:
    """Print a line for each data set, with what was found of it; what it is about only where there is room for it."""
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    columns = ("name", "train/val/test", "a row", "licence", "status", "about")[: 6 if console.width >= _WIDE else 5]
    for name in columns:
        table.add_column(name, overflow="fold")
    for entry, status in sets:
        rows = "/".join(map(str, entry.parts)) or "depends"
        cells = (entry.name, rows, "x".join(map(str, entry.shape)), entry.licence, status, entry.about)
        table.add_row(*cells[: len(columns)])
    console.print(table)


def place(found: Found) -> None:
    """Print where a data set lies: the path alone on stdout, so that it can be piped; the kind of place on stderr."""
    Console(highlight=False, soft_wrap=True).print(Text(printable(str(found.path))))
    Console(highlight=False, soft_wrap=True, stderr=True).print(
        Text(f"in {found.place}{f'; incomplete: {found.lacks}' if found.lacks else ''}", style="dim")
    )


def places(sets: Iterable[tuple[str, Path | None, str]]) -> None:
    """Print a line for each data set: where it lies, or in a word why no path is told."""
    console = Console(highlight=False, soft_wrap=True)
    sets = list(sets)
    width = max(len(name) for name, _, _ in sets)
    for name, path, state in sets:
        text = state if path is None else f"{path}{' (incomplete)' if state == 'incomplete' else ''}"
        console.print(Text(printable(f"{name:<{width}}  {text}")))


def verdict(found: Checked) -> None:
    """Print what came of one check."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text.assemble((f"{found.state:8}", _STYLES[found.state]), f"{found.name}: {printable(found.detail)}"))
