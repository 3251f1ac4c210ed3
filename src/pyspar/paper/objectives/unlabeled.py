"""Noisy Student and SwAV, which train on noisy views of unlabelled target inputs, and these views.

A view is a function of the inputs and a generator of random numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Batch, EpochPlan, Network, Objective, mean_squared_error
from pyspar.paper.parameters import check_integer, check_number
from pyspar.paper.training.config import TrainConfig

View = Callable[[Tensor, torch.Generator], Tensor]
"""A function of inputs (B, *input) and a generator on their device. It returns inputs."""


def make_device_generator(seed: Tensor) -> torch.Generator:
    """Return a generator on the device of the seed of a step."""
    return torch.Generator(seed.device).manual_seed(int(seed))


def draw_uniforms(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Return numbers in [0, 1) on the device of the generator."""
    return torch.rand(shape, generator=generator, device=generator.device)


@dataclass(frozen=True)
class TableNoise:
    """Noise for tables of shape (B, D). ``noise`` is the standard deviation of additive noise, in standard deviations
    of the feature in the batch. ``mask`` is the share of entries to replace by the feature's mean.
    """

    noise: float = 0.1
    mask: float = 0.1

    def __post_init__(self) -> None:
        check_number("noise", self.noise, hint="0.1 is a tenth of a feature's spread")
        check_number("mask", self.mask, high=1.0, hint="it is a share of the entries")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        spread, centre = torch.std_mean(x, dim=0, correction=0, keepdim=True)
        normal = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        noisy = x + self.noise * spread * normal
        return torch.where(draw_uniforms(tuple(x.shape), generator) < self.mask, centre, noisy)


@dataclass(frozen=True)
class ImageNoise:
    """Noise for images of shape (B, C, H, W): crop and resize, shift, mirror, and vary each channel. The side of the
    crop is drawn between ``crop`` and 1. ``shift`` is the largest shift, relative to the side; pixels outside the image
    are reflected. ``jitter`` is the variation of contrast and brightness of each channel, relative to its spread.
    ``flip`` mirrors with probability 1/2. It is off by default, because it changes labels that are angles.
    """

    crop: float = 0.8
    shift: float = 0.1
    flip: bool = False
    jitter: float = 0.1

    def __post_init__(self) -> None:
        check_number("crop", self.crop, low=1e-3, high=1.0, hint="1 is the whole image")
        check_number("shift", self.shift, high=1.0, hint="0.1 is a tenth of the side")
        check_number("jitter", self.jitter, hint="0.1 is a tenth of a channel's spread")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return a view of the images in their dtype. Integer pixels stay within the range of the dtype."""
        n, channels = x.shape[0], x.shape[1]
        images = self._crop(x.float(), draw_uniforms((n, 6), generator))
        tint = 2 * draw_uniforms((n, 2, channels, 1, 1), generator) - 1
        spread, centre = torch.std_mean(images, dim=(-2, -1), correction=0, keepdim=True)
        images = centre + (images - centre) * (1 + self.jitter * tint[:, 0]) + self.jitter * spread * tint[:, 1]
        if not x.is_floating_point():
            limits = torch.iinfo(x.dtype)
            images = images.round().clamp(limits.min, limits.max)
        return images.to(x.dtype)

    def _crop(self, images: Tensor, u: Tensor) -> Tensor:
        side = self.crop + (1 - self.crop) * u[:, 0]
        within, beyond = (1 - side)[:, None] * (2 * u[:, 1:3] - 1), 2 * self.shift * (2 * u[:, 3:5] - 1)
        mirror = torch.where(u[:, 5] < 0.5, -1.0, 1.0) if self.flip else torch.ones_like(side)
        frame = torch.diag_embed(torch.stack([side * mirror, side], dim=-1))
        frame = torch.cat([frame, (within + beyond)[..., None]], dim=-1)
        grid = F.affine_grid(frame, list(images.shape), align_corners=False)
        return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def choose_view(x: Tensor, view: View | None = None) -> View:
    """Return ``view``, or the default for the shape of ``x``."""
    defaults: dict[int, View] = {2: TableNoise(), 4: ImageNoise()}
    chosen = view or defaults.get(x.ndim)
    if chosen is None:
        raise InputError(
            f"augment has defaults only for tables (B, D) and images (B, C, H, W), got shape {tuple(x.shape)}; pass "
            "augment= a function of (inputs, generator) that returns noisy inputs"
        )
    return chosen


def sinkhorn_assignments(scores: Tensor, *, epsilon: float = 0.05, iterations: int = 3) -> Tensor:
    r"""Return soft assignments of rows to prototypes that use all prototypes equally. Starting from
    :math:`\exp(\text{scores} / \epsilon)`, columns (prototypes) and rows are scaled in turn to equal totals. The last
    scaling gives each row the total 1. The computation uses logarithms, so no :math:`\epsilon` overflows. The result
    has shape (B, K) and no gradient. Cuturi (2013); Caron et al. (2020), section 3.1.
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
    """Return the cosines of projected features with the prototypes, of shape (B, K). ``module`` contains a projection
    and a linear layer without bias whose rows are the prototypes.
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

    None of the ``pretrain`` epochs can be the best one. ``temperature``, ``epsilon`` and ``iterations`` have the
    authors' values. ``augment`` is a function of (inputs, generator), by default :class:`pyspar.paper.TableNoise` for
    tables and :class:`pyspar.paper.ImageNoise` for images.
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


@dataclass(eq=False)
class NoisyStudent(Objective):
    r"""Self-training: squared error to the source labels and to a teacher's labels of the target, on noisy inputs.

    .. math:: \mathrm{MSE}(f(\tilde x), y) + w \, \mathrm{MSE}(f(\tilde z), t(z))

    The teacher t predicts clean inputs in evaluation mode. The student f predicts noisy inputs, with dropout of the
    features before the head. Xie et al. (2020), applied to shifts as in WILDS (Sagawa et al. 2022), which adds the two
    losses. For another round, pass the student as the next teacher.

    A copy of the teacher is kept. ``dropout`` is the share of features to drop while training. ``augment`` is a
    function of (inputs, generator), by default :class:`pyspar.paper.TableNoise` for tables and
    :class:`pyspar.paper.ImageNoise` for images.
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
