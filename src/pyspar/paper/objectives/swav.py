"""SwAV: pre-train the encoder to assign two views of an input to the same prototype, then fit the labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from pyspar.errors import InputError
from pyspar.paper.objectives.augment import View, choose_view, make_device_generator
from pyspar.paper.objectives.base import Batch, EpochPlan, Network, Objective, mean_squared_error
from pyspar.paper.parameters import check_integer, check_number
from pyspar.paper.training.config import TrainConfig


def sinkhorn_assignments(scores: Tensor, *, epsilon: float = 0.05, iterations: int = 3) -> Tensor:
    r"""Return soft assignments of rows to prototypes that use all prototypes equally.

    Starting from :math:`\exp(\text{scores} / \epsilon)`, columns (prototypes) and rows are scaled in turn to equal
    totals. The last scaling gives each row the total 1. The computation uses logarithms, so no :math:`\epsilon`
    overflows. The result has shape (B, K) and no gradient. Cuturi (2013); Caron et al. (2020), section 3.1.
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
    r"""Return the cross-entropy between the prototype probabilities of each view and the assignments of the other.

    .. math:: -\tfrac12 \operatorname{mean}_i \sum_k q_{2,ik} \log p_{1,ik} + q_{1,ik} \log p_{2,ik},
       \qquad p = \mathrm{softmax}(\text{scores} / \tau)

    Caron et al. (2020), "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments". The arguments
    are the scores of two views of the same inputs, of shape (B, K).
    """

    def cross_entropy(scores: Tensor, other: Tensor) -> Tensor:
        assignments = sinkhorn_assignments(other, epsilon=epsilon, iterations=iterations)
        return (
            -(assignments * F.log_softmax(scores.to(assignments.dtype) / temperature, dim=-1)).sum(dim=-1).mean(dim=-1)
        )

    return (cross_entropy(first, second) + cross_entropy(second, first)) / 2


def prototype_scores(module: nn.ModuleList, features: Tensor) -> Tensor:
    """Return the cosines of projected features with the prototypes, of shape (B, K).

    ``module`` contains a projection and a linear layer without bias whose rows are the prototypes.
    """
    projection, prototypes = module
    weight = prototypes.get_parameter("weight")
    return F.normalize(projection(features), dim=-1) @ F.normalize(weight, dim=-1).mT


@dataclass(frozen=True)
class SwAV(Objective):
    r"""Self-supervised pre-training on source and target inputs, then squared error on the source.

    The first ``pretrain`` epochs (phase "pretrain") minimise :func:`swapped_prediction` between two noisy views of each
    input, through a projection and prototypes. The other epochs (phase "finetune") are ERM. Caron et al. (2020),
    applied to shifts as in WILDS (Sagawa et al. 2022). There are two views, without smaller crops and without a queue.
    Prototypes are normalised where they are used instead of after each step.

    Parameters
    ----------
    pretrain : int
        The number of epochs before the labels are used, fewer than all epochs. None of them can be the best epoch.
    prototypes, projection : int, default 64 and 128
    temperature, epsilon, iterations : 0.1, 0.05, 3
        Parameters of the softmax and of Sinkhorn's scaling, with the authors' values.
    augment : function of (inputs, generator), optional
        Defaults to :class:`pyspar.paper.TableNoise` for tables and :class:`pyspar.paper.ImageNoise` for images.
    """

    name: ClassVar[str] = "SwAV"
    uses_target: ClassVar[bool] = True

    pretrain: int
    _: KW_ONLY
    prototypes: int = 64
    projection: int = 128
    temperature: float = 0.1
    epsilon: float = 0.05
    iterations: int = 3
    augment: View | None = None

    def __post_init__(self) -> None:
        check_integer("pretrain", self.pretrain, low=0, hint="it is a number of epochs")
        check_integer("prototypes", self.prototypes, low=2, hint="64 suits a small network")
        check_integer("projection", self.projection, low=1, hint="the authors use 128")
        check_number("temperature", self.temperature, low=1e-3, hint="the authors use 0.1")
        check_number("epsilon", self.epsilon, low=1e-3, hint="the authors use 0.05")
        check_integer("iterations", self.iterations, low=1, hint="the authors use 3")

    def plan(self, plan: EpochPlan) -> dict[str, NDArray[Any]]:
        if self.phases(plan.epoch) == ("finetune",):
            return {}
        return {"views": plan.rng.integers(2**31, size=len(plan.order))}

    def module(self, n_features: int) -> nn.ModuleList:
        """Return the projection and the prototypes, for :func:`prototype_scores`."""
        hidden, out = nn.Linear(n_features, n_features), nn.Linear(n_features, self.projection)
        prototypes = nn.Linear(self.projection, self.prototypes, bias=False)
        return nn.ModuleList([nn.Sequential(hidden, nn.ReLU(), out), prototypes])

    def phases(self, epoch: int) -> tuple[str, ...]:
        return ("pretrain",) if epoch < self.pretrain else ("finetune",)

    def updates(self, phase: str) -> frozenset[str]:
        return frozenset({"model", "module"}) if phase == "pretrain" else frozenset({"model"})

    def judged(self, phase: str) -> bool:
        return phase == "finetune"

    def check(self, config: TrainConfig) -> None:
        if self.pretrain >= config.epochs:
            raise InputError(
                f"pretrain must be less than epochs, got pretrain={self.pretrain} and epochs={config.epochs}; raise "
                "epochs, or lower pretrain"
            )

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        if phase == "finetune":
            return {"mse": mean_squared_error(net(batch.x), batch.y)}
        inputs = torch.cat([batch.x, batch.target])
        view, generator = choose_view(inputs, self.augment), make_device_generator(batch.draws["views"])
        first, second = (prototype_scores(module, net.features(view(inputs, generator))) for _ in range(2))
        options = {"temperature": self.temperature, "epsilon": self.epsilon}
        return {"swav": swapped_prediction(first, second, iterations=self.iterations, **options)}
