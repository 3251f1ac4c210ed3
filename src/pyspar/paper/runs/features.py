"""Train the networks of a run, and compute the features of each part of its task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import need
from pyspar.paper.runs.registry import TAUGHT, network, objective
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import Features

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspar.paper.data import ShiftTask

_BATCH_ROWS = 1024


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
