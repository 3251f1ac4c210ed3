"""What each method costs in training time, as ratios to ERM. Paper: ``tab:timing_povery_map``.

Each seed is trained alone, one run at a time whatever ``--jobs`` says, and from the beginning: a time that was stopped
and resumed is no time. A mark in their options keeps these runs apart from those of other suites, which may have been
trained side by side.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NONE, Sheet
from pyspar.paper.runs.heads import Head, predictions
from pyspar.paper.runs.parallel import Progress
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run import Outcome
from pyspar.paper.runs.run_suite import Gathered, Options, perform
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import RunFolder

METRIC = "seconds"
BASE = "ERM"


def gather(suite: Suite, options: Options, progress: Progress) -> Gathered:
    """Train each method on each seed alone; adapt behind ERM."""
    alone = [
        replace(s, seeds=(seed,), options={**s.options, "timed": True})
        for s in options.specs(suite)
        for seed in s.seeds
    ]

    def measured(spec: RunSpec, outcome: Outcome) -> Iterable[Record]:
        seed = spec.seeds[0]
        training = outcome.timing["train"]
        yield Record(spec.task, spec.objective, seed, METRIC, training)
        if spec.objective == BASE:
            features = RunFolder.of(options.out, spec).read_features(seed)
            began = time.perf_counter()
            predictions(features, [Head("SpAR")])
            adapting = outcome.timing["features"] + time.perf_counter() - began
            yield Record(spec.task, f"{BASE} + SpAR", seed, METRIC, training + adapting)
            yield Record(spec.task, "SpAR alone", seed, METRIC, adapting)

    one_at_a_time = replace(options, jobs=1)
    return perform(suite, alone, [], one_at_a_time, progress, measured, keep=True, resume=False, needs_features=True)


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return seconds and ratios, beside the published ratios."""
    (theirs,) = published("cost").cells.values()
    tasks = list(dict.fromkeys(r.task for r in records))
    header = ["method", "published ratio to ERM"]
    for task in tasks:
        header += [f"{task}, seconds", "ratio to ERM"]
    rows = []
    for method, (minutes, _) in theirs.items():
        row = [method, f"{float(minutes) / float(theirs[BASE][0]):.2f}"]
        for task in tasks:
            ours, base = ([r.value for r in records if (r.task, r.method) == (task, name)] for name in (method, BASE))
            if ours and base:
                row += [f"{np.mean(ours):.3g} ± {np.std(ours):.2g}", f"{np.mean(ours) / np.mean(base):.2f}"]
            else:
                row += [NONE, NONE]
        rows.append(tuple(row))
    n = len({r.seed for r in records})
    note = f"Seconds of one seed trained alone on one thread, mean ± standard deviation over {n} seeds."
    return [Sheet("Training time", tuple(header), rows, (note,))], list(suite.differs)


def draw(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """There is no figure of it."""
    return []
