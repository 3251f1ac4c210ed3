"""The images: rotated garments of Fashion-MNIST, the 13 standard corruptions, and shifts of the population.

The task is to predict the angle, in radians, by which a garment was rotated. The source has six classes of garments and
angles within 60 degrees. The corruptions are those of Hendrycks and Dietterich (2019) without glass blur and frost,
computed here for grey images of 32 x 32 pixels. A strength of 0.6 and 1 of the largest is severity 3 and 5.
"""

from __future__ import annotations

import gzip
import io
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

FOLDER = Path("/usr/share/datasets/fashion-mnist")
SIZE = 32
LARGEST_ANGLE = np.deg2rad(60.0)
SOURCE_CLASSES = (0, 1, 3, 5, 7, 8)
"""T-shirt, trousers, dress, sandal, sneaker, bag."""
NEW_CLASSES = (2, 4, 6, 9)
"""Pullover, coat, shirt, boot."""
N_TRAIN, N_VALID, N_TARGET = 32_000, 2_000, 2_000

Images = NDArray[np.float32]
"""Of shape (n, 32, 32), from 0 (black) to 1."""


@cache
def read_garments(part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images and classes of the part "train" or "t10k"."""
    with gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz") as file:
        return images, np.frombuffer(file.read(), np.uint8, offset=8)


def rotate(images: NDArray[np.uint8], angles: NDArray[np.float64]) -> Images:
    """Rotate each image by its angle, with bilinear interpolation, on a black canvas of 32 x 32 pixels."""
    canvas = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.float32) / 255.0
    cosine, sine = (torch.from_numpy(f(angles)).float() for f in (np.cos, np.sin))
    zero = torch.zeros_like(cosine)
    maps = torch.stack([torch.stack([cosine, -sine, zero], 1), torch.stack([sine, cosine, zero], 1)], 1)
    grid = torch.nn.functional.affine_grid(maps, [len(canvas), 1, SIZE, SIZE], align_corners=False)
    rotated = torch.nn.functional.grid_sample(torch.from_numpy(canvas)[:, None], grid, align_corners=False)
    return rotated[:, 0].numpy()


def source_parts(seed: int) -> dict[str, tuple[Images, NDArray[np.float32]]]:
    """Return the parts "train" and "valid" of the source: images and angles."""
    images, classes = read_garments("train")
    rng = np.random.default_rng([seed, 1])
    rows = rng.permutation(np.flatnonzero(np.isin(classes, SOURCE_CLASSES)))[: N_TRAIN + N_VALID]
    angles = rng.uniform(-LARGEST_ANGLE, LARGEST_ANGLE, len(rows))
    X, y = rotate(images[rows], angles), angles.astype(np.float32)
    return {"train": (X[:N_TRAIN], y[:N_TRAIN]), "valid": (X[N_TRAIN:], y[N_TRAIN:])}


def population(name: str, seed: int) -> tuple[Images, NDArray[np.float32]]:
    """Return images and angles of a target from test images, with undamaged images of the named population."""
    images, classes = read_garments("t10k")
    rng = np.random.default_rng([seed, 2])
    wanted = {"new classes": NEW_CLASSES, "one class": (1,)}.get(name, SOURCE_CLASSES)
    rows = rng.permutation(np.flatnonzero(np.isin(classes, wanted)))[:N_TARGET]
    low, high = {"angle range": (20.0, 60.0), "angles beyond": (60.0, 90.0)}.get(name, (-60.0, 60.0))
    angles = rng.uniform(np.deg2rad(low), np.deg2rad(high), len(rows))
    if name == "angles beyond":
        angles *= rng.choice([-1.0, 1.0], len(rows))
    return rotate(images[rows], angles), angles.astype(np.float32)


POPULATIONS = ("same distribution", "angle range", "one class", "new classes", "angles beyond")


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
    radius = 2.6 * strength
    at = np.arange(-3, 4)
    disc = np.clip(radius + 0.5 - np.hypot(*np.meshgrid(at, at)), 0.0, 1.0)
    return ndimage.convolve(x, (disc / disc.sum())[None], mode="nearest")


def _motion_blur(x: Images, strength: float, rng: np.random.Generator) -> Images:
    """Each image is blurred along one of eight directions."""
    length, direction = 9.0 * strength, rng.integers(8, size=len(x))
    at = np.arange(-5, 6)
    columns, rows = np.meshgrid(at, at)
    blurred = np.empty_like(x)
    for k in range(8):
        c, s = np.cos(np.pi * k / 8), np.sin(np.pi * k / 8)
        along, across = columns * c + rows * s, rows * c - columns * s
        kernel = np.clip(length / 2 + 0.5 - np.abs(along), 0, 1) * np.clip(1 - np.abs(across), 0, 1)
        blurred[direction == k] = ndimage.convolve(x[direction == k], (kernel / kernel.sum())[None], mode="nearest")
    return blurred


def _zoom_blur(x: Images, strength: float, rng: np.random.Generator) -> Images:
    zooms = np.linspace(1.0, 1.0 + 0.5 * strength, 7)
    grid = (np.indices((SIZE, SIZE)) - 15.5) / zooms[:, None, None, None] + 15.5
    return np.mean([_sample(x, *at) for at in grid], axis=0)


def _sample(x: Images, rows: NDArray[np.float64], columns: NDArray[np.float64]) -> Images:
    """Return every image at the given coordinates, of shape (32, 32) or (n, 32, 32), by bilinear interpolation."""
    rows, columns = np.clip(rows, 0, SIZE - 1.001), np.clip(columns, 0, SIZE - 1.001)
    i, j = rows.astype(int), columns.astype(int)
    u, v = (rows - i).astype(np.float32), (columns - j).astype(np.float32)
    n = np.arange(len(x))[:, None, None]
    top = (1 - v) * x[n, i, j] + v * x[n, i, j + 1]
    bottom = (1 - v) * x[n, i + 1, j] + v * x[n, i + 1, j + 1]
    return np.asarray((1 - u) * top + u * bottom)


def _snow(x: Images, strength: float, rng: np.random.Generator) -> Images:
    flakes = rng.standard_normal(x.shape, dtype=np.float32)
    flakes = np.clip(flakes - (2.0 - 0.8 * strength), 0.0, 1.0)
    flakes = ndimage.uniform_filter1d(flakes, 1 + int(4 * strength), axis=1)  # falling
    return (1 - 0.25 * strength) * x + 0.25 * strength * np.maximum(x, 0.5) + 1.5 * flakes


def _fog(x: Images, strength: float, rng: np.random.Generator) -> Images:
    """Noise with power at all scales, as of the diamond-square algorithm, is added, and the range is kept."""
    spectrum = np.hypot(*np.meshgrid(np.fft.fftfreq(SIZE), np.fft.rfftfreq(SIZE), indexing="ij"))
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
    steps = ndimage.gaussian_filter(steps, (0, 0, 3.0, 3.0))
    steps *= 1.6 * strength / steps.std()
    rows, columns = np.indices((SIZE, SIZE))
    return _sample(x, rows + steps[0], columns + steps[1])


def _pixelate(x: Images, strength: float, rng: np.random.Generator) -> Images:
    side = round(SIZE * (1.0 - 0.7 * strength))
    pictures = (Image.fromarray(np.uint8(255 * image)) for image in x)
    small = (
        p.resize((side, side), Image.Resampling.BOX).resize((SIZE, SIZE), Image.Resampling.NEAREST) for p in pictures
    )
    return np.stack([np.asarray(p) for p in small]) / np.float32(255.0)


def _jpeg(x: Images, strength: float, rng: np.random.Generator) -> Images:
    images = []
    for image in x:
        file = io.BytesIO()
        Image.fromarray(np.uint8(255 * image)).save(file, "JPEG", quality=int(45 - 38 * strength))
        images.append(np.asarray(Image.open(file)))
    return np.stack(images) / np.float32(255.0)


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
