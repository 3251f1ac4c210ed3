"""The tables of methods: each training method, with its own head and with heads fitted after it, ours beside theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pyspar.paper.experiments.gains import LEAST_SEEDS, gain_sheets
from pyspar.paper.experiments.published import printed_cells, published
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NONE, Sheet
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.metrics import printed
from pyspar.paper.runs.parallel import Progress
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Gathered, Options, perform


def gather(suite: Suite, options: Options, progress: Progress) -> Gathered:
    """Train every method on every data set, and judge every head."""
    heads = [Head(name, adapt_to=suite.adapt_to) for name in suite.heads]
    return perform(suite, options.specs(suite), heads, options, progress)


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the tables of each data set, those of where SpAR helps, and what differs in the setting."""
    cells = compare(suite, records)
    sheets = [sheet for task in dict.fromkeys(c.task for c in cells) for sheet in _task_sheets(suite, task, cells)]
    return sheets + gain_sheets(suite, records), list(suite.differs)


def draw(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the methods with the published numbers beside them."""
    from pyspar.paper.output.suite_figures import methods_figure

    if not suite.extra.get("figure", True):
        return []
    cells = compare(suite, records)
    return (
        [methods_figure(cells, suite.metrics, folder / f"{suite.name}.png", bars=bool(suite.extra.get("bars")))]
        if cells
        else []
    )


@dataclass(frozen=True)
class Comparison:
    """One number of a table: the published mean and spread, where there is one, and our values, one a seed."""

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
        """Authors: the spread is np.std, that is with the divisor n."""
        return float(np.std(self.values))

    @property
    def difference(self) -> float | None:
        """How far our mean is from the published one, in standard errors of the difference.

        Both spreads have the divisor n, so that of a mean is spread / sqrt(n - 1).
        """
        if self.published is None or min(self.n_published, len(self.values)) < 2:
            return None
        mean, spread = map(float, self.published)
        error = np.sqrt(spread**2 / (self.n_published - 1) + self.spread**2 / (len(self.values) - 1))
        return float((self.mean - mean) / error) if error else None

    @property
    def ours(self) -> tuple[str, str]:
        """Our mean and spread, with as many digits as the published ones."""
        digits = len(self.published[0].partition(".")[2]) if self.published else 3
        return f"{self.mean:.{digits}f}", f"{self.spread:.{digits}f}"


def compare(suite: Suite, records: Iterable[Record]) -> list[Comparison]:
    """Return each number of the table, in the order of the records."""
    name_there = {task: block.published_task for block in suite.blocks for task in block.tasks}
    values: dict[tuple[str, str, str], list[float]] = {}
    for r in records:
        if r.metric in suite.metrics:
            values.setdefault((r.task, r.method, r.metric), []).append(r.value)
    found = []
    for (task, method, metric), ours in values.items():
        cell = printed_cells(suite.published, metric, name_there.get(task, task)).get(method)
        n = published(suite.published).n if suite.published else 0
        found.append(Comparison(task, method, metric, cell, n, tuple(ours)))
    return found


def _task_sheets(suite: Suite, task: str, cells: list[Comparison]) -> list[Sheet]:
    """Return a table for each metric: side by side they would be wider than a terminal."""
    mine = [c for c in cells if c.task == task]
    seeds = max(len(c.values) for c in mine)
    header = ("method", "published", "ours", "difference")
    sheets = [
        Sheet(f"{task}: {printed(metric)}", header, [_row(c, seeds) for c in mine if c.metric == metric])
        for metric in suite.metrics
    ]
    note = f"Mean ± standard deviation over {seeds} seed{'s' * (seeds > 1)}"
    if any(c.published for c in mine):
        note += "; the difference of the means in joint standard errors"
        note += f", from {LEAST_SEEDS} seeds on" if seeds < LEAST_SEEDS else ""
    sheets[-1] = replace(sheets[-1], notes=(f"{note}.",))
    return sheets


def _row(cell: Comparison, seeds: int) -> tuple[str, ...]:
    n = len(cell.values)
    return (
        cell.method,
        " ± ".join(cell.published) if cell.published else NONE,
        " ± ".join(cell.ours) + (f" ({n} seed{'s' * (n > 1)})" if n < seeds else ""),
        NONE if cell.difference is None or n < LEAST_SEEDS else f"{cell.difference:+.1f} SE",
    )
