"""DANN: an encoder trained against a critic that distinguishes source features from target features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from pyspar.paper.objectives.base import Batch, Network, Objective, mean_squared_error
from pyspar.paper.objectives.penalties import domain_cross_entropy, reverse_gradient
from pyspar.paper.parameters import check_choice, check_integer, check_number


@dataclass(frozen=True)
class DANN(Objective):
    r"""Domain-adversarial training: the encoder maximises the cross-entropy that a critic minimises.

    .. math:: \min_f \; \mathrm{MSE} - w \, \mathrm{CE}(c; f), \qquad \min_c \; \mathrm{CE}(c; f)

    Ganin et al. (2016). With ``by="alternation"``, as in the authors' code, epochs 0, 2, 4, ... train the model against
    a fixed critic and epochs 1, 3, 5, ... train the critic on fixed features, so the model gets half of the epochs.
    With ``by="reversal"`` each step trains both, and the gradient changes its sign on the way to the encoder.

    Parameters
    ----------
    weight : float, default 1.0
        The paper's base weight. Its tuned weight for both image data sets is 0.107.
    by : {"alternation", "reversal"}, default "alternation"
    hidden : int, default 512
        The width of the critic's single hidden layer, with LeakyReLU(0.1).
    critic_lr : float, default 1e-3
        The critic's learning rate. That of the model is set in ``TrainConfig``.
    """

    name: ClassVar[str] = "DANN"
    uses_target: ClassVar[bool] = True

    weight: float = 1.0
    _: KW_ONLY
    by: Literal["alternation", "reversal"] = "alternation"
    hidden: int = 512
    critic_lr: float = 1e-3

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the paper's base weight is 1.0")
        check_choice("by", self.by, ("alternation", "reversal"))
        check_integer("hidden", self.hidden, low=1, hint="the paper uses 512")
        check_number("critic_lr", self.critic_lr, hint="the paper uses 1e-3")

    def module(self, n_features: int) -> nn.Module:
        """Return the critic, which maps features to one logit. Positive logits mean target."""
        return nn.Sequential(nn.Linear(n_features, self.hidden), nn.LeakyReLU(0.1), nn.Linear(self.hidden, 1))

    def module_lr(self, lr: float) -> float:
        """Return the critic's own learning rate."""
        return self.critic_lr

    def phase(self, epoch: int) -> str:
        """Return "train" for reversal. For alternation return "model" in even epochs and "critic" in odd ones."""
        if self.by == "reversal":
            return "train"
        return "model" if epoch % 2 == 0 else "critic"

    def updates(self, phase: str) -> frozenset[str]:
        """Return the parts that the phase trains."""
        return {"model": frozenset({"model"}), "critic": frozenset({"module"})}.get(phase, super().updates(phase))

    def loss(self, net: Network, batch: Batch, module: nn.Module | None, phase: str) -> dict[str, Tensor]:
        """Return the loss terms of the phase. The cross-entropy has the sign that the phase minimises."""
        inputs = batch.require_target(self.name)
        if module is None:
            raise TypeError("module must be the critic of DANN, got None; build it with DANN.module(n_features)")
        if phase == "critic":
            with torch.no_grad():
                source, target = net.features(batch.x), net.features(inputs)
            return {"critic": domain_cross_entropy(module(source), module(target))}
        source, target = net.features(batch.x), net.features(inputs)
        mse = mean_squared_error(net.head(source), batch.y)
        if phase == "model":
            return {"mse": mse, "confusion": -self.weight * domain_cross_entropy(module(source), module(target))}
        # The weight scales the reversed gradient and not the loss, so it does not slow the critic.
        source, target = reverse_gradient(source, self.weight), reverse_gradient(target, self.weight)
        return {"mse": mse, "critic": domain_cross_entropy(module(source), module(target))}
