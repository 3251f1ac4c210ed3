"""Checks before training: the data, and whether the models fit it. Nothing is changed or written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from pyspar.errors import InputError
from pyspar.nn.models import evaluation_mode
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import TrainingData, as_columns
from pyspar.paper.training.replica import Replica
from pyspar.wording import list_some

_MAX_LISTED_ROWS = 10


def check_seeds(seeds: Any) -> list[int]:
    """Return the seeds as a list of int. Raise if one is not a non-negative integer or occurs twice."""
    seeds = list(seeds)
    valid = all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) and s >= 0 for s in seeds)
    if not seeds or not valid or len(set(seeds)) != len(seeds):
        raise InputError(f"seeds must be different integers of at least 0, got {seeds!r}")
    return [int(s) for s in seeds]


def check_task(task: Any, objective: Objective, config: TrainConfig) -> None:
    """Raise if labels or inputs are not finite or do not fit together. The message lists the rows."""
    for name, part in {"train": task.train, "val": task.val}.items():
        if len(part.X) != len(part.y):
            raise InputError(f"{name} must have one label per row, got {len(part.X)} rows and {len(part.y)} labels")
        if as_columns(part.y).ndim > 2:
            raise InputError(f"{name}.y must have shape (n,) or (n, outputs), got {np.shape(part.y)}")
        _check_finite(as_columns(part.y), f"{name}.y", "drop these rows")
    n = len(task.train.y)
    if config.batch_size > n:
        raise InputError(f"batch_size must not exceed the {n} training rows, got {config.batch_size}")
    inputs = {"train.X": task.train.X, "val.X": task.val.X}
    if objective.uses_target:
        inputs["target_inputs"] = task.target_inputs
        if not len(task.target_inputs):
            raise InputError(f"{objective.name} requires target_inputs, got no rows; add target rows, or use ERM")
    _check_inputs({name: X for name, X in inputs.items() if len(X)})
    outputs, val_outputs = as_columns(task.train.y).shape[1], as_columns(task.val.y).shape[1]
    if len(task.val.y) and val_outputs != outputs:
        raise InputError(f"val.y must have as many outputs as train.y, {outputs}, got {val_outputs}")
    if config.select != "last" and not len(task.val.y):
        raise InputError(f"select={config.select!r} requires validation rows, got none; use select='last'")
    if config.select == "worst-group-r":
        _check_groups(task.val)


def _check_inputs(inputs: dict[str, Any]) -> None:
    """Raise if the inputs of a part are not finite, or differ from those for training in shape or in kind."""
    shape = tuple(inputs["train.X"].shape[1:])
    for name, X in inputs.items():
        if tuple(X.shape[1:]) != shape:
            raise InputError(f"rows of {name} must have the shape {shape} of train.X, got {tuple(X.shape[1:])}")
        _check_finite(X, name, "impute or drop these rows")
    uint8 = [name for name, X in inputs.items() if "uint8" in str(getattr(X, "dtype", ""))]
    if 0 < len(uint8) < len(inputs):
        raise InputError(
            f"inputs must be uint8 in all parts or in none, got uint8 only in {', '.join(uint8)}; convert all parts to "
            "one dtype, because uint8 images are scaled and floats are not"
        )


def _check_groups(val: Any) -> None:
    """Raise unless every validation row has a group, and the labels of each group vary."""
    group, y = np.asarray(val.group), as_columns(val.y)
    if group.shape != (len(y),):
        raise InputError(
            f"select='worst-group-r' requires val.group with one group for each of {len(y)} rows, got shape "
            f"{group.shape}; set val.group, or use select='mse'"
        )
    for g in np.unique(group):
        if (np.ptp(y[group == g], axis=0) == 0).any():
            raise InputError(
                "select='worst-group-r' requires labels that vary within each group, but the "
                f"{int((group == g).sum())} rows of group {g} in val have one value; merge groups, or use select='mse'"
            )


def _check_finite(values: Any, name: str, fix: str) -> None:
    """Raise if values contain NaN or infinity. Rows that are read as needed are not checked; their loss will be."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return
    if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a copy; a finite sum has only finite terms
        return
    rows = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if rows.size:
        raise InputError(
            f"{name} must be finite, got NaN or infinity in {len(rows)} rows: "
            f"{list_some(rows.tolist(), _MAX_LISTED_ROWS)}; {fix}"
        )


def check_models(models: Sequence[nn.Module], seeds: Sequence[int], config: TrainConfig) -> torch.dtype:
    """Return the dtype of the models. Raise if they cannot be trained.

    On a CPU, torch 2.13 does not write those entries of a bfloat16 gradient of a convolution that only see padding, so
    the step uses arbitrary memory.
    """
    if len(models) != len(seeds):
        raise InputError(f"models must have one model for each of {len(seeds)} seeds, got {len(models)}")
    has_convolutions = any(isinstance(layer, nn.modules.conv._ConvNd) for model in models for layer in model.modules())
    if config.autocast is not None and config.torch_device.type == "cpu" and has_convolutions:
        raise InputError(
            f"autocast={config.autocast!r} with convolutions requires a GPU, because torch computes wrong gradients on "
            "a CPU; use autocast=None"
        )
    dtypes = {p.dtype for model in models for p in model.parameters() if p.requires_grad}
    if len(dtypes) != 1:
        got = ", ".join(sorted(map(str, dtypes))) or "no trainable parameter"
        raise InputError(f"models must have trainable parameters of one dtype, got {got}")
    dtype: torch.dtype = dtypes.pop()
    return dtype


def count_features(model: nn.Module, objective: Objective, data: TrainingData) -> int:
    """Return the number of inputs of the head, or 0 if the objective has no module of its own."""
    if type(objective).module is Objective.module:
        return 0
    with evaluation_mode(model), torch.no_grad():
        return int(model.features(_first_rows(model, data)).shape[-1])  # type: ignore[operator]


def check_outputs(replica: Replica, data: TrainingData) -> None:
    """Raise if predictions do not have the shape of the labels; the loss would broadcast them silently."""
    with evaluation_mode(replica.net), torch.no_grad():
        shape = tuple(replica.net(_first_rows(replica.net, data)).shape)
    expected = (*replica.seed_shape, min(2, len(data.y)), data.y.shape[1])
    if shape != expected:
        raise InputError(
            f"{type(replica.net).__name__} must return shape {expected} for {expected[-2]} rows, got {shape}; change "
            "the number of outputs of its last layer, or remove a squeeze"
        )


def _first_rows(model: nn.Module, data: TrainingData) -> torch.Tensor:
    return data.x.take(torch.arange(min(2, len(data.y)), device=data.y.device), model)
