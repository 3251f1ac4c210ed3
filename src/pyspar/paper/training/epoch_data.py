"""The data of training: rows on the device, the random order of rows, and the batches of one epoch.

Arrays are moved to the device once. Other sequences of rows are read batch by batch. uint8 images stay uint8 until
their batch is used; then ``model.normalise`` converts them to floats, or a division by 255 if the model has no such
method. uint8 tables are converted to floats without scaling.

Random draws depend only on (seed, epoch, purpose), so any epoch can be repeated alone.
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
from pyspar.paper.training.config import Shuffle, TrainConfig

_ROW_TABLES = ("order", "partner", "target")
_MAX_GATHERED = 2**24  # numbers; the batches of a smaller epoch are gathered in one call instead of one call per step
_MIN_DRAWN_ROWS = 64  # rows drawn by one generator; smaller targets are permuted several times per generator


def make_generator(seed: int, epoch: int, purpose: str) -> np.random.Generator:
    """Return the generator for one purpose in one epoch of one seed.

    >>> bool(make_generator(0, 3, "plan").random() == make_generator(0, 3, "plan").random())
    True
    >>> bool(make_generator(0, 3, "plan").random() == make_generator(0, 3, "target").random())
    False
    """
    return np.random.default_rng(_seed_sequence(seed, epoch, purpose))


def make_torch_seed(seed: int, epoch: int, purpose: str) -> int:
    """Return a seed for torch's global generator, which dropout uses."""
    return int(_seed_sequence(seed, epoch, purpose).generate_state(1, np.uint64)[0])


def _seed_sequence(seed: int, epoch: int, purpose: str) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, epoch, *purpose.encode()])


def draw_train_order(seed: int, epoch: int, n: int, batch_size: int, shuffle: Shuffle) -> NDArray[np.int64]:
    """Return the training rows of each step, shape (n // batch_size, batch_size). The remaining rows are dropped.

    >>> bool((draw_train_order(1, 0, 10, 4, "once") == draw_train_order(1, 7, 10, 4, "once")).all())
    True
    """
    steps = n // batch_size
    rows = make_generator(seed, epoch if shuffle == "epoch" else 0, "order").permutation(n)
    return rows[: steps * batch_size].reshape(steps, batch_size)


def draw_target_order(seed: int, epoch: int, m: int, steps: int, batch_size: int) -> NDArray[np.int64]:
    """Return the target rows of each step, shape (steps, batch_size).

    The epochs are consecutive sections of one endless sequence of permutations of all m rows. A row is repeated only
    after every row was used, also across epochs.

    >>> sorted(draw_target_order(0, 0, 3, 2, 3)[0]), sorted(draw_target_order(0, 0, 3, 2, 3)[1])
    ([np.int64(0), np.int64(1), np.int64(2)], [np.int64(0), np.int64(1), np.int64(2)])
    """
    count = steps * batch_size
    per_block = -(-_MIN_DRAWN_ROWS // m)  # creating a generator takes longer than drawing a few rows
    first, skip = divmod(epoch * count, per_block * m)
    blocks = range(first, first + -(-(skip + count) // (per_block * m)))
    stream = np.concatenate([_permute_rows(make_generator(seed, block, "target"), m, per_block) for block in blocks])
    return stream[skip : skip + count].reshape(steps, batch_size)


def _permute_rows(rng: np.random.Generator, m: int, count: int) -> NDArray[np.int64]:
    """Return ``count`` permutations of m rows, concatenated."""
    if count == 1:
        return rng.permutation(m)
    return rng.permuted(np.tile(np.arange(m), (count, 1)), axis=1).ravel()


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

    @property
    def on_device(self) -> bool:
        return isinstance(self.rows, Tensor)

    def take(self, index: Tensor | slice, model: nn.Module) -> Tensor:
        """Return the indexed rows as inputs of ``model``. The leading axes are those of the index."""
        if isinstance(self.rows, Tensor) or isinstance(index, slice):
            return self._convert(model, self.rows[index])
        batch = torch.as_tensor(np.asarray(self.rows[index.cpu().numpy().reshape(-1)]))
        batch = batch.reshape(*index.shape, *batch.shape[1:]).to(self.device, non_blocking=True)
        return self._convert(model, batch)

    def _convert(self, model: nn.Module, x: Tensor) -> Tensor:
        """Return a batch in the model's dtype. uint8 images are scaled by ``model.normalise``, or by 1/255."""
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
        """Move the rows of a task to the device and prepare the objective."""
        labels, device = as_columns(task.train.y), config.torch_device
        group = np.asarray(task.val.group if config.select == "worst-group-r" else [])  # other modes ignore the groups
        return cls(
            x=Inputs.load(task.train.X, device, dtype),
            y=torch.as_tensor(labels).to(device, dtype),
            target=Inputs.load(task.target_inputs, device, dtype) if objective.uses_target else None,
            val_x=Inputs.load(task.val.X, device, dtype),
            # float64, so that labels far from zero keep their digits.
            val_y=torch.as_tensor(as_columns(task.val.y)).to(device),
            val_groups=tuple(torch.as_tensor(np.flatnonzero(group == g)).to(device) for g in np.unique(group)),
            labels=labels,
            state=objective.prepare(labels),
        )

    @property
    def on_device(self) -> bool:
        return self.x.on_device and (self.target is None or self.target.on_device)


def as_columns(y: Any) -> NDArray[np.float64]:
    """Return labels as a float64 table with one column per output."""
    table: NDArray[np.float64] = np.asarray(y, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table


@dataclass(frozen=True, eq=False)
class EpochData:
    """The batches of one epoch, as tables whose first axis is the step, then the seed if networks are stacked.

    The tables "order", "partner" and "target" contain row indices. The others are draws of the objective.
    """

    data: TrainingData
    epoch: int
    tables: dict[str, Tensor]

    @classmethod
    def draw(
        cls,
        data: TrainingData,
        objective: Objective,
        config: TrainConfig,
        seeds: Sequence[int],
        stacked: bool,
        epoch: int,
    ) -> EpochData:
        """Draw the tables of an epoch for one seed, or for several stacked seeds."""
        plans = [_draw_plan(data, objective, config, seed, epoch) for seed in seeds]
        tables = {
            name: np.stack([plan[name] for plan in plans], axis=1) if stacked else plans[0][name] for name in plans[0]
        }
        return cls(data, epoch, {name: _to_tensor(table, data.y) for name, table in tables.items()})

    def __len__(self) -> int:
        return len(self.tables["order"])

    def batches(self, model: nn.Module) -> Iterator[Batch]:
        """Yield the batch of each step."""
        if self._is_small():
            epoch = self._make_batch(self.tables, model)
            for step in range(len(self)):
                partner_x, partner_y, target = (
                    None if part is None else part[step] for part in (epoch.partner_x, epoch.partner_y, epoch.target)
                )
                draws = {name: draw[step] for name, draw in epoch.draws.items()}
                yield Batch(epoch.x[step], epoch.y[step], partner_x, partner_y, target, draws)
        else:
            for step in range(len(self)):
                yield self._make_batch({name: table[step] for name, table in self.tables.items()}, model)

    def batch_at(self, step: Tensor, model: nn.Module) -> Batch:
        """Return the batch of a step. ``step`` has shape (1,) and is on the device, so the host does not wait."""
        tables = {name: table.index_select(0, step).squeeze(0) for name, table in self.tables.items()}
        return self._make_batch(tables, model)

    def _make_batch(self, tables: dict[str, Tensor], model: nn.Module) -> Batch:
        data, order, partner, target = self.data, tables["order"], tables.get("partner"), tables.get("target")
        return Batch(
            x=data.x.take(order, model),
            y=data.y[order],
            partner_x=None if partner is None else data.x.take(partner, model),
            partner_y=None if partner is None else data.y[partner],
            target=None if target is None or data.target is None else data.target.take(target, model),
            draws={name: table for name, table in tables.items() if name not in _ROW_TABLES},
        )

    def _is_small(self) -> bool:
        x = self.data.x
        if not self.data.on_device or x.rows.dtype == torch.uint8:
            return False
        count = sum(self.tables[name].numel() for name in _ROW_TABLES if name in self.tables)
        return int(count * x.rows[0].numel()) <= _MAX_GATHERED


def _draw_plan(
    data: TrainingData, objective: Objective, config: TrainConfig, seed: int, epoch: int
) -> dict[str, NDArray[Any]]:
    """Return the tables of one seed for an epoch."""
    order = draw_train_order(seed, epoch, len(data.labels), config.batch_size, config.shuffle)
    drawn = objective.plan(EpochPlan(make_generator(seed, epoch, "plan"), order, data.labels, epoch, data.state))
    plan = {"order": order, **{name: np.asarray(table) for name, table in drawn.items()}}
    if data.target is not None:
        plan["target"] = draw_target_order(seed, epoch, len(data.target), *order.shape)
    return plan


def _to_tensor(table: NDArray[Any], like: Tensor) -> Tensor:
    tensor = torch.as_tensor(np.ascontiguousarray(table))
    return tensor.to(like.device, like.dtype if tensor.is_floating_point() else tensor.dtype)
