"""Progress of long work: a bar on a terminal, or lines of text in a log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

Advance = Callable[..., None]
"""``advance(done, total=None, **details)`` reports the finished units and details such as ``loss="0.12"``."""

DELAY = 2.0  # seconds after which a bar appears, so that short work shows none
LOG_LINES = 10


@contextmanager
def progress_bar(
    title: str, *, total: float | None = None, unit: str = "", show: bool | None = None
) -> Iterator[Advance]:
    """Yield a function that reports the finished units of a task.

    ``show=None`` shows a bar after two seconds if stderr is a terminal and rich is installed. True shows it at once, or
    about ten lines of text if there can be no bar. False shows nothing.
    """
    stderr = sys.stderr  # None in a program without a console
    has_bar = stderr is not None and stderr.isatty() and find_spec("rich") is not None
    if show is False or stderr is None or not (show or has_bar):
        yield lambda done, total=None, **details: None
        return
    if not has_bar:
        last, everything = 0, total

        def write_line(done: float, total: float | None = None, **details: str) -> None:
            nonlocal last
            part = int(done * LOG_LINES / (total or everything or 0)) if total or everything else 0
            if part > last:
                last = part
                stderr.write(f"{title}: {_describe(done, total or everything, unit, details)}\n")

        stderr.write(f"{title}: started\n")
        yield write_line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    texts = (TextColumn(form, markup=False) for form in ("{task.description}", "{task.fields[text]}"))
    columns = (next(texts), BarColumn(), next(texts), TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total, text="")
    timer = threading.Timer(0.0 if show else DELAY, bar.start)  # also for work that reports nothing
    timer.daemon = True
    timer.start()

    def advance(done: float, total: float | None = total, **details: str) -> None:
        bar.update(task, completed=done, total=total, text=_describe(done, total, unit, details))

    try:
        yield advance
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _describe(done: float, total: float | None, unit: str, details: dict[str, str]) -> str:
    """Return the finished part as text.

    >>> _describe(5, 20, "epochs", {"loss": "0.1"})
    '5 of 20 epochs, loss 0.1'
    """
    amounts = " of ".join(f"{amount:,.0f}" for amount in ([done, total] if total else [done]))
    return ", ".join([f"{amounts} {unit}".rstrip(), *(f"{name} {value}" for name, value in details.items())])
