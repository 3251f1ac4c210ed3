"""Evaluate: predictions of a network as it is used, and the numbers by which an epoch is judged."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import Rows, World


def predictions(model: nn.Module, rows: Rows, batch_size: int, autocast: torch.dtype | None = None) -> Tensor:
    """Return a network's predictions for all rows, shape (..., n, K), without dropout, gradients or new statistics."""
    flags = [(module, module.training) for module in model.modules()]
    found = []
    try:
        model.eval()
        with torch.no_grad(), torch.autocast(rows.device.type, dtype=autocast, enabled=autocast is not None):
            for start in range(0, len(rows), batch_size):
                stop = min(start + batch_size, len(rows))
                # A slice of a tensor is no copy; lazy rows are promised only arrays of row numbers.
                index = slice(start, stop) if rows.on_device else torch.arange(start, stop)
                found.append(model(rows.take(index, model)))
    finally:
        for module, training in flags:
            module.training = training
    return torch.cat(found, dim=-2)


def predict(model: nn.Module, X: Any, *, batch_size: int = 1024) -> NDArray[np.float64]:
    """Return a trained network's predictions for rows as they stand in a task, shape (n, K).

    >>> from pyspar.paper.networks.mlp import MLP
    >>> predict(MLP(3), np.zeros((5, 3))).shape
    (5, 1)
    """
    like = next(model.parameters())
    return predictions(model, Rows.of(X, like.device, like.dtype), batch_size).double().cpu().numpy()


def validation(model: nn.Module, world: World, config: TrainConfig) -> Tensor:
    """Return the metric that ``select`` names, one per lane: what is recorded."""
    found = predictions(model, world.val_x, config.eval_batch_size, config.autocast_dtype).double()
    y = world.val_y
    if config.select == "worst-group-r":
        return worst_group_r(found, y, world.val_groups)
    return (found - y).square().mean(dim=(-2, -1))


def worst_group_r(prediction: Tensor, y: Tensor, groups: Sequence[Tensor]) -> Tensor:
    """Return the lowest Pearson correlation over groups and outputs; a constant prediction correlates with nothing: 0.

    >>> y = torch.tensor([[1.0], [2.0], [3.0], [1.0], [2.0], [3.0]])
    >>> guess = torch.tensor([[2.0], [4.0], [6.0], [3.0], [2.0], [1.0]])
    >>> worst_group_r(guess, y, [torch.arange(3), torch.arange(3, 6)])
    tensor(-1.)
    """
    found = []
    for rows in groups:
        a = prediction[..., rows, :] - prediction[..., rows, :].mean(dim=-2, keepdim=True)
        b = y[rows] - y[rows].mean(dim=-2, keepdim=True)
        size = (a.square().sum(dim=-2) * b.square().sum(dim=-2)).sqrt()
        found.append(torch.where(size == 0, 0.0, (a * b).sum(dim=-2) / size).amin(dim=-1))
    return torch.stack(found).amin(dim=0)


def copied(module: nn.Module, device: torch.device) -> nn.Module:
    """Return a copy on a device, without gradients that were left in the original.

    A GPU convolves fastest with the channels last; kept otherwise, each convolution would turn its images round.
    """
    found = copy.deepcopy(module).to(device)
    if device.type == "cuda":
        found.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # in place; torch's types lack it
    found.zero_grad(set_to_none=True)
    return found
