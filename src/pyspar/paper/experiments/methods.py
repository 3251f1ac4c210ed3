"""The tables of methods: each training method with its own head and with other heads, next to the published numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pyspar.paper.experiments.gains import MIN_SEEDS, make_gain_sheets
from pyspar.paper.experiments.published import published, published_cells
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.metrics import metric_title
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Options, SuiteRecords, expected_scores, run_specs
from pyspar.paper.runs.spec import RunSpec
from pyspar.terminal import Progress


def gather(suite: Suite, options: Options, progress: Progress) -> SuiteRecords:
    """Train every method on every data set, and score every head."""
    return run_specs(suite, options.specs(suite), _heads(suite), options, progress)


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of every method and head, with nan as their values."""
    return expected_scores(suite, specs, _heads(suite))


def _heads(suite: Suite) -> list[Head]:
    return [Head(name, adapt_to=suite.adapt_to) for name in suite.heads]


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the tables of each data set, the gains from adapting, and the differences from the paper's setting."""
    cells = compare_methods(suite, records)
    sheets = [sheet for task in dict.fromkeys(c.task for c in cells) for sheet in _task_sheets(suite, task, cells)]
    return sheets + make_gain_sheets(suite, records), list(suite.differs)


def draw_figures(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the methods next to the published numbers."""
    from pyspar.paper.output.suite_figures import draw_methods

    cells = compare_methods(suite, records) if suite.extra.get("figure", True) else []
    if not cells:
        return []
    return [draw_methods(cells, suite.metrics, folder / f"{suite.name}.png", bars=bool(suite.extra.get("bars")))]


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
        """The difference of our mean from the published one, in standard errors of the difference.

        Both spreads have the divisor n, so the standard error of a mean is spread / sqrt(n - 1).
        """
        if self.published is None or min(self.n_published, len(self.values)) < 2:
            return None
        mean, spread = map(float, self.published)
        error = np.sqrt(spread**2 / (self.n_published - 1) + self.spread**2 / (len(self.values) - 1))
        return float((self.mean - mean) / error) if error else None

    @property
    def ours(self) -> tuple[str, str]:
        """Our mean and spread, with the number of digits of the published ones."""
        digits = len(self.published[0].partition(".")[2]) if self.published else 3
        return f"{self.mean:.{digits}f}", f"{self.spread:.{digits}f}"


def compare_methods(suite: Suite, records: Iterable[Record]) -> list[Comparison]:
    """Return the cells of the table in the order of the records."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for r in records:
        if r.metric in suite.metrics:
            values.setdefault((r.task, r.method, r.metric), []).append(r.value)
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
