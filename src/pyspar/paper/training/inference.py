"""Predictions of a network in evaluation mode, and the validation metric that selects an epoch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.nn.models import evaluation_mode
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import Inputs, TrainingData


def apply_to_rows(
    model: nn.Module,
    function: Callable[[Tensor], Tensor],
    inputs: Inputs,
    batch_size: int,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """Return a function of a model for all rows, such as its predictions, in evaluation mode and without gradients."""
    batches = []
    with (
        evaluation_mode(model),
        torch.no_grad(),
        torch.autocast(inputs.device.type, dtype=autocast, enabled=autocast is not None),
    ):
        for start in range(0, len(inputs), batch_size):
            stop = min(start + batch_size, len(inputs))
            # A slice of a tensor is not copied. Rows that are read as needed support only arrays of indices.
            index = slice(start, stop) if inputs.on_device else torch.arange(start, stop)
            batches.append(function(inputs.take(index, model)))
    return torch.cat(batches, dim=-2)


def predict(model: nn.Module, X: Any, *, batch_size: int = 1024) -> NDArray[np.float64]:
    """Return the predictions of a trained network for the rows of a task, shape (n, K).

    >>> from pyspar.paper.networks.mlp import MLP
    >>> predict(MLP(3), np.zeros((5, 3))).shape
    (5, 1)
    """
    like = next(model.parameters())
    return apply_to_rows(model, model, Inputs.load(X, like.device, like.dtype), batch_size).double().cpu().numpy()


def compute_validation(model: nn.Module, data: TrainingData, config: TrainConfig) -> Tensor:
    """Return the metric that ``select`` names: the worst-group r, else the mean squared error. One value per seed."""
    prediction = apply_to_rows(model, model, data.val_x, config.eval_batch_size, config.autocast_dtype).double()
    if config.select == "worst-group-r":
        return compute_worst_group_r(prediction, data.val_y, data.val_groups)
    return (prediction - data.val_y).square().mean(dim=(-2, -1))


def compute_worst_group_r(prediction: Tensor, y: Tensor, groups: Sequence[Tensor]) -> Tensor:
    """Return the lowest Pearson correlation over groups and outputs. The correlation of a constant prediction is 0.

    >>> y = torch.tensor([[1.0], [2.0], [3.0], [1.0], [2.0], [3.0]])
    >>> guess = torch.tensor([[2.0], [4.0], [6.0], [3.0], [2.0], [1.0]])
    >>> compute_worst_group_r(guess, y, [torch.arange(3), torch.arange(3, 6)])
    tensor(-1.)
    """
    correlations = []
    for rows in groups:
        a = prediction[..., rows, :] - prediction[..., rows, :].mean(dim=-2, keepdim=True)
        b = y[rows] - y[rows].mean(dim=-2, keepdim=True)
        size = (a.square().sum(dim=-2) * b.square().sum(dim=-2)).sqrt()
        correlations.append(torch.where(size == 0, 0.0, (a * b).sum(dim=-2) / size).amin(dim=-1))
    return torch.stack(correlations).amin(dim=0)


def copy_to_device(module: nn.Module, device: torch.device) -> nn.Module:
    """Return a copy on a device, without the gradients of the original.

    On a GPU the copy uses the channels-last layout, because other layouts are converted in every convolution.
    """
    clone = copy.deepcopy(module).to(device)
    if device.type == "cuda":
        clone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # in place; torch's types lack it
    clone.zero_grad(set_to_none=True)
    return clone
