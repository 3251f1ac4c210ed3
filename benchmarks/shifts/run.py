"""Run methods on tasks in processes of one thread each: one record per data set, feature map and method."""

from __future__ import annotations

import math
import signal
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import run_in_processes
from benchmarks.records import RESULTS, known_keys, read, update
from benchmarks.shifts.methods import METHODS, ONLY_ON, REFERENCE
from benchmarks.shifts.peers import PEERS
from benchmarks.shifts.sets import REGISTER, Task

RECORDS = RESULTS / "shifts.csv.gz"
KEYS = ("set", "map", "method")
SAVE_EVERY = 50


def measure(name: str, feature_map: str, method: str, limit: int) -> dict[str, Any]:
    """Fit one method on one task. The labels of the target are used only for the score.

    ``rmse`` is empty if the method raised an error, took longer than the limit or returned numbers that are not finite.
    """
    X, y, Z, yz = Task(REGISTER[name], feature_map).arrays()
    record: dict[str, Any] = {"set": name, "map": feature_map, "method": method, "n": len(X), "m": len(Z)}
    record |= {"d": X.shape[1], "rmse": None}
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictions = {**METHODS, **PEERS}[method](X, y, Z)
    except Exception as error:  # noqa: BLE001 - a method that fails has no result, and the others continue
        print(f"{name}/{feature_map} {method}: {type(error).__name__}: {str(error)[:100]}")
        return record
    finally:
        signal.alarm(0)
    rmse = float(np.sqrt(np.mean((predictions - yz) ** 2)))
    return record | {"rmse": rmse if math.isfinite(rmse) else None}


def run(
    tasks: Sequence[Task], methods: Sequence[str], path: Path = RECORDS, *, jobs: int = 1, limit: int = 120,
    again: bool = False,
) -> int:  # fmt: skip
    """Make the records that are missing, or all with ``again``; return their number."""
    known = set() if again else known_keys(path, KEYS)
    wanted = [(t.shift.name, t.map, m, limit) for t in tasks for m in methods if t.map in ONLY_ON.get(m, (t.map,))]
    missing = [task for task in wanted if task[:3] not in known]
    rows: list[dict[str, Any]] = []
    for _, record in run_in_processes(measure, missing, jobs=jobs, description="methods"):
        rows.append(record)
        if len(rows) % SAVE_EVERY == 0:
            update(path, rows, KEYS)
    update(path, rows, KEYS)
    add_ratios(path)
    return len(missing)


def add_ratios(path: Path) -> None:
    """Write the ratio of each RMSE to that of the reference on the same task."""
    table = read(path)
    reference = table[table["method"] == REFERENCE].set_index(["set", "map"])["rmse"].rename("reference")
    table = table.join(reference, on=["set", "map"])
    table["ratio"] = table["rmse"] / table.pop("reference")
    update(path, table.to_dict("records"), KEYS)


def _stop(*_: object) -> None:
    raise TimeoutError("the method took too long")
