"""The folder of a run: its files, and the lock that keeps other processes out.

The name of the folder is the hash of the run's spec. It contains ``spec.json``, ``checkpoint.pt`` during training,
``features-SEED.npz``, ``summary-SEED.npz``, ``done.json`` (the results of training, written at its end) and
``scores.json``. A failed run has ``failed.json`` and is repeated by the next call. Every JSON file contains a digest of
its content. A damaged file is treated as a missing one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Matrix, Vector
from pyspar.io.atomic import whole_file
from pyspar.paper.data.files import read_npz
from pyspar.paper.runs.spec import RunSpec, canonical_json


class DamagedError(Exception):
    """A file of a run cannot be read and has to be created again."""


@dataclass(frozen=True, eq=False)
class Features:
    """The features of each part of a task, the labels, and the trained head: the input of adaptation and scoring."""

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
    """The folder of one run, and the seeds of the run."""

    path: Path
    seeds: tuple[int, ...] = ()

    @classmethod
    def of(cls, root: Path, spec: RunSpec) -> RunFolder:
        """Return the folder of a spec under a root. It may not exist yet."""
        return cls(root / "runs" / spec.key, spec.seeds)

    @property
    def is_done(self) -> bool:
        """Whether training finished."""
        return bool(self.read_json("done.json"))

    def has_features(self) -> bool:
        """Return whether the features of every seed can be read, by reading them."""
        try:
            return all(self.read_features(seed) is not None for seed in self.seeds)
        except DamagedError:
            return False

    def write_features(self, seed: int, features: Features) -> None:
        """Write the features of one seed."""
        arrays = {name: value for name, value in vars(features).items() if value is not None}
        with whole_file(self._features_path(seed)) as temporary:
            np.savez(temporary, **arrays)

    def read_features(self, seed: int) -> Features:
        """Read the features of one seed. Raise ``DamagedError`` if they are missing or damaged."""
        path = self._features_path(seed)
        try:
            return Features(**read_npz(path))
        except Exception as error:  # a flipped bit raises many kinds of exceptions in NumPy and zipfile
            raise DamagedError(f"cannot read {path}: {error}") from error

    def drop_features(self) -> None:
        """Delete the features. A head that was not scored yet then requires training again."""
        for seed in self.seeds:
            self._features_path(seed).unlink(missing_ok=True)

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file of the run with its digest, whole or not at all."""
        text = json.dumps({"content": content, "sha256": _digest(content)}, indent=1, sort_keys=True)
        with whole_file(self.path / name) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file of the run, empty if the file is missing or damaged."""
        try:
            file = json.loads((self.path / name).read_text(encoding="utf-8"))
            content: dict[str, Any] = file["content"]
            return content if _digest(content) == file["sha256"] else {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}

    def drop_checkpoints(self) -> bool:
        """Delete the checkpoints, and return whether any existed."""
        checkpoints = [path for name in ("checkpoint.pt", "teacher.pt") if (path := self.path / name).exists()]
        for path in checkpoints:
            path.unlink()
        return bool(checkpoints)

    @contextmanager
    def lock(self, on_wait: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of the run. ``on_wait`` is called if another process holds it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path / "lock", on_wait):
            for path in self.path.glob(".*"):  # temporary files of a process that was killed
                if not path.is_dir():  # notebooks and file managers create hidden folders
                    path.unlink()
            yield

    def summary_path(self, seed: int) -> Path:
        """Return the path of the summary of one seed; see ``pyspar.paper.runs.summary``."""
        return self.path / f"summary-{seed}.npz"

    def _features_path(self, seed: int) -> Path:
        return self.path / f"features-{seed}.npz"


@contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock file against other processes. Call ``on_wait`` and wait if another process holds it.

    The operating system releases the lock of a process that dies.
    """
    try:
        import fcntl
    except ImportError:  # without fcntl (Windows), concurrent calls are not protected
        yield
        return
    with path.open("w", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _digest(content: Any) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
