r"""Mixup and C-Mixup: train on convex combinations of two rows and of their labels.

.. math::
    \tilde x_i = \lambda x_i + (1 - \lambda) x_{j(i)}, \quad \tilde y_i = \lambda y_i + (1 - \lambda) y_{j(i)}, \quad
    \lambda \sim \mathrm{Beta}(a, a), \qquad \frac1B \sum_i \|f(\tilde x_i) - \tilde y_i\|^2

Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization", ICLR. The methods differ in the choice of j(i).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Batch, EpochPlan, Network, Objective, mean_squared_error
from pyspar.paper.parameters import check_choice, check_number

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_MAX_STORED_ROWS = 4096  # an N x N matrix of 134 MB; larger sets are computed again in every epoch, in parts
_MAX_CELLS = 1 << 22  # entries of the N x N matrix that are in memory at a time
_BLOCK, _ROUNDS = 64, 10  # rows per block of near labels, and proposals per row, of larger sets


class Partners:
    """Partners from the whole training set."""

    def __init__(self, y: NDArray[Any], bandwidth: float, *, include_self: bool = True) -> None:
        self.labels = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self.bandwidth, self.include_self = bandwidth, include_self
        _check_candidates(len(y), include_self, "the training set")
        self._stored = self._cumulate(np.arange(len(y))) if len(y) <= _MAX_STORED_ROWS else None
        self._sorted = np.argsort(self.labels[:, 0], kind="stable")

    def draw(self, rows: Indices, rng: np.random.Generator) -> Indices:
        flat = np.asarray(rows).ravel()
        step = max(1, _MAX_CELLS // len(self.labels))
        drawn = [self._draw_part(flat[i : i + step], rng) for i in range(0, len(flat), step)]
        return np.concatenate(drawn).reshape(np.shape(rows))

    def _draw_part(self, rows: Indices, rng: np.random.Generator) -> Indices:
        if self._stored is not None:
            return _choose(self._stored[rows], rng)
        drawn = self._propose(rows, rng) if self.labels.shape[1] == 1 else np.full(len(rows), -1)
        left = drawn < 0
        if left.any():
            drawn[left] = _choose(self._cumulate(rows[left]), rng)
        return drawn

    def _propose(self, rows: Indices, rng: np.random.Generator) -> Indices:
        """Draw partners by rejection, which is exact: propose a block of near labels by the kernel at its nearest end,
        then a row of the block, and accept it with the ratio of the kernels. Rows whose proposals all fail get -1.
        """
        label, h = self.labels[:, 0], self.bandwidth
        start = np.arange(0, len(label), _BLOCK)
        size = np.diff(start, append=len(label))
        y, low, high = label[rows, None], label[self._sorted[start]], label[self._sorted[start + size - 1]]
        drawn = np.full(len(rows), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.maximum(np.maximum(low - y, y - high), 0) / h
            blocks = np.cumsum(size * np.exp(-0.5 * np.square(gap)), axis=1)
            for _ in range(_ROUNDS):
                left = np.flatnonzero(drawn < 0)
                block = _choose(blocks[left], rng)
                proposed = self._sorted[start[block] + rng.integers(size[block])]
                distance, nearest = np.abs(label[proposed] - y[left, 0]) / h, gap[left, block]
                accepted = rng.random(len(left)) < np.exp(-0.5 * (distance - nearest) * (distance + nearest))
                accepted &= self.include_self | (proposed != rows[left])
                drawn[left[accepted]] = proposed[accepted]
        return drawn

    def _cumulate(self, rows: Indices) -> Floats:
        excluded = None if self.include_self else rows[:, None] == np.arange(len(self.labels))
        return _cumulative_weights(self.labels[rows, None], self.labels[None], excluded, self.bandwidth)


def draw_among_candidates(
    y: NDArray[Any],
    order: Indices,
    bandwidth: float,
    rng: np.random.Generator,
    *,
    extra: int = 0,
    include_self: bool = True,
) -> Indices:
    """Draw a partner for each row of each batch from its batch and from ``extra`` random training rows per batch row.
    ``order`` has shape (steps, B). With ``extra=1`` there are 2 B candidates.
    """
    labels = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    steps, size = order.shape
    _check_candidates(size * (1 + extra), include_self, "a batch")
    candidates = np.concatenate([order, rng.integers(len(labels), size=(steps, extra * size))], axis=1)
    excluded = None if include_self else order[..., :, None] == candidates[..., None, :]
    weights = _cumulative_weights(labels[order][:, :, None], labels[candidates][:, None], excluded, bandwidth)
    return np.take_along_axis(candidates, _choose(weights, rng), axis=1)


def _cumulative_weights(a: Floats, b: Floats, excluded: NDArray[np.bool_] | None, h: float) -> Floats:
    with np.errstate(over="ignore"):
        distance = np.sqrt(np.square((a - b) / h).sum(axis=-1))
    if excluded is not None:
        distance[excluded] = np.inf
    nearest = np.minimum(distance.min(axis=-1, keepdims=True), np.finfo(np.float64).max)
    with np.errstate(over="ignore"):  # the product form is accurate if both distances are large
        weights = np.exp(-0.5 * (distance - nearest) * (distance + nearest))
    return np.cumsum(weights, axis=-1, out=weights)


def _choose(cumulative: Floats, rng: np.random.Generator) -> Indices:
    level = rng.random((*cumulative.shape[:-1], 1)) * cumulative[..., -1:]
    chosen: Indices = np.argmax(cumulative > level, axis=-1)
    return chosen


def _check_candidates(n: int, include_self: bool, what: str) -> None:
    if n < 2 and not include_self:
        raise InputError(f"include_self=False requires at least two rows in {what}, got {n}; use include_self=True")


Where = Literal["input", "manifold", "maps"]
Pool = Literal["whole-set", "within-batch", "double-batch"]
Share = Literal["batch", "sample"]


@dataclass(frozen=True, kw_only=True)
class Mixup(Objective):
    r"""Mixup with partners drawn uniformly from the training set (Zhang et al. 2018).

    ``mix_alpha`` is both parameters of the Beta distribution of the mixing weight, of which there is one per batch or
    per row (``mix="sample"``). ``where`` is "input", "manifold" (the outputs of ``net.stem``; Verma et al. 2019), or
    "maps", the last feature maps of an image network, before they are averaged. ``both_ways`` also mixes each partner
    with its row, so that a batch of B rows gives 2 B mixed rows.
    """

    name: ClassVar[str] = "Mixup"
    capturable: ClassVar[bool] = True

    mix_alpha: float = 2.0
    where: Where = "input"
    mix: Share = "batch"
    both_ways: bool = False

    def __post_init__(self) -> None:
        check_number("mix_alpha", self.mix_alpha, positive=True, hint="the paper uses 2 for tables, 0.5 for PovertyMap")
        check_choice("where", self.where, get_args(Where))
        check_choice("mix", self.mix, get_args(Share))

    def plan(self, plan: EpochPlan) -> dict[str, NDArray[Any]]:
        partner = self._draw_partners(plan)
        shape = plan.order.shape if self.mix == "sample" else plan.order.shape[:1]
        return {"partner": partner, "mix": plan.rng.beta(self.mix_alpha, self.mix_alpha, size=shape)}

    def _draw_partners(self, plan: EpochPlan) -> NDArray[np.int64]:
        return plan.rng.integers(len(plan.y), size=plan.order.shape)

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        if self.where == "input":
            prediction = net(self._mix(batch.x, batch.partner_x, batch))
        elif self.where == "manifold":
            prediction = net.head(net.trunk(self._mix(net.stem(batch.x), net.stem(batch.partner_x), batch)))
        else:
            maps = self._mix(net.feature_maps(batch.x), net.feature_maps(batch.partner_x), batch)
            prediction = net.head(net.pool(maps))
        return {"mse": mean_squared_error(prediction, self._mix(batch.y, batch.partner_y, batch))}

    def _mix(self, one: Tensor, other: Tensor, batch: Batch) -> Tensor:
        mixed = mix_rows(one, other, batch.draws["mix"])
        return torch.cat([mixed, mix_rows(other, one, batch.draws["mix"])]) if self.both_ways else mixed


@dataclass(frozen=True)
class CMixup(Mixup):
    r"""C-Mixup: rows with closer labels are more likely partners (Yao et al. 2022, "C-Mixup", NeurIPS).

    .. math:: P(j \mid i) \propto \exp\left(-\frac{\|y_i - y_j\|^2}{2 h^2}\right)

    The bandwidth h is in the units of the labels. ``partners`` are drawn from the "whole-set", from the same batch
    ("within-batch"), or from the batch and as many random rows ("double-batch"). With ``include_self`` a row can be its
    own partner, as in the authors' code for tables but not for PovertyMap.
    """

    name: ClassVar[str] = "C-Mixup"

    bandwidth: float
    partners: Pool = field(default="whole-set", kw_only=True)
    include_self: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("bandwidth", self.bandwidth, positive=True, hint="large values give Mixup")
        check_choice("partners", self.partners, get_args(Pool))

    def prepare(self, y: NDArray[np.float64]) -> Partners | None:
        if self.partners != "whole-set":
            return None
        return Partners(y, self.bandwidth, include_self=self.include_self)

    def _draw_partners(self, plan: EpochPlan) -> NDArray[np.int64]:
        if self.partners == "whole-set":
            state: Partners = plan.state
            return state.draw(plan.order, plan.rng)
        extra = int(self.partners == "double-batch")
        return draw_among_candidates(
            plan.y, plan.order, self.bandwidth, plan.rng, extra=extra, include_self=self.include_self
        )


def mix_rows(one: Tensor, other: Tensor, mix: Tensor) -> Tensor:
    """Return ``mix * one + (1 - mix) * other``. The axes of ``mix`` are the leading axes of the tensors."""
    weight = mix.to(one.dtype).reshape(*mix.shape, *(1,) * (one.ndim - mix.ndim))
    # One kernel instead of four, because call overhead dominates in small networks.
    return torch.lerp(other, one, weight)
