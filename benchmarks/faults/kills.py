"""Kill and stop the commands that write files at random moments. Each file must be the old one or the new one."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyspar
from benchmarks.faults.damage import train_with_checkpoint
from benchmarks.faults.trials import Child, Row, last_line, run, run_command
from pyspar.io import atomic
from pyspar.tables import streamed
from pyspar.terminal import STOPPED

MOST_SECONDS = 5.0
"""A stopped command has to end within this time."""

NUMBERS = ["x0", "x1", "x2"]


@dataclass(frozen=True)
class Command:
    """A command with the name of its source in a list of arguments, and the files that it writes."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]

    def run_in(self, folder: Path, source: str) -> int:
        files = {"SOURCE": folder / source, **{name: folder / name for name in ("target.csv", *self.outputs)}}
        return run_command(*(files.get(word, word) for word in self.arguments))


ADAPT = ("adapt", "SOURCE", "target.csv", "--label", "y")
COMMANDS = (
    Command("spar adapt -o .csv --save", (*ADAPT, "-o", "p.csv", "--save", "m.skops"), ("p.csv", "m.skops")),
    Command("spar adapt -o .parquet", (*ADAPT, "-o", "p.parquet"), ("p.parquet",)),
    Command("spar adapt -o .npy", (*ADAPT, "-o", "p.npy"), ("p.npy",)),
    Command(
        "spar adapt --stream -o .csv --save", (*ADAPT, "--stream", "-o", "p.csv", "--save", "m.skops"),
        ("p.csv", "m.skops"),
    ),
    Command("spar summarize -o", ("summarize", "SOURCE", "--label", "y", "-o", "s.npz"), ("s.npz",)),
    Command(
        "spar inspect --report (page and JSON)",
        ("inspect", "SOURCE", "target.csv", "--label", "y", "--report", "r.html", "--report", "r.json"),
        ("r.html", "r.json"),
    ),
)  # fmt: skip
STREAM = COMMANDS[3]
SLOW_COMMANDS = ("spar inspect --report (page and JSON)",)


def write_inputs(folder: Path) -> None:
    """Write a target and two sources, whose results differ."""
    rng = np.random.default_rng(0)
    target = pd.DataFrame(rng.normal(size=(400, 3)), columns=NUMBERS)
    target.to_csv(folder / "target.csv", index=False)
    for name, slope in (("old.csv", 1.0), ("new.csv", -2.0)):
        X = pd.DataFrame(rng.normal(size=(80, 3)), columns=NUMBERS)
        X.assign(y=slope * X["x0"] + rng.normal(size=80)).to_csv(folder / name, index=False)


def kill_commands(trials: int) -> Iterator[Row]:
    """Kill each command. Commands that draw figures or train networks take seconds, and get fewer trials."""
    for command in COMMANDS:
        yield kill_command(command, max(2, trials // 10) if command.name in SLOW_COMMANDS else trials)
    yield kill_training(max(2, trials // 3))
    yield kill_reproduction(max(1, trials // 15))


def kill_command(command: Command, trials: int) -> Row:
    """Kill a command at random moments: half of them over its whole time, half while it writes."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        with redirect_stdout(None):
            command.run_in(folder, "old.csv")  # in this process, so that the children do not import again
        old = {file: (folder / file).read_bytes() for file in command.outputs}
        allowed = {file: [identify(folder / file)] for file in command.outputs}
        times = [_time_run(lambda: command.run_in(folder, "new.csv"), folder) for _ in range(3)]
        seconds = [min(values) for values in zip(*times, strict=True)]
        for file, values in allowed.items():
            values.append(identify(folder / file))
        counts: Counter[str] = Counter()
        left: set[str] = set()
        for number in range(trials):
            for file, content in old.items():
                (folder / file).write_bytes(content)
            counts[_kill_once(lambda: command.run_in(folder, "new.csv"), folder, seconds, number % 2 == 1, rng)] += 1
            found = {file: _index(allowed[file], folder / file) for file in command.outputs}
            counts["lost"] += -1 in found.values()
            counts["replaced"] += 1 in found.values()
            left |= {path.name for path in folder.glob(".*")}
        assert run(lambda: command.run_in(folder, "new.csv"), folder).code == 0
        not_removed = len(list(folder.glob(".*")))
    outcome = (
        f"{counts['killed']} killed, {counts['finished']} finished before; a new file in {counts['replaced']}, only "
        f"old files in the others; {len(left)} temporary files were left, {not_removed} of them after the next run"
    )
    return Row("SIGKILL at a random moment", command.name, trials, counts["lost"] + not_removed, outcome)


def identify(path: Path) -> Any:
    """Return what distinguishes a whole file from others; a model file contains the time of its entries."""
    return pyspar.load(path)[-1].coef_.tolist() if path.suffix == ".skops" else path.read_bytes()


def kill_training(trials: int) -> Row:
    """Kill training at random moments; the resumed run must end with the weights of an undisturbed one."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = train_with_checkpoint(folder / "undisturbed.pt")
        start = time.monotonic()
        train_with_checkpoint(folder / "again.pt")
        seconds = time.monotonic() - start
        lost, killed, path = 0, 0, folder / "run.pt"
        for _ in range(trials):
            child = Child(lambda: train_with_checkpoint(path), folder / "log.txt")
            time.sleep(rng.uniform(0, 1.2 * seconds))
            child.kill()
            killed += child.wait().code == -signal.SIGKILL
            weights = train_with_checkpoint(path)
            lost += not all(map(np.array_equal, weights, expected))
            lost += len(list(folder.glob(".*")))
            path.unlink()
    outcome = f"{killed} killed; every resumed run ended with the weights of an undisturbed run"
    return Row("SIGKILL at a random moment", "training with a checkpoint", trials, lost, outcome)


def kill_reproduction(trials: int) -> Row:
    """Kill ``spar reproduce`` at random moments; the resumed run must write the files of an undisturbed one."""
    rng = random.Random(0)
    files = ("records.jsonl", "table.md", "table.csv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def reproduce(out: str) -> int:
            return run_command("reproduce", "alpha", "--mini", "--out", folder / out)

        start = time.monotonic()
        assert run(lambda: reproduce("undisturbed"), folder, 600).code == 0
        seconds = time.monotonic() - start
        expected = [(folder / "undisturbed" / "alpha" / file).read_bytes() for file in files]
        lost = killed = 0
        for number in range(trials):
            out = f"killed{number}"
            child = Child(lambda out=out: reproduce(out), folder / "log.txt")
            time.sleep(rng.uniform(0, seconds))
            child.kill()
            killed += child.wait().code == -signal.SIGKILL
            code = run(lambda out=out: reproduce(out), folder, 600).code
            written = [(folder / out / "alpha" / file).read_bytes() for file in files] if code == 0 else []
            left = [path for path in (folder / out).rglob(".*") if path.is_file()]
            lost += written != expected or bool(left)
    outcome = f"{killed} killed; every resumed run wrote the files of an undisturbed run"
    return Row("SIGKILL at a random moment", "spar reproduce", trials, lost, outcome)


def stop_streams(trials: int) -> Iterator[Row]:
    """Send SIGTERM to streaming commands; with many columns one operation takes seconds."""
    yield _stop_stream("spar adapt --stream, 60 columns", (60_000, 60), trials, within=0.4)
    yield _stop_stream("spar adapt --stream, 2,000 columns", (4_100, 2_000), max(2, trials // 4), within=8.0)


def _stop_stream(where: str, shape: tuple[int, int], trials: int, *, within: float) -> Row:
    """Stop a command at random moments of the first ``within`` seconds after it begins to read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        with redirect_stdout(None):
            STREAM.run_in(folder, "old.csv")  # in this process, so that the children do not import again
        np.save(folder / "rows.npy", np.random.default_rng(0).normal(size=shape).astype(np.float32))
        return _stop_in(folder, where, trials, within)


def _stop_in(folder: Path, where: str, trials: int, within: float) -> Row:
    random_number = random.Random(0)
    out = folder / "out"
    out.mkdir()
    arguments = ("adapt", folder / "rows.npy", folder / "rows.npy", "--label", "x0", "--stream", "-o", out / "p.csv")
    lost, slowest, codes, message = 0, 0.0, Counter[int](), ""
    for _ in range(trials):
        (out / "p.csv").unlink(missing_ok=True)
        child, reader = _start_watched(lambda: run_command(*arguments), folder, streamed, "start_reading")
        os.read(reader, 1)
        os.close(reader)
        time.sleep(random_number.uniform(0, within))
        child.kill(signal.SIGTERM)
        end = child.wait()
        slowest = max(slowest, end.seconds)
        codes[end.code] += 1
        expected = {"p.csv"} if end.code == 0 else set()
        lost += end.code not in (0, STOPPED) or end.seconds > MOST_SECONDS or not set(os.listdir(out)) <= expected
        message = last_line(end.text) if end.code == STOPPED else message
    outcome = (
        f"exit code {STOPPED} in {codes[STOPPED]}, finished before in {codes[0]}; slowest end {slowest:.1f} s; no file "
        "was left"
    )
    return Row("SIGTERM during streaming", where, trials, lost, outcome, message)


def _time_run(action: Callable[[], object], folder: Path) -> tuple[float, float]:
    """Return the seconds of an undisturbed run until it begins to write, and from then to its end."""
    child, reader = _start_watched(action, folder)
    start = time.monotonic()
    os.read(reader, 1)
    begin = time.monotonic()
    end = child.wait()
    os.close(reader)
    assert end.code == 0, end.text
    return begin - start, time.monotonic() - begin


def _kill_once(
    action: Callable[[], object], folder: Path, seconds: Sequence[float], while_writing: bool, rng: random.Random
) -> str:
    """Kill one run, and return whether it was killed or finished before."""
    child, reader = _start_watched(action, folder)
    if while_writing:
        os.read(reader, 1)
        time.sleep(rng.uniform(0, seconds[1]))
    else:
        time.sleep(rng.uniform(0, sum(seconds)))
    child.kill()
    os.close(reader)
    return "killed" if child.wait().code == -signal.SIGKILL else "finished"


def _start_watched(
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


def _index(values: Sequence[Any], path: Path) -> int:
    """Return which of the whole files this is; -1 for none."""
    try:
        value = identify(path)
    except (OSError, ValueError):
        return -1
    return values.index(value) if value in values else -1
