"""RCF-MNIST: tell how far clothing is turned, while its colour tells the answer in training, and misleads later.

The 60,000 training images of Fashion-MNIST are split 4 : 1 : 1 and turned counter-clockwise by a uniform angle; the
label is angle / 360. Pixels above 5 of 255 get red times r, no green, blue times 1 - r. In training r is the label for
80 % of the images and 1 - label for the rest, in validation r is uniform, in the test the shares are exchanged.

After Yao et al. (2022). The images themselves: Xiao, Rasul and Vollgraf (2017), MIT licence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Vector
from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import is_file, names_in
from pyspar.paper.data.built import Arrays, built_once
from pyspar.paper.data.files import CACHED, Found, cache_folder, cached_folder_for, folders_for
from pyspar.paper.data.idx import read_idx_images
from pyspar.paper.data.task import Part, ShiftTask

NAME = "rcf-mnist"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
IMAGES_SHA256 = "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
LIKE_LABEL, AGAINST_LABEL, ANY_COLOUR = 0, 1, 2
"""The groups: r is the label, r is 1 - label, r is uniform."""

_RECIPE = "v1"  # change it with anything that changes a byte of what is built
_MOST = 0.8
_DARK = 5
_PARTS = ("train", "val", "test")
_CHUNK = 4000

Interpolation = Literal["nearest", "bilinear"]
Images = NDArray[np.uint8]
Watch = Callable[[int, int], None]


def find(folder: str | os.PathLike[str] | None = None) -> Found:
    """Return the file of Fashion-MNIST's training images, or the folder of what was once built from it."""
    for place in (
        *folders_for("fashion-mnist", folder),
        *folders_for("FashionMNIST/raw", folder),
        *folders_for(NAME, folder),
        Found(DEBIAN, "the Debian package dataset-fashion-mnist"),
        cached_folder_for("fashion-mnist"),
    ):
        for ending in (".gz", ""):
            path = place.path / f"train-images-idx3-ubyte{ending}"
            if is_file(path):
                return Found(path, place.place)
    built = cache_folder() / NAME
    if any(name.startswith(f"{_RECIPE}-") and name.endswith(".npz") for name in names_in(built)):
        return Found(built, CACHED)
    raise MissingDataError(
        "The data set 'rcf-mnist' is built from Fashion-MNIST, which was not found. Get it with: "
        "apt install dataset-fashion-mnist\n"
        "or put train-images-idx3-ubyte.gz into a folder (torchvision's FashionMNIST/raw will do) and name that by "
        "PYSPAR_DATA, --data or folder=."
    )


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    rows: int | None = None,
    interpolation: Interpolation = "nearest",
    watch: Watch | None = None,
) -> ShiftTask:
    """Build the data set, or take what was built before with this seed; images are uint8 (n, 3, 28, 28).

    ``rows`` makes a miniature of so many images in all; it is not kept. ``interpolation`` says how an image is turned:
    "nearest" as the authors did, or "bilinear". ``watch(done, total)`` is told of images while they are built.
    """
    if interpolation not in ("nearest", "bilinear"):
        raise InputError(f"interpolation must be 'nearest' or 'bilinear'. Got {interpolation!r} instead.")
    found = find(folder)
    key = f"{_RECIPE}-{interpolation}-seed{seed}"
    if rows is not None:
        images = _source(found)
        if not 6 <= rows <= len(images):
            raise InputError(f"rows must lie in [6, {len(images)}], one image a part at least. Got {rows} instead.")
        arrays = build(images[:rows], seed, interpolation, watch)
    elif found.path.is_dir():  # only what was built before is here
        arrays = built_once(NAME, key, lambda: build(_source(found), seed, interpolation, watch))
    else:
        images = _source(found)  # also where it is not used: a changed file is refused, not passed over
        arrays = built_once(NAME, key, lambda: build(images, seed, interpolation, watch))
    train, val, test = (Part(arrays[f"{p}_X"], arrays[f"{p}_y"], arrays[f"{p}_group"]) for p in _PARTS)
    return ShiftTask(
        name=NAME,
        train=train,
        val=val,
        test=test,
        group_kind="colouring",
        source="Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), turned and coloured after Yao et al. (2022)",
        licence="MIT",
    )


def build(images: Images, seed: int, interpolation: Interpolation = "nearest", watch: Watch | None = None) -> Arrays:
    """Split, turn and colour images; the same images and seed give the same bytes."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(images))
    edges = (0, len(images) * 4 // 6, len(images) * 5 // 6, len(images))
    arrays: Arrays = {}
    for place, part in enumerate(_PARTS):
        chosen = order[edges[place] : edges[place + 1]]
        label = rng.random(chosen.size)
        group = _groups(part, chosen.size, rng)
        red = np.where(group == LIKE_LABEL, label, 1 - label) if part != "val" else rng.random(chosen.size)
        X = np.empty((chosen.size, 3, *images.shape[1:]), np.uint8)
        for start in range(0, chosen.size, _CHUNK):
            few = slice(start, start + _CHUNK)
            X[few] = coloured(turned(images[chosen[few]], 360 * label[few], interpolation), red[few])
            if watch is not None:
                watch(edges[place] + min(start + _CHUNK, chosen.size), len(images))
        arrays |= {f"{part}_X": X, f"{part}_y": label, f"{part}_group": group}
    return arrays


def turned(images: Images, degrees: Vector, interpolation: Interpolation = "nearest") -> Images:
    """Turn each image counter-clockwise about its centre; what comes from outside is black."""
    height, width = images.shape[1:]
    down, right = np.meshgrid(np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2, indexing="ij")
    angle = np.deg2rad(degrees)[:, None, None]
    cos, sin = np.cos(angle), np.sin(angle)
    # For each pixel of the result, the place in the original that it shows: turned back, clockwise.
    i = cos * down + sin * right + (height - 1) / 2
    j = cos * right - sin * down + (width - 1) / 2
    if interpolation == "nearest":
        return _at(images, np.floor(i + 0.5).astype(np.intp), np.floor(j + 0.5).astype(np.intp))
    low_i, low_j = np.floor(i).astype(np.intp), np.floor(j).astype(np.intp)
    di, dj = i - low_i, j - low_j
    top = _at(images, low_i, low_j) * (1 - dj) + _at(images, low_i, low_j + 1) * dj
    bottom = _at(images, low_i + 1, low_j) * (1 - dj) + _at(images, low_i + 1, low_j + 1) * dj
    return np.asarray(np.rint(top * (1 - di) + bottom * di), np.uint8)


def coloured(grey: Images, red: Vector) -> Images:
    """Give each image (n, height, width) its share of red, the rest blue; nearly black pixels stay grey."""
    channels = np.repeat(grey[:, None], 3, axis=1)
    bright = grey > _DARK
    for channel, share in ((0, red), (1, np.zeros_like(red)), (2, 1 - red)):
        scaled = np.rint(grey * share[:, None, None]).astype(np.uint8)
        channels[:, channel][bright] = scaled[bright]
    return channels


def _source(found: Found) -> Images:
    if found.path.is_dir():
        raise MissingDataError(
            f"{found.path} holds 'rcf-mnist' as built with other seeds or options; to build it with these, "
            "Fashion-MNIST is needed. Get it with: apt install dataset-fashion-mnist"
        )
    return read_idx_images(found.path, sha256=IMAGES_SHA256)


def _groups(part: str, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return each image's group: exactly 80 % of the part are of the more frequent one."""
    if part == "val":
        return np.full(n, ANY_COLOUR, np.int64)
    most, few = (LIKE_LABEL, AGAINST_LABEL) if part == "train" else (AGAINST_LABEL, LIKE_LABEL)
    group = np.full(n, few, np.int64)
    group[rng.permutation(n)[: int(_MOST * n)]] = most
    return group


def _at(images: Images, i: NDArray[np.intp], j: NDArray[np.intp]) -> Images:
    """Return images[k, i[k], j[k]], and 0 outside."""
    n, height, width = images.shape
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    flat = np.where(inside, i * width + j, 0).reshape(n, -1)
    values = np.take_along_axis(images.reshape(n, -1), flat, axis=1).reshape(i.shape)
    return np.where(inside, values, 0).astype(np.uint8)
