"""Arrays that take a while to build are built once and kept: an npz file in the cache with its checksum beside it.

We made the file and can make it again, so a damaged one is built anew, and said; it is never trusted. A cache that
cannot be read or written costs time, not the result.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import MissingDataError, SparWarning
from pyspar.io.atomic import whole_file
from pyspar.paper.data.access import UnreadableError, is_file, permitted
from pyspar.paper.data.files import cache_folder, sha256_of

Arrays = dict[str, NDArray[Any]]


def built_once(name: str, key: str, build: Callable[[], Arrays], *, compressed: bool = False) -> Arrays:
    """Return the arrays kept under ``key`` for the data set ``name``, or build them and keep them.

    The key names everything that the arrays depend on: the seed, the options, and a version of the recipe.
    ``compressed`` is for arrays that then take far less room, such as images with a white background.
    """
    path = kept_file(name, key)
    try:
        with permitted(path):
            if is_file(path):
                if is_whole(path):
                    with np.load(path, allow_pickle=False) as kept:
                        return {array: kept[array] for array in kept.files}
                warnings.warn(
                    f"{path} does not have the checksum kept beside it; building it again.", SparWarning, stacklevel=2
                )
    except UnreadableError as error:
        try:
            arrays = build()
        except MissingDataError as missing:
            raise error from missing  # what was kept is all there is, and getting at it the cure
        warnings.warn(f"{name} was built in memory and not kept: {error}", SparWarning, stacklevel=2)
        return arrays
    arrays = build()
    try:
        _keep(path, arrays, np.savez_compressed if compressed else np.savez)
    except OSError as error:
        reason = error.strerror or str(error)
        warnings.warn(f"{path} could not be written ({reason}), so it will be built again.", SparWarning, stacklevel=2)
    return arrays


def kept_file(name: str, key: str) -> Path:
    """Return the path under which arrays are kept."""
    return cache_folder() / name / f"{key}.npz"


def is_kept(path: Path) -> bool:
    """Tell whether a kept file is there to be read; one that may not be read can be built again."""
    try:
        return is_file(path) and os.access(path, os.R_OK)
    except UnreadableError:
        return False


def is_whole(path: Path) -> bool:
    """Tell whether a kept file is the one that was written."""
    beside = _sum_file(path)
    return is_file(path) and is_file(beside) and beside.read_bytes().strip() == sha256_of(path).encode()


def _keep(path: Path, arrays: Arrays, save: Callable[..., None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        contents: dict[str, Any] = dict(arrays)
        save(temporary, **contents)
        # The checksum comes first: wherever this stops, the file is missing or does not fit its sum, and is rebuilt.
        with whole_file(_sum_file(path)) as beside:
            beside.write_text(sha256_of(temporary) + "\n", encoding="utf-8")


def _sum_file(path: Path) -> Path:
    return path.with_suffix(".sha256")
