"""From a spec to features: load the data of a run, train its networks, and compute the features of each part.

The data are a data set, from which training rows may be held out, or a small generated task.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import need
from pyspar.paper.data import Part, ShiftTask, load
from pyspar.paper.data.registry import state_of
from pyspar.paper.runs.registry import TAUGHT, network, objective
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import Features

if TYPE_CHECKING:
    from collections.abc import Callable

_BATCH_ROWS = 1024
_SHAPES = {
    "mlp": (6,),
    "resnet18": (3, 16, 16),
    "resnet34": (3, 16, 16),
    "efficientnet-lite0": (3, 16, 16),
    "multispectral-resnet18": (8, 16, 16),
}

_SOURCE_SCALE, _TARGET_SCALE = 0.3, 3.0  # standard deviations of a generated task along its shifted direction


def load_run_data(spec: RunSpec, folder: Path | None) -> tuple[ShiftTask, Any]:
    """Return the task of a run, and the inputs of the training rows that are held out, or None."""
    options = dict(spec.options)
    share = options.pop("hold_out", 0.0)
    mini = options.pop("mini", "")
    options.pop("timed", None)  # distinguishes runs, not data
    task = generate_task(spec, pool=mini == "pool") if mini else load(spec.task, folder=folder, **options)
    if not share:
        return task, None
    # All seeds hold out the same rows, because they are trained as one computation.
    order = np.random.default_rng(0).permutation(len(task.train))
    n_held_out = round(share * order.size)
    kept, held_out = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
    train = Part(task.train.X[kept], task.train.y[kept], task.train.group[kept])
    return replace(task, train=train), task.train.X[held_out]


def choose_available(names: tuple[str, ...], folder: Path | None) -> str:
    """Return the first data set that is available, or the first one, whose loading then explains what is missing."""
    for name in names:
        if state_of(name, folder) == "found":
            return name
    return names[0]


def generate_task(spec: RunSpec, *, pool: bool) -> ShiftTask:
    """Return a small random task with the input shape of the run's network, with groups and an optional pool.

    Along one direction the source has little variance and the target much, so that adaptation has an effect.
    """
    rng = np.random.default_rng(len(spec.task))
    shape = _SHAPES[spec.network]
    size = int(np.prod(shape))
    direction = rng.normal(size=(size, 1)) / np.sqrt(size)
    shifted = rng.normal(size=size)
    shifted /= np.linalg.norm(shifted)

    def draw_inputs(rows: int, scale: float) -> Any:
        X = rng.normal(size=(rows, size))
        X += (scale - 1.0) * np.outer(X @ shifted, shifted)
        return X.reshape(rows, *shape).astype(np.float32)

    def draw_part(rows: int, scale: float) -> Part:
        X = draw_inputs(rows, scale)
        y = (X.reshape(rows, -1) @ direction)[:, 0] + 0.1 * rng.normal(size=rows)
        return Part(X, y.astype(np.float64), np.arange(rows) % 2)

    # A network has more image features than a small task has rows, so on images the noise cannot be estimated.
    images = len(shape) > 1
    return ShiftTask(
        name=spec.task,
        train=draw_part(16 if images else 256, _SOURCE_SCALE),
        val=draw_part(12, _SOURCE_SCALE),
        test=draw_part(16 if images else 40, _TARGET_SCALE),
        group_kind="group",
        source="generated",
        licence="",
        unlabeled=draw_inputs(16, _TARGET_SCALE) if pool else None,
    )


def train(
    spec: RunSpec, task: ShiftTask, checkpoint: Path | None, report: Callable[[tuple[int, int]], None]
) -> list[Any]:
    """Train all seeds of a spec as one computation, and continue an existing checkpoint.

    ``report((done, total))`` is called after each epoch.
    """
    paper = need("pyspar.paper", "torch")
    config = paper.TrainConfig(**_config_options(spec), device=spec.device)
    build = network(spec.network, spec.network_options, task)
    params = dict(spec.params)
    if spec.objective in TAUGHT:
        file = None if checkpoint is None else checkpoint.with_name("teacher.pt")
        (teacher,) = paper.train_seeds(
            lambda seed: build(), paper.ERM(), task, config, spec.seeds[:1], checkpoint=file, progress=False
        )
        params["teacher"] = teacher.model
    trained: list[Any] = paper.train_seeds(
        lambda seed: build(),
        objective(spec.objective, params),
        task,
        config,
        spec.seeds,
        checkpoint=checkpoint,
        progress=False,
        on_epoch=lambda done: report((done, config.epochs)),
    )
    return trained


def _config_options(spec: RunSpec) -> dict[str, Any]:
    """Return the training settings of a spec. Mixed precision is used only on a GPU."""
    return {name: value for name, value in spec.config.items() if name != "autocast" or spec.device != "cpu"}


def features_of(model: Any, task: ShiftTask, held_out: Any = None) -> Features:
    """Return the features of each part of a task, the labels and groups, and the weights of the head."""
    return Features(
        train=_compute_features(model, task.train.X),
        val=_compute_features(model, task.val.X),
        test=_compute_features(model, task.test.X),
        head=model.head.weight.detach().cpu().numpy().astype(np.float64),
        y_train=np.asarray(task.train.y, dtype=np.float64),
        y_val=np.asarray(task.val.y, dtype=np.float64),
        y_test=np.asarray(task.test.y, dtype=np.float64),
        group_val=np.asarray(task.val.group),
        group_test=np.asarray(task.test.group),
        unlabeled=None if task.unlabeled is None else _compute_features(model, task.unlabeled),
        held_out=None if held_out is None else _compute_features(model, held_out),
    )


def _compute_features(model: Any, X: Any) -> NDArray[np.float32]:
    """Return the features of rows, computed in batches."""
    from pyspar.paper.training.epoch_data import Inputs
    from pyspar.paper.training.inference import apply_to_rows

    weight = next(model.parameters())
    inputs = Inputs.load(X, weight.device, weight.dtype)
    features: NDArray[np.float32] = apply_to_rows(model, model.features, inputs, _BATCH_ROWS).float().cpu().numpy()
    return features
