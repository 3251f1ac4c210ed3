"""RCF-MNIST: predict the rotation of clothing. Its colour agrees with the label in training and misleads in the test.

The 60,000 training images of Fashion-MNIST are split 4 : 1 : 1 and rotated counter-clockwise by a uniform angle. The
label is angle / 360. Pixels above 5 of 255 become red times r, green 0, blue times 1 - r. In the training part r is the
label for 80 % of the images and 1 - label for the others. In the validation part r is uniform. In the test part the
shares are exchanged.

After Yao et al. (2022). The images themselves: Xiao, Rasul and Vollgraf (2017), MIT licence.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyspar.core.moments import Vector
from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.files import (
    CACHE,
    Arrays,
    Location,
    cache_folder,
    cache_location,
    candidate_folders,
    list_names,
    load_or_build,
)  # fmt: skip
from pyspar.paper.data.task import Part, ShiftTask

NAME = "rcf-mnist"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
IMAGES_SHA256 = "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
LIKE_LABEL, AGAINST_LABEL, ANY_COLOUR = 0, 1, 2
"""The groups: r is the label, r is 1 - label, or r is uniform."""

_VERSION = "v1"  # change it with every change of the resulting bytes
_MAIN_SHARE = 0.8
_MAX_DARK_PIXEL = 5
_PARTS = ("train", "val", "test")
_CHUNK_ROWS = 4000

Images = NDArray[np.uint8]


def find(folder: str | os.PathLike[str] | None = None) -> Location:
    """Return the file of Fashion-MNIST's training images, or the cache folder of a data set that was built from it."""
    for place in (
        *candidate_folders("fashion-mnist", folder),
        *candidate_folders("FashionMNIST/raw", folder),
        *candidate_folders(NAME, folder),
        Location(DEBIAN, "the Debian package dataset-fashion-mnist"),
        cache_location("fashion-mnist"),
    ):
        for ending in (".gz", ""):
            path = place.path / f"train-images-idx3-ubyte{ending}"
            if path.is_file():
                return Location(path, place.place)
    built = cache_folder() / NAME
    if any(name.startswith(f"{_VERSION}-") and name.endswith(".npz") for name in list_names(built)):
        return Location(built, CACHE)
    raise MissingDataError(
        "data set not found: 'rcf-mnist'. It is built from Fashion-MNIST. Get Fashion-MNIST with: "
        "apt install dataset-fashion-mnist\n"
        "or put train-images-idx3-ubyte.gz into a folder (such as torchvision's FashionMNIST/raw) and pass the folder "
        "as PYSPAR_DATA, --data or folder=."
    )


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0) -> ShiftTask:
    """Build the data set, or load it from the cache. Images are uint8 (n, 3, 28, 28)."""
    location = find(folder)
    # The file is read also if the cache is used, so that a changed one raises an error. A folder is only the cache.
    images = None if location.path.is_dir() else _read_images(location)
    key = f"{_VERSION}-nearest-seed{seed}"
    arrays = load_or_build(NAME, key, lambda: build(_read_images(location) if images is None else images, seed))
    train, val, test = (Part(arrays[f"{p}_X"], arrays[f"{p}_y"], arrays[f"{p}_group"]) for p in _PARTS)
    source = "Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), rotated and coloured as in Yao et al. (2022)"
    return ShiftTask(NAME, train, val, test, "colouring", source, "MIT")


def build(images: Images, seed: int) -> Arrays:
    """Split, rotate and colour images. Equal images and seeds give equal bytes."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(images))
    edges = (0, len(images) * 4 // 6, len(images) * 5 // 6, len(images))
    arrays: Arrays = {}
    for number, part in enumerate(_PARTS):
        chosen = order[edges[number] : edges[number + 1]]
        label = rng.random(chosen.size)
        group = _draw_groups(part, chosen.size, rng)
        red = np.where(group == LIKE_LABEL, label, 1 - label) if part != "val" else rng.random(chosen.size)
        X = np.empty((chosen.size, 3, *images.shape[1:]), np.uint8)
        for start in range(0, chosen.size, _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            X[chunk] = colour_images(rotate(images[chosen[chunk]], 360 * label[chunk]), red[chunk])
        arrays |= {f"{part}_X": X, f"{part}_y": label, f"{part}_group": group}
    return arrays


def rotate(images: Images, degrees: Vector) -> Images:
    """Rotate each image counter-clockwise about its centre to the nearest pixels, as in the authors' code. Pixels from
    outside the image are black.
    """
    height, width = images.shape[1:]
    down, right = np.meshgrid(np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2, indexing="ij")
    angle = np.deg2rad(degrees)[:, None, None]
    cos, sin = np.cos(angle), np.sin(angle)
    # For each pixel of the result, the position in the original: the inverse rotation.
    i = cos * down + sin * right + (height - 1) / 2
    j = cos * right - sin * down + (width - 1) / 2
    i, j = np.floor(i + 0.5).astype(np.intp), np.floor(j + 0.5).astype(np.intp)
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    flat = np.where(inside, i * width + j, 0).reshape(len(images), -1)
    values = np.take_along_axis(images.reshape(len(images), -1), flat, axis=1).reshape(i.shape)
    return np.where(inside, values, 0).astype(np.uint8)


def colour_images(grey: Images, red: Vector) -> Images:
    """Colour images (n, height, width) with the share ``red`` of red, the rest blue. Dark pixels stay grey."""
    channels = np.repeat(grey[:, None], 3, axis=1)
    bright = grey > _MAX_DARK_PIXEL
    for channel, share in ((0, red), (1, np.zeros_like(red)), (2, 1 - red)):
        scaled = np.rint(grey * share[:, None, None]).astype(np.uint8)
        channels[:, channel][bright] = scaled[bright]
    return channels


def _read_images(location: Location) -> Images:
    if location.path.is_dir():
        raise MissingDataError(
            f"{str(location.path)!r} has 'rcf-mnist' only for other seeds or options, and Fashion-MNIST was not found. "
            "Get it with: apt install dataset-fashion-mnist"
        )
    return read_idx_images(location.path, sha256=IMAGES_SHA256)


def read_idx_images(path: Path, *, sha256: str) -> Images:
    """Return the images of an IDX file, the format of MNIST: 16 bytes with the sizes, then the pixels. The checksum is
    that of the decompressed bytes, because gzip headers differ between distributions.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {str(path)!r}: not a complete gzip file ({error}); get it again") from error
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        raise InputError(f"wrong checksum of {str(path)!r}: expected sha256 {sha256} after decompression, got {actual}")
    return np.frombuffer(data, np.uint8, offset=16).reshape(-1, 28, 28)


def _draw_groups(part: str, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if part == "val":
        return np.full(n, ANY_COLOUR, np.int64)
    frequent, rare = (LIKE_LABEL, AGAINST_LABEL) if part == "train" else (AGAINST_LABEL, LIKE_LABEL)
    group = np.full(n, rare, np.int64)
    group[rng.permutation(n)[: int(_MAIN_SHARE * n)]] = frequent
    return group
