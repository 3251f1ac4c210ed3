"""Records: one number a row, so that every table and figure can be made again from them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from pyspar.atomic import whole_file


@dataclass(frozen=True)
class Record:
    """One measured number."""

    task: str
    method: str
    seed: int
    metric: str
    value: float


def write_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write records as JSON lines, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text("".join(json.dumps(asdict(record)) + "\n" for record in records), encoding="utf-8")


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read what :func:`write_records` wrote; a line that is not a record is refused by its number."""
    records = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                records.append(Record(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: expected a record, got {line.strip()[:80]!r}.") from error
    return records
