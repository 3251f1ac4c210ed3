"""Where a run lives: a folder named by the hash of its spec, with a mark that is written last.

``spec.json``, ``checkpoint.pt`` while it trains, ``features-SEED.npz``, ``train.json``, ``timing.json``, ``made.json``
(versions and machine of training and of scoring), ``scores.json`` and ``done``. A run that went wrong has
``failed.json``, and is tried again. A file that was damaged counts as one that is not there.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Matrix, Vector
from pyspar.io.atomic import whole_file
from pyspar.paper.runs.locks import held
from pyspar.paper.runs.metrics import is_number
from pyspar.paper.runs.spec import RunSpec

_PATIENCE = 5.0  # seconds for a process that was killed a moment ago to be gone


class DamagedError(Exception):
    """A file of a run cannot be read; it has to be made again."""


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
    """The folder of one run, and the seeds that are trained there."""

    path: Path
    seeds: tuple[int, ...] = ()

    @classmethod
    def of(cls, root: Path, spec: RunSpec) -> RunFolder:
        """Return the folder of a spec under a root; it need not exist."""
        return cls(root / "runs" / spec.key, spec.seeds)

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def is_done(self) -> bool:
        """Whether it was trained to the end, and what is told of that can be read."""
        return (self.path / "done").is_file() and bool(self.validation) and bool(self.timing)

    @property
    def validation(self) -> dict[str, float]:
        """The validation metric of the epoch that was kept, by seed; empty where that is not known of every seed."""
        found = self.read_table("train.json")
        try:
            kept = {seed: one["validation"][one["best_epoch"]] for seed, one in found.items()}
        except (KeyError, IndexError, TypeError):
            return {}
        whole = all(map(is_number, kept.values())) and {str(seed) for seed in self.seeds} <= set(kept)
        return {seed: float(value) for seed, value in kept.items()} if whole else {}

    @property
    def timing(self) -> dict[str, float]:
        """Seconds of training and of reading features; empty where they are not known."""
        found, names = self.read_table("timing.json"), ("train", "features")
        whole = all(is_number(found.get(name)) for name in names)
        return {name: float(found[name]) for name in names} if whole else {}

    @property
    def made(self) -> dict[str, Any]:
        """Versions and machine of "training", and by head of "scores", as far as these can be read."""
        found = self.read_table("made.json")
        scores = found.get("scores")
        notes = scores.items() if isinstance(scores, dict) else ()
        told = {"training": found["training"]} if _is_note(found.get("training")) else {}
        return {**told, "scores": {key: note for key, note in notes if _is_note(note)}}

    def has_features(self, spec: RunSpec) -> bool:
        """Say whether the features of every seed are still there."""
        return self.is_done and all(self._features(seed).is_file() for seed in spec.seeds)

    def write_features(self, seed: int, features: Features) -> None:
        """Keep one seed's features."""
        there = {name: value for name, value in vars(features).items() if value is not None}
        with whole_file(self._features(seed)) as temporary:
            np.savez(temporary, **there)

    def read_features(self, seed: int) -> Features:
        """Read one seed's features; what cannot be read, or does not fit together, is a ``DamagedError``."""
        path = self._features(seed)
        try:
            with zipfile.ZipFile(path) as content:
                damaged = content.testzip()  # NumPy may read less than an entry holds, and then compares no checksum
            if damaged is not None:
                raise ValueError(f"{damaged} has another checksum")
            with np.load(path, allow_pickle=False) as arrays:
                features = Features(**{name: arrays[name] for name in arrays.files})
        except Exception as error:  # a flipped bit makes NumPy and zipfile stumble in a dozen ways
            raise DamagedError(f"{path} cannot be read ({error})") from error
        if not _fit_together(features):
            raise DamagedError(f"{path} holds arrays that do not fit together")
        return features

    def has_whole_features(self, spec: RunSpec) -> bool:
        """Say whether the features of every seed can be read, by reading them."""
        held_back = bool(spec.options.get("hold_out"))
        try:
            return self.is_done and all(
                (self.read_features(seed).held_out is not None) == held_back for seed in spec.seeds
            )
        except DamagedError:
            return False

    def drop_features(self, spec: RunSpec) -> None:
        """Free the disk; a head that was not scored yet then needs the training again."""
        for seed in spec.seeds:
            self._features(seed).unlink(missing_ok=True)

    def write_json(self, name: str, value: Any) -> None:
        """Write a small file of the run."""
        write_json(self.path / name, value)

    def read_json(self, name: str) -> Any:
        """Read a small file of the run, or None where it is not there, or no JSON."""
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None

    def read_table(self, name: str) -> dict[str, Any]:
        """Read a small file that holds names and values; empty where there is none."""
        found = self.read_json(name)
        return found if isinstance(found, dict) else {}

    def finish(self) -> None:
        """Set the mark, the last thing of all, and take away what only an unfinished run needs."""
        self.write_json("done", True)
        self.drop_checkpoints()

    def drop_checkpoints(self) -> bool:
        """Take away what an unfinished training goes on from; say whether there was any."""
        there = [path for path in (self.checkpoint, self.path / "teacher.pt") if path.exists()]
        for path in there:
            path.unlink()
        return bool(there)

    def forget_failure(self) -> None:
        """Take away the record of a failure, after a success."""
        (self.path / "failed.json").unlink(missing_ok=True)

    @contextmanager
    def alone(self, patience: float | None = None) -> Iterator[None]:
        """Keep two processes from doing one run at the same time; the system lets go when a process dies.

        After so many seconds, or a few, there is a ``BusyError``.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with held(self.path / "lock", patience=_PATIENCE if patience is None else patience):
            for left in self.path.glob(".*"):  # what a killed process was in the midst of writing
                if not left.is_dir():  # some notebooks and file managers keep folders of their own everywhere
                    left.unlink()
            yield

    def _features(self, seed: int) -> Path:
        return self.path / f"features-{seed}.npz"


def _is_note(value: Any) -> bool:
    """Say whether a value is versions and a machine."""
    return isinstance(value, dict) and all(
        isinstance(value.get(kind), dict) and all(isinstance(v, str) for v in value[kind].values())
        for kind in ("versions", "machine")
    )


def _fit_together(features: Features) -> bool:
    """Say whether arrays are numbers, matrices of one width with a label and a group for each row that has them."""
    rows: list[NDArray[Any]] = [features.train, features.val, features.test, features.head]
    rows += [X for X in (features.unlabeled, features.held_out) if X is not None]
    beside = [
        (features.train, features.y_train),
        *((features.val, of) for of in (features.y_val, features.group_val)),
        *((features.test, of) for of in (features.y_test, features.group_test)),
    ]
    return (
        all(X.ndim == 2 and X.dtype.kind == "f" and X.shape[1] == features.train.shape[1] for X in rows)
        and all(of.ndim == 1 and of.dtype.kind in "fiu" and len(of) == len(X) for X, of in beside)
        and len(features.head) == 1
    )


def write_json(path: Path, value: Any) -> None:
    """Write JSON whole or not at all, in one spelling."""
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
