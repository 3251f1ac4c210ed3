"""Records as lines of JSON. Temporary: ``benchmarks.records`` replaces it as soon as nothing imports it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
