"""Locks between processes: one at a time in a run's folder, and at a file of records. A process that dies lets go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BusyError(Exception):
    """Another process is at work there; nothing was touched."""


@contextmanager
def held(path: Path, *, patience: float) -> Iterator[None]:
    """Hold the lock of a file made for it, or raise ``BusyError`` if another process still has it after so long."""
    try:
        import fcntl
    except ImportError:  # a system without it: two calls at once are the caller's affair
        yield
        return
    with path.open("w", encoding="utf-8") as handle:
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise BusyError(
                        f"another process is working on {path.parent}; wait for it, or choose another folder with --out"
                    ) from error
                time.sleep(0.05)
        yield
