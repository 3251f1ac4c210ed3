"""Records: one measured number per line, with the configuration, versions and machine that produced it.

Tables and figures are made from records only. Records are appended to a file and never changed. The longer file
replaces the old one at once, so that an interruption leaves either of them. An invalid line raises an error with its
number, and the file stays unchanged.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pyspar import __version__
from pyspar.errors import InputError
from pyspar.io.atomic import whole_file
from pyspar.paper.runs.store import hold_lock


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


_TYPES: dict[str, Any] = {
    **dict.fromkeys(("task", "method", "metric", "run"), str),
    **dict.fromkeys(("seed", "recipe"), int),
    **dict.fromkeys(("value", "at"), (int, float)),
    **dict.fromkeys(("spec", "versions", "machine"), dict),
}


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
    return [record for record in read_records(path) if record.identity in identities] if identities else []


def group_values(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[float]]:
    """Return the values of records by the fields with these names, in the order of the records.

    >>> group_values([Record("t", "m", 0, "rmse", 1.5), Record("t", "m", 1, "rmse", 2.5)], "task", "method")
    {('t', 'm'): [1.5, 2.5]}
    """
    values: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        values.setdefault(tuple(getattr(record, name) for name in names), []).append(record.value)
    return values


def append_records(path: Path, records: Iterable[Record]) -> None:
    """Append the records that are not in the file yet.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "records.jsonl"
    >>> one, two = Record("t", "m", 0, "rmse", 1.5), Record("t", "m", 1, "rmse", 2.5)
    >>> append_records(file, [one])
    >>> append_records(file, [one, two])
    >>> [r.value for r in read_records(file)]
    [1.5, 2.5]
    """
    with hold_lock(path.with_suffix(".lock")):  # a separate file, since the records may not exist yet
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        known = {record.identity for record in read_records(path)} if old else set()
        new: dict[Any, Record] = {}
        for record in records:
            if record.identity not in known:
                new.setdefault(record.identity, record)
        if new:
            with whole_file(path) as temporary:
                temporary.write_text(old + "".join(map(_format_line, new.values())), encoding="utf-8")


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of pyspar, Python and the packages that influence the numbers."""
    versions = {"pyspar": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "torch"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
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


def _format_line(record: Record) -> str:
    values = {name: value for name, value in asdict(record).items() if value not in ("", None, {})}
    if record.recipe == 1:
        del values["recipe"]
    values["value"] = record.value if math.isfinite(record.value) else None  # JSON has neither nan nor inf
    return json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"


def _parse_line(path: str | os.PathLike[str], number: int, line: str) -> Record:
    try:
        values = json.loads(line)
        for name, value in values.items():
            if value is None and name == "value":
                values[name] = float("nan")
            elif isinstance(value, bool) or not isinstance(value, _TYPES[name]):
                raise ValueError
            elif isinstance(value, int):
                float(value)  # raises OverflowError for integers of hundreds of digits
        return Record(**values)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{path}, line {number}: not a record: {line.strip()[:80]!r}; delete the line, or move the file. Nothing "
            "was changed."
        ) from error
