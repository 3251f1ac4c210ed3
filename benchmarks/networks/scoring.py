"""Repair each trained network with every method: one record per data set, network, source rows and method."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.networks.training import TrainedNetwork, rmse, trained_network
from benchmarks.records import RESULTS, known_keys, update
from benchmarks.shifts.sets import REGISTER, Task
from pyspar.nn import adapt_head

RECORDS = RESULTS / "networks.csv.gz"
KEYS = ("set", "network", "rows", "method")
METHODS = ("ols", "spar", "bayes")
ROWS = ("training rows", "validation rows")
"""Which labelled source rows ``adapt_head`` is given."""
FEWEST_SOURCE_ROWS = 1000
FEWEST_TARGET_ROWS = 300
FEWEST_COLUMNS = 5
BATCH_SIZE = 512


def choose_sets(part: str) -> list[str]:
    """Return all data sets of a part that are large enough, in the order of the hash of their name."""
    chosen = []
    for name in sorted(REGISTER, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        if REGISTER[name].part == part:
            X, _, Z, _ = Task(REGISTER[name], "raw").arrays()
            if len(X) >= FEWEST_SOURCE_ROWS and len(Z) >= FEWEST_TARGET_ROWS and X.shape[1] >= FEWEST_COLUMNS:
                chosen.append(name)
    return chosen


def measure(name: str, network: str, rows: str, method: str, trained: TrainedNetwork) -> dict[str, Any]:
    """Repair one trained network with one method. The labels of the target are used only for the score.

    ``trained`` is the target RMSE of the trained network in standard deviations of the training labels, and ``ratio``
    is that of the repaired network divided by it. ``source_before`` and ``source_after`` are the RMSE on source rows
    that neither training nor repair has used. ``changed`` is the number of directions in which the head was changed.
    """
    data = trained.data
    source = data.train if rows == "training rows" else data.validation
    before = rmse(trained.model, data.target)
    batches = list(zip(source[0].split(BATCH_SIZE), source[1].split(BATCH_SIZE), strict=True))
    target = list(data.target[0].split(BATCH_SIZE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = adapt_head(trained.model, batches, target, method=method, progress=False)
    after = rmse(adapted.model, data.target)
    return {
        "set": name, "network": network, "rows": rows, "method": method,
        "n": len(source[0]), "m": len(data.target[0]), "d": source[0].shape[1],
        "trained": before, "ratio": after / before if math.isfinite(after) else math.inf,
        "source_before": rmse(trained.model, data.held_out), "source_after": rmse(adapted.model, data.held_out),
        "changed": adapted.changed.directions,
    }  # fmt: skip


def run(
    names: Sequence[str], networks: Sequence[str], methods: Sequence[str] = METHODS, path: Path = RECORDS, *,
    again: bool = False,
) -> int:  # fmt: skip
    """Write the records that are missing, or all with ``again``; return their number."""
    torch.set_num_threads(1)
    known = set() if again else known_keys(path, KEYS)
    written = 0
    for name in names:
        for network in networks:
            wanted = [(name, network, rows, method) for rows in ROWS for method in methods]
            if missing := [key for key in wanted if key not in known]:
                trained = trained_network(name, network)
                update(path, [measure(*key, trained) for key in missing], KEYS)
                written += len(missing)
                print(f"{name}, {network}: {len(missing)} records", flush=True)
    return written
