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
from pyspar.paper.runs.features import features_of, load_run_data, train
from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.metrics import measure, round_to_float32
from pyspar.paper.runs.records import current_provenance
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import RunFolder
from pyspar.paper.runs.summary import write_run_summary
from pyspar.paper.training.results import TrainingError

Report = Callable[[tuple[int, int] | str], None]
"""Called with the number of finished epochs and of all epochs, or with a message."""

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
    """

    spec: RunSpec
    heads: tuple[Head, ...]
    metrics: tuple[str, ...]
    out: Path
    data: Path | None = None
    keep_features: bool = True
    resume: bool = True
    needs_features: bool = False

    @property
    def folder(self) -> RunFolder:
        return RunFolder.of(self.out, self.spec)


@dataclass(frozen=True)
class Outcome:
    """The result of a run, or the reason why it failed.

    Attributes
    ----------
    kind
        "done"; "failed" (recorded in the folder and repeated by the next call); "diverged" (a failure of the training
        itself); "skipped" (data or packages are missing or damaged); or "storage" (files cannot be written, so that
        further runs would fail too).
    scores : by head, the scores by seed and metric ("seeds") and the versions and machine that computed them ("made")
    training : the validation metric of the selected epoch by seed, the seconds of training and of computing the
        features, and the versions and machine ("validation", "seconds" and "made")
    reused : whether an earlier call trained the networks
    """

    key: str
    kind: Literal["done", "failed", "diverged", "skipped", "storage"]
    reason: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    reused: bool = False

    @property
    def text(self) -> str:
        """The outcome in a progress report."""
        return "reused, trained before" if self.reused else self.kind


class UnusableDataError(Exception):
    """The data of a run is missing or damaged."""


def run_one(run: Run, report: Report) -> Outcome:
    """Do the missing steps of a run. An exception is recorded in the folder of the run and returned as an outcome."""
    folder = run.folder
    try:
        with folder.lock(lambda: report(f"{run.spec.title}: waiting for another process; Ctrl-C cancels")):
            outcome = _run_missing_steps(run, folder, report)
            (folder.path / "failed.json").unlink(missing_ok=True)
            return outcome
    except (UnusableDataError, MissingExtraError) as error:
        return Outcome(run.spec.key, "skipped", str(error))
    except Exception as error:  # noqa: BLE001 - the cause of any failure is recorded with its traceback
        if isinstance(error, OSError) and error.errno in _STORAGE_ERRORS:
            return Outcome(run.spec.key, "storage", f"{error.strerror} ({error.filename or folder.path})")
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        kind: Literal["diverged", "failed"] = "diverged" if isinstance(error, TrainingError) else "failed"
        return record_failure(run, kind, reason, traceback.format_exc())


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


def _run_missing_steps(run: Run, folder: RunFolder, report: Report) -> Outcome:
    scores = folder.read_json("scores.json")
    unscored = [head for head in run.heads if not _is_scored(scores.get(head.key), run)]
    reused = folder.is_done and (not (unscored or run.needs_features) or folder.has_features())
    if not reused:
        _train(run, folder, report)
    if unscored:
        for key, new in _score_heads(run, folder, unscored).items():
            old = scores[key]["seeds"] if key in scores else {}
            scores[key] = {**new, "seeds": {seed: old.get(seed, {}) | new["seeds"][seed] for seed in new["seeds"]}}
        folder.write_json("scores.json", scores)
    if not run.keep_features:
        folder.drop_features()
    return Outcome(run.spec.key, "done", scores=scores, training=folder.read_json("done.json"), reused=reused)


def _is_scored(stored: Any, run: Run) -> bool:
    """Return whether the stored scores of a head contain every metric of a run."""
    return stored is not None and all(set(run.metrics) <= set(scores) for scores in stored["seeds"].values())


def _score_heads(run: Run, folder: RunFolder, heads: list[Head]) -> dict[str, Any]:
    """Return the scores of heads for each seed, and the versions and the machine that computed them."""
    made = current_provenance(run.spec.device)
    scores: dict[str, Any] = {head.key: {"seeds": {}, "made": made} for head in heads}
    for seed in run.spec.seeds:
        features = folder.read_features(seed)
        for key, prediction in predict_with_heads(features, heads).items():
            scores[key]["seeds"][str(seed)] = {
                metric: round_to_float32(measure(metric, prediction, features.y_test, features.group_test))
                for metric in run.metrics
            }
    return scores


def _train(run: Run, folder: RunFolder, report: Report) -> None:
    """Train all seeds, and write their features, validation metrics, times and provenance."""
    spec = run.spec
    folder.write_json("spec.json", spec.as_dict())
    (folder.path / "done.json").unlink(missing_ok=True)
    try:
        task, held_out = load_run_data(spec, run.data)
    except InputError as error:
        raise UnusableDataError(str(error)) from error
    checkpoint = folder.path / "checkpoint.pt" if run.resume else None
    try:
        models = train(spec, task, checkpoint, report)
    except TrainingError:
        raise
    except InputError:
        if not folder.drop_checkpoints():
            raise
        models = train(spec, task, checkpoint, report)  # without the unusable checkpoint
    start = time.perf_counter()
    for one in models:
        folder.write_features(one.seed, features_of(one.model, task, held_out))
    feature_seconds = time.perf_counter() - start
    for one in models:
        write_run_summary(folder, one.seed, folder.read_features(one.seed))
    results = {
        "validation": {str(one.seed): one.validation for one in models},
        "best_epoch": {str(one.seed): one.best_epoch for one in models},
        "seconds": {"train": models[0].seconds, "features": feature_seconds},
        "made": current_provenance(spec.device),
    }
    folder.write_json("done.json", results)
    folder.drop_checkpoints()
