"""Being watched: a job says what it does, and how far it has come; who listens is not its business."""

from __future__ import annotations

from typing import Protocol

from pyspar.sources.files.rows import Progress


class Watch(Protocol):
    """A listener."""

    def __call__(self, text: str) -> None:
        """Hear what is being done."""

    def reading(self, text: str, n_bytes: int) -> Progress:
        """Hear that so many bytes will be read, and return what to tell of rows and bytes."""


class Nobody:
    """The listener who is not there."""

    def __call__(self, text: str) -> None:
        """Hear nothing."""

    def reading(self, text: str, n_bytes: int) -> Progress:
        return lambda rows, n_bytes: None


NOBODY = Nobody()
