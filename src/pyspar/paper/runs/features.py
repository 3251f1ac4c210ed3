"""From a spec to features: load the data of a run, train its network, and compute the features of each part.

The data are a data set, from which training rows may be held out, or a small generated task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import need
from pyspar.paper.data import Part, ShiftTask, load
from pyspar.paper.runs.spec import NETWORKS, TAUGHT, RunSpec, network, objective
from pyspar.paper.runs.store import Features

_SHAPES = dict.fromkeys(NETWORKS, (3, 16, 16)) | {"mlp": (6,), "multispectral-resnet18": (8, 16, 16)}

_SOURCE_SCALE, _TARGET_SCALE = 0.3, 3.0  # standard deviations of a generated task along its shifted direction


def load_run_data(spec: RunSpec, folder: Path | None) -> tuple[ShiftTask, Any]:
    """Return the task of a run, and the inputs of in-distribution rows that are not used in training, or None."""
    options = dict(spec.options)
    held_out = options.pop("hold_out", 0.0)
    mini = options.pop("mini", "")
    options.pop("timed", None)  # distinguishes runs, not data
    task = generate_task(spec, pool=mini == "pool") if mini else load(spec.task, folder=folder, **options)
    if held_out == "id":
        return task, task.val.X if mini else load(spec.task, folder=folder, **{**options, "test": "id"}).test.X
    if not held_out:
        return task, None
    order = np.random.default_rng(0).permutation(len(task.train))  # the same rows for all seeds
    n_held_out = round(held_out * order.size)
    kept, rest = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
    train = Part(task.train.X[kept], task.train.y[kept], task.train.group[kept])
    return replace(task, train=train), task.train.X[rest]


def generate_task(spec: RunSpec, *, pool: bool) -> ShiftTask:
    """Return a small random task with the input shape of the run's network, with groups and an optional pool. Along one
    direction the source has little variance and the target much, so that adaptation has an effect.
    """
    rng = np.random.default_rng(len(spec.task))
    shape = _SHAPES[spec.network]
    direction, shifted = (v / np.linalg.norm(v) for v in rng.normal(size=(2, int(np.prod(shape)))))

    def draw_part(rows: int, scale: float) -> Part:
        X = rng.normal(size=(rows, direction.size))
        X += (scale - 1.0) * np.outer(X @ shifted, shifted)
        y = X @ direction + 0.1 * rng.normal(size=rows)
        return Part(X.reshape(rows, *shape).astype(np.float32), y, np.arange(rows) % 2)

    n, m = (16, 16) if len(shape) > 1 else (256, 40)
    train, val, test = draw_part(n, _SOURCE_SCALE), draw_part(12, _SOURCE_SCALE), draw_part(m, _TARGET_SCALE)
    unlabeled = draw_part(16, _TARGET_SCALE).X if pool else None
    return ShiftTask(spec.task, train, val, test, "group", "generated", "", unlabeled=unlabeled)


def build_network(spec: RunSpec, task: ShiftTask) -> Any:
    """Return the initial network of a run, whose weights depend on the seed only."""
    torch = need("torch", "torch")
    with torch.random.fork_rng([]):
        torch.manual_seed(spec.seed)
        return network(spec.network, spec.network_options, task)()


def train_network(
    spec: RunSpec,
    task: ShiftTask,
    *,
    checkpoint: Path | None = None,
    on_epoch: Callable[[int], None] | None = None,
    eval_batch: int = 256,
) -> Any:
    """Train the network of a spec, and continue an existing checkpoint. Return a ``pyspar.paper.Trained``."""
    paper = need("pyspar.paper", "torch")
    # Mixed precision is used only on a GPU.
    settings = {name: value for name, value in spec.config.items() if name != "autocast" or spec.device != "cpu"}
    config = paper.TrainConfig(**settings, device=spec.device, eval_batch_size=eval_batch)
    params, model = dict(spec.params), build_network(spec, task)
    if spec.objective in TAUGHT:
        file = None if checkpoint is None else checkpoint.with_name("teacher.pt")
        taught = paper.train(model, paper.ERM(), task, config, spec.seed, checkpoint=file)
        params["teacher"] = taught.model
    chosen = objective(spec.objective, params)
    return paper.train(model, chosen, task, config, spec.seed, checkpoint=checkpoint, on_epoch=on_epoch)


def features_of(model: Any, task: ShiftTask, held_out: Any = None, *, eval_batch: int = 256) -> Features:
    """Return the features of each part of a task, the labels and groups, and the weights of the head."""

    def compute(X: Any) -> NDArray[np.float32]:
        return compute_features(model, X, eval_batch)

    return Features(
        train=compute(task.train.X),
        val=compute(task.val.X),
        test=compute(task.test.X),
        head=model.head.weight.detach().cpu().numpy().astype(np.float64),
        y_train=np.asarray(task.train.y, dtype=np.float64),
        y_val=np.asarray(task.val.y, dtype=np.float64),
        y_test=np.asarray(task.test.y, dtype=np.float64),
        group_val=np.asarray(task.val.group),
        group_test=np.asarray(task.test.group),
        unlabeled=None if task.unlabeled is None else compute(task.unlabeled),
        held_out=None if held_out is None else compute(held_out),
    )


def compute_features(model: Any, X: Any, batch_size: int = 256) -> NDArray[np.float32]:
    """Return the features of rows, computed in batches."""
    from pyspar.paper.training.batches import Inputs, apply_to_rows

    weight = next(model.parameters())
    inputs = Inputs.load(X, weight.device, weight.dtype)
    features: NDArray[np.float32] = apply_to_rows(model, model.features, inputs, batch_size).float().cpu().numpy()
    return features
