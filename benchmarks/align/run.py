"""Train the networks and apply every method to every target, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import root_mean_squared_error
from torch import Tensor, nn

from benchmarks.align import images, networks
from benchmarks.align.corruptions import CORRUPTIONS, corrupt
from benchmarks.align.records import Record, Records
from benchmarks.labels.methods import Known
from pyspar import TargetCorrection
from pyspar.nn import SourceSummary, adapt_head, align, summarize
from pyspar.progress import progress_bar

Array = NDArray[np.float64]
SEVERITIES = (1, 3, 5)
METHODS = ("aligned", "aligned, 1 pass", "BatchNorm statistics", "SpAR head", "Bayes head")
LABELS, DRAWS = (10, 30), 5
WITH_LABELS = ("choice", "choice and correction", "correction of the trained network")
WORST = "worst draw of "
LAST = f"{WITH_LABELS[0]}, {LABELS[-1]} labels"
"""A method of a target whose records are complete."""


class Setting(NamedTuple):
    """Where the networks and summaries are kept, and how they are trained."""

    folder: Path
    device: str
    epochs: int | None = None


@cache
def describe_source(data: str, kind: str, seed: int, setting: Setting) -> tuple[nn.Module, SourceSummary, Any]:
    """Return a trained network, the summary of its training rows, and the features of its validation rows."""
    model = networks.trained(data, kind, seed, setting.folder, setting.device, setting.epochs)
    path = setting.folder / f"summary-{data}-{kind}-{seed}.npz"
    if not path.exists():
        summarize(model, networks.tensors(data, "train", seed)[0]).save(path)
    X, y = networks.tensors(data, "valid", seed)
    valid = list(zip(X.split(250), y.split(250), strict=True))
    return model, SourceSummary.load(path), adapt_head(model, valid, [valid[0][0]]).source


def make_target(data: str, seed: int, shift: str, severity: int) -> tuple[Tensor, Tensor]:
    """Return images of shape (n, 1, side, side) and angles of a target."""
    X, y = images.population(data, shift if severity == 0 else "same distribution", seed)
    X = X if severity == 0 else corrupt(X, shift, severity, seed)
    return torch.from_numpy(X)[:, None], torch.from_numpy(y)


def train_network(data: str, kind: str, seed: int, setting: Setting) -> list[Record]:
    """Train a network and summarise its source, if that was not done before."""
    describe_source(data, kind, seed, setting)
    return []


def run_target(
    data: str, seed: int, shift: str, severity: int, kinds: tuple[str, ...], setting: Setting
) -> list[Record]:
    """Apply the methods to the networks of some kinds and a target."""
    X, y = make_target(data, seed, shift, severity)
    records = []
    for kind in kinds:
        model, summary, valid = describe_source(data, kind, seed, setting)
        trained = networks.rmse(model, X, y)
        candidates = {"trained": model}
        key, rest = (data, kind, seed, shift, severity), (trained, float("nan"), 1)
        for method, passes in {"aligned": 5, "aligned, 1 pass": 1}.items():
            result = align(model, summary, X, passes=passes)
            error = networks.rmse(result.model, X, y)
            records.append(Record(*key, method, error, trained, result.outside, int(result.changed)))
            candidates |= {"aligned": result.model} if passes == 5 else {}
            if passes == 5 and not result.changed and severity == 0:
                error = networks.rmse(align(model, summary, X, force=True).model, X, y)
                records.append(Record(*key, "aligned without the gate", error, *rest))
        if kind == "batch":
            error = networks.rmse(align(model, summary, X, passes=0, force=True).model, X, y)
            records.append(Record(*key, "BatchNorm statistics", error, *rest))
        for method in ("SpAR head", "Bayes head"):
            head = adapt_head(model, valid, list(X.split(250)), method=method.split()[0].lower())
            records.append(Record(*key, method, networks.rmse(head.model, X, y), *rest))
            candidates |= {"spar": head.model} if method == "SpAR head" else {}
        predictions = {name: networks.compute(one, X) for name, one in candidates.items()}
        features = networks.compute(model.body, X)
        for method, error, before in use_labels(features, predictions, y.numpy(), seed):
            records.append(Record(*key, method, error, before, float("nan"), 1))
    return records


def use_labels(
    features: Array, predictions: dict[str, Array], y: Array, seed: int
) -> Iterator[tuple[str, float, float]]:
    """Yield methods with labels, and their errors and those of the trained network on the rows without labels.

    Errors are means over the draws of the labelled rows, and then those of the draw with the largest ratio.
    """
    for n in LABELS:
        errors: dict[str, list[tuple[float, float]]] = {name: [] for name in WITH_LABELS}
        for draw in range(DRAWS):
            rows = np.random.default_rng([seed, n, draw]).permutation(len(y))
            known, left = rows[:n], rows[n:]
            labels = np.full(len(y), np.nan)
            labels[known] = y[known]
            several = TargetCorrection({name: Known(values) for name, values in predictions.items()})
            several.fit(features, labels)
            alone = TargetCorrection(Known(predictions["trained"])).fit(features, labels)
            answers = predictions[several.chosen_], several.predict(features), alone.predict(features)
            before = root_mean_squared_error(y[left], predictions["trained"][left])
            for name, answer in zip(WITH_LABELS, answers, strict=True):
                errors[name].append((root_mean_squared_error(y[left], answer[left]), before))
        for name, draws in errors.items():
            title = f"{name}, {n} labels"
            yield title, *np.mean(draws, axis=0)
            yield WORST + title, *max(draws, key=lambda pair: pair[0] / pair[1])


def list_targets(severities: Iterable[int]) -> list[tuple[str, int]]:
    """Return shifts and severities."""
    return [(name, 0) for name in images.POPULATIONS] + [(name, s) for s in severities for name in CORRUPTIONS]


def run_images(
    records: Records, sources: list[tuple[str, int]], targets: list[tuple[str, int]], kinds: list[str],
    setting: Setting, jobs: int,
) -> None:  # fmt: skip
    """Compute what is missing in the records for sources (data and seed) and targets (shift and severity)."""
    missing = {
        (*source, *target): tuple(k for k in kinds if not records.has(source[0], k, source[1], *target, LAST))
        for source in sources
        for target in targets
    }
    used = dict.fromkeys((data, kind, seed) for (data, seed, *_), some in missing.items() for kind in some)
    run("networks", [partial(train_network, *cell, setting) for cell in used], records, jobs)
    tasks = [partial(run_target, *cell, some, setting) for cell, some in missing.items() if some]
    run("targets", tasks, records, jobs)


def run(title: str, tasks: list[Callable[[], list[Record]]], records: Records, jobs: int = 1) -> None:
    """Run tasks and add their records. With several processes, each uses one thread of the CPU."""
    with progress_bar(title, total=len(tasks), unit="tasks", show=True) as advance:
        if jobs == 1:
            for done, task in enumerate(tasks, start=1):
                records.add(task())
                advance(done)
            return
        with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for done, future in enumerate(as_completed([pool.submit(task) for task in tasks]), start=1):
                records.add(future.result())
                advance(done)
