"""Every command and function of pyspar that writes files, with inputs for two different results."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyspar
from benchmarks.faults.formats import train_with_checkpoint
from benchmarks.faults.trials import run_command
from pyspar.errors import InputError

NUMBERS = ["x0", "x1", "x2"]


@dataclass(frozen=True)
class Command:
    """A command, or a call of a function, that replaces files.

    Attributes
    ----------
    run_in : the action on a folder of :func:`write_inputs`; its second argument is the stem of the source
    outputs : the files that it writes
    is_slow : whether it takes seconds, and gets fewer trials
    """

    name: str
    run_in: Callable[[Path, str], int]
    outputs: tuple[str, ...]
    is_slow: bool = False


@dataclass(frozen=True)
class LongCommand:
    """A command that uses the files of an interrupted run: the action on a folder, and its results."""

    name: str
    run_in: Callable[[Path], object]
    read: Callable[[Path], Any]


def _spar(*words: str) -> Callable[[Path, str], int]:
    """Return a call of ``spar``. SOURCE and MODEL stand for a source and its model, names with @ are in the folder."""

    def run(folder: Path, source: str) -> int:
        files = {"SOURCE": folder / f"{source}.csv", "MODEL": folder / f"{source}.skops"}
        return run_command(*(files.get(w, folder / w[1:] if w.startswith("@") else w) for w in words))

    return run


def _call(function: Callable[[Path, pd.DataFrame], object]) -> Callable[[Path, str], int]:
    """Return a call of a function of Python. An error is printed, and the exit code is that of a command."""

    def run(folder: Path, source: str) -> int:
        try:
            function(folder, pd.read_csv(folder / f"{source}.csv"))
        except (InputError, OSError) as error:
            print(f"{type(error).__name__}: {error}")
            return 2
        return 0

    return run


def _save_model(folder: Path, table: pd.DataFrame) -> None:
    pyspar.save(pyspar.SpARRegressor().fit(table[NUMBERS], table["y"]), folder / "m.skops")


def _save_moments(folder: Path, table: pd.DataFrame) -> None:
    pyspar.save(pyspar.Moments.of(table[NUMBERS], table["y"]), folder / "s.npz")


def _save_report(folder: Path, table: pd.DataFrame) -> None:
    model = pyspar.BayesSpARRegressor().fit(table[NUMBERS], table["y"])
    pyspar.report(model, pd.read_csv(folder / "target.csv"), title="a title", command="a call").save(folder / "r.json")


ADAPT = ("adapt", "SOURCE", "@target.csv", "--label", "y")
SAVED = ("p.csv", "m.skops")
LABELLED = ("--labels", "@labels.csv", "--use-target-labels")
LABEL = ("label", "SOURCE", "@target.csv", "--label", "y", "--rows", "5")
INSPECT = ("inspect", "SOURCE", "@target.csv", "--label", "y", "--report", "@r.html", "--report", "@r.json")
COMMANDS = (
    Command("spar adapt -o .csv --save", _spar(*ADAPT, "-o", "@p.csv", "--save", "@m.skops"), SAVED),
    Command("spar adapt -o .parquet", _spar(*ADAPT, "-o", "@p.parquet"), ("p.parquet",)),
    Command("spar adapt -o .npy", _spar(*ADAPT, "-o", "@p.npy"), ("p.npy",)),
    Command(
        "spar adapt --stream -o .csv --save", _spar(*ADAPT, "--stream", "-o", "@p.csv", "--save", "@m.skops"), SAVED
    ),
    Command("spar adapt --use-target-labels -o .csv", _spar(*ADAPT, *LABELLED, "-o", "@p.csv"), ("p.csv",)),
    Command("spar label -o .csv", _spar(*LABEL, "-o", "@l.csv"), ("l.csv",)),
    Command("spar label -o .parquet", _spar(*LABEL, "-o", "@l.parquet"), ("l.parquet",)),
    Command("spar predict -o .csv", _spar("predict", "MODEL", "@target.csv", "-o", "@q.csv"), ("q.csv",)),
    Command("spar predict -o .parquet", _spar("predict", "MODEL", "@target.csv", "-o", "@q.parquet"), ("q.parquet",)),
    Command("spar summarize -o", _spar("summarize", "SOURCE", "--label", "y", "-o", "@s.npz"), ("s.npz",)),
    Command("pyspar.save of a model", _call(_save_model), ("m.skops",)),
    Command("pyspar.save of Moments", _call(_save_moments), ("s.npz",)),
    Command("pyspar.report(...).save", _call(_save_report), ("r.json",)),
    Command("spar inspect --report (page and JSON)", _spar(*INSPECT), ("r.html", "r.json"), is_slow=True),
)
FAST_COMMANDS = tuple(command for command in COMMANDS if not command.is_slow)
REPRODUCTION_FILES = ("records.jsonl", "table.md", "table.csv")


def _check_data(folder: Path) -> int:
    os.environ["PYSPAR_CACHE"] = str(folder)
    return run_command("data", "check", "rcf-mnist")


def _read_cache(folder: Path) -> Any:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("rcf-mnist/*")}


REPRODUCE = LongCommand(
    "spar reproduce",
    lambda folder: run_command("reproduce", "alpha", "--mini", "--out", folder),
    lambda folder: [(folder / "alpha" / file).read_bytes() for file in REPRODUCTION_FILES],
)
CHECK_DATA = LongCommand("spar data check (builds and caches rcf-mnist)", _check_data, _read_cache)
TRAIN = LongCommand(
    "training with a checkpoint",
    lambda folder: train_with_checkpoint(folder / "run.pt") and 0,
    lambda folder: [weights.tolist() for weights in train_with_checkpoint(folder / "run.pt")],
)
LONG_COMMANDS = (TRAIN, CHECK_DATA, REPRODUCE)


def write_inputs(folder: Path) -> None:
    """Write a target with some labels, and two sources with their models, whose results differ."""
    rng = np.random.default_rng(0)
    target = pd.DataFrame(rng.normal(size=(400, 3)), columns=NUMBERS)
    target.to_csv(folder / "target.csv", index=False)
    labels = target.iloc[:20].assign(y=np.arange(20.0))
    labels.insert(0, "row", range(20))
    labels.to_csv(folder / "labels.csv", index=False)
    for name, slope in (("old", 1.0), ("new", -2.0)):
        X = pd.DataFrame(rng.normal(size=(80, 3)), columns=NUMBERS)
        X.assign(y=slope * X["x0"] + rng.normal(size=80)).to_csv(folder / f"{name}.csv", index=False)
        with redirect_stdout(None):
            assert _spar(*ADAPT, "--save", f"@{name}.skops")(folder, name) == 0


class Prepared:
    """A folder with inputs, old outputs, and the expected new outputs of a command."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.command, self.folder = command, folder
        write_inputs(folder)
        self.old = self._run("old")
        self._old = {file: identify(folder / file) for file in command.outputs}
        self._run("new")
        self._new = {file: identify(folder / file) for file in command.outputs}
        assert all(self._old[file] != self._new[file] for file in command.outputs), command.name
        self.restore()
        self._names = {path.name for path in folder.iterdir()}

    def restore(self) -> None:
        """Write the old outputs."""
        for file, content in self.old.items():
            (self.folder / file).write_bytes(content)

    def run_new(self) -> int:
        """Run the command with the new source."""
        return self.command.run_in(self.folder, "new")

    def list_states(self) -> list[str]:
        """Return "old", "new" or "damaged" for each output."""
        states = []
        for file in self.command.outputs:
            try:
                value = identify(self.folder / file)
            except (OSError, ValueError):
                value = None
            states.append("old" if value == self._old[file] else "new" if value == self._new[file] else "damaged")
        return states

    def list_others(self) -> list[Path]:
        """Return the files that a command left in addition to its outputs."""
        return [p for p in self.folder.iterdir() if p.name not in {*self._names, "log.txt", "filler"} and p.is_file()]

    def clean(self, message: str) -> str:
        """Return a message without the name of the folder."""
        return message.replace(f"{self.folder}/", "").replace(str(self.folder), "folder")

    def _run(self, source: str) -> dict[str, bytes]:
        with redirect_stdout(None):  # in this process, so that the children do not import again
            assert self.command.run_in(self.folder, source) == 0, self.command.name
        return {file: (self.folder / file).read_bytes() for file in self.command.outputs}


def identify(path: Path) -> Any:
    """Return what distinguishes a whole file from others: not its times, dates or durations."""
    if path.suffix == ".skops":
        model = pyspar.load(path)
        return (model[-1] if hasattr(model, "steps") else model).coef_.tolist()
    content = path.read_bytes()
    return re.sub(rb"\b\d{4}-\d\d-\d\d\b", b"DATE", content) if path.suffix in (".html", ".json") else content
