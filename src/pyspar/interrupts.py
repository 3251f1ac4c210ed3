"""Handle Ctrl-C and SIGTERM: a command ends with exit code 130, whatever it is doing.

While a command runs, both raise an exception, so that temporary files are removed. While Python imports modules or
exits, no temporary file exists, and both end the process at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

STOPPED = 130
"""The exit code of shells for Ctrl-C."""


class Stopped(KeyboardInterrupt):
    """A KeyboardInterrupt of its own class.

    ``python -m`` ends by SIGINT, whatever the exit code, if a plain KeyboardInterrupt has passed through code that runs
    in ``exec``. Creating a dataclass uses ``exec``.
    """


def leave_at_once() -> None:
    """Make Ctrl-C and SIGTERM end the process immediately."""
    _set_handler(_leave)


@contextmanager
def stoppable() -> Iterator[None]:
    """Make Ctrl-C and SIGTERM raise ``Stopped`` in this block; afterwards they end the process immediately."""
    _set_handler(_stop)
    try:
        yield
    finally:
        _set_handler(_leave)


def _set_handler(handler: signal._HANDLER) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores signals on purpose
            signal.signal(number, handler)


def _stop(number: int, frame: object) -> NoReturn:
    raise Stopped


def _leave(number: int, frame: object) -> NoReturn:
    os._exit(STOPPED)
