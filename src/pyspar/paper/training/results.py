"""Results of training: the record of each epoch, the trained network, and the error for training that diverges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspar.errors import InputError

if TYPE_CHECKING:
    from torch import nn


class TrainingError(InputError):
    """Training diverged: a loss, a weight or the validation metric is not finite. The message names the epoch."""


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one seed.

    Attributes
    ----------
    losses : the terms of the training loss by name, each averaged over the steps of the epoch
    validation : the metric that ``select`` names: mean squared error or worst-group r; NaN without validation rows
    seconds : duration of the epoch, for all seeds that were trained together
    """

    epoch: int
    losses: Mapping[str, float]
    validation: float
    lr: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network and its training history.

    Attributes
    ----------
    model : a copy of the initial model with the weights of ``best_epoch``, in evaluation mode, on the training device
    best_epoch : int, counted from 0
    history : one record per epoch
    """

    model: nn.Module
    seed: int
    best_epoch: int
    history: tuple[EpochRecord, ...] = field(repr=False)

    @property
    def seconds(self) -> float:
        """Duration of all epochs. Seeds that are trained together have the same duration."""
        return sum(record.seconds for record in self.history)

    @property
    def validation(self) -> float:
        """Validation metric of ``best_epoch``."""
        return self.history[self.best_epoch].validation
