"""Gains from adapting: adapted heads compared with the trained head and with least squares, seed by seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from pyspar.core.arrays import Vector
from pyspar.paper.experiments.published import published_cells
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.metrics import lower_is_better, metric_title
from pyspar.paper.runs.records import Record

MIN_SEEDS = 3
"""Fewer seeds get no verdict: with two, the standard error of the mean has one degree of freedom."""

CONFIDENCE = 0.95

_HEADER = ("method", "against", "published", "our gain", "better in", "")
_NOTE = (
    "A gain is positive if adapting is better: mean ± standard error of the difference, seed by seed. The last column "
    f"says better or worse if zero is outside the {CONFIDENCE:.0%} confidence interval of Student's t for this number "
    f"of seeds, for each row separately. Fewer than {MIN_SEEDS} seeds get no verdict."
)


def make_gain_sheets(suite: Suite, records: Iterable[Record]) -> list[Sheet]:
    """Return a table for each data set and metric. A note under the last one explains the columns."""
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    for r in records:
        if r.metric in suite.metrics:
            values.setdefault((r.task, r.metric, r.method), {})[r.seed] = r.value
    rows: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for task, metric, method in values:
        base, plus, head = method.rpartition(" + ")
        if not plus or head.startswith("OLS"):
            continue
        for other in dict.fromkeys((base, f"{base} + OLS", f"{base} + {head.replace('SpAR', 'OLS', 1)}")):
            if (task, metric, other) in values:
                published = _published_gain(suite, task, metric, method, other)
                measured = _measured_gain(metric, values[task, metric, method], values[task, metric, other])
                rows.setdefault((task, metric), []).append((method, other, published, *measured))
    order = [(task, metric) for task in dict.fromkeys(t for t, _ in rows) for metric in suite.metrics]
    sheets = [
        Sheet(f"Where adapting helps, {task}: {metric_title(metric)}", _HEADER, rows[task, metric])
        for task, metric in order
        if (task, metric) in rows
    ]
    if sheets:
        sheets[-1] = replace(sheets[-1], notes=(_NOTE,))
    return sheets


def judge_gain(gain: Vector) -> str:
    """Return the verdict on the gains of all seeds.

    The interval uses Student's t: two standard errors cover 95 % for many seeds, but 70 % for two.

    >>> [judge_gain(np.array(gain)) for gain in ([0.30, 0.31], [0.30, 0.31, 0.32], [0.0, 0.3, 0.6])]
    ['-', 'better', 'no difference seen']
    """
    if not gain.any():
        return "the same"
    if gain.size < MIN_SEEDS or not np.isfinite(gain).all():
        return NO_VALUE
    if abs(gain.mean()) < student.ppf((1 + CONFIDENCE) / 2, gain.size - 1) * _standard_error(gain):
        return "no difference seen"
    return "better" if gain.mean() > 0 else "worse"


def _standard_error(gain: Vector) -> float:
    return float(gain.std(ddof=1) / np.sqrt(gain.size)) if gain.size > 1 else float("nan")


def _measured_gain(metric: str, adapted: dict[int, float], baseline: dict[int, float]) -> tuple[str, str, str]:
    """Return the mean gain, the number of seeds with a gain, and the verdict."""
    gain = _sign(metric) * np.array([baseline[seed] - adapted[seed] for seed in sorted(adapted) if seed in baseline])
    error = f" ± {_standard_error(gain):.3f}" if gain.size > 1 else ""
    return f"{gain.mean():+.3f}{error}", f"{int((gain > 0).sum())} of {gain.size}", judge_gain(gain)


def _published_gain(suite: Suite, task: str, metric: str, method: str, other: str) -> str:
    cells = published_cells(suite.published, metric, suite.published_task(task))
    if method not in cells or other not in cells:
        return NO_VALUE
    return f"{_sign(metric) * (float(cells[other][0]) - float(cells[method][0])):+.3f}"


def _sign(metric: str) -> float:
    return 1.0 if lower_is_better(metric) else -1.0
