"""Chairs drawn by us: the cut of ChairAngles-Tails on free models, because RC-49 itself is in no package.

Each model is drawn at a jittered grid of yaws, some between 15° and 75° to learn from, others between 0° and 90° to be
judged on: as in the original, the images differ and the chairs are the same. Drawing takes a minute, so it is done
once, into the cache; the arrays there have the names that RC-49 gives them.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import names_in
from pyspar.paper.data.built import Arrays, built_once, is_kept, kept_file
from pyspar.paper.data.chairs.folder import JUDGED, LEARNED, tails_of
from pyspar.paper.data.chairs.models import FOLDER, INSTALL, ChairModel, chair_models, read_mesh
from pyspar.paper.data.chairs.render import SIZE, Cloud, cloud_of, picture
from pyspar.paper.data.files import CACHED, Found, folders_for
from pyspar.paper.data.task import ShiftTask

NAME = "chair-angles-recreated"
ANGLES = (117, 80)  # of each chair, to learn from (and to validate on) and to be judged on

_RECIPE = "v1"  # change it with anything that changes a byte of an image
_TELLS_YAW = 2.0  # grey levels, averaged over the image
_FEWEST_ROWS, _FEW_CHAIRS = 10, 8  # of a miniature

Watch = Callable[[int, int], None]


def find(folder: str | os.PathLike[str] | None = None) -> Found:
    """Return the file of the images, or the folder of the models that they will be drawn from."""
    kept = kept_file(NAME, _key(folder))
    return Found(kept, CACHED) if is_kept(kept) else _catalogues(folder)


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    rows: int | None = None,
    watch: Watch | None = None,
) -> ShiftTask:
    """Load the images as uint8 (n, 3, 64, 64), drawing them first if that was never done; labels are degrees.

    The seed draws which of the training images validate; the images are the same for every seed. ``rows`` draws a
    miniature of at most so many images, of a few chairs; it is not kept. ``watch(done, total)`` is told of images while
    they are drawn.
    """
    if rows is None:
        arrays = built_once(NAME, _key(folder), lambda: draw(_chairs(folder), ANGLES, watch), compressed=True)
    else:
        if rows < _FEWEST_ROWS:
            raise InputError(f"rows must be at least {_FEWEST_ROWS}, some for each part. Got {rows} instead.")
        chairs = _chairs(folder)
        few = min(_FEW_CHAIRS, rows // _FEWEST_ROWS, len(chairs))
        spread = np.linspace(0, len(chairs) - 1, few).round().astype(int)
        learned = rows // few * 3 // 5
        arrays = draw([chairs[i] for i in spread], (learned, rows // few - learned), watch)
    train, val, test = tails_of(arrays["images"].__getitem__, arrays["labels"], arrays["indx_train"], seed=seed)
    n_chairs = len(arrays["chairs"])
    return ShiftTask(
        name=NAME,
        train=train,
        val=val,
        test=test,
        group_kind="none",
        source=f"drawn by pyspar from {n_chairs} models of the Debian package sweethome3d-furniture",
        licence="models CC0 or CC BY 3.0, their authors in docs/chairs.md",
        recreation=(
            f"A re-creation of ChairAngles-Tails: {n_chairs} models of Sweet Home 3D, not the 49 of RC-49, drawn by "
            "our own renderer (no perspective, no shadows, white background), at random yaws instead of steps of 0.1°; "
            "the cut is the same. Compare methods on it, not its numbers with published ones."
        ),
    )


@dataclass(frozen=True, eq=False)
class Sight:
    """A chair's surface, and how well its yaw can be seen.

    ``contrast`` is by how many grey levels the image at yaw 0° differs on average from that at 45° or at 90°, the
    closer of the two.
    """

    cloud: Cloud
    contrast: float

    @property
    def tells_yaw(self) -> bool:
        """Whether the chair is drawn; a stool that looks the same after a quarter turn is not."""
        return self.contrast > _TELLS_YAW


def sight_of(chair: ChairModel) -> Sight:
    """Read a chair and see how much its image changes with the yaw."""
    cloud = cloud_of(read_mesh(chair))
    front, half, side = (picture(cloud, yaw).astype(np.float64) for yaw in (0.0, 45.0, 90.0))
    return Sight(cloud, float(min(np.abs(front - half).mean(), np.abs(front - side).mean())))


def yaws_of(chair: ChairModel, angles: tuple[int, int]) -> NDArray[np.float64]:
    """Return a chair's yaws, first those to learn from: one at random in each cell of an even grid."""
    random = np.random.default_rng(zlib.crc32(chair.id.encode()))
    grids = [a + (b - a) * (np.arange(n) + random.random(n)) / n for (a, b), n in zip((LEARNED, JUDGED), angles)]
    return np.concatenate(grids)


def draw(chairs: list[ChairModel], angles: tuple[int, int], watch: Watch | None = None) -> Arrays:
    """Draw each chair whose yaw can be seen at its yaws; the arrays are named as in RC-49, with the chairs' names."""
    per_chair = sum(angles)
    images = np.empty((len(chairs) * per_chair, 3, SIZE, SIZE), np.uint8)
    drawn: list[ChairModel] = []
    for number, chair in enumerate(chairs):
        sight = sight_of(chair)
        if sight.tells_yaw:
            start = len(drawn) * per_chair
            for place, yaw in enumerate(yaws_of(chair, angles), start):
                images[place] = picture(sight.cloud, yaw)
            drawn.append(chair)
        if watch is not None:
            watch((number + 1) * per_chair, len(images))
    if not drawn:
        raise InputError(f"none of {len(chairs)} chairs shows how it is turned. Take the models of: {INSTALL}")
    n_images = len(drawn) * per_chair
    return {
        "images": images[:n_images],
        "labels": np.concatenate([yaws_of(chair, angles) for chair in drawn]),
        "indx_train": np.flatnonzero(np.arange(n_images) % per_chair < angles[0]),
        "chair": np.arange(n_images) // per_chair,
        "chairs": np.array([chair.id for chair in drawn]),
    }


def _chairs(folder: str | os.PathLike[str] | None) -> list[ChairModel]:
    chairs = chair_models(_catalogues(folder).path)
    if not chairs:
        raise InputError(f"no furniture in {str(folder)!r} is named a chair or stool. Take the models of: {INSTALL}")
    return list(chairs)


def _catalogues(folder: str | os.PathLike[str] | None) -> Found:
    """Return the folder of the furniture models: one that the user names, or the package's."""
    for place in (*folders_for(NAME, folder), Found(FOLDER, "the Debian package sweethome3d-furniture")):
        if any(name.endswith(".sh3f") for name in names_in(place.path)):
            return place
    raise MissingDataError(
        f"The data set {NAME!r} is drawn from the furniture models of Sweet Home 3D, which were not found. Get them "
        f"with: {INSTALL}\nor put the files *.sh3f into a folder and name that by PYSPAR_DATA, --data or folder=."
    )


def _key(folder: str | os.PathLike[str] | None) -> str:
    """Name all that the kept images depend on; the models of a folder that the user names by their files' sizes."""
    key = f"{_RECIPE}-{ANGLES[0]}-{ANGLES[1]}"
    for place in folders_for(NAME, folder):
        own = [place.path / name for name in names_in(place.path) if name.endswith(".sh3f")]
        if own:
            sizes = [(file.name, file.stat().st_size) for file in own]
            return f"{key}-{hashlib.sha256(repr(sizes).encode()).hexdigest()[:12]}"
    return key
