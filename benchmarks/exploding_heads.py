"""Why least squares on the features of a network can explode, and why it is not the training.

``python -m benchmarks.exploding_heads`` trains ERM and DANN on SkillCraft with two learning rates. It computes the
least-squares head with every direction of the features and with those above the cutoff. It writes
``benchmarks/results/exploding-heads.json`` in about three minutes on one core. ``docs/reproduction.md`` quotes it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import RESULTS
from pyspar.core.moments import Moments
from pyspar.core.spectrum import default_cutoff, directions_above
from pyspar.io.atomic import whole_file
from pyspar.paper.data import load
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.features import features_of, train
from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.metrics import rmse
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import Features
from pyspar.terminal import LineProgress

FILE = RESULTS / "exploding-heads.json"
TASK = "skillcraft"
METHODS = ("ERM", "DANN")
SEEDS = tuple(range(10))
EXPLODED = 2.0
"""A head has exploded if its target error is this many times the error of the trained head."""
HEADS = {"uncut": Head("OLS, uncut"), "cut": Head("OLS")}
FEATURES = ("kept", "dead", "condition")


def make_spec(name: str, method: str, lr_factor: float) -> RunSpec:
    """Return the spec of the suite ``tabular`` with another method and learning rate."""
    (spec,) = (
        spec
        for spec in read_suite("tabular").specs(len(SEEDS), "cpu", lambda tasks: tasks[0])
        if (spec.task, spec.objective) == (name, "ERM")
    )
    return replace(spec, objective=method, config={**spec.config, "lr": spec.config["lr"] * lr_factor})


def describe(features: Features) -> dict[str, float]:
    """Return the ratios of least squares to the trained head, and what the features of one network look like."""
    source = Moments.of(features.train)
    lam = np.linalg.svd(source.root[:, 1 : source.n_features + 1], compute_uv=False)
    trained = rmse(features.test.astype(np.float64) @ features.head[0], features.y_test)
    predictions = predict_with_heads(features, list(HEADS.values()))
    ratios = {name: rmse(predictions[head.key], features.y_test) / trained for name, head in HEADS.items()}
    return {
        "trained": trained,
        **ratios,
        "kept": len(directions_above(source, default_cutoff(source))),
        "dead": int((np.ptp(features.train, axis=0) == 0.0).sum()),
        "condition": float(lam[0] / lam[-1]) if lam[-1] > 0 else float("inf"),
    }


def main(path: Path = FILE) -> None:
    """Measure the missing networks, and write them."""
    torch.set_num_threads(1)
    results: dict[str, list[dict[str, float]]] = json.loads(path.read_text()) if path.exists() else {}
    cells = [(TASK, method, factor) for method in METHODS for factor in (1.0, 0.1)]
    missing = [cell for cell in cells if _key(*cell) not in results]
    progress = LineProgress(lambda line: print(line, flush=True))
    progress.start("cells", "training", total=len(missing), unit="settings")
    for n_done, cell in enumerate(missing, start=1):
        task = load(cell[0])
        networks = train(make_spec(*cell), task, None, lambda message: None)
        rows = [describe(features_of(one.model, task)) for one in networks]
        results[_key(*cell)] = [{name: float(f"{value:.5g}") for name, value in row.items()} for row in rows]
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        progress.advance("cells", n_done)
    progress.finish("cells", "done")
    for key, row in summarise(results).items():
        print(key, row)


def summarise(results: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """Return for each setting how many heads exploded, the largest ratios, and medians of the features."""
    return {
        key: {
            "networks": len(rows),
            **{f"exploded, {name}": sum(row[name] > EXPLODED for row in rows) for name in HEADS},
            **{f"largest, {name}": max(row[name] for row in rows) for name in HEADS},
            **{
                f"median {name}": float(np.median([row[name] for row in rows]))
                for name in ("kept", "dead", "condition")
            },
        }
        for key, rows in results.items()
    }


def _key(name: str, method: str, lr_factor: float) -> str:
    return f"{name}, {method}, {'learning rate / 10' if lr_factor < 1 else 'learning rate of the suite'}"


if __name__ == "__main__":
    main()
