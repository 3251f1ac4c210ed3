"""Write files whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspar.errors import InputError


@contextmanager
def write_atomically(*paths: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """Yield one temporary path for each path, and rename them all if the block raises no exception.

    The temporary file lies in the same folder and keeps the suffix, because many writers choose their format by it. All
    contents are on the disk before the first file is renamed. Links are followed, and an existing file keeps its
    permissions.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    for path, target in zip(paths, targets, strict=True):
        if not target.parent.is_dir():
            raise InputError(f"cannot write {os.fspath(path)!r}: its folder does not exist; create it first")
    parts = [target.with_name(f".{target.stem[:50]}.{secrets.token_hex(8)}{target.suffix}") for target in targets]
    try:
        for part, target in zip(parts, targets, strict=True):
            # A new file gets the permissions that open() gives. A replaced one may be secret.
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if target.exists() else 0o666))
        yield parts
        for part, target in zip(parts, targets, strict=True):
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            _sync(part)
        for part, target in zip(parts, targets, strict=True):
            os.replace(part, target)
            with suppress(OSError):  # some file systems cannot sync a folder; the file itself is complete
                _sync(target.parent)
    except OSError as error:
        names = {str(part): str(path) for part, path in zip(parts, paths, strict=True)}
        error.filename = names.get(str(error.filename), error.filename or ", ".join(names.values()))
        error.filename2 = None
        raise
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
