"""A re-creation of ChairAngles-Tails: the same split with free chair models, because no package contains RC-49.

Each model is rendered at a jittered grid of yaws between 15° and 75° for training and between 0° and 90° for the test.
As in the original, both parts have the same chairs and different images. Rendering takes minutes, so the result is
cached, with the array names of RC-49.
"""

from __future__ import annotations

import os
import zlib

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import MissingDataError
from pyspar.paper.data.chairs.published import TEST_YAWS, TRAINING_YAWS, make_parts
from pyspar.paper.data.chairs.render import FOLDER, INSTALL, ChairModel, chair_models, draw_picture, sample_surface
from pyspar.paper.data.files import CACHE, Arrays, Location, cache_file, candidate_folders, list_names, load_or_build
from pyspar.paper.data.task import ShiftTask

NAME = "chair-angles-recreated"
ANGLES = (117, 80)  # per chair, for training and validation, and for the test
_VERSION = "v2"  # change it with every change of the resulting bytes


def find(folder: str | os.PathLike[str] | None = None) -> Location:
    """Return the folder of the furniture models, or the cached file of the images."""
    for place in (*candidate_folders(NAME, folder), Location(FOLDER, "the Debian package sweethome3d-furniture")):
        if any(name.endswith(".sh3f") for name in list_names(place.path)):
            return place
    if cache_file(NAME, _VERSION).is_file():
        return Location(cache_file(NAME, _VERSION), CACHE)
    raise MissingDataError(
        f"data set not found: {NAME!r}. It is rendered from the furniture models of Sweet Home 3D. "
        f"Get the models with: {INSTALL}\n"
        "or put the files *.sh3f into a folder and pass the folder as PYSPAR_DATA, --data or folder=."
    )


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0) -> ShiftTask:
    """Load the images as uint8 (n, 3, 64, 64) with labels in degrees. Render them first if they are not cached. The
    seed determines the images for validation. The images are the same for every seed.
    """
    place = find(folder)
    arrays = load_or_build(NAME, _VERSION, lambda: render_chairs(list(chair_models(place.path)), ANGLES))
    train, val, test = make_parts(arrays["images"], arrays["labels"], arrays["indx_train"], seed=seed)
    n_chairs = len(arrays["chairs"])
    source = f"rendered by pyspar from {n_chairs} models of the Debian package sweethome3d-furniture"
    licence = "models CC0 or CC BY 3.0, their authors in the catalogues"
    recreation = (
        f"A re-creation of ChairAngles-Tails: {n_chairs} models of Sweet Home 3D instead of the 49 of RC-49, with "
        "another renderer (no perspective, shadows or textures), at random yaws instead of steps of 0.1°. The split is "
        "the same. Compare methods on it, but not its numbers with published ones."
    )
    return ShiftTask(NAME, train, val, test, "none", source, licence, recreation=recreation)


def draw_yaws(chair: ChairModel, angles: tuple[int, int]) -> NDArray[np.float64]:
    """Return the yaws of a chair, first those for training: one random yaw in each cell of a regular grid."""
    random = np.random.default_rng(zlib.crc32(chair.id.encode()))
    grids = [
        a + (b - a) * (np.arange(n) + random.random(n)) / n for (a, b), n in zip((TRAINING_YAWS, TEST_YAWS), angles)
    ]
    return np.concatenate(grids)


def render_chairs(chairs: list[ChairModel], angles: tuple[int, int]) -> Arrays:
    """Render chairs. The arrays are named as in RC-49, with the names of the chairs."""
    yaws = [draw_yaws(chair, angles) for chair in chairs]
    clouds = map(sample_surface, chairs)
    images = np.stack([draw_picture(cloud, yaw) for cloud, own in zip(clouds, yaws) for yaw in own])
    training = np.arange(len(images)) % sum(angles) < angles[0]
    names = np.array([chair.id for chair in chairs])
    return {"images": images, "labels": np.concatenate(yaws), "indx_train": np.flatnonzero(training), "chairs": names}
