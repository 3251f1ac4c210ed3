"""The error as a function of alpha: one training, and one adaptation per value. Paper: ``fig:spar_alpha_search``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyspar.paper.experiments import methods
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.heads import metric_title
from pyspar.paper.runs.records import Record, group_values

gather, expect = methods.gather, methods.expect


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the error at each alpha in one table for each data set, and the best alpha."""
    values = group_values(records, "task", "metric", "method", "at")
    header = ("method", "alpha", *map(metric_title, suite.metrics))
    sheets, remarks = [], list(suite.differs)
    for task in dict.fromkeys(r.task for r in records):
        rows = []
        for method, at in dict.fromkeys((r.method, r.at) for r in records if r.task == task):
            cells = [values[task, metric, method, at] for metric in suite.metrics]
            texts = [f"{np.mean(cell):.3f} ± {np.std(cell):.3f}" for cell in cells]
            rows.append((method, NO_VALUE if at is None else f"{at:.10g}", *texts))
        n = len({r.seed for r in records if r.task == task})
        sheets.append(Sheet(task, header, rows, (f"Mean ± standard deviation over {n} seeds.",)))
        for metric in suite.metrics:
            means = {k[3]: np.mean(v) for k, v in values.items() if k[:2] == (task, metric) and k[3] is not None}
            best = min(means, key=lambda at: means[at])
            remarks.append(f"{task}, {metric_title(metric)}: lowest at alpha = {best:.10g} ({means[best]:.3f}).")
    return sheets, remarks


def draw_figures(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the error against alpha."""
    from pyspar.paper.output.figures import draw_alpha

    return [draw_alpha(records, suite.metrics, folder / "alpha.png")] if records else []
