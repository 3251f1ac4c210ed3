"""A clock that goes backwards, and files with time stamps from the future. The results must not change."""

from __future__ import annotations

import datetime
import itertools
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.faults.commands import COMMANDS, LONG_COMMANDS, Command, LongCommand, Prepared, write_inputs
from benchmarks.faults.kills import list_hidden, make_folder, run_undisturbed
from benchmarks.faults.trials import Child, Row, run, run_command

FAULT = "clock goes backwards, files from the future"
FUTURE = 5_000_000_000


def turn_clocks_back(trials: int) -> Iterator[Row]:
    """Yield a row for the commands that replace files, one for ``spar watch``, and one for each resumed command."""
    yield replace_files(COMMANDS, trials)
    yield watch_files(trials)
    for command in LONG_COMMANDS:
        yield resume(command, trials)


def replace_files(commands: tuple[Command, ...], trials: int) -> Row:
    """Run each command with a clock that goes back an hour at each call, and inputs from the future."""
    lost = 0
    for command in commands:
        with tempfile.TemporaryDirectory() as name:
            prepared = Prepared(command, Path(name))
            for _ in range(trials):
                prepared.restore()
                date_files(prepared.folder)
                end = run(lambda p=prepared: run_backwards(p.run_new), prepared.folder)
                lost += end.code != 0 or set(prepared.list_states()) != {"new"} or bool(prepared.list_others())
    where = f"each of {len(commands)} commands that replace files"
    return Row(FAULT, where, trials * len(commands), lost, "same files, except for dates in them")


def watch_files(trials: int) -> Row:
    """Run ``spar watch`` on files from the future."""
    lost = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)

        def watch() -> int:
            return run_command("watch", folder / "new.skops", folder / "target.csv", "--json")

        expected = run(watch, folder).text
        date_files(folder)
        for _ in range(trials):
            lost += run(lambda: run_backwards(watch), folder).text != expected
    return Row(FAULT, "spar watch", trials, lost, "same lines")


def resume(command: LongCommand, trials: int) -> Row:
    """Kill a command, date its files to the future, and resume it with a clock that goes backwards."""
    rng, lost = random.Random(0), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected, seconds = run_undisturbed(command, folder)
        for _ in range(trials):
            out = make_folder(folder)
            child = Child(lambda out=out: run_backwards(lambda: command.run_in(out)), folder / "log.txt")
            time.sleep(rng.uniform(0, seconds))
            child.kill(signal.SIGKILL)
            child.wait()
            date_files(out)
            end = run(lambda out=out: run_backwards(lambda: command.run_in(out)), folder, 600)
            lost += end.code != 0 or command.read(out) != expected or bool(list_hidden(out))
    return Row(FAULT, f"{command.name}, killed and resumed", trials, lost, "the results of an undisturbed run")


def date_files(folder: Path) -> None:
    """Give every file a time stamp in the future."""
    for path in folder.rglob("*"):
        os.utime(path, (FUTURE, FUTURE))


def run_backwards(action: Callable[[], object]) -> object:
    """Run an action with a clock that goes back an hour at each call. Only child processes call this."""
    seconds = itertools.count(4_000_000_000, -3600)
    time.time = lambda: float(next(seconds))
    time.time_ns = lambda: next(seconds) * 10**9

    class Date(datetime.date):
        @classmethod
        def today(cls) -> datetime.date:
            return datetime.date.fromtimestamp(next(seconds))

    datetime.date = Date  # type: ignore[misc]
    return action()
