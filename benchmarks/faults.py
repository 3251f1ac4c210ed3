"""Inject faults into everything that writes or reads files: kills, full disks, two writers, signals and damaged files.

Each file must be the old or the new one, never a part. A failing command ends with exit code 2 and names the reason, a
stopped one with 130. A damaged file is refused. Run ``python -m benchmarks.faults``; ``--only kills --trials 5`` runs
less. Trials run in forked processes, which share the imports of this one and so take milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyspar
from benchmarks.measure import print_table

RESULTS = Path(__file__).parent / "results" / "faults.json"
NUMBERS = ["x0", "x1", "x2"]
STOPPED = 130
FAILED = 2
MOST_SECONDS = 5.0
"""A stopped command has to end within this time."""
DISK_BYTES = 400
"""A child may write files of this size only, as on a full disk. Every output is larger."""


@dataclass(frozen=True)
class Row:
    """One fault at one place: the number of trials, those with a lost or damaged result, and what happened."""

    fault: str
    where: str
    trials: int
    lost: int
    outcome: str


@dataclass(frozen=True)
class Command:
    """A call that replaces files. ``run`` gets a folder of :func:`write_inputs` and the stem of the source."""

    name: str
    run: Callable[[Path, str], int]
    outputs: tuple[str, ...]


class Child:
    """An action in a forked process. What it prints is read from a pipe, which no limit of the file size affects."""

    def __init__(self, action: Callable[[], object]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(writer, 1)
            os.dup2(writer, 2)
            sys.stdout = sys.stderr = os.fdopen(writer, "w", buffering=1)
            os._exit(_exit_code(action))
        os.close(writer)

    def kill(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, limit: float = 120.0) -> tuple[int, str, float]:
        """Return the exit code (negative for a signal), the output, and the seconds until the end."""
        start, output = time.monotonic(), b""
        while time.monotonic() - start < limit:
            ready, _, _ = select.select([self._reader], [], [], 0.1)
            if ready:
                part = os.read(self._reader, 65536)
                if not part:
                    break
                output += part
        else:
            self.kill()
        os.close(self._reader)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status), output.decode(errors="replace"), time.monotonic() - start


def _exit_code(action: Callable[[], object]) -> int:
    try:
        code = action()
    except BaseException:  # noqa: BLE001 - the child reports every exception
        traceback.print_exc()
        code = 1
    with suppress(OSError):
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def run_spar(*arguments: object) -> int:
    """Run ``spar`` in this process, and return its exit code."""
    from pyspar.__main__ import main

    sys.argv = ["spar", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def spar(*words: str) -> Callable[[Path, str], int]:
    """Return a call of ``spar``. SOURCE and MODEL stand for a source and its model; names with @ are in the folder."""

    def run(folder: Path, source: str) -> int:
        files = {"SOURCE": folder / f"{source}.csv", "MODEL": folder / f"{source}.skops"}
        return run_spar(*(files.get(w, folder / w[1:] if w.startswith("@") else w) for w in words))

    return run


def call(function: Callable[[Path, pd.DataFrame], object]) -> Callable[[Path, str], int]:
    """Return a call of a function of Python. An error is printed, and the exit code is that of a command."""

    def run(folder: Path, source: str) -> int:
        try:
            function(folder, pd.read_csv(folder / f"{source}.csv"))
        except (pyspar.InputError, OSError) as error:
            print(f"{type(error).__name__}: {error}")
            return FAILED
        return 0

    return run


def save_model(folder: Path, table: pd.DataFrame) -> None:
    pyspar.save(pyspar.SpARRegressor().fit(table[NUMBERS], table["y"]), folder / "m.skops")


def save_moments(folder: Path, table: pd.DataFrame) -> None:
    pyspar.save(pyspar.Moments.of(table[NUMBERS], table["y"]), folder / "s.npz")


ADAPT = ("adapt", "SOURCE", "@target.csv", "--label", "y")
LABEL = ("label", "SOURCE", "@target.csv", "--label", "y", "--rows", "5", "-o", "@l.csv")
INSPECT = ("inspect", "SOURCE", "@target.csv", "--label", "y", "--html", "@r.html")
COMMANDS = (
    Command("spar adapt", spar(*ADAPT, "-o", "@p.csv", "--save-model", "@m.skops"), ("p.csv", "m.skops")),
    Command("spar adapt, Parquet", spar(*ADAPT, "-o", "@p.parquet"), ("p.parquet",)),
    Command("spar label", spar(*LABEL), ("l.csv",)),
    Command("spar predict", spar("predict", "MODEL", "@target.csv", "-o", "@q.csv"), ("q.csv",)),
    Command("spar inspect", spar(*INSPECT), ("r.html",)),
    Command("pyspar.save, model", call(save_model), ("m.skops",)),
    Command("pyspar.save, Moments", call(save_moments), ("s.npz",)),
)


def write_inputs(folder: Path) -> None:
    """Write a target, and two sources with their models, whose results differ."""
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(400, 3)), columns=NUMBERS).to_csv(folder / "target.csv", index=False)
    for name, slope in (("old", 1.0), ("new", -2.0)):
        X = pd.DataFrame(rng.normal(size=(80, 3)), columns=NUMBERS)
        X.assign(y=slope * X["x0"] + rng.normal(size=80)).to_csv(folder / f"{name}.csv", index=False)
        with redirect_stdout(StringIO()):
            assert spar(*ADAPT, "--save-model", f"@{name}.skops")(folder, name) == 0


class Prepared:
    """A folder with inputs, the old outputs of a command, and what its new outputs will be."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.command, self.folder = command, folder
        write_inputs(folder)
        start = time.monotonic()
        self._content = {source: self._run(source) for source in ("new", "old")}
        self.seconds = (time.monotonic() - start) / 2
        self._identity = {s: {f: identify(f, c) for f, c in files.items()} for s, files in self._content.items()}
        assert all(self._identity["old"][f] != self._identity["new"][f] for f in command.outputs), command.name
        self._names = {path.name for path in folder.iterdir()}

    def restore(self) -> None:
        for file, content in self._content["old"].items():
            (self.folder / file).write_bytes(content)

    def run_new(self) -> int:
        return self.command.run(self.folder, "new")

    def run_old(self) -> int:
        return self.command.run(self.folder, "old")

    def states(self) -> set[str]:
        """Return "old", "new" or "damaged" for the outputs."""
        found = set()
        for file in self.command.outputs:
            try:
                value = identify(file, (self.folder / file).read_bytes())
            except (OSError, ValueError):
                value = None
            found.add(next((s for s in ("old", "new") if value == self._identity[s][file]), "damaged"))
        return found

    def others(self) -> list[str]:
        """Return the files that a command left in addition to its outputs."""
        return [path.name for path in self.folder.iterdir() if path.name not in self._names]

    def _run(self, source: str) -> dict[str, bytes]:
        with redirect_stdout(StringIO()):  # in this process, so that the children need not import
            assert self.command.run(self.folder, source) == 0, self.command.name
        return {file: (self.folder / file).read_bytes() for file in self.command.outputs}


def identify(name: str, content: bytes) -> Any:
    """Return what distinguishes a whole file from others: not its times."""
    if name.endswith(".skops"):
        with tempfile.NamedTemporaryFile(suffix=".skops") as file:
            file.write(content)
            file.flush()
            model = pyspar.load(file.name)
        while hasattr(model, "steps"):
            model = model.steps[-1][1]
        return np.round(model.coef_, 9).tolist()
    return re.sub(rb"\b\d{4}-\d\d-\d\d\b", b"DATE", content) if name.endswith(".html") else content


def each_command(test: Callable[[Prepared, int], tuple[int, Counter[str]]], fault: str, trials: int) -> Iterator[Row]:
    """Yield a row per command."""
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as name:
            lost, counts = test(Prepared(command, Path(name)), trials)
        outcome = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        yield Row(fault, command.name, trials, lost, outcome)


def kill(prepared: Prepared, trials: int) -> tuple[int, Counter[str]]:
    """Kill a command at random moments."""
    rng, counts, lost = random.Random(0), Counter[str](), 0
    for _ in range(trials):
        prepared.restore()
        child = Child(prepared.run_new)
        time.sleep(rng.uniform(0.0, 1.2 * prepared.seconds))
        child.kill()
        code, _, _ = child.wait()
        states = prepared.states()
        counts["killed"] += code == -signal.SIGKILL
        counts["with a new file"] += "new" in states
        lost += "damaged" in states
    code, output, _ = Child(prepared.run_new).wait()
    assert code == 0, output
    return lost, counts


def stop(prepared: Prepared, trials: int) -> tuple[int, Counter[str]]:
    """Send SIGINT and SIGTERM at random moments."""
    rng, counts, lost = random.Random(1), Counter[str](), 0
    for number in range(trials):
        prepared.restore()
        child = Child(prepared.run_new)
        time.sleep(rng.uniform(0.0, 1.2 * prepared.seconds))
        child.kill(signal.SIGINT if number % 2 else signal.SIGTERM)
        code, _, seconds = child.wait()
        in_time = seconds < MOST_SECONDS
        ended = "stopped" if code == STOPPED else "finished" if code == 0 else f"ended with {code}"
        counts[ended] += 1
        left = bool(prepared.others()) and prepared.command.name.startswith("spar")
        by_signal = code in (-signal.SIGINT, -signal.SIGTERM, 1)  # before the handler is set, or in a function
        lost += "damaged" in prepared.states() or not in_time or left or not (code in (0, STOPPED) or by_signal)
    return lost, counts


def fill_disk(prepared: Prepared, trials: int) -> tuple[int, Counter[str]]:
    """Let every write fail after a few bytes."""
    counts, lost = Counter[str](), 0

    def run() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, DISK_BYTES))
        return prepared.run_new()

    for _ in range(trials):
        prepared.restore()
        code, output, _ = Child(run).wait()
        counts["refused" if code == FAILED else f"ended with {code}"] += 1
        lost += code != FAILED or prepared.states() != {"old"} or bool(prepared.others()) or not output.strip()
    return lost, counts


def write_twice(prepared: Prepared, trials: int) -> tuple[int, Counter[str]]:
    """Run a command with both sources at the same time."""
    counts, lost = Counter[str](), 0
    for _ in range(trials):
        prepared.restore()
        codes = [child.wait()[0] for child in (Child(prepared.run_new), Child(prepared.run_old))]
        counts["both finished"] += codes == [0, 0]
        lost += codes != [0, 0] or "damaged" in prepared.states() or bool(prepared.others())
    return lost, counts


def damage(trials: int) -> Iterator[Row]:
    """Truncate files and flip bits. They are refused, or read with the same content."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        table = pd.read_csv(folder / "new.csv")
        save_moments(folder, table)
        table.to_parquet(folder / "rows.parquet", index=False)
        readers = {"new.skops": lambda p: pyspar.load(p), "s.npz": lambda p: pyspar.load(p).root.tolist()}
        for file in ("new.skops", "s.npz", "rows.parquet"):
            yield _damage_file(folder, file, readers.get(file), trials)


def _damage_file(folder: Path, file: str, read: Callable[[Path], Any] | None, trials: int) -> Row:
    whole, rng, counts, lost = (folder / file).read_bytes(), random.Random(0), Counter[str](), 0
    path = folder / f"damaged{Path(file).suffix}"

    def try_to_read() -> int:
        resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, 6_000_000_000))
        if read is None:
            return run_spar("adapt", path, folder / "target.csv", "--label", "y")
        try:
            read(path)
        except pyspar.InputError as error:
            print(error)
            return FAILED
        return 0

    for number in range(trials):
        content = bytearray(whole)
        if number % 2:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content if number % 2 else content[: rng.randrange(len(content))])
        code, output, _ = Child(try_to_read).wait(20.0)
        result = {0: "read", FAILED: "refused"}.get(code, f"ended with {code}: {output.strip()[-80:]}")
        counts[result] += 1
        lost += code not in (0, FAILED) or (code == 0 and not number % 2)  # a truncated file is always refused
    return Row("damage", file, trials, lost, ", ".join(f"{n} {word}" for word, n in counts.items()))


def reproduce(trials: int) -> Iterator[Row]:
    """Kill ``spar reproduce`` several times, and compare its table with that of an undisturbed run."""
    with tempfile.TemporaryDirectory() as name:
        folder, lost = Path(name), 0

        def run(out: str) -> int:
            return run_spar("reproduce", "alpha", "--mini", "--out", folder / out)

        def table(out: str) -> bytes:
            return (folder / out / "alpha" / "table.csv").read_bytes()

        start = time.monotonic()
        code, output, _ = Child(lambda: run("whole")).wait(600.0)
        assert code == 0, output
        seconds, rng, few = time.monotonic() - start, random.Random(0), max(1, trials // 10)
        for number in range(few):
            for _ in range(3):
                child = Child(lambda number=number: run(f"killed{number}"))
                time.sleep(rng.uniform(0.0, seconds))
                child.kill()
                child.wait()
            code, _, _ = Child(lambda number=number: run(f"killed{number}")).wait(600.0)
            lost += code != 0 or table(f"killed{number}") != table("whole")
    yield Row("kill -9", "spar reproduce", few, lost, "killed three times, then resumed to the same table")


FAULTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "kills": lambda trials: each_command(kill, "kill -9", trials),
    "signals": lambda trials: each_command(stop, "Ctrl-C or SIGTERM", trials),
    "disks": lambda trials: each_command(fill_disk, "full disk", max(1, trials // 5)),
    "writers": lambda trials: each_command(write_twice, "two writers", max(1, trials // 2)),
    "damage": lambda trials: damage(4 * trials),
    "reproduce": reproduce,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=tuple(FAULTS), default=tuple(FAULTS))
    parser.add_argument("--trials", type=int, default=20, help="trials of each command (default 20)")
    args = parser.parse_args(arguments)
    rows = []
    for name in args.only:
        for row in FAULTS[name](args.trials):
            rows.append(row)
            print(f"{row.fault}, {row.where}: {row.lost} of {row.trials} lost", flush=True)
    print_table(
        "Injected faults", ["fault", "where", "trials", "lost", "outcome"], [[*asdict(r).values()] for r in rows]
    )
    if len(args.only) == len(FAULTS):
        RESULTS.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    if lost := sum(row.lost for row in rows):
        raise SystemExit(f"{lost} trials lost or damaged a result")


if __name__ == "__main__":
    main()
