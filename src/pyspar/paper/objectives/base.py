"""The base class of training objectives, and the batch and the epoch plan that they work on.

``plan`` makes all random draws on the CPU, once per epoch. ``loss`` is a pure function of the parameters and the batch.
So a run can be resumed at any epoch.
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
    """A model with features and a linear head without bias. ``stem`` leads to the layer where manifold mixup mixes,
    ``trunk`` from there to the features. Only image networks have ``feature_maps`` and ``pool``.
    """

    stem: nn.Module
    trunk: nn.Module
    head: nn.Module

    def features(self, x: Tensor) -> Tensor: ...
    def feature_maps(self, x: Tensor) -> Tensor: ...
    def pool(self, maps: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Batch:
    """The input of one training step. ``x`` and ``y`` have shapes (B, *input) and (B, K). ``partner_x`` and
    ``partner_y`` are the rows that ``plan`` returned as "partner", ``target`` are unlabelled target inputs, and
    ``draws`` the other draws of ``plan``.
    """

    x: Tensor
    y: Tensor
    partner_x: Any = None
    partner_y: Any = None
    target: Any = None
    draws: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The information from which an objective draws one epoch. ``rng`` is seeded by the run's seed and the epoch,
    ``order`` (steps, B) are the training rows of each step, ``y`` (N, K) all training labels, and ``state`` is the
    result of the objective's ``prepare``.
    """

    rng: np.random.Generator
    order: NDArray[np.int64]
    y: NDArray[np.float64]
    epoch: int
    state: Any = None


class Objective:
    """Mean squared error, with the methods that subclasses override. Override ``loss`` to add a penalty, ``plan`` to
    draw random numbers, ``module`` to train another network with the model, ``phases`` and ``updates`` for several
    passes in an epoch, and ``judged`` if a phase does not train the head. Set ``capturable`` if a CUDA graph
    may contain ``loss``: it draws no random numbers, and no shape or branch depends on the values of a tensor.
    """

    name: ClassVar[str] = "ERM"
    uses_target: ClassVar[bool] = False
    capturable: ClassVar[bool] = False

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

    def phases(self, epoch: int) -> tuple[str, ...]:
        """Return the phases of an epoch. Each is a pass over all training rows."""
        return ("train",)

    def updates(self, phase: str) -> frozenset[str]:
        """Return the parts that a phase trains: "model", "module" or both."""
        return frozenset({"model", "module"})

    def judged(self, phase: str) -> bool:
        """Return whether an epoch of this phase can be the best one. False if the head is not trained yet."""
        return True

    def check(self, config: TrainConfig) -> None:
        """Raise if the training settings do not fit the objective. Called before training."""

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        """Return the terms of the loss by name. Their sum is minimised."""
        return {"mse": mean_squared_error(net(batch.x), batch.y)}


class ERM(Objective):
    r"""Empirical risk minimisation: :math:`\frac1B \sum_i \|f(x_i) - y_i\|^2` (the paper's "Standard Training")."""

    capturable: ClassVar[bool] = True


def mean_squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """Return the squared error averaged over rows and outputs."""
    return (prediction - y).square().mean()


def in_full_precision(penalty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a penalty so that it casts half-precision features to float32 and disables autocast. Covariances and
    principal angles in bfloat16 are dominated by rounding.
    """

    @wraps(penalty)
    def wrapped(source: Tensor, target: Tensor, **options: Any) -> Tensor:
        with torch.autocast(device_type=source.device.type, enabled=False):
            return penalty(*(f if f.dtype == torch.float64 else f.float() for f in (source, target)), **options)

    return wrapped
