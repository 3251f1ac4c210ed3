"""A task is a set with a feature map; its arrays are kept in a cache, because some raw files take seconds to read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.shifts.features import MAPS
from benchmarks.shifts.sets.shift import REGISTER, Shift

# In the order in which they were opened; docs/evidence.md says which choices each of them served.
HALVES = ("design", "held-back", "fresh", "sealed", "last")


@dataclass(frozen=True)
class Task:
    """One regression problem: a set, its rule, a feature map."""

    shift: Shift
    map: str

    @property
    def name(self) -> str:
        return f"{self.shift.name}/{self.map}"

    @property
    def half(self) -> str:
        return self.shift.half

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y, Z and the labels of Z, which only the score may see."""
        path = _cache() / f"{self.shift.name}-{self.map}.npz"
        if not path.exists():
            X, y, Z, yz, _ = self.shift.arrays()
            X, Z = MAPS[self.map](X, y, Z)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")
            np.savez(part, X=X, y=y, Z=Z, yz=yz)
            part.replace(path)
        with np.load(path) as kept:
            return kept["X"], kept["y"], kept["Z"], kept["yz"]


def tasks(half: str | None = None, maps: tuple[str, ...] = tuple(MAPS)) -> Iterator[Task]:
    """Give every task, or those of one part."""
    if half not in (None, *HALVES):
        raise ValueError(f"half must be one of {HALVES} or None. Got {half!r} instead.")
    for name in sorted(REGISTER):
        if half in (None, REGISTER[name].half):
            yield from (Task(REGISTER[name], m) for m in maps)


def _cache() -> Path:
    """Name a folder after the code that makes the arrays, so that a change of a rule never meets old arrays."""
    here = Path(__file__).parents[1]
    code = b"".join(p.read_bytes() for p in sorted([*here.glob("sets/*.py"), here / "features.py", here / "raw.py"]))
    root = os.environ.get("PYSPAR_SHIFTS_CACHE", str(Path(tempfile.gettempdir()) / "pyspar-shifts"))
    return Path(root) / hashlib.sha256(code).hexdigest()[:12]
