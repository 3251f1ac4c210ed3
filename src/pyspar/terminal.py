"""What every command needs: exit codes for interrupts and errors, and text that is safe to print.

Ctrl-C and SIGTERM end a command with exit code 130. While a command runs, both raise an exception, so that temporary
files are removed. While Python imports modules or exits, no temporary file exists, and both end the process at once.
Python raises the exception only between two operations. If one operation of numpy takes longer than ``GRACE_SECONDS``,
a thread removes the temporary files and ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from pyspar.errors import InputError, MissingExtraError

EXIT_CODES = (
    "Exit codes: 0 success; 1 internal error, or a failed run or check; 2 invalid input, and nothing was written; "
    "3 alarm of spar watch; 130 stopped by Ctrl-C or SIGTERM."
)
STOPPED = 130
"""The exit code of shells for Ctrl-C."""
_INPUT_ERROR, _INTERNAL_ERROR = 2, 1

GRACE_SECONDS = 3.0
"""How long a signal waits for the current operation."""

CLEANUPS: list[Callable[[], None]] = []
"""Called before the process is ended during an operation; :mod:`pyspar.io.atomic` removes temporary files here."""

_STOP_MESSAGE = "stopped; no unfinished file was left"


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
    with _end_long_operations() as is_raised:

        def stop(number: int, frame: object) -> NoReturn:
            is_raised.set()
            raise Stopped

        _set_handler(stop)
        try:
            yield
        finally:
            _set_handler(_leave)


@contextmanager
def _end_long_operations() -> Iterator[threading.Event]:
    """Start a thread that ends the process if a signal has not raised its exception after ``GRACE_SECONDS``.

    The interpreter writes the number of a signal into a pipe as soon as it arrives. Its handler runs later, between two
    operations, and sets the event that this function yields.
    """
    is_raised = threading.Event()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def watch() -> None:
        while number := os.read(reader, 1):
            is_stop = number[0] in (signal.SIGINT, signal.SIGTERM)
            if is_stop and signal.getsignal(number[0]) is not signal.SIG_IGN and not is_raised.wait(GRACE_SECONDS):
                for cleanup in CLEANUPS:
                    cleanup()
                sys.stderr.write(f"{_STOP_MESSAGE}\n")
                sys.stderr.flush()
                os._exit(STOPPED)
        os.close(reader)

    threading.Thread(target=watch, daemon=True).start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield is_raised
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # ends the thread


@contextmanager
def handle_errors(*, debug: bool, stopped: str = _STOP_MESSAGE) -> Iterator[None]:
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


def print_json(result: Any, *, indent: int | None = 1) -> None:
    """Print plain data as JSON on stdout, with ASCII characters only. Paths become text."""
    from typer import echo

    echo(json.dumps(result, allow_nan=False, default=str, indent=indent))


def printable(text: str) -> str:
    """Return a text with control characters escaped. Names from files must not control the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _set_handler(handler: signal._HANDLER) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores signals on purpose
            signal.signal(number, handler)


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
