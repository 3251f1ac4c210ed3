"""DANN: an encoder trained against a critic that distinguishes source features from target features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pyspar.paper.objectives.base import Batch, Network, Objective, in_full_precision, mean_squared_error
from pyspar.paper.parameters import check_choice, check_integer, check_number


@in_full_precision
def domain_cross_entropy(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the cross-entropy of a critic's logits, of shape (B, 1). Positive logits mean target.

    .. math:: \tfrac12 \operatorname{mean}_i \log(1 + e^{c(f_i)}) + \tfrac12 \operatorname{mean}_j \log(1 + e^{-c(f_j)})

    Both domains have equal weight, also if one has more rows. A critic that always returns 0 has the value log 2.
    Ganin et al. (2016).
    """
    return (F.softplus(source).mean() + F.softplus(-target).mean()) / 2


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return -ctx.scale * grads[0], None


def reverse_gradient(x: Tensor, scale: float = 1.0) -> Tensor:
    """Return x. Its gradient is multiplied by ``-scale``. Ganin et al. (2016)."""
    return cast(Tensor, _Reversal.apply(x, scale))  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class DANN(Objective):
    r"""Domain-adversarial training: the encoder maximises the cross-entropy that a critic minimises.

    .. math:: \min_f \; \mathrm{MSE} - w \, \mathrm{CE}(c; f), \qquad \min_c \; \mathrm{CE}(c; f)

    Ganin et al. (2016). With ``by="passes"``, as in the authors' code, every epoch has two passes over the training
    rows: one trains the model against a fixed critic, the next trains the critic on fixed features. With
    ``by="reversal"`` each step trains both, and the gradient changes its sign on the way to the encoder.

    The paper's base weight is 1, and its tuned weight for both image data sets 0.107. ``hidden`` is the width of the
    critic's single hidden layer, with LeakyReLU(0.1).
    """

    name: ClassVar[str] = "DANN"
    uses_target: ClassVar[bool] = True
    capturable: ClassVar[bool] = True

    weight: float = 1.0
    _: KW_ONLY
    by: Literal["passes", "reversal"] = "passes"
    hidden: int = 512
    critic_lr: float = 1e-3

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the paper's base weight is 1.0")
        check_choice("by", self.by, ("passes", "reversal"))
        check_integer("hidden", self.hidden, low=1, hint="the paper uses 512")
        check_number("critic_lr", self.critic_lr, hint="the paper uses 1e-3")

    def module(self, n_features: int) -> nn.Module:
        """Return the critic, which maps features to one logit. Positive logits mean target."""
        return nn.Sequential(nn.Linear(n_features, self.hidden), nn.LeakyReLU(0.1), nn.Linear(self.hidden, 1))

    def module_lr(self, lr: float) -> float:
        return self.critic_lr

    def phases(self, epoch: int) -> tuple[str, ...]:
        return ("train",) if self.by == "reversal" else ("model", "critic")

    def updates(self, phase: str) -> frozenset[str]:
        return {"model": frozenset({"model"}), "critic": frozenset({"module"})}.get(phase, super().updates(phase))

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        if phase == "critic":
            with torch.no_grad():
                source, target = net.features(batch.x), net.features(batch.target)
            return {"critic": domain_cross_entropy(module(source), module(target))}
        source, target = net.features(batch.x), net.features(batch.target)
        mse = mean_squared_error(net.head(source), batch.y)
        if phase == "model":
            return {"mse": mse, "confusion": -self.weight * domain_cross_entropy(module(source), module(target))}
        # The weight scales the reversed gradient and not the loss, so it does not slow the critic.
        source, target = reverse_gradient(source, self.weight), reverse_gradient(target, self.weight)
        return {"mse": mse, "critic": domain_cross_entropy(module(source), module(target))}
