"""Noisy Student: a trained teacher labels the target, and a student with noise in its way learns from both."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.objectives.alignment import SettingsShown, target_of
from pyspar.paper.objectives.augment import SEEDS, View, uniforms, view_for
from pyspar.paper.objectives.base import Batch, EpochPlan, Network, Objective, mean_squared_error
from pyspar.paper.objectives.limits import number


class NoisyStudent(SettingsShown, Objective):
    r"""Self-training: squared error to the source's labels and to a teacher's labels of the target, under noise.

    .. math:: \mathrm{MSE}(f(\tilde x), y) + w \, \mathrm{MSE}(f(\tilde z), t(z))

    The teacher t sees clean inputs in evaluation mode; the student f sees noisy ones, and its features go through
    dropout before the head. Xie et al. (2020); under shift as in WILDS (Sagawa et al. 2022), which adds the two losses.
    For another round, give the student as the next teacher.

    Parameters
    ----------
    teacher : torch.nn.Module
        A trained model, such as one trained with ERM; a copy is kept, in evaluation mode.
    weight : float, default 1.0
    dropout : float in [0, 1), default 0.5
        Of the features, while training; on top of what dropout the model itself has.
    augment : function of (inputs, seed, stream), optional
        By default :class:`pyspar.paper.TableNoise` for rows and :class:`pyspar.paper.ImageNoise` for images.
    """

    name = "Noisy Student"
    uses_target: ClassVar[bool] = True

    def __init__(
        self, teacher: nn.Module, *, weight: float = 1.0, dropout: float = 0.5, augment: View | None = None
    ) -> None:
        if not isinstance(teacher, nn.Module):
            raise TypeError(
                f"teacher must be a trained torch.nn.Module. Got {type(teacher).__name__} instead; "
                "train one with ERM and pass the model."
            )
        self.weight = number("weight", weight, cure="WILDS adds the two losses with weight 1")
        self.dropout = number("dropout", dropout, high=0.99, cure="it is the share of features dropped; WILDS uses 0.5")
        self.augment = augment
        self.teacher = copy.deepcopy(teacher).eval().requires_grad_(False)

    def plan(self, plan: EpochPlan) -> dict[str, NDArray[Any]]:
        """Draw one seed for the noise of each step."""
        return {"noise": plan.rng.integers(0, SEEDS, size=len(plan.order))}

    def pseudo_labels(self, target: Tensor, like: Tensor) -> Tensor:
        """Return the teacher's predictions of clean inputs, of the labels' shape but for the number of rows."""
        parameter = next(self.teacher.parameters(), None)
        if parameter is not None and parameter.device != target.device:
            self.teacher.to(target.device)
        rows = torch.Size((*like.shape[:-2], target.shape[like.ndim - 2]))
        with torch.no_grad():
            found: Tensor = self.teacher(target.flatten(0, like.ndim - 2))
        if found.numel() != rows.numel() * like.shape[-1]:
            raise InputError(
                f"teacher must predict {like.shape[-1]} outputs for each row. Got the shape {tuple(found.shape)} for "
                f"{rows.numel()} rows instead; use a teacher trained on the same labels."
            )
        return found.reshape(*rows, like.shape[-1]).to(like.dtype)

    def loss(self, net: Network, batch: Batch, module: nn.Module | None, phase: str) -> dict[str, Tensor]:
        """Return both squared errors of the noisy student."""
        target = target_of(batch, self.name)
        labels = self.pseudo_labels(target, batch.y)
        seed = batch.draws["noise"]
        view = view_for(batch.x, batch.y.ndim - 2, self.augment)
        source = self._predicted(net, view(batch.x, seed, 0), seed, 1000)
        noisy = self._predicted(net, view(target, seed, 1), seed, 1001)
        return {
            "mse": mean_squared_error(source, batch.y),
            "pseudo": self.weight * mean_squared_error(noisy, labels),
        }

    def _predicted(self, net: Network, x: Tensor, seed: Tensor, stream: int) -> Tensor:
        features = net.features(x)
        kept = uniforms(seed, tuple(features.shape[seed.ndim :]), stream) >= self.dropout
        predicted: Tensor = net.head(features * kept / (1 - self.dropout))
        return predicted
