"""Where a run lives: a folder named by the hash of its spec, with a mark that is written last.

``spec.json``, ``checkpoint.pt`` while it trains, ``features-SEED.npz``, ``train.json``, ``timing.json``,
``scores.json`` and ``done``. A run that went wrong has ``failed.json`` in place of the mark, and is tried again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.atomic import whole_file
from pyspar.bench.spec import RunSpec
from pyspar.core.arrays import Matrix, Vector
from pyspar.errors import InputError

_PATIENCE = 20.0  # seconds for a process that was killed a moment ago to be gone


@dataclass(frozen=True, eq=False)
class Features:
    """What a trained network makes of each part of a task, and its own head: all that adaptation and scoring need."""

    train: NDArray[np.float32]
    val: NDArray[np.float32]
    test: NDArray[np.float32]
    head: Matrix
    y_train: Vector
    y_val: Vector
    y_test: Vector
    group_val: NDArray[np.int64]
    group_test: NDArray[np.int64]
    unlabeled: NDArray[np.float32] | None = None
    held_out: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @classmethod
    def of(cls, root: Path, spec: RunSpec) -> RunFolder:
        """Return the folder of a spec under a root; it need not exist."""
        return cls(root / "runs" / spec.key)

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def is_done(self) -> bool:
        return (self.path / "done").is_file()

    def has_features(self, spec: RunSpec) -> bool:
        """Say whether the features of every seed are still there."""
        return self.is_done and all(self._features(seed).is_file() for seed in spec.seeds)

    def write_features(self, seed: int, features: Features) -> None:
        """Keep one seed's features."""
        there = {name: value for name, value in vars(features).items() if value is not None}
        with whole_file(self._features(seed)) as temporary:
            np.savez(temporary, **there)

    def read_features(self, seed: int) -> Features:
        """Read one seed's features."""
        with np.load(self._features(seed), allow_pickle=False) as arrays:
            return Features(**{name: arrays[name] for name in arrays.files})

    def drop_features(self, spec: RunSpec) -> None:
        """Free the disk; a head that was not scored yet then needs the training again."""
        for seed in spec.seeds:
            self._features(seed).unlink(missing_ok=True)

    def write_json(self, name: str, value: Any) -> None:
        """Write a small file of the run."""
        write_json(self.path / name, value)

    def read_json(self, name: str) -> Any:
        """Read a small file of the run, or None where it is not there."""
        path = self.path / name
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def finish(self) -> None:
        """Set the mark, the last thing of all, and take away what only an unfinished run needs."""
        self.write_json("done", True)
        for name in ("failed.json", "checkpoint.pt", "teacher.pt"):
            (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep two processes from doing one run at the same time; the system lets go when a process dies."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "lock", "w", encoding="utf-8") as handle:
            _lock(handle, self.path)
            for left in self.path.glob(".*"):  # what a killed process was in the midst of writing
                left.unlink()
            yield

    def _features(self, seed: int) -> Path:
        return self.path / f"features-{seed}.npz"


def write_json(path: Path, value: Any) -> None:
    """Write JSON whole or not at all, in one spelling."""
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _lock(handle: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # a system without it: two calls at once are the caller's affair
        return
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise InputError(
                    f"another process is working on {path}. Wait for it, or choose another folder with --out."
                ) from error
            time.sleep(0.1)
