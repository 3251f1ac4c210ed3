"""What long work and every command need: progress, exit codes for interrupts and errors, and safe text.

Progress is reported in three ways: not at all, in lines of text, or with bars on a terminal.

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
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from pyspar.errors import InputError, MissingExtraError, need

EXIT_CODES = (
    "Exit codes: 0 success; 1 internal error, or a failed run or check; 2 invalid input, and nothing was written; "
    "3 alarm of spar watch; 130 stopped by Ctrl-C or SIGTERM."
)
STOP_CODE = 130
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
    """Make Ctrl-C and SIGTERM raise ``Stopped`` in this block; afterwards they end the process immediately.

    The interpreter writes the number of a signal into a pipe as soon as it arrives. Its handler runs later, between two
    operations. A thread reads the pipe, and ends the process if the handler has not run after ``GRACE_SECONDS``.
    """
    is_raised = threading.Event()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def stop(number: int, frame: object) -> NoReturn:
        is_raised.set()
        raise Stopped

    def watch() -> None:
        while number := os.read(reader, 1):
            is_stop = number[0] in (signal.SIGINT, signal.SIGTERM)
            if is_stop and signal.getsignal(number[0]) is not signal.SIG_IGN and not is_raised.wait(GRACE_SECONDS):
                for cleanup in CLEANUPS:
                    cleanup()
                sys.stderr.write(f"{_STOP_MESSAGE}\n")
                sys.stderr.flush()
                os._exit(STOP_CODE)
        os.close(reader)

    threading.Thread(target=watch, daemon=True).start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        _set_handler(stop)
        yield
    finally:
        _set_handler(_leave)
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
        _fail(stopped, STOP_CODE, debug)
    except MemoryError:
        _fail("error: the tables do not fit into memory; use fewer rows or columns, or --stream", _INPUT_ERROR, debug)
    except Exit:
        raise
    except OSError as error:
        path = error.filename or "a file"
        _fail(f"error: cannot read or write {path}: {(error.strerror or str(error)).lower()}", _INPUT_ERROR, debug)
    except Exception as error:  # noqa: BLE001 - the last resort; --debug shows the traceback
        if _is_caused_by_stop(error):  # a library turned the exception into its own
            _fail(stopped, STOP_CODE, debug)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        _fail(f"internal error: {reason}; run again with --debug for the traceback", _INTERNAL_ERROR, debug)


def print_json(result: Any, *, indent: int | None = 1) -> None:
    """Print plain data as JSON on stdout, with ASCII characters only. Paths become text."""
    from typer import echo

    echo(json.dumps(result, allow_nan=False, default=str, indent=indent))


def print_table(table: Any) -> None:
    """Print a table of rich on stdout, without its spaces at the ends of lines."""
    from rich.console import Console
    from typer import echo

    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(table)
    echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)


def printable(text: str) -> str:
    """Return a text with control characters escaped. Names from files must not control the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _set_handler(handler: signal._HANDLER) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores signals on purpose
            signal.signal(number, handler)


def _is_caused_by_stop(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _leave(number: int, frame: object) -> NoReturn:
    os._exit(STOP_CODE)


def _fail(text: str, code: int, debug: bool) -> NoReturn:
    from rich.console import Console
    from rich.text import Text
    from typer import Exit

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if debug:
        console.print(Text(traceback.format_exc()))
    console.print(Text(printable(text)))
    raise Exit(code)


DELAY = 2.0
"""Seconds after which a bar appears. Shorter work shows none."""


class Progress:
    """The interface for progress reports of long computations. This class reports nothing.

    A key identifies a task; several can be active.
    """

    def start(self, key: str, title: str, *, total: float | None = None, unit: str = "") -> None:
        """Begin a task of ``total`` units, such as bytes or epochs; None if the total is unknown."""

    def advance(self, key: str, done: float, *, total: float | None = None, **details: str) -> None:
        """Report that ``done`` units are finished. ``details`` such as ``loss="0.12"`` are shown after the bar."""

    def note(self, text: str) -> None:
        """Show a message."""

    def finish(self, key: str, outcome: str = "") -> None:
        """End a task."""

    def close(self) -> None:
        """Remove what is shown on the terminal."""


SILENT = Progress()


class LineProgress(Progress):
    """Report in lines of text, for logs and pipes.

    A task prints a line when it starts, about ``lines`` lines while it advances, and a line with its outcome.

    >>> log = LineProgress(print, lines=2)
    >>> log.start("a", "training", total=4, unit="epochs")
    training: started
    >>> for epoch in range(1, 5):
    ...     log.advance("a", epoch)
    training: 2 of 4 epochs
    >>> log.finish("a", "done")
    training: done
    """

    def __init__(self, print_line: Callable[[str], object], *, lines: int = 10) -> None:
        self._print = print_line
        self._lines = lines
        self._tasks: dict[str, _Task] = {}

    def start(self, key: str, title: str, *, total: float | None = None, unit: str = "") -> None:
        self._tasks[key] = _Task(title, total, unit)
        self._print(f"{title}: started")

    def advance(self, key: str, done: float, *, total: float | None = None, **details: str) -> None:
        task = self._tasks[key]
        task.total = task.total if total is None else total
        part = int(done * self._lines / task.total) if task.total else 0
        if part > task.part and (task.total is None or done < task.total):
            task.part = part
            self._print(f"{task.title}: {task.describe(done, details)}")

    def note(self, text: str) -> None:
        self._print(text)

    def finish(self, key: str, outcome: str = "") -> None:
        task = self._tasks.pop(key)
        if outcome:
            self._print(f"{task.title}: {outcome}")


class BarProgress(Progress):
    """Report with bars on a terminal. They appear after ``delay`` seconds and are removed at the end."""

    def __init__(self, *, delay: float = DELAY) -> None:
        rich = need("rich.progress", "cli")
        columns = (
            rich.SpinnerColumn(),
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            rich.TextColumn("{task.fields[text]}", markup=False),
            rich.TimeElapsedColumn(),
            rich.TimeRemainingColumn(),
        )
        console = need("rich.console", "cli").Console(stderr=True, highlight=False)
        self._rich = rich.Progress(*columns, console=console, transient=True)
        self._tasks: dict[str, tuple[Any, _Task]] = {}
        self._due = time.monotonic() + delay

    def start(self, key: str, title: str, *, total: float | None = None, unit: str = "") -> None:
        self._tasks[key] = self._rich.add_task(title, total=total, text=""), _Task(title, total, unit)
        self._show_when_due()

    def advance(self, key: str, done: float, *, total: float | None = None, **details: str) -> None:
        bar, task = self._tasks[key]
        task.total = task.total if total is None else total
        self._rich.update(bar, completed=done, total=task.total, text=task.describe(done, details))
        self._show_when_due()

    def note(self, text: str) -> None:
        self._rich.console.print(text, soft_wrap=True, markup=False)

    def finish(self, key: str, outcome: str = "") -> None:
        self._rich.remove_task(self._tasks.pop(key)[0])

    def close(self) -> None:
        self._rich.stop()

    def _show_when_due(self) -> None:
        if time.monotonic() >= self._due:
            self._rich.start()  # which does nothing if the bars are shown already


@contextmanager
def show_progress(wanted: bool | None = None) -> Iterator[Progress]:
    """Yield a progress reporter.

    ``None`` shows bars after two seconds if stderr is a terminal and rich is installed, and False shows nothing. True
    shows bars at once, or lines of text on stderr if there can be no bars.
    """
    progress, stderr = SILENT, sys.stderr  # None in a program without a console
    if wanted and stderr is not None:
        progress = LineProgress(lambda line: stderr.write(f"{printable(line)}\n"))
    if wanted is not False and stderr is not None and stderr.isatty():
        with suppress(MissingExtraError):
            progress = BarProgress(delay=0.0 if wanted else DELAY)
    try:
        yield progress
    finally:
        progress.close()


@dataclass
class _Task:
    """The title, total and unit of a task, and the part of it that was last reported."""

    title: str
    total: float | None
    unit: str
    part: int = 0

    def describe(self, done: float, details: dict[str, str]) -> str:
        """Return the finished part.

        >>> _Task("", 23456789, "bytes").describe(12345678, {}), _Task("", 20, "epochs").describe(5, {"loss": "1"})
        ('12.3 MB of 23.5 MB', '5 of 20 epochs, loss 1')
        """
        amounts = [done, self.total] if self.total else [done]
        if self.unit == "bytes":
            text = " of ".join(need("rich.filesize", "cli").decimal(round(amount)) for amount in amounts)
        else:
            text = f"{' of '.join(f'{amount:,.0f}' for amount in amounts)} {self.unit}".rstrip()
        return ", ".join([text, *(f"{name} {value}" for name, value in details.items())])
