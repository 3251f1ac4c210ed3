"""The published ChairAngles-Tails: predict the yaw of a chair, at angles beyond those in the training part.

Gustafsson, Danelljan and Schön (2023) split RC-49 (Ding et al., 2021: 49 chairs at yaws 0.1° to 89.9°): training from
15° to 75°, test from 0° to 90°. The user has to obtain the file. The re-created chairs are split by the same function.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError, need
from pyspar.paper.data.files import Location, cache_location, candidate_folders
from pyspar.paper.data.task import Part, RowIndices, ShiftTask

NAME = "chair-angles-tails"
TRAINING_YAWS, TEST_YAWS = (15.0, 75.0), (0.0, 90.0)  # degrees, without the ends
MAX_PER_ANGLE = 25  # test images

_FILES = ("RC-49_64x64.npz", "RC-49_64x64.h5")
_KEYS = ("images", "labels", "indx_train")
_TRAINING_SHARE = 0.8  # of the training images; the rest is for validation
_IMAGE_SHAPE = (3, 64, 64)


def find(folder: str | os.PathLike[str] | None = None) -> Location:
    """Return the location of the images: the h5 file of RC-49, or its arrays as npz."""
    for place in (*candidate_folders(NAME, folder), cache_location(NAME)):
        for file in _FILES:
            if (place.path / file).is_file():
                return Location(place.path / file, place.place)
    raise MissingDataError(
        f"data set not found: {NAME!r}. No package contains it. Get {_FILES[1]} of RC-49 from the authors of CcGAN "
        "(github.com/UBCDingXin/improved_CcGAN), put it into a folder and pass the folder as PYSPAR_DATA, --data or "
        "folder=. The data set 'chair-angles-recreated' has the same split and requires only a Debian package."
    )


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0) -> ShiftTask:
    """Load the images as uint8 (n, 3, 64, 64) with their angles in degrees. The seed determines the images for
    validation, and the test images of an angle with more than 25 images.
    """
    path = find(folder).path
    arrays = _read_arrays(path)
    train, val, test = make_parts(*(arrays[key] for key in _KEYS), seed=seed)
    for name, part in (("training", train), ("validation", val), ("test", test)):
        if not len(part):
            raise InputError(f"{str(path)!r} has no {name} images; get it again")
    source = "RC-49 (Ding et al., ICLR 2021), split as in Gustafsson et al. (TMLR 2023)"
    return ShiftTask(NAME, train, val, test, "none", source, "as the authors of RC-49 grant")


def split_tails(
    angle: NDArray[np.floating[Any]], training: NDArray[np.bool_], *, seed: int
) -> tuple[RowIndices, RowIndices, RowIndices]:
    """Return the rows of training, validation and test. Training images strictly between 15° and 75° are shuffled; four
    fifths are for training and one for validation. The test part consists of other images strictly between 0° and 90°,
    at most 25 per angle.
    """
    random = np.random.default_rng(seed)
    pool = random.permutation(np.flatnonzero(training & (angle > TRAINING_YAWS[0]) & (angle < TRAINING_YAWS[1])))
    candidates = random.permutation(np.flatnonzero(~training & (angle > TEST_YAWS[0]) & (angle < TEST_YAWS[1])))
    step = np.round(angle[candidates], 3)  # labels are multiples of 0.1, some of them rounded to float32
    order = np.argsort(step, kind="stable")
    first = np.searchsorted(step[order], step[order])
    kept = candidates[order[np.arange(len(order)) - first < MAX_PER_ANGLE]]
    n_train = int(_TRAINING_SHARE * len(pool))
    return np.sort(pool[:n_train]), np.sort(pool[n_train:]), np.sort(kept)


def make_parts(
    images: NDArray[np.uint8], angle: NDArray[np.floating[Any]], training_rows: NDArray[Any], *, seed: int
) -> tuple[Part, Part, Part]:
    """Split images into training, validation and test parts."""
    training = np.zeros(len(angle), dtype=bool)
    training[training_rows.astype(np.int64)] = True
    y, no_group = np.asarray(angle, dtype=np.float64), np.zeros(len(angle), dtype=np.int64)
    parts = split_tails(y, training, seed=seed)
    train, val, test = (Part(images[rows], y[rows], no_group[rows]) for rows in parts)
    return train, val, test


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an h5 or npz file. Raise if one is missing or does not fit the others."""
    h5py = need("h5py", "paper") if path.suffix == ".h5" else None
    try:
        with h5py.File(path, "r") if h5py is not None else np.load(path, allow_pickle=False) as file:
            arrays = {key: np.asarray(file[key]) for key in _KEYS}
    except PermissionError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, IndexError, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(
            f"cannot read {str(path)!r}: it must have the arrays {', '.join(_KEYS)} ({error}); get it again"
        ) from error
    images, labels, rows = arrays.values()
    n = len(images)
    valid = (
        images.dtype == np.uint8 and images.shape[1:] == _IMAGE_SHAPE,
        labels.dtype.kind in "iuf" and labels.shape == (n,) and bool(np.isfinite(labels).all()),
        rows.dtype.kind in "iuf" and bool(np.isin(rows, np.arange(n)).all()),
    )
    if not all(valid):
        key = _KEYS[valid.index(False)]
        raise InputError(
            f"{key} of {str(path)!r} must be uint8 images (n, 3, 64, 64), a finite label per image, or indices of "
            f"images, got {arrays[key].dtype} of shape {arrays[key].shape}"
        )
    return arrays
