"""Find a data set's files, in a fixed order, and refuse a file whose content is not what was measured.

The order: a folder that the user names (an argument, or the environment variable ``PYSPAR_DATA``), the package that
ships the file, and the cache folder. In a named folder ``F``, the files of the set ``NAME`` lie in ``F/NAME`` or
in ``F``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import is_file, is_folder, require_entry

NAMED, CACHED = "a folder you named", "the cache"


@dataclass(frozen=True)
class Found:
    """Where a data set lies: a file or a folder, the kind of place it is in, and what it lacks there, if anything."""

    path: Path
    place: str
    lacks: str = ""


def named_folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder that the user names: the argument, or else ``PYSPAR_DATA``, or else None."""
    asked, by = (folder, "folder") if folder is not None else (os.environ.get("PYSPAR_DATA") or None, "PYSPAR_DATA")
    if asked is None:
        return None
    path = _expanded(asked, by)
    if not is_folder(path):
        raise InputError(f"{by} must be a folder with data sets. Got {str(asked)!r}, which is none; check the path.")
    require_entry(path)  # here, once, and not for every file that it might hold
    return path


def require_places(folder: str | os.PathLike[str] | None) -> None:
    """Refuse places that the user names and that cannot be, once, so that it is not told of every data set."""
    named_folder(folder)
    if os.environ.get("PYSPAR_CACHE"):
        cache_folder()


def cache_folder() -> Path:
    """Return the folder for what was built or downloaded once: ``PYSPAR_CACHE``, or the user's cache folder."""
    asked = os.environ.get("PYSPAR_CACHE")
    if asked:
        return _expanded(asked, "PYSPAR_CACHE")
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = _home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache")
    return home / "pyspar"


def _expanded(asked: str | os.PathLike[str], by: str) -> Path:
    try:
        return Path(asked).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"{by} must be the path of a folder. Got {str(asked)!r}, and there is no such user; write the path in full."
        ) from error


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise MissingDataError(
            "expected a home folder for the cache. Got none; name a folder by the environment variable PYSPAR_CACHE."
        ) from error


def folders_for(name: str, folder: str | os.PathLike[str] | None) -> Iterator[Found]:
    """Yield the folders in which files of the set ``name`` may lie, first those that the user names."""
    named = named_folder(folder)
    if named is not None:
        yield Found(named / name, NAMED)
        yield Found(named, NAMED)


def cached_folder_for(name: str) -> Found:
    """Return the folder of the set ``name`` in the cache."""
    return Found(cache_folder() / name, CACHED)


@dataclass(frozen=True)
class ShippedFile:
    """One file with a known content, the package that ships it, and how to get that."""

    name: str
    package: str
    relative: str
    sha256: str
    install: str

    def find(self, folder: str | os.PathLike[str] | None) -> Found:
        """Return the first place that holds the file, after checking what is in it."""
        base = Path(self.relative).name
        for place in folders_for(self.name, folder):
            if is_file(place.path / base):
                return Found(self._checked(place.path / base), place.place)
        shipped = package_folder(self.package)
        if shipped is not None and is_file(shipped / self.relative):
            return Found(self._checked(shipped / self.relative), f"the package {self.package}")
        cached = cached_folder_for(self.name)
        if is_file(cached.path / base):
            return Found(self._checked(cached.path / base), CACHED)
        raise MissingDataError(
            f"The data set {self.name!r} was not found. Get it with: {self.install}\n"
            f"or put the file {base} into a folder and name that by PYSPAR_DATA, --data or folder=."
        )

    def _checked(self, path: Path) -> Path:
        require_sum(path, self.sha256, cure=f"Take the file from: {self.install}")
        return path


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package without importing it, or None."""
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_sum(path: Path, sha256: str, *, cure: str) -> None:
    """Refuse a file with another content than the one that was measured."""
    found = sha256_of(path)
    if found != sha256:
        raise InputError(f"{path} has changed: expected sha256 {sha256}, got {found}. {cure}")
