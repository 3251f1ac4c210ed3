"""Kill the commands that write files at random moments. Each file must be the old one or the new one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.faults.commands import COMMANDS, LONG_COMMANDS, Command, LongCommand, Prepared, write_inputs
from benchmarks.faults.trials import Child, Row, run, run_command
from pyspar.io import atomic

KILL = "SIGKILL at a random moment"


def kill_commands(trials: int, n_workers: int = 4) -> Iterator[Row]:
    """Kill each command, several commands at a time. Commands that take seconds get fewer trials."""
    few = max(2, trials // 2)
    counts = [few if command.is_slow else trials for command in COMMANDS]
    with ProcessPoolExecutor(n_workers, get_context("fork")) as workers:
        yield from workers.map(_kill_numbered, range(len(COMMANDS)), counts)
    yield kill_watch(few)


def _kill_numbered(number: int, trials: int) -> Row:  # a command cannot be sent to a process, its number can
    return kill_command(COMMANDS[number], trials)


def kill_command(command: Command, trials: int) -> Row:
    """Kill a command at random moments: half of them over its whole time, half while it writes."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        prepared = Prepared(command, Path(name))
        before, writing = measure_seconds(prepared)
        counts: Counter[str] = Counter()
        left: set[str] = set()
        for number in range(trials):
            prepared.restore()
            child, reader = start_watched(prepared.run_new, prepared.folder)
            if number % 2 == 1:
                os.read(reader, 1)
                time.sleep(rng.uniform(0, writing))
            else:
                time.sleep(rng.uniform(0, before + writing))
            child.kill()
            os.close(reader)
            counts["killed"] += child.wait().code == -signal.SIGKILL
            states = prepared.list_states()
            counts["lost"] += "damaged" in states
            counts["replaced"] += "new" in states
            left |= {path.name for path in prepared.list_others()}
        assert run(prepared.run_new, prepared.folder).code == 0
        not_removed = len(prepared.list_others())
    outcome = (
        f"{counts['killed']} killed, {trials - counts['killed']} finished before; a new file in {counts['replaced']}, "
        f"only old files in the others; {len(left)} temporary files were left, {not_removed} of them after the next run"
    )
    return Row(KILL, command.name, trials, counts["lost"] + not_removed, outcome)


def kill_watch(trials: int) -> Row:
    """Kill ``spar watch``, which writes no files: its printed lines must be right, and its inputs unchanged."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        batches = folder / "batches"
        batches.mkdir()
        for number in range(8):
            shutil.copy(folder / "target.csv", batches / f"b{number}.csv")

        def watch() -> int:
            return run_command("watch", folder / "new.skops", batches, "--once", "--json")

        def read_inputs() -> dict[Path, bytes]:
            files = [path for path in folder.rglob("*") if path.is_file() and path.name != "log.txt"]
            return {path: path.read_bytes() for path in files}

        inputs, start = read_inputs(), time.monotonic()
        expected = run(watch, folder).text.splitlines()
        seconds = time.monotonic() - start
        lost = killed = 0
        for _ in range(trials):
            child = Child(watch, folder / "log.txt")
            time.sleep(rng.uniform(0, seconds))
            child.kill()
            end = child.wait()
            killed += end.code == -signal.SIGKILL
            lines = end.text.splitlines()
            lost += lines != expected[: len(lines)] or read_inputs() != inputs
        lost += run(watch, folder).text.splitlines() != expected
    outcome = f"{killed} killed; each printed line is whole, no file was changed, and the next run prints all lines"
    return Row(KILL, "spar watch", trials, lost, outcome)


def kill_long_commands(trials: int) -> Iterator[Row]:
    """Kill each command that can be resumed."""
    for command in LONG_COMMANDS:
        yield kill_long_command(command, trials)


def kill_long_command(command: LongCommand, trials: int, n_workers: int = 4) -> Row:
    """Kill a command that can be resumed; the resumed run must end with the results of an undisturbed one.

    The trials are shared by worker processes, because a command that is killed spends much of its time waiting.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected, seconds = run_undisturbed(command, folder)

        def kill_some(number: int) -> None:
            own = folder / f"worker{number}"
            own.mkdir()
            rng = random.Random(number)
            for _ in range(number, trials, n_workers):
                print("counts", *_kill_long_once(command, own, expected, rng.uniform(0, seconds)))

        workers = [Child(lambda n=n: kill_some(n), folder / f"log{n}.txt") for n in range(n_workers)]
        text = "\n".join(worker.wait(3600).text for worker in workers)
    counts = [list(map(int, line.split()[1:])) for line in text.splitlines() if line.startswith("counts")]
    assert len(counts) == trials, text
    killed, n_left, lost = map(sum, zip(*counts, strict=True))
    if lost:
        print(text, file=sys.stderr)
    outcome = (
        f"{killed} killed; {n_left} temporary files were left, none after the next run; every resumed run ended with "
        "the results of an undisturbed run"
    )
    return Row(KILL, command.name, trials, lost, outcome)


def _kill_long_once(command: LongCommand, folder: Path, expected: Any, seconds: float) -> tuple[int, int, int]:
    """Kill a run after some seconds and resume it; return whether it was killed, its files, and whether it is lost."""
    out = make_folder(folder)
    child = Child(lambda: command.run_in(out), folder / "log.txt")
    time.sleep(seconds)
    child.kill()
    killed = child.wait().code == -signal.SIGKILL
    n_left = len(list_hidden(out))
    return int(killed), n_left, int(not is_resumed(command, out, expected))


def run_undisturbed(command: LongCommand, folder: Path) -> tuple[Any, float]:
    """Return the results of a whole run and its seconds. A first run imports what it needs into this process."""
    with redirect_stdout(None), redirect_stderr(None):
        code = command.run_in(make_folder(folder))
    assert not code, f"{command.name}: exit code {code}"
    out, start = make_folder(folder), time.monotonic()
    end = run(lambda: command.run_in(out), folder, 600)
    assert end.code == 0, end.text
    return command.read(out), time.monotonic() - start


def is_resumed(command: LongCommand, out: Path, expected: Any) -> bool:
    """Run a command on the files of an interrupted run, and return whether its results are the expected ones."""
    end = run(lambda: command.run_in(out), out.parent, 600)
    is_same = end.code == 0 and command.read(out) == expected
    if not is_same or list_hidden(out):
        print(f"lost: code {end.code}, same: {is_same}, {list_hidden(out)}, {end.text[-1000:]}", file=sys.stderr)
    return is_same and not list_hidden(out)


def make_folder(folder: Path) -> Path:
    """Return the empty folder of a run; the one before is deleted."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    return out


def list_hidden(folder: Path) -> list[Path]:
    """Return the temporary files in a folder and its subfolders."""
    return [path for path in folder.rglob(".*") if path.is_file()]


def measure_seconds(prepared: Prepared) -> tuple[float, float]:
    """Return the seconds of an undisturbed run until it begins to write, and from then to its end."""
    times = []
    for _ in range(3):
        child, reader = start_watched(prepared.run_new, prepared.folder)
        start = time.monotonic()
        os.read(reader, 1)
        begin = time.monotonic()
        end = child.wait()
        os.close(reader)
        assert end.code == 0, end.text
        times.append((begin - start, time.monotonic() - begin))
    before, writing = (min(values) for values in zip(*times, strict=True))
    return before, writing


def start_watched(
    action: Callable[[], object], folder: Path, owner: Any = atomic._Draft, name: str = "__enter__"
) -> tuple[Child, int]:
    """Start a run, and return it with a pipe that receives a byte when a function is called, by default to write."""
    reader, writer = os.pipe()

    def watched() -> object:
        function = getattr(owner, name)

        def report(*arguments: Any) -> Any:
            os.write(writer, b"w")
            return function(*arguments)

        setattr(owner, name, report)
        return action()

    child = Child(watched, folder / "log.txt")
    os.close(writer)
    return child, reader
