"""One run: train the networks of a spec, store their features, fit heads to the features, score the heads.

Each step stores its result in the folder of the run, and a later call repeats only what is missing: new heads, or other
values of alpha, require an adaptation but no training.
"""

from __future__ import annotations

import errno
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pyspar.errors import InputError, MissingExtraError
from pyspar.paper.runs.features import DivergedError, features_of, train
from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.metrics import is_number, measure, round_to_float32
from pyspar.paper.runs.records import current_provenance
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import BusyError, DamagedError, RunFolder
from pyspar.paper.runs.summary import write_run_summary
from pyspar.paper.runs.tasks import load_run_data

OnEpoch = Callable[[int, int], None]
"""Called with the number of finished epochs and the number of all epochs."""

Scores = dict[str, dict[str, dict[str, float]]]
"""Scores by head, seed and metric."""

_STORAGE_ERRORS = {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EPERM}


@dataclass(frozen=True)
class Run:
    """A spec to train, the heads and metrics to score, and the folders.

    Attributes
    ----------
    out : the folder that contains the folders of all runs
    data : the folder with the data sets, or None for the default ones
    keep_features : whether the features stay on disk after scoring
    resume : whether training writes checkpoints and continues from them
    needs_features : whether the caller reads the features itself, so that they must exist after the run
    lock_timeout : seconds to wait for another process that is doing the same run, or None for the default
    """

    spec: RunSpec
    heads: tuple[Head, ...]
    metrics: tuple[str, ...]
    out: Path
    data: Path | None = None
    keep_features: bool = True
    resume: bool = True
    needs_features: bool = False
    lock_timeout: float | None = None

    @property
    def folder(self) -> RunFolder:
        return RunFolder.of(self.out, self.spec)


@dataclass(frozen=True)
class Outcome:
    """The result of a run: scores by head and seed, or the reason why there are none.

    Attributes
    ----------
    kind
        "done"; "failed" (recorded in the folder and repeated by the next call); "diverged" (a failure of the training
        itself); "skipped" (data or packages are missing or damaged); "busy" (another process is doing the same run); or
        "storage" (files cannot be written, so that further runs would fail too).
    timing : seconds of training and of computing the features
    validation : the validation metric of the selected epoch, by seed
    provenance : versions and machine of "training" and, by head, of "scores"
    reused : whether an earlier call trained the networks
    """

    key: str
    kind: Literal["done", "failed", "diverged", "skipped", "busy", "storage"]
    reason: str = ""
    scores: Scores = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    reused: bool = False

    @property
    def text(self) -> str:
        """The outcome in a progress report."""
        return "reused, trained before" if self.reused else self.kind


class UnusableDataError(Exception):
    """The data of a run is missing or damaged."""


def run_one(run: Run, on_epoch: OnEpoch) -> Outcome:
    """Do the missing steps of a run. An exception is recorded in the folder of the run and returned as an outcome."""
    key, folder = run.spec.key, run.folder
    try:
        with folder.lock(run.lock_timeout):
            scores, trained = _run_missing_steps(run, folder, on_epoch)
            folder.drop_failure()
    except BusyError as error:
        return Outcome(key, "busy", str(error))
    except (UnusableDataError, MissingExtraError) as error:
        return Outcome(key, "skipped", str(error))
    except Exception as error:  # noqa: BLE001 - the cause of any failure is recorded with its traceback
        if isinstance(error, OSError) and error.errno in _STORAGE_ERRORS:
            return Outcome(key, "storage", f"{error.strerror} ({error.filename or folder.path})")
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        kind: Literal["diverged", "failed"] = "diverged" if isinstance(error, DivergedError) else "failed"
        return record_failure(run, kind, reason, traceback.format_exc())
    return Outcome(
        key,
        "done",
        scores=scores,
        timing=folder.timing,
        validation=folder.validation,
        provenance=folder.provenance,
        reused=not trained,
    )


def record_failure(run: Run, kind: Literal["diverged", "failed"], reason: str, trace: str = "") -> Outcome:
    """Write the cause of a failure into the folder of the run, and return the outcome."""
    folder = run.folder
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_json("failed.json", {"error": reason, "traceback": trace})
    except OSError as error:
        path = error.filename or folder.path
        return Outcome(run.spec.key, "storage", f"{error.strerror} ({path}), after: {reason}")
    return Outcome(run.spec.key, kind, reason)


def _run_missing_steps(run: Run, folder: RunFolder, on_epoch: OnEpoch) -> tuple[Scores, bool]:
    """Train and score as far as necessary. Return the scores, and whether the networks were trained by this call."""
    scores: Scores = folder.read_table("scores.json")
    unscored = [head for head in run.heads if not _is_scored(scores.get(head.key), run)]
    trained = _needs_training(run, folder, unscored)
    if trained:
        _train(run, folder, on_epoch)
    try:
        new_scores = _score_heads(run, folder, unscored)
    except DamagedError:
        _train(run, folder, on_epoch)
        trained = True
        new_scores = _score_heads(run, folder, unscored)
    if trained or unscored:
        scores |= {key: _merge_scores(scores.get(key), by_seed) for key, by_seed in new_scores.items()}
        folder.write_json("scores.json", scores)
        if unscored:
            _write_scoring_provenance(folder, run.spec, unscored)
        if not run.keep_features:
            folder.drop_features()
    return {head.key: scores[head.key] for head in run.heads}, trained


def _needs_training(run: Run, folder: RunFolder, unscored: list[Head]) -> bool:
    if run.needs_features:
        return not folder.has_readable_features()
    if unscored:
        return not folder.has_features()
    return not folder.is_done


def _is_scored(by_seed: Any, run: Run) -> bool:
    """Return whether the stored scores of a head contain every seed and metric of a run."""
    try:
        return all(is_number(by_seed[str(seed)][metric]) for seed in run.spec.seeds for metric in run.metrics)
    except (KeyError, TypeError):
        return False


def _score_heads(run: Run, folder: RunFolder, heads: list[Head]) -> Scores:
    """Return the scores of heads for each seed. Raise ``DamagedError`` if the features cannot be read."""
    scores: Scores = {head.key: {} for head in heads}
    for seed in run.spec.seeds if heads else ():
        features = folder.read_features(seed)
        for key, prediction in predict_with_heads(features, heads).items():
            scores[key][str(seed)] = {
                metric: round_to_float32(measure(metric, prediction, features.y_test, features.group_test))
                for metric in run.metrics
            }
    return scores


def _merge_scores(stored: Any, new: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Add new scores by seed to the stored ones, which may have other metrics or seeds or be damaged."""
    merged = dict(stored) if isinstance(stored, dict) else {}
    for seed, by_metric in new.items():
        stored_metrics = merged[seed] if isinstance(merged.get(seed), dict) else {}
        merged[seed] = {**stored_metrics, **by_metric}
    return merged


def _write_scoring_provenance(folder: RunFolder, spec: RunSpec, heads: list[Head]) -> None:
    """Store the versions and the machine of the scoring, next to those of the training if these are known."""
    provenance, current = folder.provenance, current_provenance(spec.device)
    scores = {**provenance["scores"], **{head.key: current for head in heads}}
    folder.write_json("made.json", {**provenance, "scores": scores})


def _train(run: Run, folder: RunFolder, on_epoch: OnEpoch) -> None:
    """Train all seeds, and write their features, history, times and provenance."""
    spec = run.spec
    folder.start_training(spec)
    try:
        data = load_run_data(spec, run.data)
    except InputError as error:
        raise UnusableDataError(str(error)) from error
    checkpoint = folder.checkpoint if run.resume else None
    try:
        models = train(spec, data.task, checkpoint, on_epoch)
    except InputError:
        if not folder.drop_checkpoints():
            raise
        models = train(spec, data.task, checkpoint, on_epoch)  # without the unusable checkpoint
    start = time.perf_counter()
    for one in models:
        folder.write_features(one.seed, features_of(one.model, data))
    feature_seconds = time.perf_counter() - start
    for one in models:
        write_run_summary(folder, one.seed, folder.read_features(one.seed))
    history = {
        str(one.seed): {"best_epoch": one.best_epoch, "validation": [epoch.validation for epoch in one.history]}
        for one in models
    }
    folder.write_json("train.json", history)
    folder.write_json("timing.json", {"train": models[0].seconds, "features": feature_seconds})
    folder.write_json("made.json", {"training": current_provenance(spec.device)})
    folder.finish_training()
