"""Atomic writes: a file is written under a temporary name in the same folder and then renamed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspar.errors import InputError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``, and rename it to ``path`` if the block raises no exception.

    The temporary name keeps the suffix, because many writers choose their format by it. Links are followed. An existing
    file keeps its permissions.
    """
    requested = Path(path)
    path = Path(os.path.realpath(requested))
    if not path.parent.is_dir():
        raise InputError(f"cannot write {str(requested)!r}: its folder does not exist; create it first")
    handle, name = tempfile.mkstemp(prefix=f".{path.stem[:100]}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_choose_permissions(path))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _choose_permissions(path: Path) -> int:
    """Return the permissions of the existing file, or those that open() gives to a new file."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
