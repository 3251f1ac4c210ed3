"""Where adapting helps: a head that adapts against the trained head and against least squares, seed by seed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.stats import t as student

from pyspar.core.arrays import Vector
from pyspar.paper.experiments.published import printed_cells
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NONE, Sheet
from pyspar.paper.runs.metrics import lower_is_better, printed
from pyspar.paper.runs.records import Record

LEAST_SEEDS = 3
"""Fewer say nothing: of two seeds, the error of their mean has one degree of freedom."""

CONFIDENCE = 0.95

_HEADER = ("method", "against", "published", "our gain", "better in", "")
_NOTE = (
    "A gain is positive where adapting is better: mean ± standard error of the difference, seed by seed. It counts as "
    f"better or worse where zero lies outside the {CONFIDENCE:.0%} interval of Student's t for so many seeds, each row "
    f"taken alone; below {LEAST_SEEDS} seeds nothing is said."
)


def gain_sheets(suite: Suite, records: Iterable[Record]) -> list[Sheet]:
    """Return a table for each data set and metric; the last one says how they are to be read."""
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
                mine, theirs = values[task, metric, method], values[task, metric, other]
                row = (method, other, _published(suite, task, metric, method, other), *_measured(metric, mine, theirs))
                rows.setdefault((task, metric), []).append(row)
    order = [(task, metric) for task in dict.fromkeys(t for t, _ in rows) for metric in suite.metrics]
    places = [place for place in order if place in rows]
    return [
        Sheet(f"Where adapting helps, {task}: {printed(metric)}", _HEADER, rows[task, metric], notes)
        for (task, metric), notes in zip(places, [()] * (len(places) - 1) + [(_NOTE,)])
    ]


def verdict(gain: Vector) -> str:
    """Say what gains, one a seed, come to.

    Two standard errors are 95 % of many seeds, and 70 % of two: the quantile is Student's.

    >>> verdict(np.array([0.30, 0.31])), verdict(np.array([0.30, 0.31, 0.32])), verdict(np.array([0.0, 0.3, 0.6]))
    ('-', 'better', 'no difference seen')
    """
    if not gain.any():
        return "the same"
    if gain.size < LEAST_SEEDS or not np.isfinite(gain).all():
        return NONE
    if abs(gain.mean()) < student.ppf((1 + CONFIDENCE) / 2, gain.size - 1) * _error(gain):
        return "no difference seen"
    return "better" if gain.mean() > 0 else "worse"


def _error(gain: Vector) -> float:
    return float(gain.std(ddof=1) / np.sqrt(gain.size)) if gain.size > 1 else float("nan")


def _measured(metric: str, mine: dict[int, float], theirs: dict[int, float]) -> tuple[str, str, str]:
    gain = _sign(metric) * np.array([theirs[s] - mine[s] for s in sorted(mine) if s in theirs])
    error = f" ± {_error(gain):.3f}" if gain.size > 1 else ""
    return f"{gain.mean():+.3f}{error}", f"{int((gain > 0).sum())} of {gain.size}", verdict(gain)


def _published(suite: Suite, task: str, metric: str, method: str, other: str) -> str:
    name_there = {t: b.published_task for b in suite.blocks for t in b.tasks}.get(task, task)
    cells = printed_cells(suite.published, metric, name_there)
    if method not in cells or other not in cells:
        return NONE
    return f"{_sign(metric) * (float(cells[other][0]) - float(cells[method][0])):+.3f}"


def _sign(metric: str) -> float:
    return 1.0 if lower_is_better(metric) else -1.0
