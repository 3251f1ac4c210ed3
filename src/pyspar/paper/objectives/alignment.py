"""Objectives that align the features: squared error on the source plus a penalty on the distance to the target.

Each class combines a weight with a penalty, a pure function of features of shape (B, D). Source and target may have
different numbers of rows. They pass through the network separately, so that batch norm sees one domain at a time, as in
the authors' code of RSD and DARE-GRAM.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Batch, Network, Objective, in_full_precision, mean_squared_error
from pyspar.paper.objectives.penalties_subspace import dare_gram_penalty, rsd_penalty
from pyspar.paper.parameters import check_number


@in_full_precision
def coral_penalty(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the squared differences of the means and of the covariances, each averaged over its entries.

    .. math:: \frac1D \|\mu_s - \mu_t\|^2 + \frac1{D^2} \|C_s - C_t\|_F^2

    Sun and Saenko (2016), "Deep CORAL", use only the covariances. The paper's experiments add the means. The covariance
    of a single row is 0.
    """
    means = source.mean(dim=-2) - target.mean(dim=-2)
    covariances = _covariance(source) - _covariance(target)
    return means.square().mean(dim=-1) + covariances.square().mean(dim=(-2, -1))


def _covariance(features: Tensor) -> Tensor:
    centred = features - features.mean(dim=-2, keepdim=True)
    return centred.mT @ centred / max(features.shape[-2] - 1, 1)


@in_full_precision
def norm_step_penalty(source: Tensor, target: Tensor, *, step: float = 1.0) -> Tensor:
    r"""Return AFN's stepwise penalty, whose gradient lengthens every feature vector.

    .. math:: \frac1{B_s} \sum_i (\|f_i\| - \overline{\|f_i\|} - \Delta r)^2 + \text{the same for the target}

    The bar marks a constant without gradient. So the value is always :math:`2 \Delta r^2`, also for equal batches, and
    only the gradient has an effect. Xu et al. (2019), "Larger Norm More Transferable" (SAFN).
    """
    # The gradient of torch's norm at zero is zero, so a zero feature vector does not cause NaN.
    a, b = (torch.linalg.vector_norm(features, dim=-1) for features in (source, target))
    penalty: Tensor = (a - a.detach() - step).square().mean(dim=-1) + (b - b.detach() - step).square().mean(dim=-1)
    return penalty


class Alignment(Objective):
    """Squared error plus ``penalty(source features, target features)``."""

    uses_target: ClassVar[bool] = True
    penalty_name: ClassVar[str] = "penalty"

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        source, target = net.features(batch.x), net.features(batch.target)
        return {"mse": mean_squared_error(net.head(source), batch.y), self.penalty_name: self.penalty(source, target)}


@dataclass(frozen=True)
class DeepCORAL(Alignment):
    """Deep CORAL: MSE + w :func:`coral_penalty`. Sun and Saenko (2016).

    The paper's base weight is 1; its tuned weights are 3.72 (RCF-MNIST) and 5.65 (ChairAngles).
    """

    name: ClassVar[str] = "Deep CORAL"
    penalty_name: ClassVar[str] = "coral"

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the paper's base weight is 1.0")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        return self.weight * coral_penalty(source, target)


@dataclass(frozen=True)
class AFN(Alignment):
    """Adaptive feature norm: MSE + w :func:`norm_step_penalty`, which lengthens the feature vectors of both domains.

    Xu et al. (2019), with their default values.
    """

    name: ClassVar[str] = "AFN"
    penalty_name: ClassVar[str] = "norm"

    weight: float = 0.05
    _: KW_ONLY
    step: float = 1.0

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the authors use 0.05")
        check_number("step", self.step, hint="the authors use 1.0")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        return self.weight * norm_step_penalty(source, target, step=self.step)


@dataclass(frozen=True)
class RSD(Alignment):
    """Representation subspace distance: MSE + w :func:`rsd_penalty`, the angles between the spans of two batches.

    Chen et al. (2021), with weight and base as in the paper's PovertyMap runs. A batch with at least as many rows as
    features spans the whole space, so its angles are zero and training would be ERM. Such batches raise an error.
    """

    name: ClassVar[str] = "RSD"
    penalty_name: ClassVar[str] = "rsd"

    weight: float = 0.001
    _: KW_ONLY
    base: float = 0.01

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the paper uses 0.001")
        check_number("base", self.base, hint="the paper uses 0.01")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        rows, features = max(source.shape[-2], target.shape[-2]), source.shape[-1]
        if rows >= features:
            raise InputError(
                f"RSD requires batches with fewer rows than the network has features, got {rows} rows and {features} "
                f"features: such a batch spans all features, so the penalty is zero; use batch_size={features // 2} or "
                "less, or a wider network"
            )
        return self.weight * rsd_penalty(source, target, base=self.base)


@dataclass(frozen=True)
class DAREGram(Alignment):
    """DARE-GRAM: MSE + :func:`dare_gram_penalty`, the difference between the inverse Gram matrices.

    Nejjar et al. (2023), with angle, scale and threshold as in the paper's PovertyMap runs.
    """

    name: ClassVar[str] = "DARE-GRAM"
    penalty_name: ClassVar[str] = "gram"

    angle: float = 0.05
    scale: float = 0.001
    _: KW_ONLY
    threshold: float = 0.9

    def __post_init__(self) -> None:
        check_number("angle", self.angle, hint="the paper uses 0.05")
        check_number("scale", self.scale, hint="the paper uses 0.001")
        check_number("threshold", self.threshold, high=1.0, hint="the paper uses 0.9 of the trace")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        return dare_gram_penalty(source, target, **vars(self))
