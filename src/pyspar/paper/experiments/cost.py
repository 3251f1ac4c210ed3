"""The training time of each method, as a ratio to ERM. Paper: ``tab:timing_povery_map``.

Runs are sequential and do not resume. The option "timed" separates them from the runs of other suites.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pyspar.paper.experiments.suite import Suite, published
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.records import Record, group_values
from pyspar.paper.runs.run import Outcome
from pyspar.paper.runs.run_suite import Options, SuiteRecords, make_blank_record, run_specs
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import RunFolder

METRIC = "seconds"
BASE = "ERM"


def gather(suite: Suite, options: Options) -> SuiteRecords:
    """Train each method and seed, one at a time, and adapt the networks of ERM."""

    def make_records(spec: RunSpec, outcome: Outcome) -> Iterable[Record]:
        training = outcome.training["seconds"]["train"]
        yield Record(spec.task, spec.objective, spec.seed, METRIC, training)
        features = RunFolder.of(options.out, spec).read_features()
        if spec.objective == BASE and features is not None:
            start = time.perf_counter()
            predict_with_heads(features, [Head("SpAR")])
            adapting = outcome.training["seconds"]["features"] + time.perf_counter() - start
            yield Record(spec.task, f"{BASE} + SpAR", spec.seed, METRIC, training + adapting)
            yield Record(spec.task, "SpAR alone", spec.seed, METRIC, adapting)

    specs = [_mark_timed(spec) for spec in options.specs(suite)]
    options = replace(options, jobs=1)
    return run_specs(suite, specs, [], options, make_records=make_records, needs_features=True, resume=False)


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of every method and seed, with nan as their values."""
    return [
        make_blank_record(_mark_timed(spec), method, METRIC)
        for spec in specs
        for method in (spec.objective, *((f"{BASE} + SpAR", "SpAR alone") if spec.objective == BASE else ()))
    ]


def _mark_timed(spec: RunSpec) -> RunSpec:
    return replace(spec, options={**spec.options, "timed": True})


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return seconds and ratios next to the published ratios."""
    (published_cells,) = published("cost").cells.values()
    values = group_values(records, "task", "method")
    tasks = list(dict.fromkeys(task for task, _ in values))
    header = ["method", "published ratio to ERM"]
    for task in tasks:
        header += [f"{task}, seconds", "ratio to ERM"]
    rows = []
    for method, (minutes, _) in published_cells.items():
        row = [method, f"{float(minutes) / float(published_cells[BASE][0]):.2f}"]
        for task in tasks:
            ours, base = (values.get((task, name), []) for name in (method, BASE))
            if ours and base:
                row += [f"{np.mean(ours):.3g} ± {np.std(ours):.2g}", f"{np.mean(ours) / np.mean(base):.2f}"]
            else:
                row += [NO_VALUE, NO_VALUE]
        rows.append(tuple(row))
    n = len({r.seed for r in records})
    note = f"Seconds of one seed trained alone on one thread, mean ± standard deviation over {n} seeds."
    return [Sheet("Training time", tuple(header), rows, (note,))], list(suite.differs)
