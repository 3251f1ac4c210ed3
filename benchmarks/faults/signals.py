"""Send SIGTERM to commands. Each must end within five seconds, with exit code 130, and leave no temporary file."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from benchmarks.faults.commands import COMMANDS, REPRODUCE, Command, Prepared, write_inputs
from benchmarks.faults.kills import (
    is_resumed,
    list_hidden,
    make_folder,
    measure_seconds,
    run_undisturbed,
)
from benchmarks.faults.trials import Child, Row, last_line, run_command
from pyspar.terminal import STOP_CODE

MOST_SECONDS = 5.0
"""A stopped command has to end within this time."""


def stop_all(trials: int) -> Iterator[Row]:
    """Yield the rows of streams, whose operations can take seconds with many columns, and of every command."""
    yield stop_stream("spar adapt --stream, 60 columns", (60_000, 60), 2 * trials, within=0.4)
    yield stop_stream("spar adapt --stream, 2,000 columns", (4_100, 2_000), trials, within=8.0)
    yield stop_watch(2 * trials)
    yield stop_commands(max(2, trials // 2))
    yield stop_reproduction(max(2, trials // 2))


def stop_stream(where: str, shape: tuple[int, int], trials: int, *, within: float) -> Row:
    """Stop a command at random moments of the first ``within`` seconds after it begins to read."""
    ends = _Ends()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        with redirect_stdout(None):  # in this process, so that the children do not import again
            run_command("adapt", folder / "old.csv", folder / "target.csv", "--label", "y", "--stream")
        np.save(folder / "rows.npy", np.random.default_rng(0).normal(size=shape).astype(np.float32))
        rng, out = random.Random(0), folder / "out"
        out.mkdir()
        rows = folder / "rows.npy"
        for _ in range(trials):
            (out / "p.csv").unlink(missing_ok=True)
            words = ("adapt", rows, rows, "--label", "x0", "--stream", "-o", out / "p.csv")
            child = Child(lambda words=words: run_command(*words), folder / "log.txt")
            _wait_until_open(child.pid, rows)
            time.sleep(rng.uniform(0, within))
            code = ends.stop(child)
            ends.lost += not set(os.listdir(out)) <= ({"p.csv"} if code == 0 else set())
    return ends.make_row("SIGTERM during streaming", where, trials)


def stop_watch(trials: int) -> Row:
    """Stop ``spar watch`` while it reads or waits for files."""
    ends, rng = _Ends(), random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        (folder / "batches").mkdir()
        (folder / "target.csv").rename(folder / "batches" / "target.csv")
        arguments = ("watch", folder / "new.skops", folder / "batches", "--json")
        with redirect_stdout(None):
            run_command(*arguments, "--once")
        for _ in range(trials):
            child = Child(lambda: run_command(*arguments, "--seconds", "0.1"), folder / "log.txt")
            time.sleep(rng.uniform(0.02, 1.0))
            ends.stop(child)
            ends.lost += bool(list_hidden(folder))
    return ends.make_row("SIGTERM at a random moment", "spar watch FOLDER", trials)


def stop_commands(trials: int) -> Row:
    """Stop each command of ``spar`` that replaces files. In Python, signals belong to the calling program."""
    ends, rng, total = _Ends(), random.Random(0), 0
    commands = [command for command in COMMANDS if command.name.startswith("spar ")]
    for command in commands:
        total += _stop_command(command, max(2, trials // 2) if command.is_slow else trials, ends, rng)
    return ends.make_row("SIGTERM at a random moment", f"each of {len(commands)} commands that replace files", total)


def _stop_command(command: Command, trials: int, ends: _Ends, rng: random.Random) -> int:
    with tempfile.TemporaryDirectory() as name:
        prepared = Prepared(command, Path(name))
        seconds = sum(measure_seconds(prepared))
        for _ in range(trials):
            prepared.restore()
            child = Child(prepared.run_new, prepared.folder / "log.txt")
            time.sleep(rng.uniform(0, seconds))
            ends.stop(child)
            ends.lost += "damaged" in prepared.list_states() or bool(prepared.list_others())
    return trials


def stop_reproduction(trials: int) -> Row:
    """Stop ``spar reproduce``, and resume it."""
    ends, rng = _Ends(), random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected, seconds = run_undisturbed(REPRODUCE, folder)
        for _ in range(trials):
            out = make_folder(folder)
            child = Child(lambda out=out: REPRODUCE.run_in(out), folder / "log.txt")
            time.sleep(rng.uniform(0, seconds))
            ends.stop(child)
            ends.lost += bool(list_hidden(out)) or not is_resumed(REPRODUCE, out, expected)
    return ends.make_row("SIGTERM at a random moment", "spar reproduce, then resumed", trials)


def _wait_until_open(pid: int, path: Path) -> None:
    """Wait until a process has opened or mapped a file, or has ended."""
    process = Path(f"/proc/{pid}")
    while str(path) not in (process / "maps").read_text():
        try:
            if any(os.readlink(link) == str(path) for link in (process / "fd").iterdir()):
                return
        except OSError:  # it closed the file, or ended
            if (process / "stat").read_text().split()[2] == "Z":
                return
        time.sleep(0.002)


class _Ends:
    """The ends of stopped processes: their exit codes, the slowest one, and the last message."""

    def __init__(self) -> None:
        self.lost, self._slowest, self._message = 0, 0.0, ""
        self._codes: Counter[int] = Counter()

    def stop(self, child: Child) -> int:
        """Stop a process, and return its exit code."""
        child.kill(signal.SIGTERM)
        end = child.wait()
        self._slowest = max(self._slowest, end.seconds)
        self._codes[end.code] += 1
        self.lost += end.code not in (0, STOP_CODE) or end.seconds > MOST_SECONDS
        self._message = last_line(end.text) or self._message if end.code == STOP_CODE else self._message
        return end.code

    def make_row(self, fault: str, where: str, trials: int) -> Row:
        outcome = (
            f"exit code {STOP_CODE} in {self._codes[STOP_CODE]}, finished before in {self._codes[0]}; slowest end "
            f"{self._slowest:.1f} s; no temporary file was left"
        )
        return Row(fault, where, trials, self.lost, outcome, self._message)
