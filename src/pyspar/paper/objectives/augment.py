"""Augment: noisy views of inputs, tables or images, as pure functions of the inputs and a seed.

Random numbers come from a counter hashed with the seed, on the device of the inputs: the same seed gives the same view
on CPU and GPU, alone or in a lane beside other seeds, now or after a resume. Seeds are tensors of the lanes' shape,
below 2**24, so that they also survive a trip through float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pyspar.errors import InputError
from pyspar.paper.objectives.limits import number

SEEDS = 2**24
_LOW_32 = 0xFFFFFFFF

View = Callable[[Tensor, Tensor, int], Tensor]
"""A function of inputs (..., B, *input), a seed of the lanes' shape, and a stream number; returns inputs."""


def uniforms(seed: Tensor, shape: tuple[int, ...], stream: int = 0) -> Tensor:
    """Return numbers in (0, 1], of shape (*seed.shape, *shape), that depend on seed, stream and position only.

    >>> uniforms(torch.tensor([5, 6]), (2,)).shape, bool((uniforms(torch.tensor(6), (2,)) <= 1).all())
    (torch.Size([2, 2]), True)
    """
    key = _mixed(seed.long() + _mixed(stream + 1))  # the stream as a number: a CUDA graph takes no tensor of the host
    place = _mixed(torch.arange(math.prod(shape), device=seed.device))
    bits: Tensor = _mixed(key[..., None] ^ place) >> 8
    return ((bits.float() + 0.5) / SEEDS).reshape(*seed.shape, *shape)


def _mixed(x: Any) -> Any:
    """Scatter 32-bit integers: xor-shifts and odd multipliers, an avalanche hash as in Wang and Jenkins."""
    x = x & _LOW_32
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x = ((x ^ (x >> shift)) * factor) & _LOW_32
    return x ^ (x >> 15)


def normals(seed: Tensor, shape: tuple[int, ...], stream: int = 0) -> Tensor:
    """Return standard normal numbers, by Box and Muller, from two uniforms each."""
    u = uniforms(seed, (2, *shape), stream)
    radius, turn = u.select(seed.ndim, 0), u.select(seed.ndim, 1)
    return (-2 * radius.log()).sqrt() * torch.cos(2 * math.pi * turn)


@dataclass(frozen=True)
class TableNoise:
    """Noise for rows of numbers of shape (..., B, D): a share of each feature's spread in the batch, and masking.

    Attributes
    ----------
    noise : float, default 0.1
        Standard deviation of what is added, in standard deviations of the feature.
    mask : float in [0, 1], default 0.1
        The share of entries that is replaced by the feature's mean in the batch.
    """

    noise: float = 0.1
    mask: float = 0.1

    def __post_init__(self) -> None:
        number("noise", self.noise, cure="0.1 is a tenth of a feature's spread")
        number("mask", self.mask, high=1.0, cure="it is a share of the entries")

    def __call__(self, x: Tensor, seed: Tensor, stream: int = 0) -> Tensor:
        """Return a noisy view of the rows."""
        shape = tuple(x.shape[seed.ndim :])
        spread, centre = torch.std_mean(x, dim=-2, correction=0, keepdim=True)
        noisy = x + self.noise * spread * normals(seed, shape, 2 * stream).to(x.dtype)
        return torch.where(uniforms(seed, shape, 2 * stream + 1) < self.mask, centre, noisy)


@dataclass(frozen=True)
class ImageNoise:
    """Noise for images of shape (..., B, C, H, W): crop and resize, shift, mirror, and jitter of each channel.

    Mirroring is off unless asked for: where the label is an angle or a position, a mirrored image has another one.

    Attributes
    ----------
    crop : float in (0, 1], default 0.8
        The smallest side of the crop, as a share of the image's; it is drawn between this and 1, and resized.
    shift : float, default 0.1
        The largest shift of the crop beyond its place, as a share of the side; what is outside is reflected.
    flip : bool, default False
        Mirror left and right half of the time.
    jitter : float, default 0.1
        Contrast and brightness of each channel vary by this share of the channel's spread.
    """

    crop: float = 0.8
    shift: float = 0.1
    flip: bool = False
    jitter: float = 0.1

    def __post_init__(self) -> None:
        number("crop", self.crop, low=1e-3, high=1.0, cure="1 is the whole image")
        number("shift", self.shift, high=1.0, cure="0.1 is a tenth of the side")
        number("jitter", self.jitter, cure="0.1 is a tenth of a channel's spread")

    def __call__(self, x: Tensor, seed: Tensor, stream: int = 0) -> Tensor:
        """Return a view of the images, in their dtype; pixels of integer dtypes stay in their range."""
        n, channels = x.shape[seed.ndim], x.shape[-3]
        images = x.flatten(0, seed.ndim).float()
        places = uniforms(seed, (n, 6), 2 * stream).flatten(0, seed.ndim)
        images = self._moved(images, places)
        tint = 2 * uniforms(seed, (n, 2, channels, 1, 1), 2 * stream + 1).flatten(0, seed.ndim) - 1
        spread, centre = torch.std_mean(images, dim=(-2, -1), correction=0, keepdim=True)
        images = centre + (images - centre) * (1 + self.jitter * tint[:, 0]) + self.jitter * spread * tint[:, 1]
        if not x.is_floating_point():
            limits = torch.iinfo(x.dtype)
            images = images.round().clamp(limits.min, limits.max)
        return images.to(x.dtype).reshape(x.shape)

    def _moved(self, images: Tensor, u: Tensor) -> Tensor:
        side = self.crop + (1 - self.crop) * u[:, 0]
        within, beyond = (1 - side)[:, None] * (2 * u[:, 1:3] - 1), 2 * self.shift * (2 * u[:, 3:5] - 1)
        mirror = torch.where(u[:, 5] < 0.5, -1.0, 1.0) if self.flip else torch.ones_like(side)
        frame = torch.diag_embed(torch.stack([side * mirror, side], dim=-1))
        frame = torch.cat([frame, (within + beyond)[..., None]], dim=-1)
        grid = F.affine_grid(frame, list(images.shape), align_corners=False)
        return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def view_for(x: Tensor, lanes: int, view: View | None = None) -> View:
    """Return the view to use: the given one, or the default for inputs with ``lanes`` axes before their rows."""
    kinds: dict[int, View] = {1: TableNoise(), 3: ImageNoise()}
    found = view or kinds.get(x.ndim - lanes - 1)
    if found is None:
        raise InputError(
            f"augment has defaults for rows (B, D) and images (B, C, H, W). Got the shape {tuple(x.shape)} "
            "instead; pass augment= a function of (inputs, seed, stream) that returns noisy inputs."
        )
    return found
