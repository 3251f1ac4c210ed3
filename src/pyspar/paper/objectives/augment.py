"""Noisy views of tables and images, as pure functions of the inputs and a seed.

Random numbers are hashed from the seed and a counter, on the device of the inputs. The same seed gives the same view on
CPU and GPU, with one or several networks, and after a resumed run. Seeds are tensors with one value per network, below
2**24, so that float32 represents them exactly.
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
from pyspar.paper.parameters import check_number

MAX_SEED = 2**24
_LOW_32 = 0xFFFFFFFF

View = Callable[[Tensor, Tensor, int], Tensor]
"""A function of inputs (..., B, *input), a seed with one value per network, and a stream number. Returns inputs."""


def draw_uniforms(seed: Tensor, shape: tuple[int, ...], stream: int = 0) -> Tensor:
    """Return numbers in (0, 1], of shape (*seed.shape, *shape). They depend only on seed, stream and position.

    >>> draw_uniforms(torch.tensor([5, 6]), (2,)).shape, bool((draw_uniforms(torch.tensor(6), (2,)) <= 1).all())
    (torch.Size([2, 2]), True)
    """
    # The stream is hashed as a Python number, because a CUDA graph cannot use a tensor of the host.
    key = _hash_bits(seed.long() + _hash_bits(stream + 1))
    position = _hash_bits(torch.arange(math.prod(shape), device=seed.device))
    bits: Tensor = _hash_bits(key[..., None] ^ position) >> 8
    return ((bits.float() + 0.5) / MAX_SEED).reshape(*seed.shape, *shape)


def _hash_bits(x: Any) -> Any:
    """Hash 32-bit integers with xor-shifts and odd multipliers, an avalanche hash as in Wang and Jenkins."""
    x = x & _LOW_32
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x = ((x ^ (x >> shift)) * factor) & _LOW_32
    return x ^ (x >> 15)


def draw_normals(seed: Tensor, shape: tuple[int, ...], stream: int = 0) -> Tensor:
    """Return standard normal numbers by the Box-Muller method, from two uniform numbers each."""
    u = draw_uniforms(seed, (2, *shape), stream)
    radius, turn = u.select(seed.ndim, 0), u.select(seed.ndim, 1)
    return (-2 * radius.log()).sqrt() * torch.cos(2 * math.pi * turn)


@dataclass(frozen=True)
class TableNoise:
    """Noise for tables of shape (..., B, D): additive noise relative to each feature's spread, and masking.

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

    def __call__(self, x: Tensor, seed: Tensor, stream: int = 0) -> Tensor:
        """Return a noisy view of the rows."""
        shape = tuple(x.shape[seed.ndim :])
        spread, centre = torch.std_mean(x, dim=-2, correction=0, keepdim=True)
        noisy = x + self.noise * spread * draw_normals(seed, shape, 2 * stream).to(x.dtype)
        return torch.where(draw_uniforms(seed, shape, 2 * stream + 1) < self.mask, centre, noisy)


@dataclass(frozen=True)
class ImageNoise:
    """Noise for images of shape (..., B, C, H, W): crop and resize, shift, mirror, and vary each channel.

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

    def __call__(self, x: Tensor, seed: Tensor, stream: int = 0) -> Tensor:
        """Return a view of the images in their dtype. Integer pixels stay within the range of the dtype."""
        n, channels = x.shape[seed.ndim], x.shape[-3]
        images = x.flatten(0, seed.ndim).float()
        positions = draw_uniforms(seed, (n, 6), 2 * stream).flatten(0, seed.ndim)
        images = self._crop(images, positions)
        tint = 2 * draw_uniforms(seed, (n, 2, channels, 1, 1), 2 * stream + 1).flatten(0, seed.ndim) - 1
        spread, centre = torch.std_mean(images, dim=(-2, -1), correction=0, keepdim=True)
        images = centre + (images - centre) * (1 + self.jitter * tint[:, 0]) + self.jitter * spread * tint[:, 1]
        if not x.is_floating_point():
            limits = torch.iinfo(x.dtype)
            images = images.round().clamp(limits.min, limits.max)
        return images.to(x.dtype).reshape(x.shape)

    def _crop(self, images: Tensor, u: Tensor) -> Tensor:
        side = self.crop + (1 - self.crop) * u[:, 0]
        within, beyond = (1 - side)[:, None] * (2 * u[:, 1:3] - 1), 2 * self.shift * (2 * u[:, 3:5] - 1)
        mirror = torch.where(u[:, 5] < 0.5, -1.0, 1.0) if self.flip else torch.ones_like(side)
        frame = torch.diag_embed(torch.stack([side * mirror, side], dim=-1))
        frame = torch.cat([frame, (within + beyond)[..., None]], dim=-1)
        grid = F.affine_grid(frame, list(images.shape), align_corners=False)
        return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def choose_view(x: Tensor, seed_axes: int, view: View | None = None) -> View:
    """Return ``view``, or the default for the shape of ``x``, which has ``seed_axes`` axes before its rows."""
    defaults: dict[int, View] = {1: TableNoise(), 3: ImageNoise()}
    chosen = view or defaults.get(x.ndim - seed_axes - 1)
    if chosen is None:
        raise InputError(
            f"augment has defaults only for tables (B, D) and images (B, C, H, W), got shape {tuple(x.shape)}; pass "
            "augment= a function of (inputs, seed, stream) that returns noisy inputs"
        )
    return chosen
