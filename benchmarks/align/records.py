"""The records: one row for each network or model, seed, shift and method, in a compressed file that only grows."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Record(NamedTuple):
    """A row of the records. ``rmse`` and ``trained`` are errors on the target; ``outside`` and ``changed`` the gate."""

    part: str
    model: str
    seed: int
    shift: str
    severity: int
    method: str
    rmse: float
    trained: float
    outside: float
    changed: int


KINDS = (str, str, int, str, int, str, float, float, float, int)


class Records:
    """Records in a file. New ones are appended as another compressed block, so nothing is lost if a run is stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[tuple[Any, ...], Record] = {}
        if path.exists():
            self._keep(read(path))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_pack([Record._fields]))

    def has(self, *key: Any) -> bool:
        return key in self._rows

    def add(self, records: Iterable[Record]) -> None:
        """Append records. A later record replaces an earlier one with the same key."""
        new = list(records)
        self._keep(new)
        with self.path.open("ab") as file:
            file.write(_pack(new))

    def sort(self) -> list[Record]:
        """Write the file again, in one block and in a fixed order; return its records."""
        rows = sorted(self._rows.values(), key=lambda row: row[:6])
        self.path.write_bytes(_pack([Record._fields, *rows]))
        return rows

    def _keep(self, records: Iterable[Record]) -> None:
        self._rows |= {record[:6]: record for record in records}


def read(path: Path) -> list[Record]:
    """Return the records of a file."""
    with gzip.open(path, "rt", newline="") as file:
        return [Record(*(k(v) for k, v in zip(KINDS, row, strict=True))) for row in list(csv.reader(file))[1:]]


def _pack(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([f"{v:.5g}" if isinstance(v, float) else v for v in row] for row in rows)
    return gzip.compress(text.getvalue().encode(), mtime=0)
