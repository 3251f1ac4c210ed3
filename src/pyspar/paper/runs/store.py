"""The folder of a run: its files, their validation, and the lock that keeps other processes out.

The name of the folder is the hash of the run's spec. It contains ``spec.json``, ``checkpoint.pt`` during training,
``features-SEED.npz``, ``summary-SEED.npz``, ``train.json``, ``timing.json``, ``made.json`` (versions and machine of
training and of scoring), ``scores.json``, and ``done``, which is written at the end of training. A failed run has
``failed.json`` and is repeated by the next call. A damaged file is treated as a missing one.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Matrix, Vector
from pyspar.io.archives import check_entries
from pyspar.io.atomic import whole_file
from pyspar.paper.runs.metrics import is_number
from pyspar.paper.runs.spec import RunSpec

LOCK_TIMEOUT = 5.0
"""Seconds to wait for the lock of a run: a process that was just killed needs a moment to exit."""


class DamagedError(Exception):
    """A file of a run cannot be read and has to be created again."""


class BusyError(Exception):
    """Another process holds the lock. Nothing was changed."""


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
    """The folder of one run.

    Attributes
    ----------
    seeds : the seeds of the run
    holds_out : whether training rows were held out, so that their features are stored too
    """

    path: Path
    seeds: tuple[int, ...] = ()
    holds_out: bool = False

    @classmethod
    def of(cls, root: Path, spec: RunSpec) -> RunFolder:
        """Return the folder of a spec under a root. It may not exist yet."""
        return cls(root / "runs" / spec.key, spec.seeds, bool(spec.options.get("hold_out")))

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def is_done(self) -> bool:
        """Whether training finished and its history and times are readable."""
        return (self.path / "done").is_file() and bool(self.validation) and bool(self.timing)

    @property
    def validation(self) -> dict[str, float]:
        """The validation metric of the selected epoch, by seed; empty if it is unknown for any seed."""
        histories = self.read_table("train.json")
        try:
            values = {seed: history["validation"][history["best_epoch"]] for seed, history in histories.items()}
        except (KeyError, IndexError, TypeError):
            return {}
        complete = all(map(is_number, values.values())) and {str(seed) for seed in self.seeds} <= set(values)
        return {seed: float(value) for seed, value in values.items()} if complete else {}

    @property
    def timing(self) -> dict[str, float]:
        """Seconds of training ("train") and of computing the features ("features"); empty if unknown."""
        seconds, names = self.read_table("timing.json"), ("train", "features")
        complete = all(is_number(seconds.get(name)) for name in names)
        return {name: float(seconds[name]) for name in names} if complete else {}

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions and machine of "training" and, by head, of "scores". Unreadable entries are left out."""
        content = self.read_table("made.json")
        training, scores = content.get("training"), content.get("scores")
        by_head = scores.items() if isinstance(scores, dict) else ()
        return {
            **({"training": training} if _is_provenance(training) else {}),
            "scores": {key: entry for key, entry in by_head if _is_provenance(entry)},
        }

    def has_features(self) -> bool:
        """Return whether training finished and a file of features exists for every seed."""
        return self.is_done and all(self._features_path(seed).is_file() for seed in self.seeds)

    def has_readable_features(self) -> bool:
        """Return whether training finished and the features of every seed can be read, by reading them."""
        try:
            return self.is_done and all(
                (self.read_features(seed).held_out is not None) == self.holds_out for seed in self.seeds
            )
        except DamagedError:
            return False

    def write_features(self, seed: int, features: Features) -> None:
        """Write the features of one seed."""
        arrays = {name: value for name, value in vars(features).items() if value is not None}
        with whole_file(self._features_path(seed)) as temporary:
            np.savez(temporary, **arrays)

    def read_features(self, seed: int) -> Features:
        """Read the features of one seed. Raise ``DamagedError`` if they are unreadable or inconsistent."""
        path = self._features_path(seed)
        try:
            with zipfile.ZipFile(path) as archive:
                check_entries(archive, path.stat().st_size, str(path))
                damaged = archive.testzip()  # NumPy may stop reading before the checksum of an entry is compared
            if damaged is not None:
                raise ValueError(f"{damaged} has the wrong checksum")
            with np.load(path, allow_pickle=False) as arrays:
                features = Features(**{name: arrays[name] for name in arrays.files})
        except Exception as error:  # a flipped bit raises many kinds of exceptions in NumPy and zipfile
            raise DamagedError(f"cannot read {path}: {error}") from error
        if not _are_consistent(features):
            raise DamagedError(f"the arrays in {path} have the wrong shapes or types")
        return features

    def drop_features(self) -> None:
        """Delete the features. A head that was not scored yet then requires training again."""
        for seed in self.seeds:
            self._features_path(seed).unlink(missing_ok=True)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file of the run, whole or not at all."""
        with whole_file(self.path / name) as temporary:
            text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
            temporary.write_text(f"{text}\n", encoding="utf-8")

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file of the run, or None if it is missing or damaged."""
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None

    def read_table(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file that contains an object, or an empty one."""
        content = self.read_json(name)
        return content if isinstance(content, dict) else {}

    def start_training(self, spec: RunSpec) -> None:
        """Write the spec, and remove the mark of a finished training."""
        self.write_json("spec.json", spec.as_dict())
        (self.path / "done").unlink(missing_ok=True)

    def finish_training(self) -> None:
        """Write the mark of a finished training, then delete the checkpoints."""
        self.write_json("done", True)
        self.drop_checkpoints()

    def drop_checkpoints(self) -> bool:
        """Delete the checkpoints, and return whether any existed."""
        checkpoints = [path for path in (self.checkpoint, self.path / "teacher.pt") if path.exists()]
        for path in checkpoints:
            path.unlink()
        return bool(checkpoints)

    def drop_failure(self) -> None:
        """Delete the record of an earlier failure."""
        (self.path / "failed.json").unlink(missing_ok=True)

    @contextmanager
    def lock(self, timeout: float | None = None) -> Iterator[None]:
        """Hold the lock of the run. Raise ``BusyError`` after ``timeout`` seconds, or ``LOCK_TIMEOUT`` if None."""
        self.path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path / "lock", timeout=LOCK_TIMEOUT if timeout is None else timeout):
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
def hold_lock(path: Path, *, timeout: float) -> Iterator[None]:
    """Hold a lock file against other processes. Raise ``BusyError`` if it is not free after ``timeout`` seconds.

    The operating system releases the lock of a process that dies.
    """
    try:
        import fcntl
    except ImportError:  # without fcntl (Windows), concurrent calls are not protected
        yield
        return
    with path.open("w", encoding="utf-8") as handle:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise BusyError(
                        f"another process is using {path.parent}; wait until it ends, or choose another folder "
                        "with --out"
                    ) from error
                time.sleep(0.05)
        yield


def _is_provenance(value: Any) -> bool:
    """Return whether a value from a file describes versions and a machine."""
    return isinstance(value, dict) and all(
        isinstance(value.get(kind), dict) and all(isinstance(text, str) for text in value[kind].values())
        for kind in ("versions", "machine")
    )


def _are_consistent(features: Features) -> bool:
    """Return whether features are matrices of one width, with one label and group per row where these are stored."""
    matrices: list[NDArray[Any]] = [features.train, features.val, features.test, features.head]
    matrices += [X for X in (features.unlabeled, features.held_out) if X is not None]
    pairs = [
        (features.train, features.y_train),
        (features.val, features.y_val),
        (features.val, features.group_val),
        (features.test, features.y_test),
        (features.test, features.group_test),
    ]
    return (
        all(X.ndim == 2 and X.dtype.kind == "f" and X.shape[1] == features.train.shape[1] for X in matrices)
        and all(column.ndim == 1 and column.dtype.kind in "fiu" and len(column) == len(X) for X, column in pairs)
        and len(features.head) == 1
    )
