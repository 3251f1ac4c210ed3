"""Outcome: what training leaves behind, epoch by epoch, and the error that ends it when it diverges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import nn

from pyspar.errors import InputError


class TrainingError(InputError):
    """Training cannot go on, because a loss or a validation metric is no longer finite; the text says where."""


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one seed.

    Attributes
    ----------
    losses : the parts of the training loss by name, each averaged over the epoch's steps
    validation : what ``select`` looks at: mean squared error, or the worst group's r; NaN without validation rows
    seconds : of the whole epoch, for all seeds that were trained together
    """

    epoch: int
    losses: Mapping[str, float]
    validation: float
    lr: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network, and how it came about.

    Attributes
    ----------
    model : a copy of the model given, with the weights of ``best_epoch``, in evaluation mode, on the device it was
        trained on
    best_epoch : int, counted from 0
    history : one record for each epoch
    seconds : of all epochs; seeds that are trained together share them
    """

    model: nn.Module
    seed: int
    best_epoch: int
    history: tuple[EpochRecord, ...] = field(repr=False)

    @property
    def seconds(self) -> float:
        return sum(record.seconds for record in self.history)

    @property
    def validation(self) -> float:
        """The validation metric of the epoch that was kept."""
        return self.history[self.best_epoch].validation
