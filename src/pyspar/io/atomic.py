"""Write files whole or not at all: under a temporary name in the same folder, then renamed."""

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
    """Yield a temporary path beside ``path``; it becomes ``path`` only if the block ends without an exception.

    The temporary name keeps the suffix, because many writers choose their format by it. A link is followed, and a file
    that is replaced keeps its permissions.
    """
    asked = Path(path)
    path = Path(os.path.realpath(asked))
    if not path.parent.is_dir():
        raise InputError(f"expected a file in a folder that exists. Got {str(asked)!r}; make the folder first.")
    handle, name = tempfile.mkstemp(prefix=f".{path.stem[:100]}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_permissions(path))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _permissions(path: Path) -> int:
    """Return those of the file that is replaced, or those that a plain open() would give a new one."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
