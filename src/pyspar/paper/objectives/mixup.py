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

from pyspar.paper.objectives.base import Batch, EpochPlan, Network, Objective, mean_squared_error
from pyspar.paper.objectives.partners import Partners, draw_among_candidates
from pyspar.paper.parameters import check_choice, check_number

Where = Literal["input", "manifold", "maps"]
Pool = Literal["whole-set", "within-batch", "double-batch"]
Share = Literal["batch", "sample"]


@dataclass(frozen=True, kw_only=True)
class Mixup(Objective):
    r"""Mixup with partners drawn uniformly from the training set (Zhang et al. 2018).

    Parameters
    ----------
    mix_alpha : float
        Both parameters of the Beta distribution of the mixing weight.
    where : "input", "manifold" or "maps"
        Mix the inputs, the outputs of ``net.stem`` (Verma et al. 2019, "Manifold Mixup", ICML), or the last feature
        maps of an image network, before they are averaged.
    mix : "batch" or "sample"
        One mixing weight per batch, or one per row.
    both_ways : bool
        Also mix each partner with its row, so that a batch of B rows gives 2 B mixed rows.
    """

    name: ClassVar[str] = "Mixup"

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

    Parameters
    ----------
    bandwidth : float
        h, in the units of the labels. The paper uses 1.0 and 5e-4 for tabular data, 0.5 for PovertyMap.
    mix_alpha, where, mix, both_ways : see `Mixup`
    partners : "whole-set", "within-batch" or "double-batch"
        Draw the partner from all training rows, from the same batch, or from the batch and as many random rows.
    include_self : bool
        Whether a row can be its own partner, as in the authors' code for tables but not for PovertyMap.
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
