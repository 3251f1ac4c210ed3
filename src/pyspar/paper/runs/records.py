"""Records: one number a line, with all that it was made with, so that every table and figure can be made again.

A file of records only grows. A line is written whole or taken back; what a kill cut off is dropped with a notice; any
other line that is no record is refused by its number, and nothing is touched.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspar.errors import InputError
from pyspar.io.atomic import whole_file
from pyspar.paper.runs.locks import BusyError, held
from pyspar.paper.runs.metrics import is_number


@dataclass(frozen=True)
class Record:
    """One measured number.

    Attributes
    ----------
    at : the place on an axis, such as alpha or a direction's number, where the number belongs to one
    run : the key of the run that it came from
    recipe : the version of the rule that was measured; see ``pyspar.paper.runs.registry.RECIPES``
    spec, versions, machine : the run's configuration, and what computed it
    """

    task: str
    method: str
    seed: int
    metric: str
    value: float
    at: float | None = None
    run: str = ""
    recipe: int = 1
    spec: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What there is one number for: the run, what was measured in it, and by which version of its rule."""
        return (self.run, self.task, self.method, self.seed, self.metric, self.at, self.recipe)


_NUMBER = (int, float)
_NEEDED: dict[str, Any] = {"task": str, "method": str, "seed": int, "metric": str, "value": _NUMBER}
_OTHER: dict[str, Any] = {"at": _NUMBER, "run": str, "recipe": int, "spec": dict, "versions": dict, "machine": dict}
_PATIENCE = 60.0  # seconds; adding lines takes milliseconds


def write_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write a new file of records, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text("".join(map(_line, records)), encoding="utf-8")


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read a file of records, each number once; a line that is not a record is refused by its number."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    found: dict[tuple[Any, ...], Record] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        record = _parse(path, number, line)
        found.setdefault(record.identity, record)
    return list(found.values())


def recorded(path: Path, wanted: Iterable[Record]) -> list[Record]:
    """Return those of the records that are in a file, as they are there; no other process writes meanwhile."""
    identities = {record.identity for record in wanted}
    if not identities:
        return []
    with _alone(path):
        return [record for record in read_records(path) if record.identity in identities]


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
    with _alone(path):
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


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from the file; a lock of its own, because the file need not exist."""
    try:
        with held(path.with_suffix(".lock"), patience=_PATIENCE):
            yield
    except BusyError as error:
        raise InputError(f"expected to be able to write {path}. Got: {error}.") from error


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
    # A number that did not come to be (nan), or ran away (inf), is null: JSON has no word for either.
    values = {name: value for name, value in asdict(record).items() if value not in ("", None, {})}
    if record.recipe == 1:
        del values["recipe"]
    values["value"] = record.value if math.isfinite(record.value) else None
    return json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"


def _fits(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and (kind in (str, dict) or is_number(value))


def _parse(path: str | os.PathLike[str], number: int, line: str) -> Record:
    try:
        values = json.loads(line)
        if values.get("value", 0) is None:
            values["value"] = float("nan")
        kinds = _NEEDED | {name: _OTHER[name] for name in set(values) - set(_NEEDED)}
        if not all(_fits(values[name], kind) for name, kind in kinds.items()):
            raise ValueError
        return Record(**values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path}, line {number}: expected a record, got {line.strip()[:80]!r}. Take that line out, or move the "
            "file away; nothing was changed."
        ) from error
