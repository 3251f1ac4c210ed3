"""Objective: what a training step minimises. Each method of the paper's tables is one small subclass.

Everything random is drawn by ``plan``, on the CPU, once per epoch and seed; ``loss`` is then a pure function of the
parameters and the batch. So a run can be resumed at any epoch, ten seeds can be one computation, and a GPU can replay
the step from a graph.

Every tensor may carry a leading axis of seeds (*lanes*): a batch is ``(B, ...)`` or ``(S, B, ...)``, and a loss is a
scalar or has shape ``(S,)``. Reduce over the last axes only: ``dim=(-2, -1)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

if TYPE_CHECKING:
    from pyspar.paper.training.config import TrainConfig


class Network(Protocol):
    """What an objective asks of a model: its features, and the linear head on them."""

    stem: nn.Module
    """From the input to the place where manifold mixup mixes."""
    trunk: nn.Module
    """From there to the features."""
    head: nn.Module
    """A linear layer without bias."""

    def features(self, x: Tensor) -> Tensor:
        """Return ``trunk(stem(x))``, of shape (..., B, D)."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``head(features(x))``, of shape (..., B, K)."""


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step sees.

    Attributes
    ----------
    x, y : tensors of shape (..., B, *input) and (..., B, K)
    partner_x, partner_y : the same of the rows that ``plan`` named "partner", or None
    target : unlabelled target inputs of shape (..., B_target, *input), or None
    draws : what else ``plan`` drew for this step, by name
    """

    x: Tensor
    y: Tensor
    partner_x: Tensor | None = None
    partner_y: Tensor | None = None
    target: Tensor | None = None
    draws: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """What an objective may draw from, for one epoch of one seed.

    Attributes
    ----------
    rng : numpy Generator, seeded by the run's seed and the epoch
    order : int array of shape (steps, B), the training rows of each step
    y : float array of shape (N, K), all training labels
    epoch : int
    state : what the objective's ``prepare`` returned for this seed
    """

    rng: np.random.Generator
    order: NDArray[np.int64]
    y: NDArray[np.float64]
    epoch: int
    state: Any = None


class Objective:
    """Plain squared error, and the hooks that other methods fill.

    A subclass that only adds a penalty overrides ``loss``; one that draws overrides ``plan``; one with a trainable part
    of its own overrides ``module``; one that alternates overrides ``phase`` and ``updates``, and ``judged`` where a
    phase leaves the head untrained.
    """

    name: ClassVar[str] = "ERM"
    uses_target: ClassVar[bool] = False
    capturable: ClassVar[bool] = True
    """Whether a CUDA graph can hold the step; eigendecompositions and what looks at values on the host cannot be."""

    stackable: ClassVar[bool] = True
    """Whether ``loss`` takes tensors with a leading axis of seeds; networks are otherwise trained in turn."""

    def prepare(self, y: NDArray[np.float64]) -> Any:
        """Compute once per run what every epoch's ``plan`` needs, from the training labels; for example their order."""
        return None

    def plan(self, plan: EpochPlan) -> dict[str, NDArray[Any]]:
        """Draw an epoch: arrays whose first axis is the step. "partner" names training rows, shape (steps, B)."""
        return {}

    def module(self, n_features: int) -> nn.Module | None:
        """Return the objective's own trainable part, such as a critic, built under the run's seed; or None."""
        return None

    def module_lr(self, lr: float) -> float:
        """Return the learning rate of that part, given the model's."""
        return lr

    def phase(self, epoch: int) -> str:
        """Name what is done in an epoch; epochs of one phase share one computation."""
        return "train"

    def updates(self, phase: str) -> frozenset[str]:
        """Say what an epoch of a phase trains: "model", "module" (the objective's own part), or both."""
        return frozenset({"model", "module"})

    def judged(self, phase: str) -> bool:
        """Say whether an epoch of a phase may be kept as the best; not where the head has not been trained yet."""
        return True

    def check(self, config: TrainConfig) -> None:
        """Refuse settings of the run that leave the objective nothing to do; called before training starts."""

    def loss(self, net: Network, batch: Batch, module: nn.Module | None, phase: str) -> dict[str, Tensor]:
        """Return the parts of the loss by name, each a scalar or one per lane; the step minimises their sum."""
        return {"mse": mean_squared_error(net(batch.x), batch.y)}


class ERM(Objective):
    r"""Empirical risk minimisation: :math:`\frac1B \sum_i \|f(x_i) - y_i\|^2` (the paper's "Standard Training")."""


def mean_squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """Return the squared error averaged over rows and outputs: a scalar, or one per lane."""
    return (prediction - y).square().mean(dim=(-2, -1))
