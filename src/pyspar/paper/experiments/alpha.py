"""Error against alpha: one training, then an adaptation for each value. Paper: ``fig:spar_alpha_search``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NONE, Sheet
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.metrics import printed
from pyspar.paper.runs.parallel import Progress
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Gathered, Options, perform


def gather(suite: Suite, options: Options, progress: Progress) -> Gathered:
    """Judge SpAR at every alpha, and what does without it: the trained head and least squares."""
    heads = [Head(name) for name in suite.heads if name != "SpAR"]
    heads += [Head("SpAR", {"alpha": alpha}) for alpha in suite.extra["alphas"]]
    return perform(suite, options.specs(suite), heads, options, progress)


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the error at each alpha, one table for each data set."""
    sheets = []
    for task in dict.fromkeys(r.task for r in records):
        rows = []
        for method, at in dict.fromkeys((r.method, r.at) for r in records if r.task == task):
            row = [method, NONE if at is None else f"{at:.10g}"]
            for metric in suite.metrics:
                values = values_of(records, task, method, at, metric)
                row.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}")
            rows.append(tuple(row))
        n = len({r.seed for r in records if r.task == task})
        header = ("method", "alpha", *map(printed, suite.metrics))
        sheets.append(Sheet(task, header, rows, (f"Mean ± standard deviation over {n} seeds.",)))
    return sheets, [*suite.differs, *_remarks(suite, records)]


def draw(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the curves."""
    from pyspar.paper.output.suite_figures import alpha_figure

    return [alpha_figure(records, suite.metrics, folder / "alpha.png")] if records else []


def values_of(records: list[Record], task: str, method: str, at: float | None, metric: str) -> list[float]:
    """Return what was measured in one place, one value a seed."""
    return [r.value for r in records if (r.task, r.method, r.at, r.metric) == (task, method, at, metric)]


def _remarks(suite: Suite, records: list[Record]) -> list[str]:
    found = []
    for task in dict.fromkeys(r.task for r in records):
        for metric in suite.metrics:
            means = {
                at: float(np.mean(values_of(records, task, method, at, metric)))
                for method, at in dict.fromkeys((r.method, r.at) for r in records if r.task == task)
                if at is not None
            }
            best = min(means, key=lambda at: means[at])
            found.append(f"{task}, {printed(metric)}: lowest at alpha = {best:.10g} ({means[best]:.3f}).")
    return found
