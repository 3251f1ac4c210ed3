"""The error as a function of alpha: one training, and one adaptation per value. Paper: ``fig:spar_alpha_search``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.metrics import metric_title
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Options, SuiteRecords, expected_scores, run_specs
from pyspar.paper.runs.spec import RunSpec
from pyspar.terminal import Progress


def gather(suite: Suite, options: Options, progress: Progress) -> SuiteRecords:
    """Score SpAR at every alpha, and the heads without alpha: the trained head and least squares."""
    return run_specs(suite, options.specs(suite), _heads(suite), options, progress)


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of every head and alpha, with nan as their values."""
    return expected_scores(suite, specs, _heads(suite))


def _heads(suite: Suite) -> list[Head]:
    heads = [Head(name) for name in suite.heads if name != "SpAR"]
    return heads + [Head("SpAR", {"alpha": alpha}) for alpha in suite.extra["alphas"]]


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the error at each alpha in one table for each data set."""
    sheets = []
    for task in dict.fromkeys(r.task for r in records):
        rows = []
        for method, at in dict.fromkeys((r.method, r.at) for r in records if r.task == task):
            row = [method, NO_VALUE if at is None else f"{at:.10g}"]
            for metric in suite.metrics:
                values = _select_values(records, task, method, at, metric)
                row.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}")
            rows.append(tuple(row))
        n = len({r.seed for r in records if r.task == task})
        header = ("method", "alpha", *map(metric_title, suite.metrics))
        sheets.append(Sheet(task, header, rows, (f"Mean ± standard deviation over {n} seeds.",)))
    return sheets, [*suite.differs, *_remarks(suite, records)]


def draw_figures(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the error against alpha."""
    from pyspar.paper.output.suite_figures import draw_alpha

    return [draw_alpha(records, suite.metrics, folder / "alpha.png")] if records else []


def _select_values(records: list[Record], task: str, method: str, at: float | None, metric: str) -> list[float]:
    """Return the value of each seed at one alpha."""
    return [r.value for r in records if (r.task, r.method, r.at, r.metric) == (task, method, at, metric)]


def _remarks(suite: Suite, records: list[Record]) -> list[str]:
    """Return the best alpha for each data set and metric."""
    remarks = []
    for task in dict.fromkeys(r.task for r in records):
        for metric in suite.metrics:
            means = {
                at: float(np.mean(_select_values(records, task, method, at, metric)))
                for method, at in dict.fromkeys((r.method, r.at) for r in records if r.task == task)
                if at is not None
            }
            best = min(means, key=lambda at: means[at])
            remarks.append(f"{task}, {metric_title(metric)}: lowest at alpha = {best:.10g} ({means[best]:.3f}).")
    return remarks
