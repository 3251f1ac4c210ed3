"""The tables of methods: each training method, with its own head and with heads fitted after it, ours beside theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyspar.bench.heads import Head
from pyspar.bench.metrics import lower_is_better, printed
from pyspar.bench.perform import Gathered, Options, perform
from pyspar.bench.pool import Progress
from pyspar.bench.published import printed_cells, published
from pyspar.bench.records import Record
from pyspar.bench.sheet import NONE, Sheet
from pyspar.bench.suite import Suite


def gather(suite: Suite, options: Options, progress: Progress) -> Gathered:
    """Train every method on every data set, and judge every head."""
    heads = [Head(name, adapt_to=suite.adapt_to) for name in suite.heads]
    return perform(suite, options.specs(suite), heads, options, progress)


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return a table for each data set, the table of where SpAR helps, and what differs in the setting."""
    cells = compare(suite, records)
    sheets = [_task_sheet(suite, task, cells) for task in dict.fromkeys(c.task for c in cells)]
    gains = _gains(suite, records)
    if gains.rows:
        sheets.append(gains)
    return sheets, list(suite.differs)


def draw(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the methods with the published numbers beside them."""
    from pyspar.bench.suite_figures import methods_figure

    if not suite.extra.get("figure", True):
        return []
    cells = compare(suite, records)
    return [methods_figure(cells, suite.metrics, folder / f"{suite.name}.png")] if cells else []


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


def _task_sheet(suite: Suite, task: str, cells: list[Comparison]) -> Sheet:
    mine = {(c.method, c.metric): c for c in cells if c.task == task}
    seeds = max(len(c.values) for c in mine.values())
    header = ["method"]
    for metric in suite.metrics:
        header += [f"{printed(metric)}, published", "ours", "difference"]
    rows = []
    for method in dict.fromkeys(m for m, _ in mine):
        row = [method]
        for metric in suite.metrics:
            cell = mine[method, metric]
            row += [
                " ± ".join(cell.published) if cell.published else NONE,
                " ± ".join(cell.ours) + (f" ({len(cell.values)} seeds)" if len(cell.values) < seeds else ""),
                NONE if cell.difference is None else f"{cell.difference:+.1f} SE",
            ]
        rows.append(tuple(row))
    note = f"Mean ± standard deviation over {seeds} seeds; the difference of the means in joint standard errors."
    return Sheet(task, tuple(header), rows, (note,))


def _gains(suite: Suite, records: list[Record]) -> Sheet:
    """Where a head that adapts is better than the trained head and than least squares, pair by pair of seeds."""
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    for r in records:
        values.setdefault((r.task, r.method, r.metric), {})[r.seed] = r.value
    rows = []
    for task, method, metric in values:
        base, plus, head = method.rpartition(" + ")
        if not plus or head.startswith("OLS") or metric not in suite.metrics:
            continue
        for other in dict.fromkeys((base, f"{base} + OLS", f"{base} + {head.replace('SpAR', 'OLS', 1)}")):
            theirs = values.get((task, other, metric))
            if theirs is not None:
                rows.append(_gain(suite, task, method, other, metric, values[task, method, metric], theirs))
    return Sheet(
        "Where adapting helps",
        ("data", "method", "against", "metric", "published gain", "our gain", "seeds better", ""),
        rows,
        (
            "A gain is positive where adapting is better: mean ± standard error of the difference, seed by seed. "
            "No difference is seen where it is below two standard errors.",
        )
        if rows
        else (),
    )


def _gain(
    suite: Suite, task: str, method: str, other: str, metric: str, mine: dict[int, float], theirs: dict[int, float]
) -> tuple[str, ...]:
    sign = 1.0 if lower_is_better(metric) else -1.0
    gain = np.array([sign * (theirs[s] - mine[s]) for s in sorted(mine) if s in theirs])
    error = float(gain.std(ddof=1) / np.sqrt(gain.size)) if gain.size > 1 else float("nan")
    mean = float(gain.mean())
    name_there = {t: b.published_task for b in suite.blocks for t in b.tasks}.get(task, task)
    cells = printed_cells(suite.published, metric, name_there)
    paper = NONE
    if method in cells and other in cells:
        paper = f"{sign * (float(cells[other][0]) - float(cells[method][0])):+.3f}"
    word = "the same" if not gain.any() else "better" if mean > 0 else "worse"
    if gain.any() and not abs(mean) >= 2 * error:
        word = "no difference seen" if gain.size > 1 else "one seed"
    return (
        task,
        method,
        other,
        printed(metric),
        paper,
        f"{mean:+.3f} ± {error:.3f}",
        f"{int((gain > 0).sum())} of {gain.size}",
        word,
    )
