"""The tables of methods: each training method with its own head and with other heads, next to the published numbers.

A further table shows the gains from adapting: adapted heads compared with the trained head and with least squares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from pyspar.core.moments import Vector
from pyspar.paper.experiments.suite import Suite, published, published_cells
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.heads import Head, lower_is_better, metric_title
from pyspar.paper.runs.records import Record, group_values
from pyspar.paper.runs.run_suite import Options, SuiteRecords, expected_scores, run_specs
from pyspar.paper.runs.spec import RunSpec

MIN_SEEDS = 3
"""Fewer seeds get no verdict: with two, the standard error of the mean has one degree of freedom."""
CONFIDENCE = 0.95

_GAIN_HEADER = ("data", "metric", "method", "against", "published", "our gain", "better in", "")
_GAIN_NOTE = (
    "A gain is positive if adapting is better: mean ± standard error of the difference, seed by seed. The last column "
    f"says better or worse if zero is outside the {CONFIDENCE:.0%} confidence interval of Student's t for this number "
    f"of seeds, for each row separately. Fewer than {MIN_SEEDS} seeds get no verdict."
)


def gather(suite: Suite, options: Options) -> SuiteRecords:
    """Train every method on every data set, and score every head."""
    return run_specs(suite, options.specs(suite), heads_of(suite), options)


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of every method and head, with nan as their values."""
    return expected_scores(suite, specs, heads_of(suite))


def heads_of(suite: Suite) -> list[Head]:
    """Return the heads of a suite. If it has several values of alpha, there is a head SpAR for each of them."""
    if "alphas" not in suite.extra:
        return [Head(name, adapt_to=suite.adapt_to) for name in suite.heads]
    heads = [Head(name) for name in suite.heads if name != "SpAR"]
    return heads + [Head("SpAR", {"alpha": alpha}) for alpha in suite.extra["alphas"]]


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the tables of each data set, the gains from adapting, and the differences from the paper's setting."""
    cells = compare_methods(suite, records)
    sheets = [sheet for task in dict.fromkeys(c.task for c in cells) for sheet in _task_sheets(suite, task, cells)]
    gains = [
        (task, metric_title(metric), method, other, text, *describe_gain(gain))
        for (task, metric, method, other), gain in compute_gains(suite, records).items()
        for theirs in [published_gain(suite, task, metric, method, other)]
        for text in [NO_VALUE if theirs is None else f"{theirs:+.3f}"]
    ]
    sheets += [Sheet("Where adapting helps", _GAIN_HEADER, gains, (_GAIN_NOTE,))] if gains else []
    return sheets, list(suite.differs)


def draw_figures(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the methods next to the published numbers."""
    from pyspar.paper.output.figures import draw_methods

    cells = compare_methods(suite, records) if suite.extra.get("figure", True) else []
    return [draw_methods(cells, suite.metrics, folder / f"{suite.name}.png")] if cells else []


@dataclass(frozen=True)
class Comparison:
    """One cell of a table: the published mean and spread, if there is one, and our value for each seed."""

    task: str
    method: str
    metric: str
    published: tuple[str, str] | None
    n_published: int
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """Authors: the spread is np.std, with the divisor n."""
        return float(np.std(self.values))

    @property
    def difference(self) -> float | None:
        """The difference of our mean from the published one, in standard errors of the difference. Both spreads have
        the divisor n, so the standard error of a mean is spread / sqrt(n - 1).
        """
        if self.published is None or min(self.n_published, len(self.values)) < 2:
            return None
        mean, spread = map(float, self.published)
        error = np.sqrt(spread**2 / (self.n_published - 1) + self.spread**2 / (len(self.values) - 1))
        return float((self.mean - mean) / error) if error else None

    @property
    def ours(self) -> tuple[str, str]:
        digits = len(self.published[0].partition(".")[2]) if self.published else 3
        return f"{self.mean:.{digits}f}", f"{self.spread:.{digits}f}"


def compare_methods(suite: Suite, records: Iterable[Record]) -> list[Comparison]:
    """Return the cells of the table in the order of the records."""
    values = group_values((r for r in records if r.metric in suite.metrics), "task", "method", "metric")
    n_published = published(suite.published).n if suite.published else 0
    cells = []
    for (task, method, metric), ours in values.items():
        published_cell = published_cells(suite.published, metric, suite.published_task(task)).get(method)
        cells.append(Comparison(task, method, metric, published_cell, n_published, tuple(ours)))
    return cells


def _task_sheets(suite: Suite, task: str, cells: list[Comparison]) -> list[Sheet]:
    """Return one table for each metric; a common table would be wider than a terminal."""
    cells = [c for c in cells if c.task == task]
    seeds = max(len(c.values) for c in cells)
    header = ("method", "published", "ours", "difference")
    sheets = [
        Sheet(f"{task}: {metric_title(metric)}", header, [_row(c, seeds) for c in cells if c.metric == metric])
        for metric in suite.metrics
    ]
    note = f"Mean ± standard deviation over {seeds} seed{'s' * (seeds > 1)}"
    if any(c.published for c in cells):
        note += ". The difference of the means is in joint standard errors"
        note += f" and requires {MIN_SEEDS} seeds" if seeds < MIN_SEEDS else ""
    sheets[-1] = replace(sheets[-1], notes=(f"{note}.",))
    return sheets


def _row(cell: Comparison, seeds: int) -> tuple[str, ...]:
    n = len(cell.values)
    return (
        cell.method,
        " ± ".join(cell.published) if cell.published else NO_VALUE,
        " ± ".join(cell.ours) + (f" ({n} seed{'s' * (n > 1)})" if n < seeds else ""),
        NO_VALUE if cell.difference is None or n < MIN_SEEDS else f"{cell.difference:+.1f} SE",
    )


def compute_gains(suite: Suite, records: Iterable[Record]) -> dict[tuple[str, str, str, str], Vector]:
    """Return by data set, metric, adapted method and base method the gain of each seed, positive if it is better."""
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    for r in records:
        if r.metric in suite.metrics:
            values.setdefault((r.task, r.metric, r.method), {})[r.seed] = r.value
    gains = {}
    for (task, metric, method), adapted in values.items():
        base, plus, head = method.rpartition(" + ")
        if not plus or head.startswith("OLS"):
            continue
        for other in dict.fromkeys((base, f"{base} + OLS", f"{base} + {head.replace('SpAR', 'OLS', 1)}")):
            before = values.get((task, metric, other), {})
            seeds = [seed for seed in sorted(adapted) if seed in before]
            if seeds:
                gain = np.array([before[seed] - adapted[seed] for seed in seeds])
                gains[task, metric, method, other] = sign_of(metric) * gain
    return gains


def judge_gain(gain: Vector) -> str:
    """Return the verdict on the gains of all seeds. The interval uses Student's t: two standard errors cover 95 % for
    many seeds, but 70 % for two.
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


def describe_gain(gain: Vector) -> tuple[str, str, str]:
    """Return the mean gain, the number of seeds with a gain, and the verdict."""
    error = f" ± {_standard_error(gain):.3f}" if gain.size > 1 else ""
    return f"{gain.mean():+.3f}{error}", f"{int((gain > 0).sum())} of {gain.size}", judge_gain(gain)


def published_gain(suite: Suite, task: str, metric: str, method: str, other: str) -> float | None:
    """Return the published gain of a method over another one, or None if it was not published."""
    cells = published_cells(suite.published, metric, suite.published_task(task))
    if method not in cells or other not in cells:
        return None
    return sign_of(metric) * (float(cells[other][0]) - float(cells[method][0]))


def sign_of(metric: str) -> float:
    """Return 1 if smaller values of a metric are better, else -1."""
    return 1.0 if lower_is_better(metric) else -1.0
