"""Records: one number a line, with all that it was made with, so that every table and figure can be made again.

A file of records only grows. A line is written whole or taken back; what a kill cut off is dropped with a notice; any
other line that is no record is refused by its number, and nothing is touched.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pyspar.atomic import whole_file
from pyspar.errors import InputError


@dataclass(frozen=True)
class Record:
    """One measured number.

    Attributes
    ----------
    at : the place on an axis, such as alpha or a direction's number, where the number belongs to one
    run : the key of the run that it came from
    spec, versions, machine : the run's configuration, and what computed it
    """

    task: str
    method: str
    seed: int
    metric: str
    value: float
    at: float | None = None
    run: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What there is one number for: the run, and what was measured in it."""
        return (self.run, self.task, self.method, self.seed, self.metric, self.at)


_TYPES: dict[str, Any] = {"task": str, "method": str, "seed": int, "metric": str, "value": (int, float)}
_FIELDS = {f.name for f in fields(Record)}


def write_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write a new file of records, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text("".join(map(_line, records)), encoding="utf-8")


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read a file of records; a line that is not one is refused by its number."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    return [_parse(path, number, line) for number, line in enumerate(text.splitlines(), start=1)]


def append_records(path: Path, records: Iterable[Record]) -> list[str]:
    """Add the records that the file has not got; return notices of what was found and repaired.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "records.jsonl"
    >>> one, two = Record("t", "m", 0, "rmse", 1.5), Record("t", "m", 1, "rmse", 2.5)
    >>> append_records(file, [one]), append_records(file, [one, two])
    ([], [])
    >>> [r.value for r in read_records(file)]
    [1.5, 2.5]
    """
    notices = repair(path)
    there = {r.identity for r in read_records(path)} if path.exists() else set()
    new: list[str] = []
    for record in records:
        if record.identity not in there:
            there.add(record.identity)
            new.append(_line(record))
    if new:
        _append(path, "".join(new).encode())
    return notices


def repair(path: Path) -> list[str]:
    """Drop a last line that a kill cut off before its end; say so."""
    if not path.exists():
        return []
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return []
    keep = content.rfind(b"\n") + 1
    os.truncate(path, keep)
    return [f"{path}: the last line was cut off ({len(content) - keep} bytes); it was dropped and is measured again."]


def _append(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        before = os.fstat(handle).st_size
        try:
            written = 0
            while written < len(content):
                written += os.write(handle, content[written:])
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)  # a full disk: half a record is worse than none
            raise
    finally:
        os.close(handle)


def _line(record: Record) -> str:
    # Paper-independent: nan is a number that did not come to be, and JSON has no word for it.
    values = {name: value for name, value in asdict(record).items() if value not in ("", None, {})}
    values["value"] = None if math.isnan(record.value) else record.value
    return json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"


def _parse(path: str | os.PathLike[str], number: int, line: str) -> Record:
    try:
        values = json.loads(line)
        if values.get("value", 0) is None:
            values["value"] = float("nan")
        if not all(isinstance(values[name], kind) for name, kind in _TYPES.items()) or not set(values) <= _FIELDS:
            raise ValueError
        return Record(**values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path}, line {number}: expected a record, got {line.strip()[:80]!r}. Take that line out, or move the "
            "file away; nothing was changed."
        ) from error
