"""A small version of PovertyMap: the 855 Angolan images at 56 x 56 pixels, from urban to rural places.

It is a real satellite regression that fits on a laptop and uses the same code as the complete data set. The folder has
``angola_56px.npz`` (``x``, the 224-pixel images of metadata rows 0 to 854 averaged 4 x 4) and ``dhs_metadata.csv``.
"""

from __future__ import annotations

import os

import numpy as np

from pyspar.errors import MissingDataError
from pyspar.paper.data.files import Location, cache_location, candidate_folders, check_sha256
from pyspar.paper.data.image_files import read_image
from pyspar.paper.data.povertymap import METADATA, METADATA_SHA256, URBAN, read_metadata
from pyspar.paper.data.task import Part, RowIndices, ShiftTask

NAME, IMAGES = "povertymap-angola", "angola_56px.npz"
IMAGES_SHA256 = "46c527a719dc829924b9e794905d68eaee3666a7b47e701fd37bc412a20d73ad"
_VALIDATION_SHARE = 0.2


def find(folder: str | os.PathLike[str] | None = None) -> Location:
    """Return the folder with the images and the metadata."""
    for place in (*candidate_folders(NAME, folder), *candidate_folders("povertymap", folder), cache_location(NAME)):
        if (place.path / IMAGES).is_file() and (place.path / METADATA).is_file():
            return place
    raise MissingDataError(
        f"data set not found: {NAME!r}. It is computed from 'povertymap': average the images of metadata rows 0 to 854 "
        f"over 4 x 4 pixels, save them as the array x (855, 8, 56, 56) of {IMAGES} next to {METADATA}, and pass the "
        "folder as PYSPAR_DATA, --data or folder=. Load your own images with verify=False."
    )


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    verify: bool = True,
) -> ShiftTask:
    """Load the images (float32): urban places for training, rural ones for the test. A fifth of the urban places, drawn
    with ``seed``, is for validation. ``verify=False`` accepts other images and metadata, such as
    images that you averaged yourself.
    """
    place = find(folder)
    if verify:
        check_sha256(place.path / METADATA, METADATA_SHA256, fix="get it from PovertyMap-WILDS v1.1")
        # The last bits of the averages differ between machines, so only one file is known to be right.
        fix = "get it again, or pass verify=False for images that you averaged yourself"
        check_sha256(place.path / IMAGES, IMAGES_SHA256, fix=fix)
    metadata = read_metadata(place.path / METADATA)
    X = read_image(place.path / IMAGES)
    urban = metadata.urban[: len(X)]
    training = np.flatnonzero(urban == URBAN)
    np.random.default_rng(seed).shuffle(training)
    n_val = int(_VALIDATION_SHARE * training.size)

    def make_part(rows: RowIndices) -> Part:
        rows = np.sort(rows)
        return Part(X[rows], metadata.wealth[rows], urban[rows])

    others = np.setdiff1d(np.arange(len(X)), training)
    fit, val, test = map(make_part, (training[n_val:], training[:n_val], others))
    source = "PovertyMap-WILDS v1.1 (Koh et al. 2021), Angola, 56 x 56 pixels"
    licence = "images: US public domain; labels: DHS Program"
    recreation = "one country, images averaged 4 x 4, split between urban and rural places instead of countries"
    return ShiftTask(NAME, fit, val, test, "urban or rural", source, licence, metric="r", recreation=recreation)
