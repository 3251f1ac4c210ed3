"""Feed: the rows of a task on the device, and the batches of one epoch.

Arrays are put on the device once; what is no array, but has rows, is read batch by batch. Images of uint8 stay so until
their batch comes: then the model's own ``normalise`` turns them into floats, or, where it has none, a division by 255.
A table of uint8 is a table of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.paper.objectives.base import Batch, EpochPlan, Objective
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.order import generator, target_order, train_order

_GATHERED = 2**24  # numbers; an epoch of fewer is gathered in one call instead of one call a step


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs: a tensor on the device, or anything that gives rows for an array of row numbers."""

    source: Any
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, X: Any, device: torch.device, dtype: torch.dtype) -> Rows:
        if isinstance(X, (np.ndarray, Tensor)):
            X = torch.as_tensor(np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X)
            X = X.to(device) if X.dtype == torch.uint8 and X.ndim > 2 else X.to(device, dtype)
        return cls(X, device, dtype)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def on_device(self) -> bool:
        return isinstance(self.source, Tensor)

    def take(self, index: Tensor | slice, model: nn.Module) -> Tensor:
        """Return rows as the model takes them, in the shape of the index."""
        if isinstance(self.source, Tensor) or isinstance(index, slice):
            return self._as_inputs(model, self.source[index])
        found = torch.as_tensor(np.asarray(self.source[index.cpu().numpy().reshape(-1)]))
        found = found.reshape(*index.shape, *found.shape[1:]).to(self.device, non_blocking=True)
        return self._as_inputs(model, found)

    def _as_inputs(self, model: nn.Module, x: Tensor) -> Tensor:
        """Return a batch in the model's dtype; pixels of uint8 through ``model.normalise``, or over 255."""
        if x.dtype != torch.uint8 or len(self.source.shape) < 3:
            return x.to(self.dtype)
        normalise = getattr(model, "normalise", None)
        return normalise(x).to(self.dtype) if callable(normalise) else x.to(self.dtype) / 255


@dataclass(frozen=True, eq=False)
class World:
    """A task's rows on the device, and what every epoch is planned from."""

    x: Rows
    y: Tensor
    target: Rows | None
    val_x: Rows
    val_y: Tensor
    val_groups: tuple[Tensor, ...]
    labels: NDArray[np.float64]
    state: Any

    @classmethod
    def of(cls, task: Any, objective: Objective, config: TrainConfig, dtype: torch.dtype) -> World:
        labels, device = columns(task.train.y), config.torch_device
        group = np.asarray(task.val.group if config.select == "worst-group-r" else [])  # else they may be anything
        return cls(
            x=Rows.of(task.train.X, device, dtype),
            y=torch.as_tensor(labels).to(device, dtype),
            target=Rows.of(task.target_inputs, device, dtype) if objective.uses_target else None,
            val_x=Rows.of(task.val.X, device, dtype),
            val_y=torch.as_tensor(columns(task.val.y)).to(device),  # float64: labels far from zero keep their digits
            val_groups=tuple(torch.as_tensor(np.flatnonzero(group == g)).to(device) for g in np.unique(group)),
            labels=labels,
            state=objective.prepare(labels),
        )

    @property
    def on_device(self) -> bool:
        return self.x.on_device and (self.target is None or self.target.on_device)


def columns(y: Any) -> NDArray[np.float64]:
    """Return labels as a table, one column for each output."""
    table: NDArray[np.float64] = np.asarray(y, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table


@dataclass(frozen=True, eq=False)
class Feed:
    """One epoch: tensors whose first axis is the step, then the lanes if these are stacked."""

    world: World
    epoch: int
    tables: dict[str, Tensor]  # "order", "partner" and "target" are row numbers; the others are draws

    @classmethod
    def of(
        cls, world: World, objective: Objective, config: TrainConfig, seeds: Sequence[int], stacked: bool, epoch: int
    ) -> Feed:
        plans = [_planned(world, objective, config, seed, epoch) for seed in seeds]
        found = {
            name: np.stack([plan[name] for plan in plans], axis=1) if stacked else plans[0][name] for name in plans[0]
        }
        return cls(world, epoch, {name: _tensor(table, world.y) for name, table in found.items()})

    def __len__(self) -> int:
        return len(self.tables["order"])

    def batches(self, model: nn.Module) -> Iterator[Batch]:
        """Yield the batches in turn."""
        if self._is_small():
            whole = self._batch(self.tables, model)
            for step in range(len(self)):
                yield Batch(
                    whole.x[step],
                    whole.y[step],
                    None if whole.partner_x is None else whole.partner_x[step],
                    None if whole.partner_y is None else whole.partner_y[step],
                    None if whole.target is None else whole.target[step],
                    {name: draw[step] for name, draw in whole.draws.items()},
                )
        else:
            for step in range(len(self)):
                yield self._batch({name: table[step] for name, table in self.tables.items()}, model)

    def at(self, step: Tensor, model: nn.Module) -> Batch:
        """Return the batch of a step whose number, shape (1,), is on the device: nothing here waits for the host."""
        return self._batch({name: table.index_select(0, step).squeeze(0) for name, table in self.tables.items()}, model)

    def _batch(self, tables: dict[str, Tensor], model: nn.Module) -> Batch:
        world, order, partner, target = self.world, tables["order"], tables.get("partner"), tables.get("target")
        return Batch(
            x=world.x.take(order, model),
            y=world.y[order],
            partner_x=None if partner is None else world.x.take(partner, model),
            partner_y=None if partner is None else world.y[partner],
            target=None if target is None or world.target is None else world.target.take(target, model),
            draws={name: table for name, table in tables.items() if name not in _ROWS},
        )

    def _is_small(self) -> bool:
        x = self.world.x
        if not self.world.on_device or x.source.dtype == torch.uint8:
            return False
        numbers = sum(self.tables[name].numel() for name in _ROWS if name in self.tables)
        return int(numbers * x.source[0].numel()) <= _GATHERED


_ROWS = ("order", "partner", "target")


def _planned(world: World, objective: Objective, config: TrainConfig, seed: int, epoch: int) -> dict[str, NDArray[Any]]:
    """Return one seed's draws for an epoch, checked for their shape."""
    order = train_order(seed, epoch, len(world.labels), config.batch_size, config.shuffle)
    drawn = objective.plan(EpochPlan(generator(seed, epoch, "plan"), order, world.labels, epoch, world.state))
    for name, table in drawn.items():
        wanted = order.shape if name == "partner" else order.shape[:1]
        if name in ("order", "target") or np.shape(table)[: len(wanted)] != wanted:
            raise ValueError(
                f"{objective.name}.plan must return arrays whose first axis is the step, {len(order)} of them, and "
                f"'partner' of shape {order.shape}. Got {name!r} of shape {np.shape(table)}."
            )
    plan = {"order": order, **{name: np.asarray(table) for name, table in drawn.items()}}
    if world.target is not None:
        plan["target"] = target_order(seed, epoch, len(world.target), *order.shape)
    return plan


def _tensor(table: NDArray[Any], like: Tensor) -> Tensor:
    found = torch.as_tensor(np.ascontiguousarray(table))
    return found.to(like.device, like.dtype if found.is_floating_point() else found.dtype)
