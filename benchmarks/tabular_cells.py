"""The two cells of the tabular table that are two standard errors off, under variants of what the authors do not state.

``python -m benchmarks.tabular_cells`` trains C-Mixup on both data sets with another rule for the selection of the epoch
and with another validation part, and writes ``benchmarks/results/tabular-cells.json``. It takes about six minutes on
one core. ``docs/reproduction.md`` quotes the result. The rows without a change are the records of ``rank-cut``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import RESULTS
from pyspar.io.atomic import whole_file
from pyspar.paper.data import Part, ShiftTask, load
from pyspar.paper.experiments.methods import Comparison
from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.features import features_of, train
from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.metrics import rmse, round_to_float32
from pyspar.paper.runs.records import read_records
from pyspar.terminal import LineProgress

FILE = RESULTS / "tabular-cells.json"
METHOD = "C-Mixup"
CELLS = {"skillcraft": "OLS", "communities-and-crime": "SpAR"}
"""The data set and the head of each cell that is off."""
HEADS = tuple(Head(name) for name in ("trained", "OLS", "SpAR"))
"""A variant has to fit the other heads too."""
SEEDS = tuple(range(20))
UNCHANGED = "as in the suite"
RECORDS = Path(__file__).parents[1] / "results"

Values = dict[str, list[float]]
"""The target RMSE of each seed by method."""


def mix_validation(task: ShiftTask) -> ShiftTask:
    """Return the task with a random validation part of the same size, so that it has the groups of the training."""
    parts = (task.train, task.val)
    X, y, group = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "group"))
    order = np.random.default_rng(0).permutation(len(y))
    n = len(task.train)
    train_rows, val_rows = np.sort(order[:n]), np.sort(order[n:])
    return replace(task, train=Part(X[train_rows], y[train_rows], group[train_rows]),
                   val=Part(X[val_rows], y[val_rows], group[val_rows]))  # fmt: skip


VARIANTS: dict[str, tuple[dict[str, Any], Callable[[ShiftTask], ShiftTask]]] = {
    "last epoch": ({"select": "last"}, lambda task: task),
    "random validation part": ({}, mix_validation),
}


def measure(name: str, variant: str) -> Values:
    """Return the target RMSE of each head for each seed."""
    config, change = VARIANTS[variant]
    (spec,) = (
        spec
        for spec in read_suite("tabular").specs(len(SEEDS), "cpu", lambda tasks: tasks[0])
        if (spec.task, spec.objective) == (name, METHOD)
    )
    spec = replace(spec, config={**spec.config, **config})
    task = change(load(name))
    values: Values = {head.label(METHOD): [] for head in HEADS}
    for trained in train(spec, task, None, lambda message: None):
        features = features_of(trained.model, task)
        predictions = predict_with_heads(features, list(HEADS))
        for head in HEADS:
            values[head.label(METHOD)].append(round_to_float32(rmse(predictions[head.key], features.y_test)))
    return values


def main(path: Path = FILE) -> None:
    """Measure the missing variants, write them, and print every variant next to the published numbers."""
    torch.set_num_threads(1)
    results = read_results(path)
    missing = [(name, variant) for name in CELLS for variant in VARIANTS if variant not in results.get(name, {})]
    progress = LineProgress(lambda line: print(line, flush=True))
    progress.start("cells", "training", total=len(missing), unit="variants")
    for n_done, (name, variant) in enumerate(missing, start=1):
        results.setdefault(name, {})[variant] = measure(name, variant)
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        progress.advance("cells", n_done)
    progress.finish("cells", "done")
    for variant, cells in compare_variants(results).items():
        for cell in cells:
            print(f"{cell.task}, {cell.method}, {variant}: {' ± '.join(cell.ours)}, {cell.difference:+.1f} SE")


def read_results(path: Path = FILE) -> dict[str, dict[str, Values]]:
    """Return the values by data set, variant and method."""
    results: dict[str, dict[str, Values]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return results


def compare_variants(results: dict[str, dict[str, Values]]) -> dict[str, list[Comparison]]:
    """Return the cells of each variant next to the published ones. The first variant is the committed suite."""
    table = published("tabular", "rmse")
    compared: dict[str, list[Comparison]] = {}
    for name in CELLS:
        for variant, values in {UNCHANGED: recorded_values(name), **results.get(name, {})}.items():
            compared.setdefault(variant, []).extend(
                Comparison(name, method, "rmse", table.cells[name][method], table.n, tuple(numbers))
                for method, numbers in values.items()
            )
    return compared


def recorded_values(name: str) -> Values:
    """Return the values of the committed records: forty seeds of the refitted heads, ten of the trained one."""
    values: Values = {}
    for suite in ("tabular", "rank-cut"):
        of_suite: Values = {}
        for r in read_records(RECORDS / suite / "records.jsonl"):
            if r.task == name and r.metric == "rmse" and r.method in {head.label(METHOD) for head in HEADS}:
                of_suite.setdefault(r.method, []).append(r.value)
        values |= of_suite
    return values


if __name__ == "__main__":
    main()
