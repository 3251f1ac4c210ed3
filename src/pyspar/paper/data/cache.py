"""Cache of arrays that take a while to build: an npz file in the cache folder, with its checksum in a second file.

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
from pyspar.paper.data.files import cache_folder, compute_sha256

Arrays = dict[str, NDArray[Any]]


def load_or_build(name: str, key: str, build: Callable[[], Arrays], *, compressed: bool = False) -> Arrays:
    """Return the cached arrays of the data set ``name`` and ``key``. Build and cache them if they do not exist.

    The key has to contain everything that the arrays depend on: the seed, the options, and a version of the algorithm.
    ``compressed`` is for arrays that compress well, such as images with a white background.
    """
    path = cache_file(name, key)
    try:
        if path.is_file():
            if is_intact(path):
                with np.load(path, allow_pickle=False) as cached:
                    return {array: cached[array] for array in cached.files}
            warn(f"{path} does not match its checksum; building it again")
    except PermissionError as error:
        warn(f"cannot read {path}: {error.strerror}; building it again")
    arrays = build()
    try:
        _write(path, arrays, np.savez_compressed if compressed else np.savez)
    except OSError as error:
        reason = error.strerror or str(error)
        warn(f"cannot write {path}: {reason}; it will be built again next time")
    return arrays


def cache_file(name: str, key: str) -> Path:
    """Return the path of the cached arrays."""
    return cache_folder() / name / f"{key}.npz"


def is_intact(path: Path) -> bool:
    """Return whether a cached file matches its checksum."""
    checksum = _checksum_file(path)
    return checksum.is_file() and checksum.read_bytes().strip() == compute_sha256(path).encode()


def _write(path: Path, arrays: Arrays, save: Callable[..., None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        contents: dict[str, Any] = dict(arrays)
        save(temporary, **contents)
        # The checksum is written first. After an interruption the file is missing or does not match, and is rebuilt.
        with whole_file(_checksum_file(path)) as checksum:
            checksum.write_text(compute_sha256(temporary) + "\n", encoding="utf-8")


def _checksum_file(path: Path) -> Path:
    return path.with_suffix(".sha256")
