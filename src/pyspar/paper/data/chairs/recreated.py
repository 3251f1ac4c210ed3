"""A re-creation of ChairAngles-Tails: the same split with free chair models, because no package contains RC-49.

Each model is rendered at a jittered grid of yaws between 15° and 75° for training and between 0° and 90° for the test.
As in the original, both parts have the same chairs and different images. Rendering takes a minute, so the result is
cached, with the array names of RC-49.
"""

from __future__ import annotations

import hashlib
import os
import zlib

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.chairs.published import TEST_YAWS, TRAINING_YAWS, make_parts
from pyspar.paper.data.chairs.render import (
    FOLDER,
    INSTALL,
    SIZE,
    ChairModel,
    Cloud,
    chair_models,
    draw_picture,
    sample_surface,
)  # fmt: skip
from pyspar.paper.data.files import CACHE, Arrays, Location, cache_file, candidate_folders, list_names, load_or_build
from pyspar.paper.data.task import ShiftTask

NAME = "chair-angles-recreated"
ANGLES = (117, 80)  # per chair, for training and validation, and for the test

_VERSION = "v2"  # change it with every change of the resulting bytes
_MIN_CONTRAST = 2.0  # grey levels, averaged over the image
_MIN_ROWS, _MAX_CHAIRS = 10, 8  # of a small version


def find(folder: str | os.PathLike[str] | None = None) -> Location:
    """Return the cached file of the images, or the folder of the furniture models."""
    path = cache_file(NAME, _make_key(folder))
    return Location(path, CACHE) if path.is_file() else _find_catalogues(folder)


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0, rows: int | None = None) -> ShiftTask:
    """Load the images as uint8 (n, 3, 64, 64) with labels in degrees. Render them first if they are not cached.

    The seed determines the images for validation. The images are the same for every seed. ``rows`` renders a small
    version with at most this number of images, which is not cached.
    """
    if rows is None:
        arrays = load_or_build(
            NAME, _make_key(folder), lambda: render_chairs(_list_chairs(folder), ANGLES), compressed=True
        )
    else:
        if rows < _MIN_ROWS:
            raise InputError(f"rows must be at least {_MIN_ROWS}, got {rows}")
        chairs = _list_chairs(folder)
        count = min(_MAX_CHAIRS, rows // _MIN_ROWS, len(chairs))
        chosen = np.linspace(0, len(chairs) - 1, count).round().astype(int)
        n_training = rows // count * 3 // 5
        arrays = render_chairs([chairs[i] for i in chosen], (n_training, rows // count - n_training))
    train, val, test = make_parts(arrays["images"], arrays["labels"], arrays["indx_train"], seed=seed)
    n_chairs = len(arrays["chairs"])
    return ShiftTask(
        name=NAME,
        train=train,
        val=val,
        test=test,
        group_kind="none",
        source=f"rendered by pyspar from {n_chairs} models of the Debian package sweethome3d-furniture",
        licence="models CC0 or CC BY 3.0, their authors in the catalogues",
        recreation=(
            f"A re-creation of ChairAngles-Tails: {n_chairs} models of Sweet Home 3D instead of the 49 of RC-49, with "
            "another renderer (no perspective, shadows or textures), at random yaws instead of steps of 0.1°. "
            "The split is the same. Compare methods on it, but not its numbers with published ones."
        ),
    )


def sample_chair(chair: ChairModel) -> tuple[Cloud, float]:
    """Return the surface of a chair, and the contrast between its yaws.

    The contrast is the mean difference, in grey levels, between the image at yaw 0° and that at 45° or 90°, whichever
    is smaller. A stool that looks the same after a quarter turn is not rendered.
    """
    cloud = sample_surface(chair)
    front, half, side = (draw_picture(cloud, yaw).astype(np.float64) for yaw in (0.0, 45.0, 90.0))
    return cloud, float(min(np.abs(front - half).mean(), np.abs(front - side).mean()))


def draw_yaws(chair: ChairModel, angles: tuple[int, int]) -> NDArray[np.float64]:
    """Return the yaws of a chair, first those for training: one random yaw in each cell of a regular grid."""
    random = np.random.default_rng(zlib.crc32(chair.id.encode()))
    grids = [
        a + (b - a) * (np.arange(n) + random.random(n)) / n for (a, b), n in zip((TRAINING_YAWS, TEST_YAWS), angles)
    ]
    return np.concatenate(grids)


def render_chairs(chairs: list[ChairModel], angles: tuple[int, int]) -> Arrays:
    """Render each chair with a visible yaw. The arrays are named as in RC-49, with the names of the chairs."""
    per_chair = sum(angles)
    images = np.empty((len(chairs) * per_chair, 3, SIZE, SIZE), np.uint8)
    rendered: list[ChairModel] = []
    for chair in chairs:
        cloud, contrast = sample_chair(chair)
        if contrast > _MIN_CONTRAST:
            start = len(rendered) * per_chair
            for row, yaw in enumerate(draw_yaws(chair, angles), start):
                images[row] = draw_picture(cloud, yaw)
            rendered.append(chair)
    if not rendered:
        raise InputError(f"none of {len(chairs)} chairs has a visible yaw; use the models of: {INSTALL}")
    n_images = len(rendered) * per_chair
    return {
        "images": images[:n_images],
        "labels": np.concatenate([draw_yaws(chair, angles) for chair in rendered]),
        "indx_train": np.flatnonzero(np.arange(n_images) % per_chair < angles[0]),
        "chair": np.arange(n_images) // per_chair,
        "chairs": np.array([chair.id for chair in rendered]),
    }


def _list_chairs(folder: str | os.PathLike[str] | None) -> list[ChairModel]:
    chairs = chair_models(_find_catalogues(folder).path)
    if not chairs:
        raise InputError(f"no chairs or stools in {str(folder)!r}; use the models of: {INSTALL}")
    return list(chairs)


def _find_catalogues(folder: str | os.PathLike[str] | None) -> Location:
    """Return the folder of the furniture models: the user's folder, or that of the package."""
    for place in (*candidate_folders(NAME, folder), Location(FOLDER, "the Debian package sweethome3d-furniture")):
        if any(name.endswith(".sh3f") for name in list_names(place.path)):
            return place
    raise MissingDataError(
        f"data set not found: {NAME!r}. It is rendered from the furniture models of Sweet Home 3D. "
        f"Get the models with: {INSTALL}\n"
        "or put the files *.sh3f into a folder and pass the folder as PYSPAR_DATA, --data or folder=."
    )


def _make_key(folder: str | os.PathLike[str] | None) -> str:
    """Return the cache key of the images. It includes the names and sizes of the files in a user's folder."""
    key = f"{_VERSION}-{ANGLES[0]}-{ANGLES[1]}"
    for place in candidate_folders(NAME, folder):
        files = [place.path / name for name in list_names(place.path) if name.endswith(".sh3f")]
        if files:
            sizes = [(file.name, file.stat().st_size) for file in files]
            return f"{key}-{hashlib.sha256(repr(sizes).encode()).hexdigest()[:12]}"
    return key
