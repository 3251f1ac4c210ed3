"""Compute the numbers of the page from the records. A ratio below one is better than the reference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.shifts.methods import OURS, REFERENCE
from benchmarks.shifts.records import Key, Record, ratio

TAIL = 1.10
"""Tasks above this ratio are counted in the tables, and listed for the recommended method."""


@dataclass(frozen=True)
class Summary:
    """Ratios of one method: how many were recorded and how many are finite, and statistics of the finite ones.

    ``below`` counts ratios below 0.90, ``above`` those above ``TAIL``.
    """

    recorded: int
    answered: int
    geometric_mean: float
    median: float
    below: int
    above: int
    worst: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Summary:
        """Summarise ratios; None stands for a task on which the method failed."""
        recorded = list(values)
        ratios = np.array([v for v in recorded if v is not None and math.isfinite(v)])
        if not len(ratios):
            return cls(len(recorded), 0, math.nan, math.nan, 0, 0, math.nan)
        mean, median = float(np.exp(np.log(ratios).mean())), float(np.median(ratios))
        below, above = int((ratios < 0.9).sum()), int((ratios > TAIL).sum())
        return cls(len(recorded), len(ratios), mean, median, below, above, float(ratios.max()))


def task_names(records: dict[Key, Record], part: str | None = None, feature_map: str | None = None) -> list[str]:
    """Return the tasks of the reference, or those of one part or map."""
    of_reference = (r for (_, method), r in records.items() if method == REFERENCE)
    return sorted(r["task"] for r in of_reference if part in (None, r["part"]) and feature_map in (None, r["map"]))


def same_features(records: dict[Key, Record], method: str, tasks: Sequence[str]) -> Summary:
    """Compare a method with the reference on the same features."""
    return Summary.of(ratio(records[t, method], records) for t in tasks if (t, method) in records)


def against_raw(records: dict[Key, Record], method: str, feature_map: str, part: str | None = None) -> Summary:
    """Compare a method on one feature map with the reference on the raw columns of the same set."""
    ratios: list[float | None] = []
    for task in task_names(records, part, "raw"):
        name = task.removesuffix("raw") + feature_map
        if (name, method) in records:
            ratios.append(_quotient(records[name, method], records[task, REFERENCE]))
    return Summary.of(ratios)


def in_tail(records: dict[Key, Record], tasks: Sequence[str], method: str = OURS) -> list[tuple[float, Record]]:
    """Return the tasks whose ratio exceeds ``TAIL``, largest first."""
    pairs = [(ratio(records[t, method], records), records[t, method]) for t in tasks if (t, method) in records]
    known = [(q, r) for q, r in pairs if q is not None and q > TAIL]
    return sorted(known, key=lambda pair: -pair[0])


@dataclass(frozen=True)
class Duel:
    """Two methods by sets: each set counts once, with the geometric mean of its tasks' ratios."""

    sets: int
    better: int
    geometric_mean: float
    low: float
    high: float

    @classmethod
    def of(cls, records: dict[Key, Record], tasks: Sequence[str], method: str, other: str) -> Duel:
        """Compare two methods; ``low`` and ``high`` are two standard errors from the mean, on the log scale."""
        logs: dict[str, list[float]] = {}
        for task in tasks:
            a, b = records.get((task, method)), records.get((task, other))
            if a and b and (quotient := _quotient(a, b)):
                logs.setdefault(a["set"], []).append(math.log(quotient))
        means = np.array([np.mean(values) for values in logs.values()])
        if len(means) < 2:
            return cls(len(means), int((means < 0).sum()), math.nan, math.nan, math.nan)
        mean, error = float(means.mean()), float(means.std(ddof=1)) / math.sqrt(len(means))
        ends = (math.exp(mean + k * error) for k in (0.0, -2.0, 2.0))
        return cls(len(means), int((means < 0).sum()), *ends)


def figure(value: float) -> str:
    """Return a ratio with three digits, or as a power of ten if it is at least 10,000."""
    if math.isnan(value):
        return "-"
    return f"{value:.0e}" if value >= 10_000 else f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def _quotient(a: Record, b: Record) -> float | None:
    return a["rmse"] / b["rmse"] if a["rmse"] is not None and b["rmse"] else None
