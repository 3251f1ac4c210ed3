"""Factors and base rates from records: the content of ``experience.json``.

Data sets are the units, not tasks: the tasks of one data set in a class share a weight of one. A quantile over few data
sets is uncertain, so factors use the quantile whose one-sided confidence bound reaches the level.

The ends of an interval also depend on two ratios to the error at home: those of the expected error, and of the standard
deviation of the source labels. The factor of a class is a quantile of actual / expected error after a power of the
ratio is divided out. The powers have the smallest interval score over all records with a shift.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks.shifts.records import Record
from pyspar.core.forecast import LEVELS
from pyspar.core.separation import LEVEL, Separation
from pyspar.estimators.calibrated_forecasts import EXCESS, auc_classes, judge_outcome, ratio_to_home

AUC_LIMITS = [0.95]
"""The ends of the classes of separation. Chosen on the design parts; see docs/forecasts.md."""
CONFIDENCE = 0.8
"""Of the bound on a quantile over data sets."""
ROW_LEVELS = (0.5, 0.8, 0.9, 0.95)
ROW_SURPLUS = 0.1
"""Row intervals miss this share less than their level permits, over the data sets that they are learnt from."""
POWERS = tuple(round(0.05 * step, 2) for step in range(17))
"""The powers of the ratios to the error at home that are compared."""
QUANTILES = np.linspace(0.0, 1.0, 41)
"""The quantiles over rows at which a record has the factor that a row interval needs to contain the label."""
KINDS = {"linear": ("BayesSpAR",), "any": ("RidgeCV", "HistGradientBoosting", "RandomForest")}


def learn(records: Sequence[Record]) -> dict[str, Any]:
    """Return the factors and base rates of both kinds of regressors."""
    return {
        "auc_limits": AUC_LIMITS,
        "sets": sorted({r["set"] for r in records}),
        **{kind: learn_kind([r for r in records if r["regressor"] in names]) for kind, names in KINDS.items()},
    }


def separation_of(record: Record) -> Separation:
    return Separation(record["auc"], record["p_value"], record["p_value"] <= LEVEL, record["matched"])


def class_of(record: Record, limits: Sequence[float] = AUC_LIMITS) -> str:
    """Return the class of a record as the package does, for the given ends."""
    if record["p_value"] > LEVEL:
        return "matched" if record["matched"] else "none"
    return _class_names(tuple(limits))[bisect_right(limits, record["auc"])]


@cache
def _class_names(limits: tuple[float, ...]) -> list[str]:
    return auc_classes(list(limits))


def weights_by_set(records: Sequence[Record]) -> np.ndarray:
    """Return a weight for each record, such that each data set has the total weight one."""
    counts = Counter(r["set"] for r in records)
    return np.array([1.0 / counts[r["set"]] for r in records])


def safe_quantile(
    values: Sequence[float] | np.ndarray, weights: np.ndarray, q: float, confidence: float = CONFIDENCE
) -> float:
    """Return a weighted quantile, further out than ``q`` by the confidence bound for that many data sets.

    >>> safe_quantile(list(range(101)), np.ones(101), 0.5, confidence=0.5)
    50.0
    >>> safe_quantile(list(range(101)), np.ones(101), 0.5, confidence=0.8)
    54.0
    """
    n = float(weights.sum())
    reach = NormalDist().inv_cdf(confidence) * math.sqrt(q * (1.0 - q) / n)
    q = q + reach if q >= 0.5 else q - reach
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / n
    if q >= 0.5:
        place = np.searchsorted(below, min(q, 1.0) - 1e-9)
    else:  # from the other end, so that both tails are treated alike
        place = np.searchsorted(below - weights[order] / n, max(q, 0.0) + 1e-9, side="right") - 1
    return float(np.asarray(values, dtype=float)[order[int(np.clip(place, 0, len(order) - 1))]])


def learn_kind(
    records: Sequence[Record],
    limits: Sequence[float] = AUC_LIMITS,
    powers: Sequence[Sequence[float]] = (POWERS, POWERS),
) -> dict[str, Any]:
    """Return the factors and base rates of one kind of regressors; those of rows if all records have them.

    ``powers`` are those among which the powers of both ratios are chosen.
    """
    shifts = [r for r in records if r["split"] == "shift" and r["home"] > 0.0 and np.isfinite(r["expected"])]
    alike = [r for r in records if r["split"] == "random" and r["home"] > 0.0 and np.isfinite(r["expected"])]
    classes: dict[str, list[Record]] = {"none": [r for r in alike if class_of(r, limits) == "none"]}
    names = _class_names(tuple(limits))
    classes |= {name: [r for r in shifts if class_of(r, limits) == name] for name in names}
    # Few data sets are matched, too few for factors of their own.
    classes["matched"] = classes[names[0]] = [r for r in shifts if class_of(r, limits) in ("matched", names[0])]
    found = [classes[name] for name in names]
    best = [_learn_power(found, end, given) for end, given in enumerate(powers)]
    learnt: dict[str, Any] = {
        "powers": best,
        "rmse": {
            f"{level:g}": {
                name: _factors(own, level, best if name != "none" else (0.0, 0.0)) for name, own in classes.items()
            }
            for level in LEVELS
        },
        "stretch": {f"{level:g}": _stretch(classes["none"], level) for level in LEVELS},
        "base_rates": count_outcomes(shifts, limits),
    }
    if all("need" in r for r in records):
        learnt["rows"] = {
            f"{level:g}": {name: _row_factor(own, i) for name, own in classes.items()}
            for i, level in enumerate(ROW_LEVELS)
        }
    return learnt


def ratio_of(record: Record, end: int) -> float:
    """Return the ratio on which the lower (0) or upper (1) end of an interval depends."""
    return ratio_to_home(record["spread" if end else "expected"], record["home"])


@dataclass(frozen=True)
class _End:
    """What one end of the intervals of a class has to cover, per record.

    ``error`` is log(actual / expected), negative for the lower end, and ``ratio`` the logarithm of the ratio.
    """

    error: np.ndarray
    ratio: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, records: Sequence[Record], end: int) -> _End:
        error = np.array([math.log(r["actual"] / r["expected"]) for r in records])
        ratio = np.log([ratio_of(r, end) for r in records])
        return cls(error if end else -error, ratio, weights_by_set(records))

    def reach(self, level: float, power: float) -> float:
        """Return the logarithm of the factor of the class, if a power of the ratio is added to it."""
        return safe_quantile(self.error - power * self.ratio, self.weights, (1.0 + level) / 2.0)

    def score(self, power: float, level: float = LEVELS[-1]) -> float:
        """Return what this end adds to the interval score, summed over data sets."""
        reach = np.maximum(self.reach(level, power) + power * self.ratio, 0.0)
        return float(self.weights @ (reach + 2.0 / (1.0 - level) * np.maximum(self.error - reach, 0.0)))


def _learn_power(classes: Sequence[Sequence[Record]], end: int, powers: Sequence[float]) -> float:
    """Return the power of the ratio with the smallest interval score, for all classes."""
    ends = [_End.of(records, end) for records in classes]
    return min(powers, key=lambda power: sum(of_class.score(power) for of_class in ends))


def _factors(records: Sequence[Record], level: float, powers: Sequence[float]) -> list[float]:
    reach = [_End.of(records, end).reach(level, power) for end, power in enumerate(powers)]
    return [_round(math.exp(-reach[0])), _round(math.exp(reach[1]))]


def _stretch(records: Sequence[Record], level: float) -> list[float]:
    """Return the powers for the ends of the narrow interval, such that both tails have their share."""
    ratios, weights = [narrow_ratio(r, level) for r in records], weights_by_set(records)
    low, high = (safe_quantile(ratios, weights, q, 0.5) for q in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
    return [_round(max(-low, 1.0)), _round(max(high, 1.0))]


def narrow_ratio(record: Record, level: float) -> float:
    """Return log(actual / expected) in units of the narrow interval's distance on that side."""
    low, high = record[f"narrow{round(100 * level)}"]
    log = math.log(record["actual"] / record["expected"])
    return log / math.log(high / record["expected"]) if log > 0.0 else log / math.log(record["expected"] / low)


def row_cover(record: Record, level_index: int, factor: float) -> float:
    """Return the share of target rows whose label lies in the row interval multiplied by a factor."""
    return float(np.interp(factor, record["need"][level_index], QUANTILES))


def _row_factor(records: Sequence[Record], level_index: int) -> float:
    """Return the factor for which the mean coverage over data sets exceeds the level by the surplus."""
    weights, level = weights_by_set(records), ROW_LEVELS[level_index]
    wanted = level + ROW_SURPLUS * (1.0 - level)
    low, high = 1.0, 20.0
    for _ in range(20):  # bisection; the coverage grows with the factor
        middle = math.sqrt(low * high)
        is_enough = np.average([row_cover(r, level_index, middle) for r in records], weights=weights) >= wanted
        low, high = (low, middle) if is_enough else (middle, high)
    return _round(high)


def count_outcomes(shifts: Sequence[Record], limits: Sequence[float] = AUC_LIMITS) -> dict[str, dict[str, list[int]]]:
    """Return for each outcome and class the number of data sets, and of those with an excessive error.

    A data set with several tasks of the same outcome and class counts once, with the share of these tasks.
    """
    tasks: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for r in shifts:
        outcome = judge_outcome(
            expected=r["expected"], home=r["home"], separation=separation_of(r), outside=r["outside"]
        )
        tasks[outcome, class_of(r, limits)][r["set"]].append(r["actual"] > EXCESS * r["home"])
    counts: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for (outcome, name), sets in sorted(tasks.items()):
        counts[outcome][name] = [len(sets), round(sum(np.mean(exceeded) for exceeded in sets.values()))]
    return dict(counts)


def _round(value: float) -> float:
    return float(f"{value:.3g}")
