"""What the terminal sees of experiments: progress bars, published cells beside ours, the demo's story."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from pyspar.paper.output.lines import Lines

if TYPE_CHECKING:
    from pyspar.paper.experiments.demo import Demo
    from pyspar.paper.output.tables import Result, Sheet


@contextmanager
def progress(suite: str) -> Iterator[Bars | Lines]:
    """Show bars of the suite's runs and of the epochs of each, on stderr; lines where that is no terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield Lines(lambda text: console.print(Text(f"{suite}: {text}"), soft_wrap=True))
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        yield Bars(suite, shown)


class Bars:
    """Told how far a suite is; see ``pyspar.paper.runs.parallel.Progress``."""

    def __init__(self, suite: str, shown: Progress) -> None:
        self._shown = shown
        self._suite = shown.add_task(f"{suite}: runs", total=0)
        self._runs: dict[str, TaskID] = {}
        self._planned = 0

    def planned(self, runs: int) -> None:
        self._planned += runs
        self._shown.update(self._suite, total=self._planned)

    def started(self, key: str, title: str, step: str = "epoch") -> None:
        self._runs[key] = self._shown.add_task(f"  {title}", total=None)

    def advanced(self, key: str, done: int, total: int) -> None:
        self._shown.update(self._runs[key], completed=done, total=total)

    def noted(self, key: str, text: str) -> None:
        self._shown.console.print(Text(text), soft_wrap=True)

    def ended(self, key: str, how: str) -> None:
        self._shown.remove_task(self._runs.pop(key))
        self._shown.advance(self._suite)


def caution(text: str) -> None:
    """Print what is to be known before a long wait."""
    Console(stderr=True, highlight=False).print(Text(f"note: {text}", style="yellow"), soft_wrap=True)


def reproduction(result: Result) -> None:
    """Print a suite's tables and remarks, what could not be done, and where everything was written."""
    console = Console(highlight=False)
    console.print(Text(result.title, style="bold"))
    for sheet in result.sheets:
        console.print(_table(sheet, console.width))
        for note in sheet.notes:
            console.print(Text(note))
    for remark in result.remarks:
        console.print(Text(f"- {remark}"))
    for trouble in result.troubles:
        console.print(Text(f"not done: {trouble}", style="red"))
    for notice in result.notices:
        Console(stderr=True, highlight=False).print(Text(f"notice: {notice}"), soft_wrap=True)
    for path in result.files:
        console.print(Text(f"wrote {path}"), soft_wrap=True)


def suites(listing: list[tuple[str, str, str]]) -> None:
    """Print the suites with a line each."""
    table = Table(title="spar reproduce NAME... | all", title_style="")
    header = ("name", "state", "what")
    rows = [(name, state, about) for name, about, state in listing]
    console = Console(highlight=False)
    for name, width in zip(header, widths([header, *rows], console.width)):
        table.add_column(name, width=width, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def widths(rows: list[tuple[str, ...]], room: int) -> list[int]:
    """Return how wide each column is to be in a terminal: as it likes, or narrower, broken between words.

    The widest gives first. Words, and a mean with its spread, are broken only where not even they have room.

    >>> widths([("method", "mean"), ("ERM + SpAR", "1.0 ± 0.1")], 80)
    [10, 9]
    >>> widths([("method", "mean"), ("ERM + SpAR", "1.0 ± 0.1")], 24), widths([("method", "mean")], 10)
    ([8, 9], [2, 1])
    """
    columns = list(zip(*rows))
    found = [max(1, *map(cell_len, column)) for column in columns]
    least = [max(1, *(cell_len(part) for cell in column for part in _whole(cell))) for column in columns]
    room -= 3 * len(columns) + 1  # rules, and a space on each side
    for limits in (least, [1] * len(columns)):
        while sum(found) > room and found != limits:
            width, widest = max((width, i) for i, width in enumerate(found) if width > limits[i])
            found[widest] = width - 1
    return found


def _whole(cell: str) -> list[str]:
    """Return the parts of a cell between which it may be broken."""
    return [cell] if "±" in cell and "(" not in cell else cell.split() or [cell]


def _table(sheet: Sheet, room: int) -> Table:
    table = Table(title=Text(sheet.title), title_style="", title_justify="left")
    for name, width in zip(sheet.header, widths([sheet.header, *sheet.rows], room)):
        table.add_column(Text(name), width=width, overflow="fold")
    first = None
    for row in sheet.rows:
        if first not in (None, row[0]) and len({r[0] for r in sheet.rows}) < len(sheet.rows):
            table.add_section()
        table.add_row(*(Text(cell) for cell in row))
        first = row[0]
    return table


def demo(found: Demo) -> None:
    """Tell what the demo did, and what came of it."""
    console = Console(highlight=False)
    task, adaptation = found.task, found.adaptation
    kind = task.group_kind
    console.print(
        f"[bold]Communities and Crime[/bold]: violent crime per population, predicted from "
        f"{len(task.feature_names)} census figures. The source has {len(task.train):,} communities in some {kind}s. "
        f"The target has {len(task.test):,} in others, whose labels are used for the scores only.\n"
    )
    table = Table()
    table.add_column("method")
    table.add_column("target RMSE", justify="right")
    table.add_column(f"worst {kind}", justify="right")
    table.add_column("")
    notes = {
        "OLS": "least squares",
        "ridge": "penalty by leave-one-out on the source",
        "PCR": "components by GCV on the source",
        "SpAR": "adapted to the unlabelled target",
        "Bayes-SpAR": "ridge in units of the larger spread",
    }
    best = [min(pair[k] for pair in found.errors.values()) for k in (0, 1)]
    for name, pair in found.errors.items():
        cells = [f"[bold]{v:.4f} *[/bold]" if v == b else f"{v:.4f}  " for v, b in zip(pair, best, strict=True)]
        table.add_row(name, *cells, notes[name])
    console.print(table)
    console.print(
        f"* best. SpAR removed {int(adaptation.removed.sum())} of {adaptation.z.rank} target directions from the "
        "weights, those along which the source carries little information. On raw columns such as these, the default "
        "(Bayes-SpAR) is usually level with ridge; docs/evidence.md has 307 data sets."
    )
    console.print(Text(f"\nfigure: {found.figure}"), soft_wrap=True)
