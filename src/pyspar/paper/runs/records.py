"""Records: one measured number per line, with the configuration, versions and machine that produced it.

Tables and figures are made from records only. A file of JSON lines has two kinds of lines: an origin (its number, a
spec, versions and a machine), and a number that refers to its origin. A longer file replaces the old one at once, so
that an interruption leaves either of them. An invalid line raises an error with its number.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pyspar import __version__
from pyspar.errors import InputError
from pyspar.paper.runs.spec import canonical_json
from pyspar.paper.runs.store import hold_lock
from pyspar.persist import write_atomically


@dataclass(frozen=True)
class Record:
    """One measured number. ``at`` is the position on an axis, such as alpha or the index of a direction. ``run`` is the
    key of the run that produced the number, ``recipe`` the version of the rule (``pyspar.paper.runs.spec.RECIPES``),
    and ``spec`` the configuration of the run without its seed.
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


_TYPES: dict[str, Any] = {
    **dict.fromkeys(("task", "method", "metric", "run"), str),
    **dict.fromkeys(("seed", "recipe", "origin"), int),
    **dict.fromkeys(("value", "at"), (int, float)),
    **dict.fromkeys(("spec", "versions", "machine"), dict),
}
_ORIGIN = ("spec", "versions", "machine")


def write_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write a new file of records, whole or not at all."""
    numbers: dict[str, int] = {}
    lines = []
    for record in records:
        origin = {name: getattr(record, name) for name in _ORIGIN}
        text = canonical_json(origin)
        if text not in numbers:
            numbers[text] = len(numbers)
            lines.append({"origin": numbers[text], **origin})
        values = {n: v for n, v in vars(record).items() if n not in _ORIGIN and v not in ("", None)}
        if record.recipe == 1:
            del values["recipe"]
        values["value"] = record.value if math.isfinite(record.value) else None  # JSON has neither nan nor inf
        lines.append({**values, "origin": numbers[text]})
    with write_atomically(path) as (temporary,):
        content = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
        temporary.write_text(content, encoding="utf-8")


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read a file of records without duplicates. Raise ``InputError`` with the number of an invalid line."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    records: dict[tuple[Any, ...], Record] = {}
    origins: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            values = _parse_line(line)
            origin = values.pop("origin")
            if "value" in values:
                record = Record(**values, **origins[origin])
                records.setdefault(record.identity, record)
            else:
                origins[origin] = {name: values[name] for name in _ORIGIN}
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(
                f"{path}, line {number}: not a record: {line.strip()[:80]!r}; delete the line, or move the file. "
                "Nothing was changed."
            ) from error
    return list(records.values())


def _parse_line(line: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(line)
    for name, value in values.items():
        if value is None and name == "value":
            values[name] = float("nan")
        elif isinstance(value, bool) or not isinstance(value, _TYPES[name]):
            raise ValueError(name)
        elif isinstance(value, int):
            float(value)  # raises OverflowError for integers of hundreds of digits
    return values


def read_suite_records(results: Path, name: str) -> list[Record]:
    """Return the records of a suite in a folder such as ``results``, or an empty list."""
    file = results / name / "records.jsonl"
    return read_records(file) if file.is_file() else []


def find_records(path: Path, wanted: Iterable[Record]) -> list[Record]:
    """Return the records of a file that have the identities of ``wanted``."""
    identities = {record.identity for record in wanted}
    return [record for record in read_records(path) if record.identity in identities] if identities else []


def group_values(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[float]]:
    """Return the values of records by the fields with these names, in the order of the records."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        values.setdefault(tuple(getattr(record, name) for name in names), []).append(record.value)
    return values


def append_records(path: Path, records: Iterable[Record]) -> None:
    """Append the records that are not in the file yet."""
    with hold_lock(path.with_suffix(".lock")):  # a separate file, since the records may not exist yet
        old = read_records(path) if path.exists() else []
        merged = {record.identity: record for record in old}
        for record in records:
            merged.setdefault(record.identity, record)
        if len(merged) > len(old):
            write_records(path, merged.values())


@cache
def current_provenance(device: str = "cpu") -> dict[str, dict[str, str]]:
    """Return the versions of the packages that influence the numbers, and an anonymous description of the machine."""
    versions = {"pyspar": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "torch"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    machine = {"system": platform.system(), "processor": _processor_name(), "cores": str(os.cpu_count())}
    if device != "cpu":
        import torch

        machine["gpu"] = torch.cuda.get_device_name(device)
    return {"versions": versions, "machine": machine}


def _processor_name() -> str:
    names = []
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
