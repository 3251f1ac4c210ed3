"""The images: rotated garments of Fashion-MNIST and rotated chairs, with shifts of the population.

The task is to predict an angle in radians. A garment was rotated within 60 degrees in the plane of the image, on a
black canvas of 32 x 32 pixels. A chair is seen from 30 degrees on either side of its mean direction, in grey, with
64 x 64 pixels; it is one of the re-created ``pyspar.paper.data.chairs``. Source and target are different images.
"""

from __future__ import annotations

import gzip
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.align.corruptions import Images
from pyspar.errors import MissingDataError
from pyspar.paper.data.chairs import recreated
from pyspar.paper.data.chairs.recreated import ANGLES
from pyspar.paper.data.chairs.render import FOLDER, chair_models
from pyspar.paper.data.files import candidate_folders, load_or_build
from pyspar.paper.data.rcf_mnist import DEBIAN

DATA = ("garments", "chairs")
POPULATIONS = ("same distribution", "angle range", "one class", "new classes", "angles beyond")
SOURCE_CLASSES = (0, 1, 3, 5, 7, 8)
"""T-shirt, trousers, dress, sandal, sneaker, bag."""
NEW_CHAIRS, FEW_CHAIRS = range(50, 60), range(5)
"""Chairs that no source has, and those of "one class"; one chair has too few images."""
N_VALID = {"garments": 2_000, "chairs": 1_000}
N_TRAIN = {"garments": 30_000, "chairs": 4_850}
MAX_TARGET = 2_000

Rows = tuple[Images, NDArray[np.float32]]
"""Images and angles."""


@cache
def read_garments() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the training images of Fashion-MNIST and their classes."""
    names = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
    folders = [place.path for place in candidate_folders("fashion-mnist", None)] + [DEBIAN]
    folder = next((path for path in folders if all((path / name).is_file() for name in names)), None)
    if folder is None:
        raise MissingDataError(
            f"files not found: {' and '.join(names)}; install the Debian package dataset-fashion-mnist, or put both "
            "into a folder fashion-mnist and pass the folder above it as PYSPAR_DATA"
        )
    images, classes = (gzip.decompress((folder / name).read_bytes()) for name in names)
    return np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28), np.frombuffer(classes, np.uint8, offset=8)


@cache
def read_chairs() -> tuple[Images, NDArray[np.float32], NDArray[np.int64]]:
    """Return grey images, angles and chairs. Rendering takes minutes; the result is kept in the folder PYSPAR_CACHE."""
    arrays = load_or_build(
        recreated.NAME, recreated._VERSION, lambda: recreated.render_chairs(list(chair_models(FOLDER)), ANGLES)
    )
    angles = np.deg2rad(arrays["labels"] - 45.0).astype(np.float32)
    grey = arrays["images"].mean(axis=1, dtype=np.float32) / np.float32(255.0)
    return grey, angles, np.arange(len(angles)) // sum(ANGLES)


def rotate(images: NDArray[np.uint8], angles: NDArray[np.float64]) -> Images:
    """Rotate each image by its angle, with bilinear interpolation, on a black canvas of 32 x 32 pixels."""
    canvas = torch.from_numpy(np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.float32) / 255.0)[:, None]
    cosine, sine = (torch.from_numpy(f(angles)).float() for f in (np.cos, np.sin))
    zero = torch.zeros_like(cosine)
    maps = torch.stack([torch.stack([cosine, -sine, zero], 1), torch.stack([sine, cosine, zero], 1)], 1)
    grid = torch.nn.functional.affine_grid(maps, list(canvas.shape), align_corners=False)
    return torch.nn.functional.grid_sample(canvas, grid, align_corners=False)[:, 0].numpy()


def source_part(data: str, part: str, seed: int) -> Rows:
    """Return the part "train" or "valid" of the source."""
    n = N_TRAIN[data]
    chosen = slice(n) if part == "train" else slice(n, n + N_VALID[data])
    if data == "garments":
        images, rows = read_garments()[0], _shuffle_garments(seed)
        angles = np.deg2rad(np.random.default_rng([seed, 1]).uniform(-60.0, 60.0, len(rows))[chosen])
        return rotate(images[rows[chosen]], angles), angles.astype(np.float32)
    images, yaws, chairs = read_chairs()
    is_source = (np.arange(len(yaws)) % sum(ANGLES) < ANGLES[0]) & ~np.isin(chairs, NEW_CHAIRS)
    rows = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(is_source))[chosen]
    return images[rows], yaws[rows]


def population(data: str, name: str, seed: int) -> Rows:
    """Return a target of undamaged images of the named population."""
    rng = np.random.default_rng([seed, 2])
    if data == "garments":
        images, classes = read_garments()
        rows = _shuffle_garments(seed)[N_TRAIN[data] + N_VALID[data] :]
        if name == "one class":
            rows = rows[classes[rows] == 1]
        elif name == "new classes":
            rows = rng.permutation(np.flatnonzero(~np.isin(classes, SOURCE_CLASSES)))
        rows = rows[:MAX_TARGET]
        low, high = {"angle range": (20.0, 60.0), "angles beyond": (60.0, 90.0)}.get(name, (-60.0, 60.0))
        angles = np.deg2rad(rng.uniform(low, high, len(rows)))
        if name == "angles beyond":
            angles *= rng.choice([-1.0, 1.0], len(rows))
        return rotate(images[rows], angles), angles.astype(np.float32)
    images, yaws, chairs = read_chairs()
    degrees = np.rad2deg(yaws)
    is_target = np.arange(len(yaws)) % sum(ANGLES) >= ANGLES[0]
    is_target &= np.isin(chairs, NEW_CHAIRS) == (name == "new classes")
    is_target &= (np.abs(degrees) > 30.0) == (name == "angles beyond")
    is_target &= (degrees > 10.0) | (name != "angle range")
    is_target &= np.isin(chairs, FEW_CHAIRS) | (name != "one class")
    rows = rng.permutation(np.flatnonzero(is_target))[:MAX_TARGET]
    return images[rows], yaws[rows]


def _shuffle_garments(seed: int) -> NDArray[np.int64]:
    """Return the rows of the source's classes in the order of a seed: training, validation, target."""
    is_source = np.isin(read_garments()[1], SOURCE_CLASSES)
    return np.random.default_rng([seed, 0]).permutation(np.flatnonzero(is_source))
