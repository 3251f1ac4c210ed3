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

from pyspar.data.files import Found, cached_folder_for, folders_for
from pyspar.data.task import Part, ShiftTask
from pyspar.errors import InputError, MissingDataError, need

NAME = "chair-angles-tails"
LEARNED, JUDGED = (15.0, 75.0), (0.0, 90.0)  # degrees, both ends left out
PER_ANGLE = 25  # test images at most

_H5, _RAW, _CUT = "RC-49_64x64.h5", "RC-49_64x64.npz", "chair-angles-tails.npz"
_LEARNED_SHARE = 0.8  # of the training images, the rest validate
_BLOCK = 2048  # images read at a time

Rows = NDArray[np.int64]


def find(folder: str | os.PathLike[str] | None = None) -> Found:
    """Return where the images lie: the h5 file of RC-49, its arrays as npz, or arrays that are already cut."""
    for place in (*folders_for(NAME, folder), cached_folder_for(NAME)):
        for file in (_CUT, _RAW, _H5):
            if (place.path / file).is_file():
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
    h5py = need("h5py", "bench")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(f"{str(path)!r} is not a whole h5 file ({error}). Download it again.") from error
    with _readable(path), file:
        angle, trained_on = _labels(path, file)
        images = file["images"]

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
        angle, trained_on = _labels(path, file)
        return tails_of(file["images"].__getitem__, angle, trained_on, seed=seed)


def _labels(path: Path, file: Any) -> tuple[NDArray[np.floating[Any]], Rows]:
    """Return the angles and the rows of RC-49's training images, after checking that they fit the images."""
    _require_keys(path, file, ("images", "labels", "indx_train"))
    angle = np.asarray(file["labels"], dtype=np.float64).ravel()
    trained_on = np.asarray(file["indx_train"], dtype=np.int64).ravel()
    shape = file["images"].shape
    if len(shape) != 4 or shape[1] != 3 or shape[0] != len(angle):
        raise InputError(
            f"{path.name} must hold one label for each image of 3 channels. Got {shape}, {len(angle)} labels."
        )
    if trained_on.size and not 0 <= trained_on.min() <= trained_on.max() < len(angle):
        raise InputError(
            f"indx_train of {path.name} must number its {len(angle)} images. Got up to {trained_on.max()}."
        )
    return angle, trained_on


def _read_cut(path: Path) -> tuple[Part, Part, Part]:
    kinds = ("train", "val", "test")
    with _arrays(path) as file:
        _require_keys(path, file, [f"{what}_{kind}" for kind in kinds for what in ("images", "labels")])
        for kind in kinds:
            n_images, n_labels = len(file[f"images_{kind}"]), file[f"labels_{kind}"].size
            if n_images != n_labels:
                raise InputError(f"{path.name} must hold one label for each image. Got {n_images} and {n_labels}.")
        train, val, test = (_part(file[f"images_{kind}"], file[f"labels_{kind}"].ravel()) for kind in kinds)
    return train, val, test


@contextmanager
def _arrays(path: Path) -> Iterator[Any]:
    """Open an npz file; what cannot be read of it, now or later, is refused."""
    with _readable(path), np.load(path, allow_pickle=False) as file:
        if not hasattr(file, "files"):
            raise InputError(f"{str(path)!r} must be an npz file of several arrays. Got a single one.")
        yield file


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(f"{str(path)!r} is damaged, or not a file of plain arrays ({error}). Get it again.") from error


def _require_keys(path: Path, file: Any, keys: Any) -> None:
    missing = [key for key in keys if key not in file]
    if missing:
        raise InputError(f"{str(path)!r} must hold {', '.join(keys)}. It has no {', '.join(missing)}; docs/chairs.md.")
