"""Tasks: a data set with a feature map. Their arrays are cached, because some raw files take seconds to read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.shifts.features import MAPS
from benchmarks.shifts.sets.shift import PARTS, REGISTER, Shift


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
        """Return X, y, Z and the labels of Z, which may only be used for the score."""
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
    folder = Path(__file__).parents[1]
    files = sorted([*folder.glob("sets/*.py"), folder / "features.py", folder / "raw.py"])
    code = b"".join(file.read_bytes() for file in files)
    root = os.environ.get("PYSPAR_SHIFTS_CACHE", str(Path(tempfile.gettempdir()) / "pyspar-shifts"))
    return Path(root) / hashlib.sha256(code).hexdigest()[:12]
