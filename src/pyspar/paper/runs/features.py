"""The bridge to ``pyspar.nn``: train a spec's networks, and read what they make of each part of a task."""

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
    from pyspar.paper.runs.tasks import RunData

_ROWS = 1024


class DivergedError(Exception):
    """Training diverged: the loss is not finite."""


def train(spec: RunSpec, task: ShiftTask, checkpoint: Path | None, watch: Callable[[int, int], None]) -> list[Any]:
    """Train all seeds of a spec as one computation; a checkpoint that is there is continued."""
    networks = need("pyspar.paper", "torch")
    config = networks.TrainConfig(**_settings(spec), device=spec.device)
    build = network(spec.network, spec.network_options, task)
    params = dict(spec.params)
    if spec.objective in TAUGHT:
        beside = None if checkpoint is None else checkpoint.with_name("teacher.pt")
        teacher = networks.train_seeds(
            lambda seed: build(), networks.ERM(), task, config, spec.seeds[:1], checkpoint=beside, progress=False
        )
        params["teacher"] = teacher[0].model
    method = telling(objective(spec.objective, params), lambda epoch: watch(epoch, config.epochs))
    try:
        found: list[Any] = networks.train_seeds(
            lambda seed: build(), method, task, config, spec.seeds, checkpoint=checkpoint, progress=False
        )
    except networks.TrainingError as error:
        raise DivergedError(str(error)) from error
    return found


def _settings(spec: RunSpec) -> dict[str, Any]:
    """Return a spec's settings; mixed precision is for GPUs."""
    return {name: value for name, value in spec.config.items() if name != "autocast" or spec.device != "cpu"}


def telling(method: Any, tell: Callable[[int], None]) -> Any:
    """Return the same objective, except that it tells how many epochs are done: it is asked for its phase after each.

    It is asked for the first one more than once, and before anything is done.
    """
    kind = type(method)
    told = {0}

    def phase(self: Any, epoch: int) -> Any:
        if epoch not in told:
            told.add(epoch)
            tell(epoch)
        return kind.phase(self, epoch)

    # The name and the parameters stay: by them a checkpoint knows its own run.
    found: Any = object.__new__(type(kind.__name__, (kind,), {"phase": phase}))
    found.__dict__.update(method.__dict__)
    return found


def features_of(model: Any, data: RunData) -> Features:
    """Read what a trained network makes of each part of a task, and the weights of its head."""
    task = data.task
    return Features(
        train=rows_of(model, task.train.X),
        val=rows_of(model, task.val.X),
        test=rows_of(model, task.test.X),
        head=model.head.weight.detach().cpu().numpy().astype(np.float64),
        y_train=np.asarray(task.train.y, dtype=np.float64),
        y_val=np.asarray(task.val.y, dtype=np.float64),
        y_test=np.asarray(task.test.y, dtype=np.float64),
        group_val=np.asarray(task.val.group),
        group_test=np.asarray(task.test.group),
        unlabeled=None if task.unlabeled is None else rows_of(model, task.unlabeled),
        held_out=None if data.held_out is None else rows_of(model, data.held_out),
    )


def rows_of(model: Any, X: Any) -> NDArray[np.float32]:
    """Return the features of rows as they stand in a task, read in batches."""
    import torch

    from pyspar.paper.training.epoch_data import Rows

    weight = next(model.parameters())
    rows = Rows.of(X, weight.device, weight.dtype)
    with torch.no_grad():
        parts = [
            model.features(rows.take(torch.arange(start, min(start + _ROWS, len(X))), model)).float().cpu().numpy()
            for start in range(0, len(X), _ROWS)
        ]
    return np.concatenate(parts)
