"""Run an action in a child process that may be killed, and the result of a fault as a row of the table."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

COPY_FAULT = "rename is a copy, killed in its middle"
"""The fault that pyspar does not protect against."""


@dataclass(frozen=True)
class Row:
    """One fault at one place.

    Attributes
    ----------
    lost : trials after which a result was lost or damaged without an error
    outcome : what happened, with counts
    message : an example of the message, empty if the fault causes none
    """

    fault: str
    where: str
    trials: int
    lost: int
    outcome: str
    message: str = ""


@dataclass(frozen=True)
class Ended:
    """How a child process ended: its exit code (negative for a signal), what it printed, and how long it took."""

    code: int
    text: str
    seconds: float


class Child:
    """A forked process. The imports of this process are shared, so that a trial takes milliseconds, not seconds."""

    def __init__(self, action: Callable[[], object], log: Path) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._log = log
        log.write_bytes(b"")  # a process that is stopped at once does not write it
        self._start = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_run(action, log))

    def kill(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, limit: float = 120.0) -> Ended:
        """Wait for the end. After ``limit`` seconds the process is killed, which counts as exit code -9."""
        start = time.monotonic()
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                text = self._log.read_text(errors="replace")
                return Ended(os.waitstatus_to_exitcode(status), text, time.monotonic() - start)
            if time.monotonic() - start > limit:
                self.kill()
            time.sleep(0.002)


def run(action: Callable[[], object], folder: Path, limit: float = 120.0) -> Ended:
    """Run an action in a child process to its end."""
    return Child(action, folder / "log.txt").wait(limit)


def run_command(*arguments: object) -> int:
    """Run ``spar`` with some arguments in this process, and return the exit code."""
    from pyspar.__main__ import main

    sys.argv = ["spar", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def map_in_children(
    function: Callable[[int], str], count: int, *, limit: float = 20.0, memory: int = 4_000_000_000
) -> Iterator[str]:
    """Yield ``function(i)`` for each i, computed in a child process with limited memory.

    If the child dies or hangs, the result of that number is "crash" or "hang", and a new child continues.
    """
    done = 0
    while done < count:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            with os.fdopen(writer, "w") as pipe:
                _write_results(function, done, count, pipe, memory)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            while True:
                is_ready, _, _ = select.select([pipe], [], [], limit)
                line = pipe.readline() if is_ready else ""
                if not line:
                    break
                done += 1
                yield line.rstrip("\n")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if done < count:
            done += 1
            yield "hang" if not is_ready else "crash"


@contextmanager
def capture(log: Path) -> Iterator[None]:
    """Write the output of this process and of its libraries to a file."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout = sys.stderr = os.fdopen(handle, "w", buffering=1)
    yield


def last_line(text: str) -> str:
    """Return the last line of an output that is not blank, without the folder of the trial."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _write_results(function: Callable[[int], str], start: int, count: int, pipe: IO[str], memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    for number in range(start, count):
        pipe.write(" ".join(function(number).split()) + "\n")
        pipe.flush()


def _run(action: Callable[[], object], log: Path) -> int:
    with capture(log):
        try:
            code = action()
        except BaseException:  # noqa: BLE001 - the child reports every exception
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    return code if isinstance(code, int) else 0
