"""Checks before training: the data, and whether the model fits it. Nothing is changed or written."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training.batches import Inputs, TrainingData, apply_to_rows, as_columns
from pyspar.paper.training.config import TrainConfig
from pyspar.text import list_some


def check_task(task: Any, objective: Objective, config: TrainConfig) -> None:
    """Raise if labels or inputs are not finite or do not fit together. The message lists the rows."""
    inputs = {"train.X": task.train.X, "val.X": task.val.X}
    for name, part in {"train": task.train, "val": task.val}.items():
        if len(part.X) != len(part.y) or as_columns(part.y).ndim > 2:
            shape = np.shape(part.y)
            raise InputError(f"{name} must have one row of labels for each of {len(part.X)} rows, got {shape}")
        _check_finite(as_columns(part.y), f"{name}.y", "drop these rows")
    n, n_val = len(task.train.y), len(task.val.y)
    if config.batch_size > n:
        raise InputError(f"batch_size must not exceed the {n} training rows, got {config.batch_size}")
    if objective.uses_target:
        inputs["target_inputs"] = task.target_inputs
        if not len(task.target_inputs):
            raise InputError(f"{objective.name} requires target_inputs, got no rows; add target rows, or use ERM")
    _check_inputs({name: X for name, X in inputs.items() if len(X)})
    outputs, val_outputs = as_columns(task.train.y).shape[1], as_columns(task.val.y).shape[1]
    if n_val and val_outputs != outputs:
        raise InputError(f"val.y must have as many outputs as train.y, {outputs}, got {val_outputs}")
    if config.select != "last" and not n_val:
        raise InputError(f"select={config.select!r} requires validation rows, got none; use select='last'")
    if config.select == "worst-group-r":
        group, y = np.asarray(task.val.group), as_columns(task.val.y)
        if group.shape != (n_val,) or any((np.ptp(y[group == g], axis=0) == 0).any() for g in np.unique(group)):
            raise InputError(
                f"select='worst-group-r' requires a group for each of {n_val} rows in val.group, and labels that vary "
                "within each group; merge groups, or use select='mse'"
            )


def _check_inputs(inputs: dict[str, Any]) -> None:
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


def _check_finite(values: Any, name: str, fix: str) -> None:
    """Raise if values contain NaN or infinity. Rows that are read as needed are not checked; their loss will be."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return
    if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a copy; a finite sum has only finite terms
        return
    rows = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if rows.size:
        raise InputError(f"{name} must be finite, got NaN or infinity in {len(rows)} rows: {list_some(rows)}; {fix}")


def check_model(model: nn.Module, config: TrainConfig) -> torch.dtype:
    """Return the dtype of a model. Raise if it cannot be trained.

    On a CPU, torch 2.13 does not write those entries of a bfloat16 gradient of a convolution that only see padding, so
    the step uses arbitrary memory.
    """
    has_convolutions = any(isinstance(layer, nn.modules.conv._ConvNd) for layer in model.modules())
    if config.autocast is not None and config.torch_device.type == "cpu" and has_convolutions:
        raise InputError(
            f"autocast={config.autocast!r} with convolutions requires a GPU, because torch computes wrong gradients on "
            "a CPU; use autocast=None"
        )
    dtypes = {p.dtype for p in model.parameters() if p.requires_grad}
    if len(dtypes) != 1:
        got = ", ".join(sorted(map(str, dtypes))) or "no trainable parameter"
        raise InputError(f"the model must have trainable parameters of one dtype, got {got}")
    return dtypes.pop()


def count_features(model: nn.Module, objective: Objective, data: TrainingData) -> int:
    """Return the number of inputs of the head, or 0 if the objective has no module of its own.

    Raise if predictions do not have the shape of the labels; the loss would broadcast them silently.
    """
    count = min(2, len(data.y))
    rows = data.x.rows[:count] if isinstance(data.x.rows, torch.Tensor) else data.x.rows[np.arange(count)]
    first = Inputs.load(rows, data.x.device, data.x.dtype)
    shape, expected = tuple(apply_to_rows(model, model, first).shape), (count, data.y.shape[1])
    if shape != expected:
        raise InputError(
            f"{type(model).__name__} must return shape {expected} for {count} rows, got {shape}; change the number of "
            "outputs of its last layer, or remove a squeeze"
        )
    if type(objective).module is Objective.module:
        return 0
    return int(apply_to_rows(model, model.features, first).shape[-1])  # type: ignore[arg-type]
