"""Stopping: Ctrl-C and a polite end (SIGTERM) end a command with one code, whatever it is doing just then.

While a command works either is raised as an exception, so that temporary files are taken away. Before, while Python
still imports, and after, while it takes itself down, there is nothing to take away and nobody who would catch it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

STOPPED = 130
"""What a shell calls the end by Ctrl-C."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C under a name of its own.

    CPython that runs a module (``python -m``) ends itself by SIGINT, whatever code is asked for, once a plain
    KeyboardInterrupt has passed through text that is executed, and making a dataclass executes text.
    """


def leave_at_once() -> None:
    """From now on Ctrl-C and a polite end leave the process, and nothing else happens."""
    _answer(_leave)


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise ``Stopped`` at Ctrl-C and at a polite end; afterwards they leave at once."""
    _answer(_stop)
    try:
        yield
    finally:
        _answer(_leave)


def _answer(how: signal._HANDLER) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup: whoever started it knows better
            signal.signal(number, how)


def _stop(number: int, frame: object) -> NoReturn:
    raise Stopped


def _leave(number: int, frame: object) -> NoReturn:
    os._exit(STOPPED)
