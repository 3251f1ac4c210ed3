"""Records → numbers: how each method's target RMSE compares with RidgeCV's, over a part, over a feature map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.shifts.methods import METHODS, OURS, REFERENCE
from benchmarks.shifts.peers import PEERS
from benchmarks.shifts.records import Key, Record, ratio, ratios

SPAR = "SpAR 0.999"


@dataclass(frozen=True)
class Row:
    """One method over some tasks; ratios are target RMSE / RidgeCV's, below one is better."""

    method: str
    finished: int
    tasks: int
    geometric_mean: float
    median: float
    second_worst: float
    worst: float
    wins: int
    seconds: float

    @classmethod
    def of(cls, method: str, records: dict[Key, Record], tasks: Sequence[str]) -> Row | None:
        """Summarise a method, or None where it has no record."""
        tasks = [task for task in tasks if (task, method) in records]
        if not tasks:
            return None
        found = np.sort(ratios(records, method, tasks))
        seconds = sum(records[task, method]["seconds"] or 0.0 for task in tasks)
        if not len(found):
            return cls(method, 0, len(tasks), *(math.nan,) * 4, 0, seconds)
        return cls(
            method,
            len(found),
            len(tasks),
            float(np.exp(np.log(found).mean())),
            float(np.median(found)),
            float(found[-min(2, len(found))]),
            float(found[-1]),
            int((found < 1.0).sum()),
            seconds,
        )


HEADER = ["method", "geometric mean", "median", "second worst", "worst", "better than RidgeCV", "seconds"]


def cells(row: Row) -> list[str]:
    """Return a row as text, in the order of ``HEADER``."""
    missing = "" if row.finished == row.tasks else f" ({row.tasks - row.finished} without an answer)"
    numbers = [figure(v) for v in (row.geometric_mean, row.median, row.second_worst, row.worst)]
    wins = "" if row.method == REFERENCE else f"{row.wins} of {row.finished}{missing}"
    return [row.method, *numbers, wins, f"{row.seconds:.0f}"]


def summary(records: dict[Key, Record], tasks: Sequence[str]) -> list[Row]:
    rows = (Row.of(method, records, tasks) for method in (*METHODS, *PEERS))
    return [row for row in rows if row is not None]


def task_names(records: dict[Key, Record], half: str | None = None, feature_map: str | None = None) -> list[str]:
    """Return the tasks that the reference was run on."""
    found = (r for (_, method), r in records.items() if method == REFERENCE)
    return sorted(r["task"] for r in found if half in (None, r["half"]) and feature_map in (None, r["map"]))


def against_spar(records: dict[Key, Record], tasks: Sequence[str], method: str = OURS) -> tuple[int, int]:
    """Return on how many tasks a method's RMSE exceeds SpAR's by more than 2 %, and of how many."""
    pairs = [(records.get((t, method)), records.get((t, SPAR))) for t in tasks]
    both = [(a["rmse"], b["rmse"]) for a, b in pairs if a and b and a["rmse"] and b["rmse"]]
    return sum(a > 1.02 * b for a, b in both), len(both)


BY_SET = ["method", "geometric mean", "median", "second worst", "worst", "better than RidgeCV"]


def by_set(records: dict[Key, Record], tasks: Sequence[str]) -> list[list[str]]:
    """Return the same numbers over sets, each the geometric mean of its tasks' ratios."""
    rows = []
    for method in (*METHODS, *PEERS):
        logs: dict[str, list[float]] = {}
        for task in tasks:
            record = records.get((task, method))
            if record and method != REFERENCE and (found := ratio(record, records)):
                logs.setdefault(record["set"], []).append(math.log(found))
        if logs:
            each = np.sort(np.exp([np.mean(values) for values in logs.values()]))
            numbers = np.exp(np.log(each).mean()), np.median(each), each[-min(2, len(each))], each[-1]
            rows.append([method, *(figure(float(v)) for v in numbers), f"{int((each < 1.0).sum())} of {len(each)}"])
    return rows


def head_to_head(records: dict[Key, Record], tasks: Sequence[str], method: str = OURS) -> list[list[str]]:
    """Compare a method with every other, task by task and set by set (the geometric mean of a set's tasks)."""
    rows = []
    for other in (*METHODS, *PEERS):
        logs: dict[str, list[float]] = {}
        for task in tasks:
            a, b = records.get((task, method)), records.get((task, other))
            if other != method and a and b and a["rmse"] and b["rmse"]:
                logs.setdefault(a["set"], []).append(math.log(a["rmse"] / b["rmse"]))
        if logs:
            each = [value for values in logs.values() for value in values]
            sets = np.array([np.mean(values) for values in logs.values()])
            error = sets.std(ddof=1) / math.sqrt(len(sets)) if len(sets) > 1 else math.nan
            rows.append([
                other, f"{sum(v < 0 for v in each)} of {len(each)}", f"{int((sets < 0).sum())} of {len(sets)}",
                f"{figure(math.exp(sets.mean()))} ({figure(math.exp(sets.mean() - 2 * error))} to "
                f"{figure(math.exp(sets.mean() + 2 * error))})", figure(math.exp(float(np.median(each)))),
            ])  # fmt: skip
    return rows


DUEL = ["against", "tasks better", "sets better", "geometric mean over sets (two standard errors)", "median task"]


def worst_tasks(
    records: dict[Key, Record], tasks: Sequence[str], method: str, count: int
) -> list[tuple[float, Record]]:
    found = [(ratio(r, records), r) for t in tasks if (r := records.get((t, method)))]
    known = [(q, r) for q, r in found if q is not None and q > 1.0]
    return sorted(known, key=lambda pair: -pair[0])[:count]


def figure(value: float) -> str:
    """Return a ratio in three digits, a huge one in powers of ten."""
    if math.isnan(value):
        return "-"
    return f"{value:.0e}" if value >= 10_000 else f"{value:.0f}" if value >= 100 else f"{value:.3g}"
