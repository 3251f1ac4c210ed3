"""Repair each trained network with every method, and write one record per repair as a line of JSON."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.networks.training import TrainedNetwork, rmse, trained_network
from benchmarks.shifts.records import append
from pyspar.nn import adapt_head

RECORDS = Path(__file__).parents[1] / "results" / "networks.jsonl"
UNSCALED = RECORDS.with_name("networks-unscaled.jsonl")
"""The records of "bayes" with the former method, which does not scale a change down."""
METHODS = ("ols", "spar", "bayes")
ROWS = ("training rows", "validation rows")
"""Which labelled source rows ``adapt_head`` is given."""
BATCH_SIZE = 512

Record = dict[str, Any]
Key = tuple[str, str, str, str]


def measure(name: str, network: str, rows: str, method: str, trained: TrainedNetwork) -> Record:
    """Repair one trained network with one method. The labels of the target are used only for the score.

    Errors are in standard deviations of the training labels. ``ratio`` is the target RMSE of the repaired network
    divided by that of the trained network. ``home_before`` and ``home_after`` are the RMSE on source rows that neither
    training nor repair has used. ``changed`` is the number of directions in which the head was changed; None in
    records of earlier versions if it is not known.
    """
    data = trained.data
    source = data.train if rows == "training rows" else data.validation
    before = rmse(trained.model, data.target)
    record: Record = {
        "set": name, "network": network, "rows": rows, "method": method,
        "n": len(source[0]), "m": len(data.target[0]), "d": source[0].shape[1], "epoch": trained.epoch,
        "rmse": None, "trained": _digits(before), "ratio": None,
        "home_before": _digits(rmse(trained.model, data.held_out)), "home_after": None,
        "changed": None, "seconds": None, "note": "",
    }  # fmt: skip
    source_loader = list(zip(source[0].split(BATCH_SIZE), source[1].split(BATCH_SIZE), strict=True))
    target_loader = None if method == "ols" else list(data.target[0].split(BATCH_SIZE))
    try:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = adapt_head(trained.model, source_loader, target_loader, method=method, progress=False)
        record["seconds"] = round(time.perf_counter() - start, 4)
    except Exception as error:  # noqa: BLE001 - a failure is reported in the table together with its reason
        record["note"] = f"{type(error).__name__}: {str(error)[:100]}"
        return record
    after = rmse(adapted.model, data.target)
    record["changed"] = adapted.changed.directions
    record["rmse"], record["home_after"] = _digits(after), _digits(rmse(adapted.model, data.held_out))
    record["ratio"] = _digits(after / before)
    record["note"] = "" if math.isfinite(after) else "the predictions are not finite"
    return record


def run(
    names: Sequence[str],
    networks: Sequence[str],
    methods: Sequence[str] = METHODS,
    path: Path = RECORDS,
    *,
    again: Sequence[str] = (),
) -> int:
    """Write the records that are missing from ``path``, and those of the methods in ``again``; return their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    written = 0
    try:
        known = read(path)
        for name in names:
            for network in networks:
                missing = [
                    (rows, method)
                    for rows in ROWS
                    for method in methods
                    if method in again or (name, network, rows, method) not in known
                ]
                if not missing:
                    continue
                trained = trained_network(name, network)
                for rows, method in missing:
                    append(path, measure(name, network, rows, method, trained))
                written += len(missing)
                print(f"{name}, {network}: {len(missing)} records", flush=True)
    finally:
        torch.set_num_threads(threads)
        if written:
            tidy(path)
    return written


def read(path: Path) -> dict[Key, Record]:
    """Read the records. The last record of a key counts, and incomplete lines are skipped."""
    records: dict[Key, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[record["set"], record["network"], record["rows"], record["method"]] = record
    return records


def tidy(path: Path) -> None:
    """Sort the file, and keep one record per key."""
    part = path.with_suffix(".part")
    lines = (json.dumps(record, ensure_ascii=False) for _, record in sorted(read(path).items()))
    part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.replace(part, path)


def _digits(value: float) -> float | None:
    return float(f"{value:.8g}") if math.isfinite(value) else None
