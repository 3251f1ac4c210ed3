"""SwAV: pre-train the encoder so that two views of an input get the same prototype, then fit the labels."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from pyspar.errors import InputError
from pyspar.paper.objectives.alignment import SettingsShown, target_of
from pyspar.paper.objectives.augment import SEEDS, View, view_for
from pyspar.paper.objectives.base import Batch, EpochPlan, Network, Objective, mean_squared_error
from pyspar.paper.objectives.limits import number, whole
from pyspar.paper.training.config import TrainConfig


def sinkhorn_assignments(scores: Tensor, *, epsilon: float = 0.05, iterations: int = 3) -> Tensor:
    r"""Return soft assignments of rows to prototypes that use all prototypes alike.

    Starting from :math:`\exp(\text{scores} / \epsilon)`, columns (prototypes) and rows are scaled in turn to equal
    totals; the last scaling gives each row the total 1. In logarithms, so that no :math:`\epsilon` overflows. Shape
    (..., B, K), without gradient. Cuturi (2013); Caron et al. (2020), section 3.1.

    >>> sinkhorn_assignments(torch.tensor([[9.0, 0.0], [0.0, 9.0]]))
    tensor([[1., 0.],
            [0., 1.]])
    """
    with torch.no_grad(), torch.autocast(device_type=scores.device.type, enabled=False):
        log = (scores if scores.dtype == torch.float64 else scores.float()) / epsilon
        for _ in range(iterations):
            log = log - log.logsumexp(dim=-2, keepdim=True)
            log = log - log.logsumexp(dim=-1, keepdim=True)
        return log.exp()


def swapped_prediction(
    first: Tensor, second: Tensor, *, temperature: float = 0.1, epsilon: float = 0.05, iterations: int = 3
) -> Tensor:
    r"""Return the cross-entropy of each view's prototypes with the assignments of the other view.

    .. math:: -\tfrac12 \operatorname{mean}_i \sum_k q_{2,ik} \log p_{1,ik} + q_{1,ik} \log p_{2,ik},
       \qquad p = \mathrm{softmax}(\text{scores} / \tau)

    Caron et al. (2020), "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments". Takes the
    scores of two views of the same inputs, of shape (..., B, K).
    """

    def cross_entropy(scores: Tensor, other: Tensor) -> Tensor:
        wanted = sinkhorn_assignments(other, epsilon=epsilon, iterations=iterations)
        return -(wanted * F.log_softmax(scores.to(wanted.dtype) / temperature, dim=-1)).sum(dim=-1).mean(dim=-1)

    return (cross_entropy(first, second) + cross_entropy(second, first)) / 2


def prototype_scores(module: nn.ModuleList, features: Tensor) -> Tensor:
    """Return the cosines of projected features with the prototypes, of shape (..., B, K).

    ``module`` is a projection and a linear layer without bias whose rows are the prototypes, one or several stacked.
    """
    projection, prototypes = module
    weight = prototypes.get_parameter("weight")
    return F.normalize(projection(features), dim=-1) @ F.normalize(weight, dim=-1).mT


class SwAV(SettingsShown, Objective):
    r"""Self-supervised pre-training on source and target inputs, then squared error on the source.

    The first ``pretrain`` epochs minimise :func:`swapped_prediction` between two noisy views of each input, through a
    projection and prototypes of its own; the others are ERM, in the phases "pretrain" and "finetune". Caron et al.
    (2020); under shift as in WILDS (Sagawa et al. 2022). Two views, without the smaller crops and the queue; prototypes
    are normalised where they are used instead of after each step.

    Parameters
    ----------
    pretrain : int
        How many of the run's epochs come before the labels; fewer than all of them. None of these is kept as the best.
    prototypes, projection : int, default 64 and 128
    temperature, epsilon, iterations : 0.1, 0.05, 3
        Of the softmax, and of Sinkhorn's scaling; the authors' values.
    augment : function of (inputs, seed, stream), optional
        By default :class:`pyspar.paper.TableNoise` for rows and :class:`pyspar.paper.ImageNoise` for images.
    """

    name = "SwAV"
    uses_target: ClassVar[bool] = True

    def __init__(
        self,
        pretrain: int,
        *,
        prototypes: int = 64,
        projection: int = 128,
        temperature: float = 0.1,
        epsilon: float = 0.05,
        iterations: int = 3,
        augment: View | None = None,
    ) -> None:
        self.pretrain = whole("pretrain", pretrain, low=0, cure="it is a number of epochs")
        self.prototypes = whole("prototypes", prototypes, low=2, cure="64 suits a small network")
        self.projection = whole("projection", projection, low=1, cure="the authors use 128")
        self.temperature = number("temperature", temperature, low=1e-3, cure="the authors use 0.1")
        self.epsilon = number("epsilon", epsilon, low=1e-3, cure="the authors use 0.05")
        self.iterations = whole("iterations", iterations, low=1, cure="the authors use 3")
        self.augment = augment

    def plan(self, plan: EpochPlan) -> dict[str, NDArray[Any]]:
        """Draw one seed for the two views of each pre-training step."""
        if self.phase(plan.epoch) == "finetune":
            return {}
        return {"views": plan.rng.integers(0, SEEDS, size=len(plan.order))}

    def module(self, n_features: int) -> nn.ModuleList:
        """Return projection and prototypes, for :func:`prototype_scores`."""
        hidden, out = nn.Linear(n_features, n_features), nn.Linear(n_features, self.projection)
        prototypes = nn.Linear(self.projection, self.prototypes, bias=False)
        return nn.ModuleList([nn.Sequential(hidden, nn.ReLU(), out), prototypes])

    def phase(self, epoch: int) -> str:
        """Return "pretrain" for the first epochs, then "finetune"."""
        return "pretrain" if epoch < self.pretrain else "finetune"

    def updates(self, phase: str) -> frozenset[str]:
        """Say what the phase trains: prototypes only before the labels."""
        return frozenset({"model", "module"}) if phase == "pretrain" else frozenset({"model"})

    def judged(self, phase: str) -> bool:
        """Say that only what was fitted to labels can be the best epoch."""
        return phase == "finetune"

    def check(self, config: TrainConfig) -> None:
        """Refuse a run that would end before it sees a label."""
        if self.pretrain >= config.epochs:
            raise InputError(
                f"SwAV needs more epochs than it pre-trains. Got pretrain={self.pretrain} and epochs={config.epochs}: "
                "no label would be seen; raise epochs, or lower pretrain."
            )

    def loss(self, net: Network, batch: Batch, module: nn.Module | None, phase: str) -> dict[str, Tensor]:
        """Return the swapped prediction of a pre-training step, or the squared error of a later one."""
        if phase == "finetune":
            return {"mse": mean_squared_error(net(batch.x), batch.y)}
        if not isinstance(module, nn.ModuleList):
            raise TypeError(
                f"SwAV expected projection and prototypes as module. Got {type(module).__name__} instead; "
                "build them with SwAV.module(n_features)."
            )
        lanes = batch.y.ndim - 2
        inputs = torch.cat([batch.x, target_of(batch, self.name)], dim=lanes)
        view, seed = view_for(inputs, lanes, self.augment), batch.draws["views"]
        first, second = (prototype_scores(module, net.features(view(inputs, seed, i))) for i in (0, 1))
        options = {"temperature": self.temperature, "epsilon": self.epsilon}
        return {"swav": swapped_prediction(first, second, iterations=self.iterations, **options)}
