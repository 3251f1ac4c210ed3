"""Alignment: squared error on the source, and a penalty on how far the target's features are from the source's.

Each class is a weight and one of the pure functions in :mod:`pyspar.paper.objectives.penalties`. Source and target go
through the network one after the other, so that batch norm sees one domain at a time, as in the authors' code of RSD
and DARE-GRAM.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Batch, Network, Objective, mean_squared_error
from pyspar.paper.objectives.limits import number, one_of
from pyspar.paper.objectives.penalties import coral_penalty, norm_radius_penalty, norm_step_penalty
from pyspar.paper.objectives.penalties_subspace import dare_gram_penalty, rsd_penalty


def target_of(batch: Batch, name: str) -> Tensor:
    """Return the batch's target inputs, or say that the method cannot do without."""
    if batch.target is None:
        raise InputError(
            f"{name} compares source and target and expected target inputs in each batch. Got none instead; "
            "give the task unlabelled target inputs, or train with ERM."
        )
    return batch.target


class SettingsShown:
    """Show an objective by its settings; what is trained or loaded stays out."""

    def __repr__(self) -> str:
        plain = {name: value for name, value in vars(self).items() if not isinstance(value, nn.Module)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in plain.items())})"


class Alignment(SettingsShown, Objective):
    """Squared error plus ``penalty(source features, target features)``."""

    uses_target: ClassVar[bool] = True
    part: ClassVar[str] = "penalty"

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the weighted penalty of two batches of features: a scalar, or one per lane."""
        raise NotImplementedError

    def loss(self, net: Network, batch: Batch, module: nn.Module | None, phase: str) -> dict[str, Tensor]:
        """Return the squared error on the source and the penalty."""
        inputs = target_of(batch, self.name)
        source, target = net.features(batch.x), net.features(inputs)
        return {"mse": mean_squared_error(net.head(source), batch.y), self.part: self.penalty(source, target)}


class DeepCORAL(Alignment):
    r"""Deep CORAL: first and second moments of the features agree.

    .. math:: \mathrm{MSE} + w \left( \frac1D \|\mu_s - \mu_t\|^2 + \frac1{D^2} \|C_s - C_t\|_F^2 \right)

    Sun and Saenko (2016). The paper's base weight is 1; its tuned ones are 3.72 (RCF-MNIST) and 5.65 (ChairAngles).

    >>> DeepCORAL(3.72)
    DeepCORAL(weight=3.72)
    """

    name = "Deep CORAL"
    part = "coral"

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = number("weight", weight, cure="the paper's base weight is 1.0")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the weighted differences of means and covariances."""
        return self.weight * coral_penalty(source, target)


class AFN(Alignment):
    r"""Adaptive feature norm: features of both domains are made longer, step by step or up to a radius.

    .. math:: \mathrm{MSE} + w \sum_{\text{both}} \operatorname{mean}_i (\|f_i\| - \overline{\|f_i\|} - \Delta r)^2

    with ``by="step"``, where the bar holds a value fixed and the shown penalty is constant; with ``by="radius"``
    :math:`(\operatorname{mean}_i \|f_i\| - R)^2`. Xu et al. (2019); weight, step and radius are theirs.
    """

    name = "AFN"
    part = "norm"

    def __init__(
        self,
        weight: float = 0.05,
        *,
        by: Literal["step", "radius"] = "step",
        step: float = 1.0,
        radius: float = 25.0,
    ) -> None:
        self.weight = number("weight", weight, cure="the authors use 0.05")
        one_of("by", by, ("step", "radius"))
        self.by = by
        self.step = number("step", step, cure="the authors use 1.0")
        self.radius = number("radius", radius, cure="the authors use 25")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the weighted penalty on the norms."""
        if self.by == "step":
            return self.weight * norm_step_penalty(source, target, step=self.step)
        return self.weight * norm_radius_penalty(source, target, radius=self.radius)


class RSD(Alignment):
    r"""Representation subspace distance: the spans of a source and a target batch agree.

    .. math:: \mathrm{MSE} + w \left( \|\sin\Theta\|_1 + \beta \bigl\| |P_s| - |P_t| \bigr\|_F \right)

    Chen et al. (2021); weight and base as in the paper's PovertyMap runs. A batch of at least as many rows as features
    spans everything, and its angles are zero.
    """

    name = "RSD"
    part = "rsd"
    capturable: ClassVar[bool] = False

    def __init__(self, weight: float = 0.001, *, base: float = 0.01) -> None:
        self.weight = number("weight", weight, cure="the paper uses 0.001")
        self.base = number("base", base, cure="the paper uses 0.01")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the weighted sum of sines and base mismatch."""
        return self.weight * rsd_penalty(source, target, base=self.base)


class DAREGram(Alignment):
    r"""DARE-GRAM: the inverse Gram matrices, on which least squares rests, agree in angle and in scale.

    .. math:: \mathrm{MSE} + \frac a{D+1} \sum_c |1 - \cos(G_{s,c}^+, G_{t,c}^+)| + \frac bk \|\lambda_s - \lambda_t\|

    Nejjar et al. (2023); angle, scale and threshold as in the paper's PovertyMap runs.
    """

    name = "DARE-GRAM"
    part = "gram"
    capturable: ClassVar[bool] = False

    def __init__(self, angle: float = 0.05, scale: float = 0.001, *, threshold: float = 0.9) -> None:
        self.angle = number("angle", angle, cure="the paper uses 0.05")
        self.scale = number("scale", scale, cure="the paper uses 0.001")
        self.threshold = number("threshold", threshold, high=1.0, cure="it is a share of the trace; the paper uses 0.9")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the weighted differences in angle and scale."""
        options: dict[str, Any] = {"angle": self.angle, "scale": self.scale, "threshold": self.threshold}
        return dare_gram_penalty(source, target, **options)
