"""Terminal output of ``spar data``: the table of data sets, their locations and the results of checks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspar.terminal import printable

if TYPE_CHECKING:
    from pyspar.paper.data.catalogue import DatasetEntry
    from pyspar.paper.data.check import CheckResult
    from pyspar.paper.data.files import Location

_STYLES = {"good": "green", "missing": "yellow", "wrong": "red"}
_MIN_WIDTH_FOR_ABOUT = 130


def print_datasets(datasets: Iterable[tuple[DatasetEntry, str]]) -> None:
    """Print a table with one line per data set and its state. The description is only shown on a wide terminal."""
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    columns = ["name", "train/val/test", "a row", "licence", "status"]
    columns += ["about"] if console.width >= _MIN_WIDTH_FOR_ABOUT else []
    for name in columns:
        table.add_column(name, overflow="fold")
    for entry, state in datasets:
        rows = "/".join(map(str, entry.parts)) or "depends"
        cells = (entry.name, rows, "x".join(map(str, entry.shape)), entry.licence, state, entry.about)
        table.add_row(*cells[: len(columns)])
    console.print(table)


def describe_dataset(entry: DatasetEntry, state: str) -> dict[str, Any]:
    """Return a data set and its state as plain data."""
    names = ("name", "parts", "shape", "licence", "about", "obtain")
    return {**{name: getattr(entry, name) for name in names}, "state": state}


def print_location(location: Location) -> None:
    """Print the path of a data set to stdout, for pipes, and the kind of place to stderr."""
    Console(highlight=False, soft_wrap=True).print(Text(printable(str(location.path))))
    incomplete = f"; incomplete: {location.missing}" if location.missing else ""
    Console(highlight=False, soft_wrap=True, stderr=True).print(Text(f"in {location.place}{incomplete}", style="dim"))


def print_locations(datasets: Iterable[tuple[str, Path | None, str]]) -> None:
    """Print one line per data set: its path, or its state if it has no path."""
    console = Console(highlight=False, soft_wrap=True)
    datasets = list(datasets)
    width = max(len(name) for name, _, _ in datasets)
    for name, path, state in datasets:
        text = state if path is None else f"{path}{' (incomplete)' if state == 'incomplete' else ''}"
        console.print(Text(printable(f"{name:<{width}}  {text}")))


def print_check(result: CheckResult) -> None:
    """Print the result of one check."""
    console = Console(highlight=False, soft_wrap=True)
    label = (f"{result.state:8}", _STYLES[result.state])
    console.print(Text.assemble(label, f"{result.name}: {printable(result.detail)}"))
