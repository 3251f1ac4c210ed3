"""Progress as lines: where nobody watches a bar, such as a pipe or a machine without a terminal."""

from __future__ import annotations

from collections.abc import Callable


class Lines:
    """Says when a run begins, each tenth of its epochs, and how it ended."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._titles: dict[str, str] = {}

    def planned(self, runs: int) -> None:
        self._say(f"{runs} runs")

    def started(self, key: str, title: str) -> None:
        self._titles[key] = title
        self._say(f"{title}: begins")

    def advanced(self, key: str, done: int, total: int) -> None:
        if done % max(1, total // 10) == 0:
            self._say(f"{self._titles[key]}: epoch {done} of {total}")

    def ended(self, key: str, kind: str) -> None:
        self._say(f"{self._titles.pop(key)}: {kind}")
