"""Find a data file inside an installed package, and refuse one whose content is not what was measured."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from pyspar.errors import InputError


def packaged_file(package: str, relative: str, *, install: str, sha256: str) -> Path:
    """Return the path of a file that a package ships, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise InputError(f"This data set comes with the package {package!r}. Install it with: {install}")
    path = Path(spec.origin).parent / relative
    if not path.is_file():
        raise InputError(f"{package!r} is installed but has no file {relative!r}. Install it again with: {install}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise InputError(f"{path} has changed: expected sha256 {sha256}, got {found}. Install it again with: {install}")
    return path
