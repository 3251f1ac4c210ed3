"""Apply experience to data sets that were not used to learn it, and summarise how often its statements hold."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.shifts.records import Record
from benchmarks.trust.learn import (
    AUC_LIMITS,
    POWERS,
    ROW_LEVELS,
    class_of,
    learn_kind,
    ratio_of,
    row_cover,
    separation_of,
    weights_by_set,
)
from pyspar.core.forecast import LEVELS
from pyspar.estimators.calibrated_forecasts import EXCESS, auc_classes, judge_outcome

Learnt = dict[str, Any]
ROW_LEVEL = 0.9
NO_SHIFT = ("none", "matched")
"""The classes in which no shift is found."""
DISTANT = 0.8
"""Above this AUC, almost no target may be said to have no shift."""


def interval_of(
    record: Record, level: float, learnt: Learnt, limits: Sequence[float] = AUC_LIMITS
) -> tuple[float, float]:
    """Return the interval of the RMSE that the package returns with this experience."""
    name, expected = class_of(record, limits), record["expected"]
    low, high = record[f"narrow{round(100 * level)}"]
    if name == "none" and 0.0 < low <= expected <= high:
        down, up = learnt["stretch"][f"{level:g}"]
        return expected * (low / expected) ** down, expected * (high / expected) ** up
    low, high = learnt["rmse"][f"{level:g}"][name]
    if name != "none":
        low /= ratio_of(record, 0) ** learnt["powers"][0]
        high *= ratio_of(record, 1) ** learnt["powers"][1]
    return expected * min(low, 1.0), expected * max(high, 1.0)


def interval_score(actual: float, interval: tuple[float, float], level: float) -> float:
    """Return the interval score of log RMSE; less is better.

    >>> interval_score(1.0, (0.5, 2.0), 0.95) == 2 * math.log(2)
    True
    """
    low, high, value = (math.log(number) for number in (*interval, actual))
    return high - low + 2.0 / (1.0 - level) * (max(low - value, 0.0) + max(value - high, 0.0))


def apply(learnt: Learnt, records: Sequence[Record], limits: Sequence[float] = AUC_LIMITS) -> list[Record]:
    """Return for each record whether its intervals held, their scores, and the outcome."""
    checked = []
    for r in records:
        if not (r["home"] > 0.0 and r["actual"] > 0.0 and np.isfinite(r["expected"])):
            continue
        result: Record = {key: r[key] for key in ("set", "part", "map", "split", "auc")}
        result["class"] = class_of(r, limits)
        for level in LEVELS:
            interval = interval_of(r, level, learnt, limits)
            result[f"covered{level:g}"] = interval[0] <= r["actual"] <= interval[1]
            result[f"score{level:g}"] = interval_score(r["actual"], interval, level)
            result[f"width{level:g}"] = interval[1] / interval[0]
        low, high = r["narrow95"]
        result["if_linear"] = low <= r["actual"] <= high
        result["outcome"] = judge_outcome(
            expected=r["expected"], home=r["home"], separation=separation_of(r), outside=r["outside"]
        )
        result["exceeded"] = r["actual"] > EXCESS * r["home"]
        if "need" in r:
            factor = learnt["rows"][f"{ROW_LEVEL:g}"][result["class"]]
            result["row_cover"] = row_cover(r, ROW_LEVELS.index(ROW_LEVEL), factor)
        checked.append(result)
    return checked


def leave_sets_out(
    records: Sequence[Record],
    folds: int | Sequence[set[str]] = 10,
    *,
    limits: Sequence[float] = AUC_LIMITS,
    powers: Sequence[Sequence[float]] = (POWERS, POWERS),
    stretch: float = 1.0,
) -> list[Record]:
    """Learn from records of one kind without each fold of data sets, and apply the result to that fold.

    The folds are given, or their number. The powers of the narrow interval are multiplied by ``stretch``.
    """
    sets = sorted({r["set"] for r in records})
    checked = []
    for left_out in [set(sets[fold::folds]) for fold in range(folds)] if isinstance(folds, int) else folds:
        learnt = learn_kind([r for r in records if r["set"] not in left_out], limits, powers)
        learnt["stretch"] = {level: [stretch * p for p in powers] for level, powers in learnt["stretch"].items()}
        checked += apply(learnt, [r for r in records if r["set"] in left_out], limits)
    return checked


def summarise_groups(checked: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return the summaries of natural shifts and of random splits, all and by what the test found."""
    natural = [r for r in checked if r["split"] == "shift"]
    alike = [r for r in checked if r["split"] != "shift"]
    groups = {"shift": natural, "shift, found": [r for r in natural if r["class"] not in NO_SHIFT]}
    for name in auc_classes(AUC_LIMITS):
        groups[f"shift, AUC {name}"] = [r for r in natural if r["class"] == name]
    groups["shift, none found"] = [r for r in natural if r["class"] == "none"]
    groups["shift, matched"] = [r for r in natural if r["class"] == "matched"]
    groups["random"] = alike
    groups["random, none found"] = [r for r in alike if r["class"] == "none"]
    return {name: summarise(group) for name, group in groups.items()}


def binomial_interval(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a probability, from a share of n observations.

    The numbers need not be integers, because a data set with several tasks may count in part.

    >>> low, high = binomial_interval(0.0, 10)  # 0.025 = (1 - high)^10
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    k, tail = share * n, (1.0 - level) / 2.0
    low = float(beta.ppf(tail, k, n - k + 1.0)) if k > 0.0 else 0.0
    return low, float(beta.ppf(1.0 - tail, k + 1.0, n - k)) if k < n else 1.0


def count_effective(checked: Sequence[Record], key: str) -> float:
    """Return the number of independent tasks that would give the same standard error of the share over data sets.

    It is between the numbers of data sets and of tasks, because tasks of one data set are dependent.
    """
    by_set: dict[str, list[float]] = defaultdict(list)
    for r in checked:
        by_set[r["set"]].append(r[key])
    means = np.array([np.mean(values) for values in by_set.values()])
    share, n = means.mean(), len(means)
    variance = means.var(ddof=1) / n if n > 1 else 0.0
    return float(np.clip(share * (1.0 - share) / variance, n, len(checked))) if variance > 0.0 else float(n)


def summarise(checked: Sequence[Record]) -> dict[str, float]:
    """Return the shares over data sets, each with weight one."""
    if not checked:
        return {"tasks": 0, "sets": 0}
    weights = weights_by_set(checked)

    def mean(of: Callable[[Record], float]) -> float:
        return float(np.average([of(r) for r in checked], weights=weights))

    summary = {
        "tasks": len(checked),
        "sets": len({r["set"] for r in checked}),
        "covered80": mean(lambda r: r["covered0.8"]),
        "covered95": mean(lambda r: r["covered0.95"]),
        "effective80": count_effective(checked, "covered0.8"),
        "effective95": count_effective(checked, "covered0.95"),
        "if_linear95": mean(lambda r: r["if_linear"]),
        "score95": mean(lambda r: r["score0.95"]),
        "width95": float(np.median([r["width0.95"] for r in checked])),
        "no_shift": mean(lambda r: r["class"] in NO_SHIFT),
    }
    distant = [r for r in checked if r["auc"] > DISTANT]
    if distant:
        summary["no_shift_if_distant"] = float(np.mean([r["class"] in NO_SHIFT for r in distant]))
    if all("row_cover" in r for r in checked):
        summary["rows"] = mean(lambda r: r["row_cover"])
        summary["rows_below_75"] = mean(lambda r: r["row_cover"] < 0.75)
    return summary
