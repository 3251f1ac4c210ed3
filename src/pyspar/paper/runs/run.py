"""One run: train the network of a spec, store its features, fit heads to the features, score the heads.

Each step stores its result in the folder of the run, and a later call repeats only what is missing: new heads, or other
values of alpha, require an adaptation but no training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pyspar.errors import InputError, MissingExtraError, need
from pyspar.paper.runs.features import build_network, features_of, load_run_data, train_network
from pyspar.paper.runs.heads import Head, measure, predict_with_heads, round_to_float32
from pyspar.paper.runs.records import current_provenance
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import Features, RunFolder
from pyspar.persist import write_atomically

OnEpoch = Callable[[int], None]


@dataclass(frozen=True)
class Run:
    """A spec to train, the heads and metrics to score, and the folders. ``resume`` is whether training writes
    checkpoints and continues from them, ``needs_features`` whether the caller reads the features itself, so that they
    must exist after the run, and ``keep_features`` whether they stay on disk.
    """

    spec: RunSpec
    heads: tuple[Head, ...]
    metrics: tuple[str, ...]
    out: Path
    data: Path | None = None
    keep_features: bool = True
    resume: bool = True
    needs_features: bool = False
    eval_batch: int = 256

    @property
    def folder(self) -> RunFolder:
        return RunFolder.of(self.out, self.spec)

    @property
    def extras(self) -> tuple[str, ...]:
        adapts_to_pool = any(head.adapt_to == "unlabeled" for head in self.heads)
        return ("unlabeled",) * adapts_to_pool + ("held_out",) * bool(self.spec.options.get("hold_out"))


@dataclass(frozen=True)
class Outcome:
    """The result of a run, or the reason why it has no result.

    A "failed" run is repeated by the next call, "diverged" is a failure of the training itself, and a "skipped" run
    lacks data or packages. ``scores`` are by head and metric. ``training`` has the validation metric of the selected
    epoch, the seconds of training and of computing the features, and the versions and machine.
    """

    kind: Literal["done", "failed", "diverged", "skipped"]
    reason: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    reused: bool = False


class UnusableDataError(Exception):
    """The data of a run is missing or damaged."""


def run_one(run: Run, on_epoch: OnEpoch | None = None) -> Outcome:
    """Do the missing steps of a run. Errors of the system, such as a full disk, are raised; others are an outcome."""
    try:
        with run.folder.lock(), one_thread():
            return _run_missing_steps(run, run.folder, on_epoch)
    except OSError:
        raise
    except (UnusableDataError, MissingExtraError) as error:
        return Outcome("skipped", str(error))
    except Exception as error:  # noqa: BLE001 - one failed run must not stop the others
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome("diverged" if _is_divergence(error) else "failed", reason)


def _is_divergence(error: Exception) -> bool:
    return type(error).__name__ == "TrainingError"  # its module requires torch


def _run_missing_steps(run: Run, folder: RunFolder, on_epoch: OnEpoch | None) -> Outcome:
    scores = folder.read_json("scores.json")
    unscored = [head for head in run.heads if not set(run.metrics) <= set(scores.get(head.key, ()))]
    reused, features = folder.is_done, None
    if reused and (unscored or run.needs_features):
        features = folder.read_features(*run.extras) or _compute_features_again(run, folder)
        reused = features is not None
    if not reused:
        features = _train(run, folder, on_epoch)
    if unscored and features is not None:
        for key, prediction in predict_with_heads(features, unscored).items():
            truth = prediction, features.y_test, features.group_test
            new = {metric: round_to_float32(measure(metric, *truth)) for metric in run.metrics}
            scores[key] = scores.get(key, {}) | new
        folder.write_json("scores.json", scores)
    if not run.keep_features:
        folder.drop_features()
    return Outcome("done", scores=scores, training=folder.read_json("done.json"), reused=reused)


def _load_data(run: Run) -> tuple[Any, Any]:
    try:
        return load_run_data(run.spec, run.data)
    except InputError as error:
        raise UnusableDataError(str(error)) from error


def _compute_features_again(run: Run, folder: RunFolder) -> Features | None:
    """Compute and write the features of a network that is already trained. Return None without its weights."""
    torch, file = need("torch", "torch"), folder.path / "model.pt"
    try:
        weights = torch.load(file, map_location="cpu", weights_only=True)
        task, held_out = _load_data(run)
        # These weights replace those of ImageNet, which need not be available.
        options = {name: value for name, value in run.spec.network_options.items() if name != "pretrained"}
        model = build_network(replace(run.spec, network_options=options), task)
        model.load_state_dict(weights)
    except UnusableDataError:
        raise
    except Exception:  # noqa: BLE001 - torch raises errors of many types for a damaged or missing file
        return None
    features = features_of(model.to(run.spec.device), task, held_out, eval_batch=run.eval_batch)
    folder.write_features(features)
    return features


def _train(run: Run, folder: RunFolder, on_epoch: OnEpoch | None) -> Features:
    spec = run.spec
    folder.write_json("spec.json", spec.as_dict())
    (folder.path / "done.json").unlink(missing_ok=True)
    task, held_out = _load_data(run)
    checkpoints = [folder.path / name for name in ("checkpoint.pt", "teacher.pt")]
    options: dict[str, Any] = {"on_epoch": on_epoch, "eval_batch": run.eval_batch}
    options["checkpoint"] = checkpoints[0] if run.resume else None
    try:
        trained = train_network(spec, task, **options)
    except InputError as error:
        if _is_divergence(error) or not any(path.exists() for path in checkpoints):
            raise
        for path in checkpoints:
            path.unlink(missing_ok=True)
        trained = train_network(spec, task, **options)  # without the unusable checkpoint
    start = time.perf_counter()
    features = features_of(trained.model, task, held_out, eval_batch=run.eval_batch)
    seconds = {"train": trained.seconds, "features": time.perf_counter() - start}
    folder.write_features(features)
    with write_atomically(folder.path / "model.pt") as (temporary,):
        need("torch", "torch").save(trained.model.state_dict(), temporary)
    results = {"validation": trained.validation, "best_epoch": trained.best_epoch, "seconds": seconds}
    folder.write_json("done.json", {**results, "made": current_provenance(spec.device)})
    for path in checkpoints:
        path.unlink(missing_ok=True)
    return features


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and the libraries below NumPy to one thread: small networks are faster, and sums are reproducible."""
    from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

    torch = need("torch", "torch")
    threads, benchmark = torch.get_num_threads(), torch.backends.cudnn.benchmark
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True  # twice as fast on an H200
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cudnn.benchmark = benchmark
