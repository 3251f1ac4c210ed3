"""Find the files of a data set in a fixed order, and compare their checksums.

The order is: the user's folder (an argument, or the environment variable ``PYSPAR_DATA``), the package that contains
the file, and the cache folder. In a user's folder ``F``, the files of the data set ``NAME`` are in ``F/NAME`` or in
``F``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError, warn
from pyspar.persist import write_atomically

Arrays = dict[str, NDArray[Any]]
USER_FOLDER, CACHE = "a folder you named", "the cache"


@dataclass(frozen=True)
class Location:
    """The location of a data set: a file or folder, the kind of place, and a description of missing files."""

    path: Path
    place: str
    missing: str = ""


def named_folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the user's folder: the argument, else ``PYSPAR_DATA``, else None. Raise if it is not a folder."""
    variable = os.environ.get("PYSPAR_DATA") or None
    text, origin = (folder, "folder") if folder is not None else (variable, "PYSPAR_DATA")
    if text is None:
        return None
    path = Path(text).expanduser()
    if not path.is_dir():
        raise InputError(f"folder not found: {str(text)!r}; {origin} must name an existing folder with data sets")
    return path


def cache_folder() -> Path:
    """Return the folder for data that pyspar builds: ``PYSPAR_CACHE``, or ``pyspar`` in the user's cache folder."""
    variable = os.environ.get("PYSPAR_CACHE")
    if variable:
        return Path(variable).expanduser()
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "pyspar"


def candidate_folders(name: str, folder: str | os.PathLike[str] | None) -> Iterator[Location]:
    """Yield the subfolder ``name`` of the user's folder, then the user's folder, if there is one."""
    named = named_folder(folder)
    if named is not None:
        yield Location(named / name, USER_FOLDER)
        yield Location(named, USER_FOLDER)


def list_names(folder: Path) -> list[str]:
    """Return the sorted names in a folder, or an empty list if it does not exist."""
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def cache_location(name: str) -> Location:
    """Return the folder of the data set ``name`` in the cache."""
    return Location(cache_folder() / name, CACHE)


@dataclass(frozen=True)
class PackagedFile:
    """A file with a known checksum, the package that contains it, and the command that installs the package."""

    name: str
    package: str
    relative: str
    sha256: str
    install: str

    def find(self, folder: str | os.PathLike[str] | None = None) -> Location:
        base = Path(self.relative).name
        package = package_folder(self.package)
        places = [
            *candidate_folders(self.name, folder),
            *([] if package is None else [Location((package / self.relative).parent, f"the package {self.package}")]),
            cache_location(self.name),
        ]
        for place in places:
            if (place.path / base).is_file():
                check_sha256(place.path / base, self.sha256, fix=f"get the file with: {self.install}")
                return Location(place.path / base, place.place)
        raise MissingDataError(
            f"data set not found: {self.name!r}. Get it with: {self.install}\n"
            f"or put the file {base} into a folder and pass the folder as PYSPAR_DATA, --data or folder=."
        )


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package without importing it, or None."""
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def compute_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, without reading it into memory at once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: Path, sha256: str, *, fix: str) -> None:
    """Raise if a file does not have this checksum."""
    actual = compute_sha256(path)
    if actual != sha256:
        raise InputError(f"wrong checksum of {str(path)!r}: expected sha256 {sha256}, got {actual}; {fix}")


def read_npz(path: Path) -> Arrays:
    """Read the arrays of an npz file. A damaged file raises an exception of any kind."""
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()  # NumPy may stop reading before the checksum of an entry is compared
    if damaged is not None:
        raise ValueError(f"{damaged} has the wrong checksum")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def cache_file(name: str, key: str) -> Path:
    """Return the path of cached arrays."""
    return cache_folder() / name / f"{key}.npz"


def load_or_build(name: str, key: str, build: Callable[[], Arrays], *, compressed: bool = False) -> Arrays:
    """Return the cached arrays of the data set ``name`` and ``key``. Build and cache them if they do not exist. The key
    has to contain everything that the arrays depend on: the seed, the options, and a version of the algorithm. A
    damaged file is built again, with a warning. If the cache cannot be written, the arrays are only in memory.
    """
    path = cache_file(name, key)
    try:
        if path.is_file():
            return read_npz(path)
    except Exception as error:  # noqa: BLE001 - a damaged file raises many kinds of exceptions
        warn(f"cannot read {path}: {error}; building it again")
    arrays = build()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as (temporary,):
            (np.savez_compressed if compressed else np.savez)(temporary, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        warn(f"cannot write {path}: {error.strerror or error}; it will be built again next time")
    return arrays
