"""DANN: an encoder against a critic that tries to tell source features from target features."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from pyspar.paper.objectives.alignment import SettingsShown, target_of
from pyspar.paper.objectives.base import Batch, Network, Objective, mean_squared_error
from pyspar.paper.objectives.limits import number, one_of, whole
from pyspar.paper.objectives.penalties import domain_cross_entropy, reverse_gradient


class DANN(SettingsShown, Objective):
    r"""Domain-adversarial training: the encoder maximises the cross-entropy that a critic minimises.

    .. math:: \min_f \; \mathrm{MSE} - w \, \mathrm{CE}(c; f), \qquad \min_c \; \mathrm{CE}(c; f)

    Ganin et al. (2016). With ``by="alternation"``, as the paper's authors do it, epochs 0, 2, 4, ... train the model
    against a fixed critic and epochs 1, 3, 5, ... the critic on fixed features; the model so gets half of the epochs.
    With ``by="reversal"`` each step trains both, and the gradient is turned round on its way to the encoder.

    Parameters
    ----------
    weight : float, default 1.0
        The paper's base weight; 0.107 is what it tuned for both image data sets.
    by : {"alternation", "reversal"}, default "alternation"
    hidden : int, default 512
        The width of the critic's one hidden layer, LeakyReLU 0.1.
    critic_lr : float, default 1e-3
        The critic's learning rate; the model has its own.
    """

    name = "DANN"
    uses_target: ClassVar[bool] = True

    def __init__(
        self,
        weight: float = 1.0,
        *,
        by: Literal["alternation", "reversal"] = "alternation",
        hidden: int = 512,
        critic_lr: float = 1e-3,
    ) -> None:
        self.weight = number("weight", weight, cure="the paper's base weight is 1.0")
        one_of("by", by, ("alternation", "reversal"))
        self.by = by
        self.hidden = whole("hidden", hidden, low=1, cure="the paper uses 512")
        self.critic_lr = number("critic_lr", critic_lr, cure="the paper uses 1e-3")

    def module(self, n_features: int) -> nn.Module:
        """Return the critic: features to one logit, positive for the target."""
        return nn.Sequential(nn.Linear(n_features, self.hidden), nn.LeakyReLU(0.1), nn.Linear(self.hidden, 1))

    def module_lr(self, lr: float) -> float:
        """Return the critic's own learning rate."""
        return self.critic_lr

    def phase(self, epoch: int) -> str:
        """Return "train" with reversal; with alternation "model" in even epochs and "critic" in odd ones."""
        if self.by == "reversal":
            return "train"
        return "model" if epoch % 2 == 0 else "critic"

    def updates(self, phase: str) -> frozenset[str]:
        """Say what the phase trains."""
        return {"model": frozenset({"model"}), "critic": frozenset({"module"})}.get(phase, super().updates(phase))

    def loss(self, net: Network, batch: Batch, module: nn.Module | None, phase: str) -> dict[str, Tensor]:
        """Return the parts of the phase; the critic's cross-entropy comes with the sign that the phase minimises."""
        inputs = target_of(batch, self.name)
        if module is None:
            raise TypeError(
                "DANN expected its critic as module. Got None instead; build it with DANN.module(n_features)."
            )
        if phase == "critic":
            with torch.no_grad():
                source, target = net.features(batch.x), net.features(inputs)
            return {"critic": domain_cross_entropy(module(source), module(target))}
        source, target = net.features(batch.x), net.features(inputs)
        mse = mean_squared_error(net.head(source), batch.y)
        if phase == "model":
            return {"mse": mse, "confusion": -self.weight * domain_cross_entropy(module(source), module(target))}
        # The weight stands in the reversal, not before the loss: the critic learns at its own pace whatever the weight.
        source, target = reverse_gradient(source, self.weight), reverse_gradient(target, self.weight)
        return {"mse": mse, "critic": domain_cross_entropy(module(source), module(target))}
