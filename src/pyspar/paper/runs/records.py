"""Records: one measured number per line, with the configuration, versions and machine that produced it.

Tables and figures are made from records only. Records are appended to a file and never changed. A line is written whole
or removed again. A last line that a killed process left incomplete is dropped with a notice; any other invalid line
raises an error with its number, and the file stays unchanged.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pyspar import __version__
from pyspar.errors import InputError
from pyspar.io.atomic import whole_file
from pyspar.paper.runs.metrics import is_number
from pyspar.paper.runs.store import BusyError, hold_lock


@dataclass(frozen=True)
class Record:
    """One measured number.

    Attributes
    ----------
    at : the position on an axis, such as alpha or the index of a direction; None if the number has none
    run : the key of the run that produced it
    recipe : the version of the rule that was measured; see ``pyspar.paper.runs.registry.RECIPES``
    spec, versions, machine : the configuration of the run, the versions of the packages, and the machine
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
        """All that distinguishes one measurement from another; a file contains one number for each identity."""
        return (self.run, self.task, self.method, self.seed, self.metric, self.at, self.recipe)


_NUMBER = (int, float)
_REQUIRED: dict[str, Any] = {"task": str, "method": str, "seed": int, "metric": str, "value": _NUMBER}
_OPTIONAL: dict[str, Any] = {"at": _NUMBER, "run": str, "recipe": int, "spec": dict, "versions": dict, "machine": dict}
_LOCK_TIMEOUT = 60.0  # seconds; appending takes milliseconds


def write_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write a new file of records, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text("".join(map(_format_line, records)), encoding="utf-8")


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read a file of records without duplicates. Raise ``InputError`` with the number of an invalid line."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    records: dict[tuple[Any, ...], Record] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        record = _parse_line(path, number, line)
        records.setdefault(record.identity, record)
    return list(records.values())


def find_records(path: Path, wanted: Iterable[Record]) -> list[Record]:
    """Return the records of a file that have the identities of ``wanted``."""
    identities = {record.identity for record in wanted}
    if not identities:
        return []
    with _lock_records(path):
        return [record for record in read_records(path) if record.identity in identities]


def append_records(path: Path, records: Iterable[Record]) -> list[str]:
    """Append the records that are not in the file yet, and return notices of repairs.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "records.jsonl"
    >>> one, two = Record("t", "m", 0, "rmse", 1.5), Record("t", "m", 1, "rmse", 2.5)
    >>> append_records(file, [one]), append_records(file, [one, two])
    ([], [])
    >>> [r.value for r in read_records(file)]
    [1.5, 2.5]
    """
    with _lock_records(path):
        notices = _drop_incomplete_line(path)
        identities = {record.identity for record in read_records(path)} if path.exists() else set()
        lines: list[str] = []
        for record in records:
            if record.identity not in identities:
                identities.add(record.identity)
                lines.append(_format_line(record))
        if lines:
            _append_bytes(path, "".join(lines).encode())
    return notices


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of pyspar, Python and the packages that influence the numbers."""
    versions = {"pyspar": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "torch"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


@cache
def describe_machine(device: str = "cpu") -> dict[str, str]:
    """Return the system, processor, number of cores and, if one is used, GPU. The description is anonymous."""
    machine = {"system": platform.system(), "processor": _processor_name(), "cores": str(os.cpu_count())}
    if device != "cpu":
        import torch

        machine["gpu"] = torch.cuda.get_device_name(device)
    return machine


def current_provenance(device: str = "cpu") -> dict[str, dict[str, str]]:
    """Return the versions and the machine of this process."""
    return {"versions": package_versions(), "machine": describe_machine(device)}


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


@contextmanager
def _lock_records(path: Path) -> Iterator[None]:
    """Keep other processes from writing. The lock is a separate file, since the records may not exist yet."""
    try:
        with hold_lock(path.with_suffix(".lock"), timeout=_LOCK_TIMEOUT):
            yield
    except BusyError as error:
        raise InputError(f"cannot write {path}: {error}.") from error


def _drop_incomplete_line(path: Path) -> list[str]:
    """Remove a last line without its end, and return a notice of it."""
    if not path.exists():
        return []
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return []
    length = content.rfind(b"\n") + 1
    os.truncate(path, length)
    return [f"{path}: dropped an incomplete last line ({len(content) - length} bytes); it is measured again."]


def _append_bytes(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        before = os.fstat(handle).st_size
        try:
            written = 0
            while written < len(content):
                written += os.write(handle, content[written:])
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)  # if the disk is full, remove the partial line
            raise
    finally:
        os.close(handle)


def _format_line(record: Record) -> str:
    values = {name: value for name, value in asdict(record).items() if value not in ("", None, {})}
    if record.recipe == 1:
        del values["recipe"]
    values["value"] = record.value if math.isfinite(record.value) else None  # JSON has neither nan nor inf
    return json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"


def _parse_line(path: str | os.PathLike[str], number: int, line: str) -> Record:
    try:
        values = json.loads(line)
        if values.get("value", 0) is None:
            values["value"] = float("nan")
        types = _REQUIRED | {name: _OPTIONAL[name] for name in set(values) - set(_REQUIRED)}
        if not all(_has_type(values[name], expected) for name, expected in types.items()):
            raise ValueError
        return Record(**values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path}, line {number}: not a record: {line.strip()[:80]!r}; delete the line, or move the file. Nothing "
            "was changed."
        ) from error


def _has_type(value: Any, expected: Any) -> bool:
    return isinstance(value, expected) and (expected in (str, dict) or is_number(value))
