"""Progress: a bar on the terminal for a pass that takes long, where rich is installed; never a dependency."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspar.errors import MissingExtraError, need

_PATIENCE = 2.0  # seconds in which a person does not wonder


@contextmanager
def bar(label: str, loader: Any, progress: bool | None) -> Iterator[Callable[[], None]]:
    """Yield what is to be called after each batch; a bar appears after two seconds, or at once if asked for."""
    rich = _rich(progress)
    if rich is None:
        yield lambda: None
        return
    console = need("rich.console", "cli").Console(stderr=True)
    shown = rich.Progress(console=console, transient=console.is_terminal)  # in a log, the last state stays
    task = shown.add_task(label, total=_length(loader))
    began = time.monotonic()
    started = False

    def advance() -> None:
        nonlocal started
        shown.advance(task)
        if not started and (progress or time.monotonic() - began > _PATIENCE):
            started = True
            shown.start()

    try:
        yield advance
    finally:
        if started:
            shown.stop()


def _rich(progress: bool | None) -> Any:
    """Return rich's module of bars if one is wanted and can be had."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return None
    try:
        return need("rich.progress", "cli")
    except MissingExtraError:
        if progress:
            raise
        return None


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # a generator, or a loader over one
        return None
