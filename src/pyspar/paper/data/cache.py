"""Cache of arrays that take a while to build: npz files in the cache folder, with a checksum of each array.

A damaged file is built again, with a warning. If the cache cannot be read or written, the arrays are built in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import warn
from pyspar.io.atomic import whole_file
from pyspar.paper.data.files import cache_folder, read_npz

Arrays = dict[str, NDArray[Any]]


def load_or_build(name: str, key: str, build: Callable[[], Arrays], *, compressed: bool = False) -> Arrays:
    """Return the cached arrays of the data set ``name`` and ``key``. Build and cache them if they do not exist.

    The key has to contain everything that the arrays depend on: the seed, the options, and a version of the algorithm.
    ``compressed`` is for arrays that compress well, such as images with a white background.
    """
    path = cache_file(name, key)
    try:
        if path.is_file():
            return read_npz(path)
    except Exception as error:  # noqa: BLE001 - a damaged file raises many kinds of exceptions
        warn(f"cannot read {path}: {error}; building it again")
    arrays = build()
    contents: dict[str, Any] = dict(arrays)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            (np.savez_compressed if compressed else np.savez)(temporary, **contents)
    except OSError as error:
        warn(f"cannot write {path}: {error.strerror or error}; it will be built again next time")
    return arrays


def cache_file(name: str, key: str) -> Path:
    """Return the path of the cached arrays."""
    return cache_folder() / name / f"{key}.npz"
