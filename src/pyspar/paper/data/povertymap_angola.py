"""PovertyMap in small: the 855 Angolan images at 56 x 56 pixels, learnt where it is urban and judged where it is rural.

A real satellite regression that fits on a laptop, to try the path that the whole data set takes. The folder holds
``angola_56px.npz`` (``x``, the 224-pixel images of metadata rows 0 to 854 averaged 4 x 4) and ``dhs_metadata.csv``.
"""

from __future__ import annotations

import os
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import is_file
from pyspar.paper.data.files import Found, cached_folder_for, folders_for, require_sum
from pyspar.paper.data.image_files import read_image
from pyspar.paper.data.povertymap import METADATA, METADATA_SHA256, RURAL, URBAN, read_metadata
from pyspar.paper.data.task import Part, ShiftTask

NAME, IMAGES = "povertymap-angola", "angola_56px.npz"
IMAGES_SHA256 = "46c527a719dc829924b9e794905d68eaee3666a7b47e701fd37bc412a20d73ad"
_VALIDATION = 0.2


def find(folder: str | os.PathLike[str] | None = None) -> Found:
    """Return the folder that holds the images and the metadata."""
    for place in (*folders_for(NAME, folder), *folders_for("povertymap", folder), cached_folder_for(NAME)):
        if is_file(place.path / IMAGES) and is_file(place.path / METADATA):
            return place
    raise MissingDataError(
        f"The data set {NAME!r} was not found. It is made from the set 'povertymap': average the images of metadata "
        f"rows 0 to 854 over 4 x 4 pixels, save them as array x (855, 8, 56, 56) of {IMAGES} beside {METADATA}, and "
        "name the folder by PYSPAR_DATA, --data or folder=; images of your own making load with verify=False."
    )


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    train: Literal["urban", "rural"] = "urban",
    verify: bool = True,
) -> ShiftTask:
    """Load the images (float32), learnt in the ``train`` kind of place and judged in the other.

    A fifth of the rows to learn from, drawn with ``seed``, validates. ``verify=False`` accepts other
    images and metadata, such as images that you averaged yourself.
    """
    if train not in ("urban", "rural"):
        raise InputError(f"train must be 'urban' or 'rural'. Got {train!r} instead.")
    place = find(folder)
    if verify:
        require_sum(place.path / METADATA, METADATA_SHA256, cure="Take it from PovertyMap-WILDS v1.1.")
        # Averages made elsewhere differ in their last bits, so the file we measured is the only one known to be right.
        cure = "Get it again, or pass verify=False for images that you averaged yourself."
        require_sum(place.path / IMAGES, IMAGES_SHA256, cure=cure)
    metadata = read_metadata(place.path / METADATA)
    X = read_image(place.path / IMAGES)
    if X.ndim != 4 or len(X) > len(metadata.wealth):
        raise InputError(
            f"{place.path / IMAGES} must hold images (rows, channels, height, width), at most "
            f"{len(metadata.wealth)}, one per metadata row. Got an array of shape {X.shape}."
        )
    urban = metadata.urban[: len(X)]
    learnt = np.flatnonzero(urban == (URBAN if train == "urban" else RURAL))
    np.random.default_rng(seed).shuffle(learnt)
    n_val = int(_VALIDATION * learnt.size)

    def part(rows: NDArray[np.int64]) -> Part:
        rows = np.sort(rows)
        return Part(X[rows], metadata.wealth[rows], urban[rows])

    return ShiftTask(
        name=NAME,
        train=part(learnt[n_val:]),
        val=part(learnt[:n_val]),
        test=part(np.setdiff1d(np.arange(len(X)), learnt)),
        group_kind="urban or rural",
        source="PovertyMap-WILDS v1.1 (Koh et al. 2021), Angola, 56 x 56 pixels",
        licence="images: US public domain; labels: DHS Program",
        metric="r",
        recreation="one country, images averaged 4 x 4, cut between urban and rural instead of between countries",
    )
