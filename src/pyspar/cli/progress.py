"""What the terminal sees while work goes on: a line on stderr, with rows, bytes and their rate where a file is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

_WHAT = TextColumn("{task.description}", markup=False)


class Line(Protocol):
    """Shows what is being done and, of a file that is read, how far it is."""

    def __call__(self, text: str) -> None:
        """Show a text."""

    def reading(self, text: str, n_bytes: int) -> Callable[[int, int], None]:
        """Show a bar of so many bytes, and return what moves it to so many rows and bytes."""


@contextmanager
def status() -> Iterator[Line]:
    """Show what is being done, if a person may be looking."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Silent()
        return
    line = _Live(console)
    try:
        yield line
    finally:
        line.stop()


class _Silent:
    def __call__(self, text: str) -> None:
        """Nobody is looking."""

    def reading(self, text: str, n_bytes: int) -> Callable[[int, int], None]:
        return lambda rows, done: None


class _Live:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: Progress | None = None

    def __call__(self, text: str) -> None:
        self._show(SpinnerColumn(), _WHAT, TimeElapsedColumn()).add_task(text, total=None)

    def reading(self, text: str, n_bytes: int) -> Callable[[int, int], None]:
        rows = TextColumn("{task.fields[rows]:,} rows")
        bar = self._show(_WHAT, BarColumn(), rows, DownloadColumn(), TransferSpeedColumn())
        task = bar.add_task(text, total=n_bytes, rows=0)
        return lambda rows, done: bar.update(task, completed=done, rows=rows)

    def stop(self) -> None:
        if self._shown is not None:
            self._shown.stop()

    def _show(self, *columns: ProgressColumn) -> Progress:
        self.stop()
        self._shown = Progress(*columns, console=self._console, transient=True)
        self._shown.start()
        return self._shown
