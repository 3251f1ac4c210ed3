"""ChairAngles-Tails: predict how far a chair is turned, at angles beyond those one has seen.

Gustafsson, Danelljan and Schön (2023) cut RC-49 (Ding et al., 2021: 49 chairs drawn at yaws 0.1° to 89.9°): learn from
15° to 75°, be judged from 0° to 90°. The file has to come from the user. The rule of the cut is here alone, so that the
re-created chairs are cut by the same lines.
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
from pyspar.paper.data.access import is_file, permitted
from pyspar.paper.data.files import Found, cached_folder_for, folders_for
from pyspar.paper.data.task import Part, ShiftTask

NAME = "chair-angles-tails"
LEARNED, JUDGED = (15.0, 75.0), (0.0, 90.0)  # degrees, both ends left out
PER_ANGLE = 25  # test images at most

_H5, _RAW, _CUT = "RC-49_64x64.h5", "RC-49_64x64.npz", "chair-angles-tails.npz"
_LEARNED_SHARE = 0.8  # of the training images, the rest validate
_BLOCK = 2048  # images read at a time
_SHAPE = (3, 64, 64)

Rows = NDArray[np.int64]


def find(folder: str | os.PathLike[str] | None = None) -> Found:
    """Return where the images lie: the h5 file of RC-49, its arrays as npz, or arrays that are already cut."""
    for place in (*folders_for(NAME, folder), cached_folder_for(NAME)):
        for file in (_CUT, _RAW, _H5):
            if is_file(place.path / file):
                return Found(place.path / file, place.place)
    raise MissingDataError(
        f"The data set {NAME!r} was not found. No package ships it: get {_H5} of RC-49 from the authors of CcGAN "
        f"(github.com/UBCDingXin/improved_CcGAN), put it into a folder and name that by PYSPAR_DATA, --data or "
        f"folder=. The set 'chair-angles-recreated' has the same cut and needs only a Debian package."
    )


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0) -> ShiftTask:
    """Load the images as channels, height and width (uint8) with their angles in degrees.

    The seed draws which training images validate, and which test images are kept of an angle that has more than 25.
    """
    path = find(folder).path
    if path.name == _CUT:
        train, val, test = _read_cut(path)
    else:
        train, val, test = _read_h5(path, seed) if path.name == _H5 else _read_raw(path, seed)
    for kind, part in (("training", train), ("validation", val), ("test", test)):
        if not len(part):
            raise InputError(f"{path} must hold images of every part. Got none for the {kind}; get it again.")
    return ShiftTask(
        name=NAME,
        train=train,
        val=val,
        test=test,
        group_kind="none",
        source="RC-49 (Ding et al., ICLR 2021), cut as by Gustafsson et al. (TMLR 2023)",
        licence="as the authors of RC-49 grant",
    )


def cut_tails(angle: NDArray[np.floating[Any]], training: NDArray[np.bool_], *, seed: int) -> tuple[Rows, Rows, Rows]:
    """Return the rows to learn from, to validate on, and to be judged on.

    Training images strictly between 15° and 75° are shuffled, four fifths to learn from and one to validate on. The
    others, strictly between 0° and 90°, are the test, at most 25 of an angle.

    >>> train, val, test = cut_tails(np.array([10, 20, 30, 40, 50, 60, 10.0]), np.arange(7) < 6, seed=0)
    >>> len(train), len(val), test.tolist()
    (4, 1, [6])
    """
    random = np.random.default_rng(seed)
    pool = random.permutation(np.flatnonzero(training & (angle > LEARNED[0]) & (angle < LEARNED[1])))
    offered = random.permutation(np.flatnonzero(~training & (angle > JUDGED[0]) & (angle < JUDGED[1])))
    step = np.round(angle[offered], 3)  # labels are stored in steps of 0.1, some of them rounded to float32
    order = np.argsort(step, kind="stable")
    first = np.searchsorted(step[order], step[order])
    kept = offered[order[np.arange(len(order)) - first < PER_ANGLE]]
    n_train = int(_LEARNED_SHARE * len(pool))
    return np.sort(pool[:n_train]), np.sort(pool[n_train:]), np.sort(kept)


def tails_of(
    images: Callable[[Rows], NDArray[np.uint8]], angle: NDArray[np.floating[Any]], trained_on: Rows, *, seed: int
) -> tuple[Part, Part, Part]:
    """Cut images, asked for by their rows, into training, validation and test."""
    training = np.zeros(len(angle), dtype=bool)
    training[trained_on] = True

    def part(rows: Rows) -> Part:
        return _part(images(rows), angle[rows])

    train, val, test = cut_tails(angle, training, seed=seed)
    return part(train), part(val), part(test)


def _part(images: NDArray[Any], angle: NDArray[np.floating[Any]]) -> Part:
    return Part(images, np.asarray(angle, dtype=np.float64), np.zeros(len(angle), dtype=np.int64))


def _read_h5(path: Path, seed: int) -> tuple[Part, Part, Part]:
    h5py = need("h5py", "paper")
    try:
        with permitted(path):
            file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(f"{str(path)!r} is not a whole h5 file ({error}). Download it again.") from error
    with _readable(path), file:
        images = _images(path, file, "images")
        angle, trained_on = _labels(path, file, len(images))

        def rows_of(rows: Rows) -> NDArray[np.uint8]:
            found = np.empty((len(rows), *images.shape[1:]), dtype=np.uint8)
            for start in range(0, len(images), _BLOCK):  # far faster than asking h5py for scattered rows
                here = np.flatnonzero((rows >= start) & (rows < start + _BLOCK))
                if here.size:
                    found[here] = images[start : start + _BLOCK][rows[here] - start]
            return found

        return tails_of(rows_of, angle, trained_on, seed=seed)


def _read_raw(path: Path, seed: int) -> tuple[Part, Part, Part]:
    with _arrays(path) as file:
        images = _images(path, file, "images")
        angle, trained_on = _labels(path, file, len(images))
        return tails_of(images.__getitem__, angle, trained_on, seed=seed)


def _images(path: Path, file: Any, key: str) -> Any:
    """Return the images of a file, unread where it is h5; anything but bytes of 3 x 64 x 64 would be read as noise."""
    _require_keys(path, file, [key])
    images = file[key]
    shape, kind = tuple(getattr(images, "shape", ())), getattr(images, "dtype", type(images).__name__)
    if len(shape) != 4 or shape[1:] != _SHAPE or kind != np.uint8:
        raise InputError(
            f"{key} of {str(path)!r} must be uint8 of shape (n, 3, 64, 64), 0 to 255. Got {kind} of shape {shape}. "
            f"Get {_H5} from its authors, or store the images so; docs/chairs.md."
        )
    return images


def _angles(path: Path, file: Any, key: str, n_images: int) -> NDArray[np.float64]:
    """Return the labels, one finite number for each image."""
    _require_keys(path, file, [key])
    labels = _numbers(path, file, key)
    if len(labels) != n_images:
        raise InputError(
            f"{str(path)!r} must hold one label for each image. Got {n_images} images and {len(labels)} {key}; "
            "get it again."
        )
    wrong = np.flatnonzero(~np.isfinite(labels))
    if wrong.size:
        raise InputError(
            f"{key} of {str(path)!r} must be finite angles in degrees. Got {labels[wrong[0]]} in row {wrong[0]}, and "
            f"{wrong.size} such in all; get it again."
        )
    return labels


def _labels(path: Path, file: Any, n_images: int) -> tuple[NDArray[np.float64], Rows]:
    """Return the angles and the rows of RC-49's training images, after checking that they fit the images."""
    _require_keys(path, file, ("images", "labels", "indx_train"))
    angle = _angles(path, file, "labels", n_images)
    asked = _numbers(path, file, "indx_train")
    wrong = asked[~((asked >= 0) & (asked < n_images) & (asked == np.floor(asked)))]
    if wrong.size:
        raise InputError(
            f"indx_train of {str(path)!r} must number its {n_images} images from 0. Got {wrong[0]:g}; get it again."
        )
    return angle, asked.astype(np.int64)


def _numbers(path: Path, file: Any, key: str) -> NDArray[np.float64]:
    values = np.asarray(file[key])
    if values.dtype.kind not in "iuf":
        raise InputError(f"{key} of {str(path)!r} must be numbers. Got the type {values.dtype}; get it again.")
    return values.astype(np.float64).ravel()


def _read_cut(path: Path) -> tuple[Part, Part, Part]:
    def part(kind: str) -> Part:
        images = _images(path, file, f"images_{kind}")
        return _part(images, _angles(path, file, f"labels_{kind}", len(images)))

    with _arrays(path) as file:
        _require_keys(
            path, file, [f"{what}_{kind}" for kind in ("train", "val", "test") for what in ("images", "labels")]
        )
        return part("train"), part("val"), part("test")


@contextmanager
def _arrays(path: Path) -> Iterator[Any]:
    """Open an npz file; what cannot be read of it, now or later, is refused."""
    with _readable(path), permitted(path), np.load(path, allow_pickle=False) as file:
        if not hasattr(file, "files"):
            raise InputError(f"{str(path)!r} must be an npz file of several arrays. Got a single one.")
        yield file


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (InputError, PermissionError):
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(f"{str(path)!r} is damaged, or not a file of plain arrays ({error}). Get it again.") from error


def _require_keys(path: Path, file: Any, keys: Any) -> None:
    missing = [key for key in keys if key not in file]
    if missing:
        raise InputError(f"{str(path)!r} must hold {', '.join(keys)}. It has no {', '.join(missing)}; docs/chairs.md.")
