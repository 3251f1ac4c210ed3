"""The 13 standard corruptions of images, for grey images of any size.

They are those of Hendrycks and Dietterich (2019) without glass blur and frost. A strength of 0.2, 0.6 and 1 of the
largest is severity 1, 3 and 5. Lengths are in pixels of an image with 32 pixels a side, and grow with the side.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import fft, ndimage

Images = NDArray[np.float32]
"""Of shape (n, side, side), from 0 (black) to 1."""
QUANTA = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)
"""The table of JPEG for brightness at quality 50."""


def corrupt(images: Images, name: str, severity: int, seed: int) -> Images:
    """Apply a corruption. Severity 5 has the full strength, severity 3 about half of it."""
    rng = np.random.default_rng([seed, severity, *name.encode()])
    damaged = CORRUPTIONS[name](images, severity / 5.0, rng)
    return np.clip(damaged, 0.0, 1.0).astype(np.float32)


def _gaussian_noise(x: Images, strength: float, rng: np.random.Generator) -> Images:
    return x + 0.3 * strength * rng.standard_normal(x.shape, dtype=np.float32)


def _shot_noise(x: Images, strength: float, rng: np.random.Generator) -> Images:
    photons = 6.0 / strength**2
    return rng.poisson(x * photons) / photons


def _impulse_noise(x: Images, strength: float, rng: np.random.Generator) -> Images:
    draw = rng.random(x.shape)
    share = 0.25 * strength
    return np.where(draw < share / 2, 0.0, np.where(draw < share, 1.0, x))


def _defocus_blur(x: Images, strength: float, rng: np.random.Generator) -> Images:
    radius = 2.6 * strength * _scale(x)
    at = np.arange(-int(radius + 0.5), int(radius + 0.5) + 1)
    return _convolve(x, np.clip(radius + 0.5 - np.hypot(*np.meshgrid(at, at)), 0.0, 1.0))


def _motion_blur(x: Images, strength: float, rng: np.random.Generator) -> Images:
    """Each image is blurred along one of eight directions."""
    half, direction = 4.5 * strength * _scale(x), rng.integers(8, size=len(x))
    at = np.arange(-int(half + 0.5), int(half + 0.5) + 1)
    columns, rows = np.meshgrid(at, at)
    blurred = np.empty_like(x)
    for k in range(8):
        c, s = np.cos(np.pi * k / 8), np.sin(np.pi * k / 8)
        along, across = columns * c + rows * s, rows * c - columns * s
        kernel = np.clip(half + 0.5 - np.abs(along), 0, 1) * np.clip(1 - np.abs(across), 0, 1)
        blurred[direction == k] = _convolve(x[direction == k], kernel)
    return blurred


def _scale(x: Images) -> float:
    return x.shape[-1] / 32.0


def _convolve(x: Images, kernel: NDArray[np.float64]) -> Images:
    """Convolve every image with a symmetric kernel; the border is repeated."""
    weights = torch.from_numpy(kernel / kernel.sum()).float()[None, None]
    padded = torch.nn.functional.pad(torch.from_numpy(x)[:, None], [len(kernel) // 2] * 4, mode="replicate")
    return np.asarray(torch.nn.functional.conv2d(padded, weights)[:, 0])


def _zoom_blur(x: Images, strength: float, rng: np.random.Generator) -> Images:
    middle = (x.shape[-1] - 1) / 2
    zooms = np.linspace(1.0, 1.0 + 0.5 * strength, 7)
    grid = (np.indices(x.shape[1:]) - middle) / zooms[:, None, None, None] + middle
    return np.mean([_sample(x, *at) for at in grid], axis=0)


def _sample(x: Images, rows: NDArray[np.float64], columns: NDArray[np.float64]) -> Images:
    """Return images at coordinates of shape (side, side) or (n, side, side), by bilinear interpolation."""
    last = x.shape[-1] - 1.001
    rows, columns = np.clip(rows, 0, last), np.clip(columns, 0, last)
    i, j = rows.astype(int), columns.astype(int)
    u, v = (rows - i).astype(np.float32), (columns - j).astype(np.float32)
    n = np.arange(len(x))[:, None, None]
    top = (1 - v) * x[n, i, j] + v * x[n, i, j + 1]
    bottom = (1 - v) * x[n, i + 1, j] + v * x[n, i + 1, j + 1]
    return np.asarray((1 - u) * top + u * bottom)


def _snow(x: Images, strength: float, rng: np.random.Generator) -> Images:
    flakes = rng.standard_normal(x.shape, dtype=np.float32)
    flakes = np.clip(flakes - (2.0 - 0.8 * strength), 0.0, 1.0)
    flakes = ndimage.uniform_filter1d(flakes, 1 + int(4 * strength * _scale(x)), axis=1)  # falling
    return (1 - 0.25 * strength) * x + 0.25 * strength * np.maximum(x, 0.5) + 1.5 * flakes


def _fog(x: Images, strength: float, rng: np.random.Generator) -> Images:
    """Noise with power at all scales, as of the diamond-square algorithm, is added, and the range is kept."""
    spectrum = np.hypot(*np.meshgrid(np.fft.fftfreq(x.shape[-1]), np.fft.rfftfreq(x.shape[-1]), indexing="ij"))
    spectrum[0, 0] = 1.0
    noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(x.shape)) / spectrum**1.5)
    noise -= noise.min(axis=(1, 2), keepdims=True)
    noise /= noise.max(axis=(1, 2), keepdims=True)
    top = x.max(axis=(1, 2), keepdims=True)
    amount = 1.2 * strength
    return (x + amount * noise) * top / (top + amount)


def _brightness(x: Images, strength: float, rng: np.random.Generator) -> Images:
    return x + 0.5 * strength


def _contrast(x: Images, strength: float, rng: np.random.Generator) -> Images:
    mean = x.mean(axis=(1, 2), keepdims=True)
    return (x - mean) * (1.0 - 0.85 * strength) + mean


def _elastic(x: Images, strength: float, rng: np.random.Generator) -> Images:
    steps = rng.uniform(-1.0, 1.0, (2, *x.shape)).astype(np.float32)
    steps = ndimage.gaussian_filter(steps, (0, 0, 3.0 * _scale(x), 3.0 * _scale(x)))
    steps *= 1.6 * strength * _scale(x) / steps.std()
    rows, columns = np.indices(x.shape[1:])
    return _sample(x, rows + steps[0], columns + steps[1])


def _pixelate(x: Images, strength: float, rng: np.random.Generator) -> Images:
    side = x.shape[-1]
    count = round(side * (1.0 - 0.7 * strength))
    edges, pixels = np.arange(count + 1) * side / count, np.arange(side)
    covered = np.clip(np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels), 0.0, 1.0)
    means = covered / covered.sum(axis=1, keepdims=True)
    nearest = ((pixels + 0.5) * count / side).astype(int)
    return np.asarray((means @ x @ means.T)[:, nearest[:, None], nearest])


def _jpeg(x: Images, strength: float, rng: np.random.Generator) -> Images:
    """The rounding of JPEG, which is all that it loses, without the file."""
    quality = int(45 - 38 * strength)
    quanta = np.clip((QUANTA * (5000 // quality) + 50) // 100, 1, 255)[:, None]  # of shape (8, 1, 8)
    n, side, _ = x.shape
    blocks = np.round(255.0 * x.astype(np.float64)).reshape(n, side // 8, 8, side // 8, 8) - 128.0
    waves = quanta * np.round(fft.dctn(blocks, axes=(2, 4), norm="ortho") / quanta)
    return (np.round(fft.idctn(waves, axes=(2, 4), norm="ortho")) + 128.0).reshape(x.shape) / 255.0


CORRUPTIONS = {
    "gaussian noise": _gaussian_noise,
    "shot noise": _shot_noise,
    "impulse noise": _impulse_noise,
    "defocus blur": _defocus_blur,
    "motion blur": _motion_blur,
    "zoom blur": _zoom_blur,
    "snow": _snow,
    "fog": _fog,
    "brightness": _brightness,
    "contrast": _contrast,
    "elastic": _elastic,
    "pixelate": _pixelate,
    "jpeg": _jpeg,
}
