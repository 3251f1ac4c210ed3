"""Effects and tests from the records. Data sets are the unit: a set counts once, with the mean of its log ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import spearmanr, wilcoxon
from scipy.stats import t as student

from benchmarks.when_spar_helps.run import ROWS, TRAINING, WIDTHS, Record

CONFIDENCE = 0.95
NAMES = {"ols": "least squares", "spar": "SpAR", "bayes": "ours"}
FACTORS: dict[str, Sequence[object]] = {"training": TRAINING, "rows": ROWS, "width": WIDTHS}

Verdict = Literal["helps", "harms", "no effect seen"]
Select = Callable[[Record], bool]


@dataclass(frozen=True)
class Effect:
    """Ratios of data sets: median, geometric mean with its confidence interval, and a signed-rank test.

    ``better`` counts the sets with a ratio below one. ``worst`` is the largest ratio of a single network.
    """

    median: float
    mean: float
    low: float
    high: float
    p_value: float
    better: int
    sets: int
    worst: float

    @property
    def verdict(self) -> Verdict:
        """The direction of the median if the signed-rank test rejects a symmetric distribution around one.

        The ratio of a single set can be two, which widens an interval of the mean but not the distribution of ranks.
        """
        if not self.p_value < 1 - CONFIDENCE:
            return "no effect seen"
        return "helps" if self.median < 1.0 else "harms"

    def __str__(self) -> str:
        return f"{self.median:.2f}; {self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


def measure_effect(records: Iterable[Record], method: str, select: Select, against: Select | None = None) -> Effect:
    """Return the ratios of a method to the trained head on selected records.

    With ``against``, return the quotient of that ratio and the ratio on other records of the same sets, so a value
    above one means that the first condition is worse.
    """
    first: dict[str, list[float]] = {}
    second: dict[str, list[float]] = {}
    for record in records:
        if select(record):
            first.setdefault(record["set"], []).append(math.log(record[method]))
        if against is not None and against(record):
            second.setdefault(record["set"], []).append(math.log(record[method]))
    names = sorted(first if against is None else set(first) & set(second))
    logs = np.array([np.mean(first[name]) - (np.mean(second[name]) if against else 0.0) for name in names])
    mean, n = float(logs.mean()), len(logs)
    half = float(student.ppf((1 + CONFIDENCE) / 2, n - 1) * logs.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    worst = max(value for values in first.values() for value in values)
    low, high = (math.exp(max(min(mean + sign * half, 700.0), -700.0)) for sign in (-1, 1))
    changed = logs[logs != 0.0]  # the test ignores sets without a change
    p_value = float(wilcoxon(changed, method="exact").pvalue) if len(changed) else 1.0
    median = math.exp(float(np.median(logs)))
    return Effect(median, math.exp(mean), low, high, p_value, int((logs < 0).sum()), n, math.exp(worst))


def where(**levels: object) -> Select:
    """Return a function that selects the records with these levels.

    >>> where(width=16)({"width": 16, "rows": "training rows"})
    True
    """
    return lambda record: all(record[name] == level for name, level in levels.items())


def conditions() -> list[tuple[str, str]]:
    """Return the six pairs of training and rows."""
    return [(training, rows) for training in TRAINING for rows in ROWS]


def rank_correlation(
    records: Iterable[Record], x: Callable[[Record], float | None], y: Callable[[Record], float], select: Select
) -> tuple[float, float]:
    """Return Spearman's correlation of two quantities over the sets, each a mean over networks, and its p-value."""
    by_set: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        value = x(record) if select(record) else None
        if value is not None and math.isfinite(value):
            by_set.setdefault(record["set"], []).append((value, y(record)))
    means = np.array([np.mean(pairs, axis=0) for pairs in by_set.values()])
    result = spearmanr(means[:, 0], means[:, 1])
    return float(result.statistic), float(result.pvalue)


Decision = Literal["supported", "contradicted", "not decided"]
USELESS = 0.98
"""A gain of less than 2 % is too small to be useful."""
HARMED = 1.05


@dataclass(frozen=True)
class Finding:
    """A hypothesis, the result, and whether the data support it.

    ``stated`` is "before" the experiment or "after" a look at its records. The latter need other data to confirm them.
    """

    stated: Literal["before", "after"]
    hypothesis: str
    result: str
    decision: Decision


def judge_hypotheses(records: Sequence[Record]) -> list[Finding]:
    """Return the findings. Every decision follows from a confidence interval or a p-value."""
    return [
        *(_refit_on_training_rows(records, method) for method in ("ols", "spar")),
        _early_stopping(records),
        *(_width(records, method) for method in ("ols", "spar")),
        _long_training(records),
        _inflation(records),
        _held_out_rows(records),
        _excess(records),
        _ours(records),
    ]


def _decide(supported: bool, contradicted: bool) -> Decision:
    return "supported" if supported else "contradicted" if contradicted else "not decided"


def _count(effect: Effect) -> str:
    return f"{effect}, p {format_p(effect.p_value)}, below one for {effect.better} of {effect.sets} sets"


def format_p(value: float) -> str:
    """Return a p-value with its relation.

    >>> format_p(0.0312), format_p(1e-5)
    ('= 0.031', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _refit_on_training_rows(records: Sequence[Record], method: str) -> Finding:
    effect = measure_effect(records, method, where(training="long", rows=ROWS[0]))
    return Finding(
        "before",
        f"Refitted on the training rows of a network that was trained too long, {NAMES[method]} is useless or harmful.",
        f"ratio {_count(effect)}",
        _decide(effect.verdict == "harms" or effect.low > USELESS, effect.verdict == "helps"),
    )


def _early_stopping(records: Sequence[Record]) -> Finding:
    effect = measure_effect(records, "spar", where(training="stopped"))
    return Finding(
        "before",
        "After early stopping, SpAR harms.",
        f"ratio {_count(effect)}",
        _decide(effect.verdict == "harms", effect.verdict == "helps"),
    )


def _width(records: Sequence[Record], method: str) -> Finding:
    effect = measure_effect(records, method, where(width=WIDTHS[-1]), where(width=WIDTHS[0]))
    name = NAMES[method][0].upper() + NAMES[method][1:]
    return Finding(
        "before",
        f"{name} harms wide networks more than narrow ones.",
        f"quotient of the ratios at widths {WIDTHS[-1]} and {WIDTHS[0]}: {_count(effect)}",
        _decide(effect.verdict == "harms", effect.verdict == "helps"),
    )


def _long_training(records: Sequence[Record]) -> Finding:
    effect = measure_effect(records, "spar", where(training="long"))
    return Finding(
        "before",
        "SpAR helps networks that were trained too long.",
        f"ratio {_count(effect)}",
        _decide(effect.verdict == "helps", effect.verdict == "harms"),
    )


def _inflation(records: Sequence[Record]) -> Finding:
    rho, p = rank_correlation(
        records, lambda r: math.log(r["inflation"]), lambda r: math.log(r["spar"] / r["ols"]), where()
    )
    return Finding(
        "before",
        "The further the target leaves the directions of the source, the more SpAR gains over least squares.",
        f"rank correlation over sets of leverage inflation and log(SpAR / least squares): {rho:+.2f}, p {format_p(p)}",
        _decide(rho < 0 and p < 1 - CONFIDENCE, rho > 0 and p < 1 - CONFIDENCE),
    )


def _held_out_rows(records: Sequence[Record]) -> Finding:
    held_out, training = (where(training="long", rows=rows) for rows in reversed(ROWS))
    effect = measure_effect(records, "spar", held_out, training)
    return Finding(
        "after",
        "If a network was trained too long, SpAR on held-out rows is better than on training rows.",
        f"quotient of the ratios: {_count(effect)}",
        _decide(effect.verdict == "helps", effect.verdict == "harms"),
    )


def _excess(records: Sequence[Record]) -> Finding:
    rho, p = rank_correlation(
        records,
        lambda r: None if r["excess"] is None else math.log(r["excess"]),
        lambda r: math.log(r["bayes"]),
        where(training="long", rows=ROWS[1]),
    )
    return Finding(
        "after",
        "The larger the excess error of a head that was trained too long (on held-out rows), the more ours helps.",
        f"rank correlation over sets of excess error and log ratio: {rho:+.2f}, p {format_p(p)}",
        _decide(rho < 0 and p < 1 - CONFIDENCE, rho > 0 and p < 1 - CONFIDENCE),
    )


def _ours(records: Sequence[Record]) -> Finding:
    of_rows = [r["bayes"] for r in records if r["rows"] == ROWS[0]]
    effect = measure_effect(records, "bayes", where(rows=ROWS[0]))
    harmed = sum(ratio > HARMED for ratio in of_rows)
    return Finding(
        "after",
        "On training rows, ours does not harm on average.",
        f"ratio {_count(effect)}; above {HARMED:g} for {harmed} of {len(of_rows)} networks, largest {effect.worst:.2f}",
        _decide(effect.high < 1.005 and effect.verdict != "harms", effect.verdict == "harms"),
    )
