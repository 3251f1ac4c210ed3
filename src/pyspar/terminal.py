"""What every command needs: exit codes for interrupts and errors, and text that is safe to print.

Ctrl-C and SIGTERM end a command with exit code 130. While a command runs, both raise an exception, so that temporary
files are removed. While Python imports modules or exits, no temporary file exists, and both end the process at once.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from pyspar.errors import InputError, MissingExtraError

STOPPED = 130
"""The exit code of shells for Ctrl-C."""
_INPUT_ERROR, _INTERNAL_ERROR = 2, 1


class Stopped(KeyboardInterrupt):
    """Raised instead of KeyboardInterrupt, because that would replace the exit code of ``python -m``.

    If a plain KeyboardInterrupt has passed through code that runs in ``exec``, ``python -m`` ends by SIGINT, whatever
    the exit code. Creating a dataclass uses ``exec``.
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


@contextmanager
def handle_errors(*, debug: bool, stopped: str = "stopped; nothing was written") -> Iterator[None]:
    """Turn exceptions into a message on stderr and an exit code. ``debug`` adds the traceback."""
    from typer import Exit  # here, because `spar` must be able to report that typer is missing

    try:
        yield
    except (InputError, MissingExtraError) as error:
        _fail(f"error: {error}", _INPUT_ERROR, debug)
    except KeyboardInterrupt:
        _fail(stopped, STOPPED, debug)
    except MemoryError:
        _fail("error: the tables do not fit into memory; use fewer rows or columns, or --stream", _INPUT_ERROR, debug)
    except Exit:
        raise
    except OSError as error:
        path = error.filename or "a file"
        _fail(f"error: cannot read or write {path}: {(error.strerror or str(error)).lower()}", _INPUT_ERROR, debug)
    except Exception as error:  # noqa: BLE001 - the last resort; --debug shows the traceback
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        _fail(f"internal error: {reason}; run again with --debug for the traceback", _INTERNAL_ERROR, debug)


def printable(text: str) -> str:
    """Return a text with control characters escaped. Names from files must not control the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _set_handler(handler: signal._HANDLER) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores signals on purpose
            signal.signal(number, handler)


def _stop(number: int, frame: object) -> NoReturn:
    raise Stopped


def _leave(number: int, frame: object) -> NoReturn:
    os._exit(STOPPED)


def _fail(text: str, code: int, debug: bool) -> NoReturn:
    from rich.console import Console
    from rich.text import Text
    from typer import Exit

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if debug:
        console.print(Text(traceback.format_exc()))
    console.print(Text(printable(text)))
    raise Exit(code)
