"""The published ChairAngles-Tails: predict the yaw of a chair, at angles beyond those in the training part.

Gustafsson, Danelljan and Schön (2023) split RC-49 (Ding et al., 2021: 49 chairs at yaws 0.1° to 89.9°): training from
15° to 75°, test from 0° to 90°. The user has to obtain the file. The re-created chairs are split by the same function.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError, need
from pyspar.paper.data.access import convert_permission_errors, is_file
from pyspar.paper.data.files import Location, cache_location, candidate_folders
from pyspar.paper.data.task import Part, RowIndices, ShiftTask

NAME = "chair-angles-tails"
TRAINING_YAWS, TEST_YAWS = (15.0, 75.0), (0.0, 90.0)  # degrees, without the ends
MAX_PER_ANGLE = 25  # test images

_H5_FILE, _NPZ_FILE, _SPLIT_FILE = "RC-49_64x64.h5", "RC-49_64x64.npz", "chair-angles-tails.npz"
_TRAINING_SHARE = 0.8  # of the training images; the rest is for validation
_BLOCK_ROWS = 2048  # images that are read at a time
_IMAGE_SHAPE = (3, 64, 64)


def find(folder: str | os.PathLike[str] | None = None) -> Location:
    """Return the location of the images: the h5 file of RC-49, its arrays as npz, or arrays that are already split."""
    for place in (*candidate_folders(NAME, folder), cache_location(NAME)):
        for file in (_SPLIT_FILE, _NPZ_FILE, _H5_FILE):
            if is_file(place.path / file):
                return Location(place.path / file, place.place)
    raise MissingDataError(
        f"data set not found: {NAME!r}. No package contains it. Get {_H5_FILE} of RC-49 from the authors of CcGAN "
        "(github.com/UBCDingXin/improved_CcGAN), put it into a folder and pass the folder as PYSPAR_DATA, --data or "
        "folder=. The data set 'chair-angles-recreated' has the same split and requires only a Debian package."
    )


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0) -> ShiftTask:
    """Load the images as uint8 (n, 3, 64, 64) with their angles in degrees.

    The seed determines the images for validation, and the test images of an angle with more than 25 images.
    """
    path = find(folder).path
    if path.name == _SPLIT_FILE:
        train, val, test = _read_split(path)
    else:
        train, val, test = _read_h5(path, seed) if path.name == _H5_FILE else _read_npz(path, seed)
    for name, part in (("training", train), ("validation", val), ("test", test)):
        if not len(part):
            raise InputError(f"{str(path)!r} has no {name} images; get it again")
    return ShiftTask(
        name=NAME,
        train=train,
        val=val,
        test=test,
        group_kind="none",
        source="RC-49 (Ding et al., ICLR 2021), split as in Gustafsson et al. (TMLR 2023)",
        licence="as the authors of RC-49 grant",
    )


def split_tails(
    angle: NDArray[np.floating[Any]], training: NDArray[np.bool_], *, seed: int
) -> tuple[RowIndices, RowIndices, RowIndices]:
    """Return the rows of training, validation and test.

    Training images strictly between 15° and 75° are shuffled; four fifths are for training and one for validation. The
    test part consists of other images strictly between 0° and 90°, at most 25 per angle.

    >>> train, val, test = split_tails(np.array([10, 20, 30, 40, 50, 60, 10.0]), np.arange(7) < 6, seed=0)
    >>> len(train), len(val), test.tolist()
    (4, 1, [6])
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
    read_images: Callable[[RowIndices], NDArray[np.uint8]],
    angle: NDArray[np.floating[Any]],
    training_rows: RowIndices,
    *,
    seed: int,
) -> tuple[Part, Part, Part]:
    """Split images into training, validation and test parts. ``read_images`` returns the images of rows."""
    training = np.zeros(len(angle), dtype=bool)
    training[training_rows] = True

    def make_part(rows: RowIndices) -> Part:
        return _make_part(read_images(rows), angle[rows])

    train, val, test = split_tails(angle, training, seed=seed)
    return make_part(train), make_part(val), make_part(test)


def _make_part(images: NDArray[Any], angle: NDArray[np.floating[Any]]) -> Part:
    return Part(images, np.asarray(angle, dtype=np.float64), np.zeros(len(angle), dtype=np.int64))


def _read_h5(path: Path, seed: int) -> tuple[Part, Part, Part]:
    h5py = need("h5py", "paper")
    try:
        with convert_permission_errors(path):
            file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: not a complete h5 file ({error}); download it again") from error
    with _convert_read_errors(path), file:
        images = _get_images(path, file, "images")
        angle, training_rows = _get_labels(path, file, len(images))

        def read_images(rows: RowIndices) -> NDArray[np.uint8]:
            chosen = np.empty((len(rows), *images.shape[1:]), dtype=np.uint8)
            for start in range(0, len(images), _BLOCK_ROWS):  # much faster than reading scattered rows with h5py
                in_block = np.flatnonzero((rows >= start) & (rows < start + _BLOCK_ROWS))
                if in_block.size:
                    chosen[in_block] = images[start : start + _BLOCK_ROWS][rows[in_block] - start]
            return chosen

        return make_parts(read_images, angle, training_rows, seed=seed)


def _read_npz(path: Path, seed: int) -> tuple[Part, Part, Part]:
    with _open_npz(path) as file:
        images = _get_images(path, file, "images")
        angle, training_rows = _get_labels(path, file, len(images))
        return make_parts(images.__getitem__, angle, training_rows, seed=seed)


def _get_images(path: Path, file: Any, key: str) -> Any:
    """Return the images of a file, which h5py has not read yet. Raise if they are not uint8 of 3 x 64 x 64."""
    _check_keys(path, file, [key])
    images = file[key]
    shape, dtype = tuple(getattr(images, "shape", ())), getattr(images, "dtype", type(images).__name__)
    if len(shape) != 4 or shape[1:] != _IMAGE_SHAPE or dtype != np.uint8:
        raise InputError(
            f"{key} of {str(path)!r} must be uint8 of shape (n, 3, 64, 64), got {dtype} of shape {shape}; see "
            "docs/chairs.md"
        )
    return images


def _get_angles(path: Path, file: Any, key: str, n_images: int) -> NDArray[np.float64]:
    """Return the labels. Raise unless there is one finite number per image."""
    _check_keys(path, file, [key])
    labels = _get_numbers(path, file, key)
    if len(labels) != n_images:
        raise InputError(
            f"{str(path)!r} must have one label per image, got {n_images} images and {len(labels)} {key}; get it again"
        )
    wrong = np.flatnonzero(~np.isfinite(labels))
    if wrong.size:
        raise InputError(
            f"{key} of {str(path)!r} must be finite, got {labels[wrong[0]]} in row {wrong[0]} ({wrong.size} such "
            "rows); get it again"
        )
    return labels


def _get_labels(path: Path, file: Any, n_images: int) -> tuple[NDArray[np.float64], RowIndices]:
    """Return the angles and the rows of RC-49's training images. Raise if they do not fit the images."""
    _check_keys(path, file, ("images", "labels", "indx_train"))
    angle = _get_angles(path, file, "labels", n_images)
    rows = _get_numbers(path, file, "indx_train")
    wrong = rows[~((rows >= 0) & (rows < n_images) & (rows == np.floor(rows)))]
    if wrong.size:
        raise InputError(
            f"indx_train of {str(path)!r} must be integers from 0 to {n_images - 1}, got {wrong[0]:g}; get it again"
        )
    return angle, rows.astype(np.int64)


def _get_numbers(path: Path, file: Any, key: str) -> NDArray[np.float64]:
    values = np.asarray(file[key])
    if values.dtype.kind not in "iuf":
        raise InputError(f"{key} of {str(path)!r} must be numeric, got dtype {values.dtype}; get it again")
    return values.astype(np.float64).ravel()


def _read_split(path: Path) -> tuple[Part, Part, Part]:
    def make_part(name: str) -> Part:
        images = _get_images(path, file, f"images_{name}")
        return _make_part(images, _get_angles(path, file, f"labels_{name}", len(images)))

    with _open_npz(path) as file:
        _check_keys(
            path, file, [f"{array}_{part}" for part in ("train", "val", "test") for array in ("images", "labels")]
        )
        return make_part("train"), make_part("val"), make_part("test")


@contextmanager
def _open_npz(path: Path) -> Iterator[Any]:
    """Open an npz file. Errors while it is read, also later, are raised as ``InputError``."""
    with _convert_read_errors(path), convert_permission_errors(path), np.load(path, allow_pickle=False) as file:
        if not hasattr(file, "files"):
            raise InputError(f"{str(path)!r} must be an npz file, got a single array")
        yield file


@contextmanager
def _convert_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (InputError, PermissionError):
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(f"cannot read {str(path)!r}: damaged or not plain arrays ({error}); get it again") from error


def _check_keys(path: Path, file: Any, keys: Any) -> None:
    missing = [key for key in keys if key not in file]
    if missing:
        raise InputError(f"{str(path)!r} must have the arrays {', '.join(keys)}; missing: {', '.join(missing)}")
