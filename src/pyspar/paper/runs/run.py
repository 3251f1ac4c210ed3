"""One run, from its spec to its scores: train, keep the features, put heads behind them, judge.

Each arrow is a file in the run's folder, so what is there is not done again: new heads, or other values of alpha, cost
an adaptation and no training.
"""

from __future__ import annotations

import errno
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspar.errors import InputError, MissingExtraError
from pyspar.paper.runs.features import DivergedError, features_of, train
from pyspar.paper.runs.heads import Head, predictions
from pyspar.paper.runs.locks import BusyError
from pyspar.paper.runs.machine import made_now
from pyspar.paper.runs.metrics import is_number, meant_digits, measure
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import DamagedError, RunFolder
from pyspar.paper.runs.tasks import run_data

Watch = Callable[[int, int], None]
"""Told how many epochs are done, and how many there are."""

Scores = dict[str, dict[str, dict[str, float]]]
"""By head, seed and metric."""

_STORAGE = {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EPERM}


@dataclass(frozen=True)
class Job:
    """A run to do, the heads to judge, by which metrics, and where everything is.

    ``needs_features`` is for a suite that reads them itself; ``patience`` is how many seconds to wait for another
    process, a few unless told.
    """

    spec: RunSpec
    heads: tuple[Head, ...]
    metrics: tuple[str, ...]
    root: Path
    data: Path | None = None
    keep: bool = True
    resume: bool = True
    needs_features: bool = False
    patience: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a run: scores by head and seed, or why there are none.

    ``kind`` is "done", "failed" (recorded, and tried again the next time), "diverged" (a failure of the training
    itself), "skipped" (something it needs is not here, or is not what it should be), "busy" (another process is at it)
    or "storage" (nothing can be written, so there is no use in going on).
    """

    key: str
    kind: str
    reason: str = ""
    scores: Scores = field(default_factory=dict)
    timing: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    """The validation metric of the epoch that was kept, by seed."""
    made: dict[str, Any] = field(default_factory=dict)
    """Versions and machine: of "training", and by head of "scores"."""
    reused: bool = False
    """Whether the networks had been trained before."""

    @property
    def word(self) -> str:
        """What is told when the run is over."""
        return "reused, trained before" if self.reused else self.kind


class UnusableDataError(Exception):
    """The data of a run is not here, or not what it should be."""


def carry_out(job: Job, watch: Watch) -> Outcome:
    """Do what is left of a run. What goes wrong is recorded in its folder, and told; it stops nothing else."""
    key = job.spec.key
    folder = RunFolder.of(job.root, job.spec)
    try:
        with folder.alone(job.patience):
            scores, reused = _finish(job, folder, watch)
            folder.forget_failure()
        timing, validation, made = folder.timing, folder.validation, folder.made
        return Outcome(key, "done", scores=scores, timing=timing, validation=validation, made=made, reused=reused)
    except BusyError as error:
        return Outcome(key, "busy", str(error))
    except (UnusableDataError, MissingExtraError) as error:
        return Outcome(key, "skipped", str(error))
    except Exception as error:  # noqa: BLE001 - whatever a run dies of is recorded with its traceback, and shown
        if isinstance(error, OSError) and error.errno in _STORAGE:
            return Outcome(key, "storage", f"{error.strerror} ({error.filename or folder.path})")
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return failed(job, "diverged" if isinstance(error, DivergedError) else "failed", reason, traceback.format_exc())


def failed(job: Job, kind: str, reason: str, trace: str = "") -> Outcome:
    """Record in its folder what a run died of."""
    folder = RunFolder.of(job.root, job.spec)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_json("failed.json", {"error": reason, "traceback": trace})
    except OSError as error:
        where = error.filename or folder.path
        return Outcome(job.spec.key, "storage", f"{error.strerror} ({where}), after: {reason}")
    return Outcome(job.spec.key, kind, reason)


def _finish(job: Job, folder: RunFolder, watch: Watch) -> tuple[Scores, bool]:
    """Return the scores of a run, and whether its networks had been trained before."""
    spec = job.spec
    reused = True
    scores: Scores = folder.read_table("scores.json")
    left = [head for head in job.heads if not _complete(scores.get(head.key), job)]
    there = folder.has_whole_features(spec) if job.needs_features else folder.has_features(spec)
    if left or not folder.is_done or (job.needs_features and not there):
        if not there:
            reused = False
            _train(job, folder, watch)
        try:
            found = _scored(job, folder, left)
        except DamagedError:
            reused = False
            _train(job, folder, watch)
            found = _scored(job, folder, left)
        for head in left:
            scores[head.key] = _merged(scores.get(head.key), found[head.key])
        folder.write_json("scores.json", scores)
        if left:
            _note_made(folder, spec, left)
        if not job.keep:
            folder.drop_features(spec)
    return {head.key: scores[head.key] for head in job.heads}, reused


def _scored(job: Job, folder: RunFolder, heads: list[Head]) -> Scores:
    """Return what each head comes to on each seed; features that cannot be read are a ``DamagedError``."""
    found: Scores = {head.key: {} for head in heads}
    for seed in job.spec.seeds if heads else ():
        features = folder.read_features(seed)
        for key, prediction in predictions(features, heads).items():
            found[key][str(seed)] = {
                m: meant_digits(measure(m, prediction, features.y_test, features.group_test)) for m in job.metrics
            }
    return found


def _merged(old: Any, new: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return new scores together with those by other metrics, as far as these can be read."""
    kept = old if isinstance(old, dict) else {}
    return {**kept, **{s: {**(kept[s] if isinstance(kept.get(s), dict) else {}), **one} for s, one in new.items()}}


def _note_made(folder: RunFolder, spec: RunSpec, heads: list[Head]) -> None:
    """Keep with what the heads were scored; a training from before this was noted stays without a note."""
    made, now = folder.made, made_now(spec.device)
    folder.write_json("made.json", {**made, "scores": {**made["scores"], **{h.key: now for h in heads}}})


def _complete(scores: Any, job: Job) -> bool:
    try:
        return all(is_number(scores[str(s)][m]) for s in job.spec.seeds for m in job.metrics)
    except (KeyError, TypeError):
        return False


def _train(job: Job, folder: RunFolder, watch: Watch) -> None:
    spec = job.spec
    folder.write_json("spec.json", spec.as_dict())
    (folder.path / "done").unlink(missing_ok=True)
    try:
        data = run_data(spec, job.data)
    except InputError as error:
        raise UnusableDataError(str(error)) from error
    try:
        trained = train(spec, data.task, folder.checkpoint if job.resume else None, watch)
    except InputError:
        if not folder.drop_checkpoints():
            raise
        trained = train(spec, data.task, folder.checkpoint if job.resume else None, watch)  # it was no use to go on
    began = time.perf_counter()
    for one in trained:
        folder.write_features(one.seed, features_of(one.model, data))
    collected = time.perf_counter() - began
    history = {
        str(one.seed): {"best_epoch": one.best_epoch, "validation": [e.validation for e in one.history]}
        for one in trained
    }
    folder.write_json("train.json", history)
    folder.write_json("timing.json", {"train": trained[0].seconds, "features": collected})
    folder.write_json("made.json", {"training": made_now(spec.device)})
    folder.finish()
