"""The base class of training objectives, and the batch and the epoch plan that they work on.

``plan`` makes all random draws on the CPU, once per epoch and seed. ``loss`` is a pure function of the parameters and
the batch. So a run can be resumed at any epoch, several seeds can be trained as one computation, and a GPU can replay
the step from a graph.

Every tensor may have a leading axis of S seeds: a batch is ``(B, ...)`` or ``(S, B, ...)``, and a loss is a scalar or
has shape ``(S,)``. Reduce over the last axes only: ``dim=(-2, -1)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

if TYPE_CHECKING:
    from pyspar.paper.training.config import TrainConfig


class Network(Protocol):
    """A model with features and a linear head."""

    stem: nn.Module
    """From the input to the layer where manifold mixup mixes."""
    trunk: nn.Module
    """From the output of the stem to the features."""
    head: nn.Module
    """A linear layer without bias."""

    def features(self, x: Tensor) -> Tensor:
        """Return ``trunk(stem(x))``, of shape (..., B, D)."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``head(features(x))``, of shape (..., B, K)."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The input of one training step.

    Attributes
    ----------
    x, y : tensors of shape (..., B, *input) and (..., B, K)
    partner_x, partner_y : the rows and labels of the rows that ``plan`` returned as "partner", or None
    target : unlabelled target inputs of shape (..., B_target, *input), or None
    draws : the other draws of ``plan`` for this step, by name
    """

    x: Tensor
    y: Tensor
    partner_x: Any = None
    partner_y: Any = None
    target: Any = None
    draws: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The information from which an objective draws one epoch of one seed.

    Attributes
    ----------
    rng : numpy Generator, seeded by the run's seed and the epoch
    order : int array of shape (steps, B), the training rows of each step
    y : float array of shape (N, K), all training labels
    epoch : int
    state : the result of the objective's ``prepare``
    """

    rng: np.random.Generator
    order: NDArray[np.int64]
    y: NDArray[np.float64]
    epoch: int
    state: Any = None


class Objective:
    """Mean squared error, with the methods that subclasses override.

    Override ``loss`` to add a penalty, ``plan`` to draw random numbers, ``module`` to train another network with the
    model, ``phase`` and ``updates`` to alternate between phases, and ``judged`` if a phase does not train the head.
    """

    name: ClassVar[str] = "ERM"
    uses_target: ClassVar[bool] = False
    capturable: ClassVar[bool] = True
    """Whether a CUDA graph can hold the step. False for eigendecompositions and for decisions on the host."""

    stackable: ClassVar[bool] = True
    """Whether ``loss`` supports a leading axis of seeds. If False, networks are trained in turn."""

    def prepare(self, y: NDArray[np.float64]) -> Any:
        """Compute from the training labels, once per run, the state that every ``plan`` uses."""
        return None

    def plan(self, plan: EpochPlan) -> dict[str, NDArray[Any]]:
        """Draw an epoch: arrays whose first axis is the step. "partner" has training rows, shape (steps, B)."""
        return {}

    def module(self, n_features: int) -> nn.Module | None:
        """Return the network that the objective trains together with the model, such as a critic, or None."""
        return None

    def module_lr(self, lr: float) -> float:
        """Return the learning rate of ``module``. ``lr`` is that of the model."""
        return lr

    def phase(self, epoch: int) -> str:
        """Return the name of the phase of an epoch. Epochs of one phase share one computation."""
        return "train"

    def updates(self, phase: str) -> frozenset[str]:
        """Return the parts that a phase trains: "model", "module" or both."""
        return frozenset({"model", "module"})

    def judged(self, phase: str) -> bool:
        """Return whether an epoch of this phase can be the best one. False if the head is not trained yet."""
        return True

    def check(self, config: TrainConfig) -> None:
        """Raise if the training settings do not fit the objective. Called before training."""

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        """Return the terms of the loss by name, each a scalar or one value per seed. Their sum is minimised."""
        return {"mse": mean_squared_error(net(batch.x), batch.y)}


class ERM(Objective):
    r"""Empirical risk minimisation: :math:`\frac1B \sum_i \|f(x_i) - y_i\|^2` (the paper's "Standard Training")."""


def mean_squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """Return the squared error averaged over rows and outputs: a scalar, or one value per seed."""
    return (prediction - y).square().mean(dim=(-2, -1))


def in_full_precision(penalty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a penalty so that it casts half-precision features to float32 and disables autocast.

    Covariances and principal angles in bfloat16 are dominated by rounding.
    """

    @wraps(penalty)
    def wrapped(source: Tensor, target: Tensor, **options: Any) -> Tensor:
        with torch.autocast(device_type=source.device.type, enabled=False):
            return penalty(*(f if f.dtype == torch.float64 else f.float() for f in (source, target)), **options)

    return wrapped
