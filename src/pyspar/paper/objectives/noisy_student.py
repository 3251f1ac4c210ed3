"""Noisy Student: a student learns from the source labels and from a teacher's pseudo-labels, on noisy inputs."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.objectives.augment import View, choose_view, draw_uniforms, make_device_generator
from pyspar.paper.objectives.base import Batch, EpochPlan, Network, Objective, mean_squared_error
from pyspar.paper.parameters import check_number


@dataclass(eq=False)
class NoisyStudent(Objective):
    r"""Self-training: squared error to the source labels and to a teacher's labels of the target, on noisy inputs.

    .. math:: \mathrm{MSE}(f(\tilde x), y) + w \, \mathrm{MSE}(f(\tilde z), t(z))

    The teacher t predicts clean inputs in evaluation mode. The student f predicts noisy inputs, with dropout of the
    features before the head. Xie et al. (2020), applied to shifts as in WILDS (Sagawa et al. 2022), which adds the two
    losses. For another round, pass the student as the next teacher.

    Parameters
    ----------
    teacher : torch.nn.Module
        A trained model, for example one trained with ERM. A copy is kept, in evaluation mode.
    weight : float, default 1.0
    dropout : float in [0, 1), default 0.5
        The share of features to drop while training, in addition to the dropout of the model itself.
    augment : function of (inputs, generator), optional
        Defaults to :class:`pyspar.paper.TableNoise` for tables and :class:`pyspar.paper.ImageNoise` for images.
    """

    name: ClassVar[str] = "Noisy Student"
    uses_target: ClassVar[bool] = True

    teacher: nn.Module = field(repr=False)
    _: KW_ONLY
    weight: float = 1.0
    dropout: float = 0.5
    augment: View | None = None

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="WILDS adds the two losses with weight 1")
        check_number("dropout", self.dropout, high=0.99, hint="it is the share of features to drop; WILDS uses 0.5")
        self.teacher = copy.deepcopy(self.teacher).eval().requires_grad_(False)

    def plan(self, plan: EpochPlan) -> dict[str, NDArray[Any]]:
        return {"noise": plan.rng.integers(2**31, size=len(plan.order))}

    def pseudo_labels(self, target: Tensor, like: Tensor) -> Tensor:
        """Return the teacher's predictions for clean inputs. ``like`` are labels that determine shape and dtype."""
        self.teacher.to(target.device)
        with torch.no_grad():
            labels: Tensor = self.teacher(target)
        if labels.shape != (len(target), like.shape[-1]):
            raise InputError(
                f"teacher must predict {like.shape[-1]} outputs per row, got shape {tuple(labels.shape)} for "
                f"{len(target)} rows; use a teacher that was trained on the same labels"
            )
        return labels.to(like.dtype)

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        labels = self.pseudo_labels(batch.target, batch.y)
        generator = make_device_generator(batch.draws["noise"])
        view = choose_view(batch.x, self.augment)
        source = self._predict(net, view(batch.x, generator), generator)
        noisy = self._predict(net, view(batch.target, generator), generator)
        return {"mse": mean_squared_error(source, batch.y), "pseudo": self.weight * mean_squared_error(noisy, labels)}

    def _predict(self, net: Network, x: Tensor, generator: torch.Generator) -> Tensor:
        features = net.features(x)
        kept = draw_uniforms(tuple(features.shape), generator) >= self.dropout
        prediction: Tensor = net.head(features * kept / (1 - self.dropout))
        return prediction
