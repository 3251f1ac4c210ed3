"""A progress bar for training, if rich is installed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspar.errors import MissingExtraError, need

_PATIENCE = 2.0  # seconds in which a person does not wonder
_REFRESH = 0.1  # seconds between two looks at a bar


class Steps:
    """Counts the steps of a training run; says nothing."""

    def step(self) -> None:
        """Count a step."""

    def epoch(self, loss: float) -> None:
        """Note the loss of an epoch."""


class _ShownSteps(Steps):
    def __init__(self, shown: Any, task: Any, progress: bool | None) -> None:
        self._shown, self._task = shown, task
        self._began = self._last = time.monotonic()
        self._count = 0
        self.started = False
        self._patience = 0.0 if progress else _PATIENCE

    def step(self) -> None:
        self._count += 1
        now = time.monotonic()
        if now - self._last > _REFRESH:
            self._shown.advance(self._task, self._count)
            self._count, self._last = 0, now
            if not self.started and now - self._began >= self._patience:
                self.started = True
                self._shown.start()

    def epoch(self, loss: float) -> None:
        self._shown.update(self._task, advance=self._count, loss=f"{loss:.4g}")
        self._count = 0


@contextmanager
def training_bar(label: str, epochs: int, steps: int, start: int, progress: bool | None) -> Iterator[Steps]:
    """Yield what counts steps: a bar with loss and rate, after two seconds or at once if asked for."""
    rich = _rich(progress)
    if rich is None:
        yield Steps()
        return
    console = need("rich.console", "cli").Console(stderr=True)
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TextColumn("loss {task.fields[loss]}"),
        _rate_column(rich),
        rich.TimeRemainingColumn(),
    )
    shown = rich.Progress(*columns, console=console, transient=console.is_terminal)
    task = shown.add_task(f"training {label}", total=epochs * steps, completed=start * steps, loss="-")
    counted = _ShownSteps(shown, task, progress)
    try:
        yield counted
    finally:
        if counted.started:
            shown.stop()


def _rate_column(rich: Any) -> Any:
    class Rate(rich.ProgressColumn):  # type: ignore[misc]
        """Steps a second."""

        def render(self, task: Any) -> Any:
            text = need("rich.text", "cli").Text
            return text(f"{task.speed or 0:.0f} steps/s" if task.speed else "- steps/s")

    return Rate()


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
