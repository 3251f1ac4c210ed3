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

from pyspar.bench.heads import Head, predictions
from pyspar.bench.metrics import meant_digits, measure
from pyspar.bench.spec import RunSpec
from pyspar.bench.store import RunFolder
from pyspar.bench.tasks import run_data
from pyspar.bench.training import features_of, train
from pyspar.errors import MissingDataError, MissingExtraError

Watch = Callable[[int, int], None]
"""Told an epoch's number, from 1, and how many there are."""

_STORAGE = {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EPERM}


@dataclass(frozen=True)
class Job:
    """A run to do, the heads to judge, by which metrics, and where everything is."""

    spec: RunSpec
    heads: tuple[Head, ...]
    metrics: tuple[str, ...]
    root: Path
    data: Path | None = None
    keep: bool = True
    resume: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of a run: scores by head and seed, or why there are none.

    ``kind`` is "done", "failed" (recorded, and tried again the next time), "skipped" (something it needs is not here)
    or "storage" (nothing can be written, so there is no use in going on).
    """

    key: str
    kind: str
    reason: str = ""
    scores: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    timing: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    """The validation metric of the epoch that was kept, by seed."""


def carry_out(job: Job, watch: Watch) -> Outcome:
    """Do what is left of a run. What goes wrong is recorded in its folder, and told; it stops nothing else."""
    key = job.spec.key
    folder = RunFolder.of(job.root, job.spec)
    try:
        with folder.alone():
            scores = _finish(job, folder, watch)
        history = folder.read_json("train.json")
        kept = {seed: found["validation"][found["best_epoch"]] for seed, found in history.items()}
        return Outcome(key, "done", scores=scores, timing=folder.read_json("timing.json"), validation=kept)
    except (MissingDataError, MissingExtraError) as error:
        return Outcome(key, "skipped", str(error))
    except Exception as error:  # noqa: BLE001 - whatever a run dies of is recorded with its traceback, and shown
        if isinstance(error, OSError) and error.errno in _STORAGE:
            return Outcome(key, "storage", f"{error.strerror} ({error.filename or folder.path})")
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return _failed(folder, key, reason)


def _failed(folder: RunFolder, key: str, reason: str) -> Outcome:
    try:
        folder.write_json("failed.json", {"error": reason, "traceback": traceback.format_exc()})
    except OSError as error:
        return Outcome(key, "storage", f"{error.strerror} ({error.filename or folder.path}), after: {reason}")
    return Outcome(key, "failed", reason)


def _finish(job: Job, folder: RunFolder, watch: Watch) -> dict[str, dict[str, dict[str, float]]]:
    spec = job.spec
    scores = folder.read_json("scores.json") or {}
    left = [head for head in job.heads if not _complete(scores.get(head.key), job)]
    if folder.is_done and not left:
        return {head.key: scores[head.key] for head in job.heads}
    if not folder.has_features(spec):
        _train(job, folder, watch)
    for seed in spec.seeds:
        features = folder.read_features(seed)
        for key, prediction in predictions(features, left).items():
            values = {
                m: meant_digits(measure(m, prediction, features.y_test, features.group_test)) for m in job.metrics
            }
            scores.setdefault(key, {}).setdefault(str(seed), {}).update(values)
    folder.write_json("scores.json", scores)
    if not job.keep:
        folder.drop_features(spec)
    return {head.key: scores[head.key] for head in job.heads}


def _complete(scores: Any, job: Job) -> bool:
    return scores is not None and all(m in scores.get(str(s), {}) for s in job.spec.seeds for m in job.metrics)


def _train(job: Job, folder: RunFolder, watch: Watch) -> None:
    spec = job.spec
    folder.write_json("spec.json", spec.as_dict())
    (folder.path / "done").unlink(missing_ok=True)
    data = run_data(spec, job.data)
    trained = train(spec, data.task, folder.checkpoint if job.resume else None, watch)
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
    folder.finish()
