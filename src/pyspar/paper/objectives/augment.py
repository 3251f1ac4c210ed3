"""Noisy views of tables and images, as functions of the inputs and a generator of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from pyspar.errors import InputError
from pyspar.paper.parameters import check_number

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
    """Noise for tables of shape (B, D): additive noise relative to each feature's spread, and masking.

    Attributes
    ----------
    noise : float, default 0.1
        Standard deviation of the additive noise, in standard deviations of the feature in the batch.
    mask : float in [0, 1], default 0.1
        The share of entries to replace by the feature's mean in the batch.
    """

    noise: float = 0.1
    mask: float = 0.1

    def __post_init__(self) -> None:
        check_number("noise", self.noise, hint="0.1 is a tenth of a feature's spread")
        check_number("mask", self.mask, high=1.0, hint="it is a share of the entries")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return a noisy view of the rows."""
        spread, centre = torch.std_mean(x, dim=0, correction=0, keepdim=True)
        normal = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        noisy = x + self.noise * spread * normal
        return torch.where(draw_uniforms(tuple(x.shape), generator) < self.mask, centre, noisy)


@dataclass(frozen=True)
class ImageNoise:
    """Noise for images of shape (B, C, H, W): crop and resize, shift, mirror, and vary each channel.

    Mirroring is off by default, because it changes labels that are angles or positions.

    Attributes
    ----------
    crop : float in (0, 1], default 0.8
        The smallest side of the crop, relative to the image. The side is drawn between this value and 1.
    shift : float, default 0.1
        The largest shift of the crop, relative to the side. Pixels outside the image are reflected.
    flip : bool, default False
        Mirror left and right with probability 1/2.
    jitter : float, default 0.1
        The variation of contrast and brightness of each channel, relative to the channel's spread.
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
