"""Print the list of data sets, their paths, and the results of checks."""

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
_MIN_WIDTH = 130
"""The width of the terminal from which descriptions are printed."""


def print_list(sets: Iterable[tuple[Entry, str]]) -> None:
    """Print a line for each data set, with a description if the terminal is wide enough."""
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    columns = ("name", "train/val/test", "a row", "licence", "status", "about")[
        : 6 if console.width >= _MIN_WIDTH else 5
    ]
    for name in columns:
        table.add_column(name, overflow="fold")
    for entry, status in sets:
        rows = "/".join(map(str, entry.parts)) or "depends"
        cells = (entry.name, rows, "x".join(map(str, entry.shape)), entry.licence, status, entry.about)
        table.add_row(*cells[: len(columns)])
    console.print(table)


def print_path(location: Found) -> None:
    """Print the path of a data set on stdout, so that it can be piped, and the kind of location on stderr."""
    Console(highlight=False, soft_wrap=True).print(Text(printable(str(location.path))))
    incomplete = f"; incomplete: {location.lacks}" if location.lacks else ""
    Console(highlight=False, soft_wrap=True, stderr=True).print(Text(f"in {location.place}{incomplete}", style="dim"))


def print_paths(sets: Iterable[tuple[str, Path | None, str]]) -> None:
    """Print the path of each data set, or its status if it has no path."""
    console = Console(highlight=False, soft_wrap=True)
    sets = list(sets)
    width = max(len(name) for name, _, _ in sets)
    for name, path, state in sets:
        text = state if path is None else f"{path}{' (incomplete)' if state == 'incomplete' else ''}"
        console.print(Text(printable(f"{name:<{width}}  {text}")))


def print_check(result: Checked) -> None:
    """Print the result of one check."""
    console = Console(highlight=False, soft_wrap=True)
    text = f"{result.name}: {printable(result.detail)}"
    console.print(Text.assemble((f"{result.state:8}", _STYLES[result.state]), text))
