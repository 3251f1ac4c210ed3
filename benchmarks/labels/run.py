"""Make the records: the error of each method on the rows of the target without a label."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.labels.bases import BASES, NETWORK, OURS, Problem, problems
from benchmarks.labels.methods import (
    CORRECTION,
    HEAD_CORRECTION,
    LINEAR_CORRECTION,
    METHODS,
    ONLY_AROUND,
    Case,
    Lookup,
)
from benchmarks.labels.peers import PEERS
from benchmarks.measure import run_in_processes
from benchmarks.shifts.sets import BLIND, CHECK, FINAL, NEW, NEWEST, REGISTER, RESERVE

TESTS = (NEW, NEWEST, FINAL, RESERVE, CHECK, BLIND)
"""Parts on which all methods are run; on the others only the fast ones."""

LATEST_PARTS = (RESERVE, CHECK, BLIND)
"""Parts on which models are refitted for all numbers of labels, and the slowest method of another library is run."""

PARTS = ("design", *TESTS)

RESULTS = Path(__file__).parents[1] / "results"
RECORDS = RESULTS / "labels.jsonl"
PEER_RECORDS = RESULTS / "labels-peers.jsonl"

LABELS = (5, 10, 20, 30, 50, 200)
DRAWS = 5
MIN_ROWS_LEFT = 40
"""A set is used for n labels if at least this many rows remain for the error."""

Record = dict[str, Any]
Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Stage:
    """Methods around models on a part; cheap and important stages come first."""

    part: str
    bases: tuple[str, ...]
    methods: tuple[str, ...]
    labels: tuple[int, ...] = LABELS
    draws: int = DRAWS


CHEAP = (CORRECTION, LINEAR_CORRECTION, "offset", "line", "target-only ridge", "ridge on the residual")
FAST_BASES = ("RidgeCV", OURS, "HistGradientBoosting")
SLOW_BASES = ("RandomForest", NETWORK)
NETWORK_METHODS = (HEAD_CORRECTION, "fine-tuned last layer")
STRATEGIES = ("quantiles", "greedy")
"""Ways to choose the labelled rows apart from random rows."""

CHOOSE_ROWS = tuple(f"{CORRECTION}, rows by {s}" for s in STRATEGIES)


def stages(part: str) -> list[Stage]:
    """Return the stages of a part. Slow models are not refitted on design data; only the latest parts use all draws."""
    is_test = part in TESTS
    is_latest = part in LATEST_PARTS
    labels = LABELS if is_test else (10, 30)
    refit_labels = LABELS if is_latest else (10, 30)
    appended = ("append", "append, weighted")
    refits = [
        Stage(part, ("HistGradientBoosting",), appended, refit_labels, DRAWS if is_latest else 2),
        Stage(part, SLOW_BASES, appended if is_latest else ("append",), refit_labels, DRAWS if is_latest else 1),
    ]
    return [
        Stage(part, FAST_BASES, CHEAP, labels),
        *([Stage(part, FAST_BASES, CHOOSE_ROWS, (10, 30))] if is_test else []),
        Stage(part, SLOW_BASES if is_test else (NETWORK,), CHEAP, labels),
        *([Stage(part, (NETWORK,), NETWORK_METHODS, labels)] if is_test else []),
        Stage(part, ("RidgeCV", OURS), appended, refit_labels, DRAWS if is_test else 2),
        *(refits if is_test else []),
    ]


def peer_stages(part: str) -> list[Stage]:
    """Return the stages of the other library."""
    is_latest = part in LATEST_PARTS
    labels = LABELS if is_latest else (10, 30)
    linear = ("RidgeCV", OURS) if is_latest else ("RidgeCV",)
    return [
        Stage(part, linear, ("ADAPT RegularTransferLR", "ADAPT PRED", "ADAPT FA"), labels),
        Stage(part, linear, ("ADAPT TrAdaBoostR2",), labels, 2),
        Stage(part, ("HistGradientBoosting",), ("ADAPT PRED", "ADAPT FA"), labels, 2),
        Stage(part, ("HistGradientBoosting",), ("ADAPT TrAdaBoostR2",), labels, 1),
        *([Stage(part, ("RidgeCV",), ("ADAPT TwoStageTrAdaBoostR2",), labels, 1)] if is_latest else []),
    ]


def read(*paths: Path) -> dict[Key, Record]:
    """Read records by set, model, method and number of labels. Incomplete lines are skipped."""
    records: dict[Key, Record] = {}
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                record = json.loads(text)
            except json.JSONDecodeError:
                continue
            records[record["set"], record["base"], record["method"], record["n"]] = record
    return records


def append_record(path: Path, record: Record) -> None:
    """Append one line in one write, so that a run that is stopped leaves whole lines."""
    text = json.dumps(record, ensure_ascii=False) + "\n"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def tidy(path: Path) -> None:
    """Sort the records and drop those that were replaced."""
    records = read(path)
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(records[key], ensure_ascii=False) + "\n" for key in sorted(records)), "utf-8")
    os.replace(part, path)


def draw_rows(problem: Problem, n: int, draw: int) -> np.ndarray:
    """Return n random rows of the target; the rows of a smaller n are among those of a larger n."""
    seed = [zlib.crc32(problem.shift.name.encode()), draw]
    return np.random.default_rng(seed).permutation(len(problem.arrays[2]))[:n]


def choose_rows(problem: Problem, base: str, n: int, strategy: str, draw: int) -> np.ndarray:
    """Return n rows chosen by ``rows_to_label``."""
    from pyspar import rows_to_label

    Z = problem.arrays[2]
    model = Lookup(Z, problem.base(base)["prediction"])
    return rows_to_label(model, Z, n=n, strategy=strategy, random_state=draw).rows


def measure(problem: Problem, base: str, method: str, n: int, draws: int = DRAWS) -> Record:
    """Measure one method around one model with n labels, once per draw of the labelled rows."""
    record: Record = {"set": problem.shift.name, "part": problem.shift.part, "base": base, "method": method, "n": n}
    strategy = method.removeprefix(f"{CORRECTION}, rows by ") if method in CHOOSE_ROWS else None
    rmse, without, coverage = [], [], []
    for draw in range(draws):
        rows = choose_rows(problem, base, n, strategy, draw) if strategy else draw_rows(problem, n, draw)
        case = Case(problem, base, rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = {**METHODS, **PEERS}[CORRECTION if strategy else method](case)
        left = np.setdiff1d(np.arange(len(case.Z)), rows)
        labels = problem.arrays[3][left]
        rmse.append(_rmse(answer.prediction[left], labels))
        without.append(_rmse(case.prediction[left], labels))
        if answer.low is not None and answer.high is not None:
            coverage.append(float(np.mean((answer.low[left] <= labels) & (labels <= answer.high[left]))))
    return record | {"rmse": _digits(rmse), "without": _digits(without), "coverage": _digits(coverage)}


def cases(stage: Stage) -> Iterator[Key]:
    """Yield what a stage measures. A set is left out for a number of labels that leaves too few rows."""
    for problem in problems(stage.part):
        for base in stage.bases:
            for method in stage.methods:
                if base in ONLY_AROUND.get(method, BASES):
                    for n in stage.labels:
                        if len(problem.arrays[2]) - n >= MIN_ROWS_LEFT:
                            yield problem.shift.name, base, method, n


def measure_model(name: str, base: str, wanted: Sequence[tuple[str, int, int]]) -> list[Record]:
    """Measure methods around one model of one set: their names, numbers of labels, and numbers of draws."""
    problem = Problem(REGISTER[name])
    return [measure(problem, base, *each) for each in wanted]


def run(
    part: str, path: Path, *, peers: bool = False, methods: Sequence[str] | None = None, again: bool = False,
    jobs: int = 1,
) -> int:  # fmt: skip
    """Make the records of a part that are missing, or all with ``again``; return their number."""
    if part not in PARTS:
        raise ValueError(f"part must be one of {PARTS}, got {part!r}")
    known = {} if again else read(path)
    wanted: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for stage in peer_stages(part) if peers else stages(part):
        for name, base, method, n in cases(stage):
            if (name, base, method, n) not in known and (methods is None or method in methods):
                wanted.setdefault((name, base), []).append((method, n, stage.draws))
    made = 0
    tasks = [(*key, each) for key, each in wanted.items()]
    for _, records in run_in_processes(measure_model, tasks, jobs=jobs, description=f"part {part}"):
        for record in records:
            append_record(path, record)
            made += 1
    if made:
        tidy(path)
    return made


def _rmse(prediction: np.ndarray, labels: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(prediction - labels))))


def _digits(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
