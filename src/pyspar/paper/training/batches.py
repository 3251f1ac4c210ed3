"""The rows of training on the device, the batches of one epoch, and predictions for all rows.

Arrays are moved to the device once. Other sequences of rows are read batch by batch. uint8 images stay uint8 until
their batch is used; then ``model.normalise`` converts them to floats, or a division by 255 if the model has no such
method. uint8 tables are converted to floats without scaling.

Random draws depend only on (seed, epoch, purpose), so any epoch can be repeated alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.paper.objectives.base import Batch, EpochPlan, Objective
from pyspar.paper.training.config import Shuffle, TrainConfig

_ROW_TABLES = ("order", "partner", "target")
_EAGER_STEPS = 3  # before a step is captured, so that libraries choose their kernels and optimisers have their state


def make_generator(seed: int, epoch: int, purpose: str) -> np.random.Generator:
    """Return the generator for one purpose in one epoch of one seed."""
    return np.random.default_rng(np.random.SeedSequence([seed, epoch, *purpose.encode()]))


def draw_train_order(seed: int, epoch: int, n: int, batch_size: int, shuffle: Shuffle) -> NDArray[np.int64]:
    """Return the training rows of each step, shape (n // batch_size, batch_size). The remaining rows are dropped."""
    steps = n // batch_size
    rows = make_generator(seed, epoch if shuffle == "epoch" else 0, "order").permutation(n)
    return rows[: steps * batch_size].reshape(steps, batch_size)


def draw_target_order(seed: int, epoch: int, m: int, steps: int, batch_size: int) -> NDArray[np.int64]:
    """Return the target rows of each step, shape (steps, batch_size). The epochs are consecutive sections of one
    endless sequence of permutations of all m rows. A row is repeated only after every row was used, also across epochs.
    """
    count = steps * batch_size
    first, skip = divmod(epoch * count, m)
    blocks = range(first, first + -(-(skip + count) // m))
    stream = np.concatenate([make_generator(seed, block, "target").permutation(m) for block in blocks])
    return stream[skip : skip + count].reshape(steps, batch_size)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Input rows: a tensor on the device, or an object that returns rows for an array of row indices."""

    rows: Any
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def load(cls, X: Any, device: torch.device, dtype: torch.dtype) -> Inputs:
        """Move an array to the device. Other objects are kept, to be read batch by batch."""
        if isinstance(X, (np.ndarray, Tensor)):
            X = torch.as_tensor(np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X)
            X = X.to(device) if X.dtype == torch.uint8 and X.ndim > 2 else X.to(device, dtype)
        return cls(X, device, dtype)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: Tensor, model: nn.Module) -> Tensor:
        """Return the indexed rows as inputs of ``model``. The leading axes are those of the index."""
        if isinstance(self.rows, Tensor):
            x = self.rows[index]
        else:
            x = torch.as_tensor(np.asarray(self.rows[index.cpu().numpy().reshape(-1)]))
            x = x.reshape(*index.shape, *x.shape[1:]).to(self.device)
        if x.dtype != torch.uint8 or len(self.rows.shape) < 3:
            return x.to(self.dtype)
        normalise = getattr(model, "normalise", None)
        return normalise(x).to(self.dtype) if callable(normalise) else x.to(self.dtype) / 255


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The training, target and validation rows on the device, and the labels and state that plans are drawn from."""

    x: Inputs
    y: Tensor
    target: Inputs | None
    val_x: Inputs
    val_y: Tensor
    val_groups: tuple[Tensor, ...]
    labels: NDArray[np.float64]
    state: Any

    @classmethod
    def load(cls, task: Any, objective: Objective, config: TrainConfig, dtype: torch.dtype) -> TrainingData:
        labels, device = as_columns(task.train.y), config.torch_device
        group = np.asarray(task.val.group if config.select == "worst-group-r" else [])  # other modes ignore the groups
        return cls(
            x=Inputs.load(task.train.X, device, dtype),
            y=torch.as_tensor(labels).to(device, dtype),
            target=Inputs.load(task.target_inputs, device, dtype) if objective.uses_target else None,
            val_x=Inputs.load(task.val.X, device, dtype),
            val_y=torch.as_tensor(as_columns(task.val.y)).to(device),  # float64 keeps digits of labels far from zero
            val_groups=tuple(torch.as_tensor(np.flatnonzero(group == g)).to(device) for g in np.unique(group)),
            labels=labels,
            state=objective.prepare(labels),
        )

    @property
    def is_on_device(self) -> bool:
        """Whether all rows of a step are in the memory of a GPU."""
        parts = (self.x, self.target or self.x)
        return self.y.is_cuda and all(isinstance(part.rows, Tensor) for part in parts)


def as_columns(y: Any) -> NDArray[np.float64]:
    """Return labels as a float64 table with one column per output."""
    table: NDArray[np.float64] = np.asarray(y, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table


def draw_epoch(
    data: TrainingData, objective: Objective, config: TrainConfig, seed: int, epoch: int
) -> dict[str, Tensor]:
    """Return the tables of an epoch, whose first axis is the step. "order", "partner" and "target" contain row indices.
    The others are draws of the objective.
    """
    order = draw_train_order(seed, epoch, len(data.labels), config.batch_size, config.shuffle)
    drawn = objective.plan(EpochPlan(make_generator(seed, epoch, "plan"), order, data.labels, epoch, data.state))
    tables = {"order": order, **{name: np.asarray(table) for name, table in drawn.items()}}
    if data.target is not None:
        tables["target"] = draw_target_order(seed, epoch, len(data.target), *order.shape)
    tensors = {name: torch.as_tensor(np.ascontiguousarray(table)) for name, table in tables.items()}
    return {n: t.to(data.y.device, data.y.dtype if t.is_floating_point() else t.dtype) for n, t in tensors.items()}


def iterate_batches(data: TrainingData, tables: dict[str, Tensor], model: nn.Module) -> Iterator[Batch]:
    """Yield the batch of each step of an epoch."""
    for step in range(len(tables["order"])):
        yield _make_batch(data, {name: table[step] for name, table in tables.items()}, model)


def replay_steps(
    step: Callable[[Batch], tuple[tuple[str, ...], Tensor]],
    data: TrainingData,
    tables: dict[str, Tensor],
    model: nn.Module,
) -> tuple[tuple[str, ...], list[Tensor]]:
    """Take the steps of an epoch on a GPU, and return the names of the terms of the loss and their values in each step.
    After three steps, one is captured as a CUDA graph and replayed with the rows of the others. A replay is one call
    instead of the thousand of a step, and gives the same numbers.
    """
    current = {name: table[0].clone() for name, table in tables.items()}
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    names: tuple[str, ...] = ()
    values, results = torch.empty(0), []
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for i in range(len(tables["order"])):
            for name, table in tables.items():
                current[name].copy_(table[i])
            if i < _EAGER_STEPS:
                names, values = step(_make_batch(data, current, model))
            elif i == _EAGER_STEPS:
                with torch.cuda.graph(graph, stream=stream):
                    names, values = step(_make_batch(data, current, model))
            if i >= _EAGER_STEPS:
                graph.replay()
            results.append(values.clone())
    torch.cuda.current_stream().wait_stream(stream)
    return names, results


def _make_batch(data: TrainingData, tables: dict[str, Tensor], model: nn.Module) -> Batch:
    order, partner, target = tables["order"], tables.get("partner"), tables.get("target")
    return Batch(
        x=data.x.take(order, model),
        y=data.y[order],
        partner_x=None if partner is None else data.x.take(partner, model),
        partner_y=None if partner is None else data.y[partner],
        target=None if target is None or data.target is None else data.target.take(target, model),
        draws={name: table for name, table in tables.items() if name not in _ROW_TABLES},
    )


def apply_to_rows(
    model: nn.Module, function: Callable[[Tensor], Tensor], inputs: Inputs, batch_size: int = 256
) -> Tensor:
    """Return a function of a model for all rows, such as its predictions, in evaluation mode and without gradients."""
    was_training = {layer: layer.training for layer in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            rows = torch.split(torch.arange(len(inputs), device=inputs.device), batch_size)
            return torch.cat([function(inputs.take(index, model)) for index in rows])
    finally:
        for layer, mode in was_training.items():
            layer.training = mode


def predict(model: nn.Module, X: Any, *, batch_size: int = 256) -> NDArray[np.float64]:
    """Return the predictions of a trained network for the rows of a task, shape (n, K)."""
    like = next(model.parameters())
    return apply_to_rows(model, model, Inputs.load(X, like.device, like.dtype), batch_size).double().cpu().numpy()
