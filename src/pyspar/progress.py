"""Progress of long work: one protocol, and three ways to report it (silent, lines of text, bars on a terminal)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pyspar.errors import MissingExtraError, need

DELAY = 2.0
"""Seconds after which a bar appears. Shorter work shows none."""


class Progress(Protocol):
    """What long work calls to report its progress. A key identifies a task; several can be active."""

    def start(self, key: str, title: str, *, total: float | None = None, unit: str = "") -> None:
        """Begin a task of ``total`` units, such as bytes or epochs; None if the total is unknown."""

    def advance(self, key: str, done: float, *, total: float | None = None, **details: str) -> None:
        """Report that ``done`` units are finished. ``details`` such as ``loss="0.12"`` are shown beside the bar."""

    def note(self, text: str) -> None:
        """Show a message."""

    def finish(self, key: str, outcome: str = "") -> None:
        """End a task."""


class Silent:
    """Report nothing."""

    def start(self, key: str, title: str, *, total: float | None = None, unit: str = "") -> None:
        """Do nothing."""

    def advance(self, key: str, done: float, *, total: float | None = None, **details: str) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""

    def finish(self, key: str, outcome: str = "") -> None:
        """Do nothing."""


SILENT = Silent()


class Lines:
    """Report in lines of text, for logs and pipes.

    A task prints a line when it starts, about ``lines`` lines while it advances, and a line with its outcome.

    >>> log = Lines(print, lines=2)
    >>> log.start("a", "training", total=4, unit="epochs")
    training: started
    >>> for epoch in range(1, 5):
    ...     log.advance("a", epoch)
    training: 2 of 4 epochs
    >>> log.finish("a", "done")
    training: done
    """

    def __init__(self, print_line: Callable[[str], None], *, lines: int = 10) -> None:
        self._print = print_line
        self._lines = lines
        self._tasks: dict[str, _Task] = {}

    def start(self, key: str, title: str, *, total: float | None = None, unit: str = "") -> None:
        self._tasks[key] = _Task(title, total, unit)
        self._print(f"{title}: started")

    def advance(self, key: str, done: float, *, total: float | None = None, **details: str) -> None:
        task = self._tasks[key]
        part = task.part_after(done, total, self._lines)
        if part > task.part and (task.total is None or done < task.total):
            task.part = part
            self._print(f"{task.title}: {task.text(done, details)}")

    def note(self, text: str) -> None:
        self._print(text)

    def finish(self, key: str, outcome: str = "") -> None:
        task = self._tasks.pop(key)
        if outcome:
            self._print(f"{task.title}: {outcome}")


class Bars:
    """Report with bars on a terminal. They appear after ``delay`` seconds and are removed at the end."""

    def __init__(self, *, delay: float = DELAY) -> None:
        rich = need("rich.progress", "cli")
        console = need("rich.console", "cli").Console(stderr=True, highlight=False)
        columns = (
            rich.SpinnerColumn(),
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            rich.TextColumn("{task.fields[text]}", markup=False),
            rich.TimeElapsedColumn(),
            rich.TimeRemainingColumn(),
        )
        self._rich = rich.Progress(*columns, console=console, transient=console.is_terminal)
        self._tasks: dict[str, tuple[Any, _Task]] = {}
        self._due = time.monotonic() + delay
        self._shown = False

    def start(self, key: str, title: str, *, total: float | None = None, unit: str = "") -> None:
        self._tasks[key] = self._rich.add_task(title, total=total, text=""), _Task(title, total, unit)
        self._show_when_due()

    def advance(self, key: str, done: float, *, total: float | None = None, **details: str) -> None:
        bar, task = self._tasks[key]
        task.part_after(done, total, 1)
        self._rich.update(bar, completed=done, total=task.total, text=task.text(done, details))
        self._show_when_due()

    def note(self, text: str) -> None:
        self._rich.console.print(text, soft_wrap=True, markup=False)

    def finish(self, key: str, outcome: str = "") -> None:
        bar, _ = self._tasks.pop(key)
        if self._rich.console.is_terminal:  # a log keeps the last state of each bar
            self._rich.remove_task(bar)

    def close(self) -> None:
        """Remove the bars."""
        if self._shown:
            self._rich.stop()

    def _show_when_due(self) -> None:
        if not self._shown and time.monotonic() >= self._due:
            self._shown = True
            self._rich.start()


@contextmanager
def show_progress(wanted: bool | None = None) -> Iterator[Progress]:
    """Yield a progress reporter for the terminal.

    ``None`` shows bars after two seconds if stderr is a terminal and rich is installed, True shows them at once and
    requires rich, False shows nothing.
    """
    bars = _bars(wanted)
    if bars is None:
        yield SILENT
        return
    try:
        yield bars
    finally:
        bars.close()


def _bars(wanted: bool | None) -> Bars | None:
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        return None
    try:
        return Bars(delay=0.0 if wanted else DELAY)
    except MissingExtraError:
        if wanted:
            raise
        return None


class _Task:
    """The title, total and unit of a task, and the part of it that was last reported."""

    def __init__(self, title: str, total: float | None, unit: str) -> None:
        self.title, self.total, self.unit = title, total, unit
        self.part = 0
        self._started = time.monotonic()

    def part_after(self, done: float, total: float | None, parts: int) -> int:
        self.total = self.total if total is None else total
        return int(done * parts / self.total) if self.total else 0

    def text(self, done: float, details: dict[str, str]) -> str:
        amount = _amount(done, self.unit)
        of = f" of {_amount(self.total, self.unit)}" if self.total else ""
        unit = f" {self.unit}" if self.unit and self.unit != "bytes" else ""
        rate = done / max(time.monotonic() - self._started, 1e-3)
        rates = [f"{_amount(rate, 'bytes')}/s"] if self.unit == "bytes" else []
        return ", ".join([f"{amount}{of}{unit}", *rates, *(f"{name} {value}" for name, value in details.items())])


def _amount(value: float, unit: str) -> str:
    """Return a count, or a number of bytes in a readable unit.

    >>> _amount(12345, "epochs"), _amount(12345678, "bytes")
    ('12,345', '12.3 MB')
    """
    if unit != "bytes":
        return f"{value:,.0f}"
    for name in ("bytes", "kB", "MB", "GB"):
        if value < 1000.0 or name == "GB":
            break
        value /= 1000.0
    return f"{value:,.0f} {name}" if name == "bytes" else f"{value:,.1f} {name}"
