"""Progress as lines: where nobody watches a bar, such as a pipe or a machine without a terminal."""

from __future__ import annotations

from collections.abc import Callable

_OFTEN = {"epoch": (1, 10), "draw": (25, 4)}
"""Of each kind of step, how many at least lie between two lines, and how many lines there are about."""


class Lines:
    """Says when a run begins, each tenth of its epochs, and how it ended; of draws, which are quick, less."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._runs: dict[str, tuple[str, str]] = {}

    def planned(self, runs: int) -> None:
        self._say(f"{runs} run{'s' * (runs != 1)}")

    def started(self, key: str, title: str, step: str = "epoch") -> None:
        self._runs[key] = title, step
        self._say(f"{title}: begins")

    def advanced(self, key: str, done: int, total: int) -> None:
        title, step = self._runs[key]
        least, lines = _OFTEN[step]
        if done < total and done % max(least, total // lines) == 0:
            self._say(f"{title}: {step} {done} of {total}")

    def noted(self, key: str, text: str) -> None:
        self._say(text)

    def ended(self, key: str, how: str) -> None:
        self._say(f"{self._runs.pop(key)[0]}: {how}")
