"""The folder of a run: its files, and the lock that keeps other processes out.

The name of the folder is the hash of the run's spec. It contains ``spec.json``, ``checkpoint.pt`` during training,
``model.pt`` (the best weights), ``features.npz``, ``done.json`` (the results of training, written at its end) and
``scores.json``. A damaged file is treated as a missing one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.core.moments import Matrix, Vector
from pyspar.paper.data.files import read_npz
from pyspar.paper.runs.spec import RunSpec
from pyspar.persist import write_atomically

EXTRAS = ("unlabeled", "held_out")
"""The rows whose features only some suites need. Each has its own file."""


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
    """The folder of one run."""

    path: Path

    @classmethod
    def of(cls, root: Path, spec: RunSpec) -> RunFolder:
        return cls(root / "runs" / spec.key)

    @property
    def is_done(self) -> bool:
        return bool(self.read_json("done.json"))

    def write_features(self, features: Features) -> None:
        """Write features, in one file for the parts of the task and one for each extra."""
        arrays = {name: value for name, value in vars(features).items() if value is not None}
        files = {"features": {name: value for name, value in arrays.items() if name not in EXTRAS}}
        files |= {f"features-{name}": {name: arrays[name]} for name in EXTRAS if name in arrays}
        for name, content in files.items():
            with write_atomically(self.path / f"{name}.npz") as (temporary,):
                np.savez(temporary, **content)

    def read_features(self, *extras: str) -> Features | None:
        """Read the features, with some of ``EXTRAS``. Return None if a file is missing or damaged."""
        try:
            arrays = read_npz(self.path / "features.npz")
            for name in extras:
                arrays |= read_npz(self.path / f"features-{name}.npz")
            return Features(**arrays)
        except Exception:  # noqa: BLE001 - a flipped bit raises many kinds of exceptions in NumPy and zipfile
            return None

    def drop_features(self) -> None:
        """Delete features and weights. A head that was not scored yet then requires training again."""
        for path in [*self.path.glob("features*.npz"), self.path / "model.pt"]:
            path.unlink(missing_ok=True)

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        with write_atomically(self.path / name) as (temporary,):
            temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file of the run, empty if the file is missing or damaged."""
        with suppress(OSError, ValueError, RecursionError):
            content = json.loads((self.path / name).read_text(encoding="utf-8"))
            return content if isinstance(content, dict) else {}
        return {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the run, and remove the temporary files of a process that was killed."""
        self.path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path / "lock"):
            for path in self.path.glob(".*"):
                if not path.is_dir():  # notebooks and file managers create hidden folders
                    path.unlink()
            yield


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock file against other processes, and wait if another one holds it. The operating system releases the
    lock of a process that dies.
    """
    try:
        import fcntl
    except ImportError:  # without fcntl (Windows), concurrent calls are not protected
        yield
        return
    with path.open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
