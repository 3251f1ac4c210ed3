"""Records as lines of JSON, one per task and method. They are appended during a run and sorted at its end."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.shifts.methods import REFERENCE

RESULTS = Path(__file__).parents[1] / "results"
OWN = RESULTS / "shifts.jsonl"
PEERS = RESULTS / "shifts-peers.jsonl"
NEW_PART = RESULTS / "shifts-new.jsonl"
"""Records of the part ``new``, which docs/evidence.md does not use."""

Record = dict[str, Any]
Key = tuple[str, str]


def read(*paths: Path) -> dict[Key, Record]:
    """Read records by task and method. The last record of a pair counts; incomplete lines are skipped."""
    records: dict[Key, Record] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            records[record["task"], record["method"]] = record
    return records


def append(path: Path, record: Record) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


def tidy(path: Path) -> None:
    """Sort the file by task and method, with each record's ratio to the reference of its task."""
    records = read(path)
    reference = read(OWN, path)
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        for _, record in sorted(records.items()):
            record["ratio"] = ratio(record, reference)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    os.replace(part, path)


def ratio(record: Record, records: dict[Key, Record]) -> float | None:
    """Return the record's target RMSE divided by the reference's, or None if one of them failed."""
    reference = records.get((record["task"], REFERENCE), {}).get("rmse")
    return round(record["rmse"] / reference, 6) if record["rmse"] is not None and reference else None


def ratios(records: dict[Key, Record], method: str, tasks: Iterable[str]) -> list[float]:
    found = (records.get((task, method)) for task in tasks)
    kept = [ratio(r, records) for r in found if r is not None]
    return [r for r in kept if r is not None and math.isfinite(r)]
