"""Atomic writes: a file is written under a temporary name in the same folder and then renamed.

The temporary file is locked while it is written. The operating system releases the lock of a process that dies, so the
next write of the same file recognises what a killed process left, and removes it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType

from pyspar.errors import InputError
from pyspar.terminal import CLEANUPS

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows: the files of killed processes are not removed
    fcntl = None

_temporaries: set[Path] = set()
"""The temporary files of this process, for a command that is ended during an operation."""


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``, and rename it to ``path`` if the block raises no exception.

    The temporary name keeps the suffix, because many writers choose their format by it. Links are followed. An existing
    file keeps its permissions. The content is on the disk before the file gets its name. An OSError of writing has
    ``path`` as its ``filename``.
    """
    with whole_files([path]) as (temporary,):
        yield temporary


@contextmanager
def whole_files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[Path]]:
    """Yield a temporary path for each path, and rename them if the block raises no exception.

    All contents are on the disk before the first file is renamed. If a later one cannot be renamed, the error lists the
    files that were written.
    """
    with ExitStack() as stack:
        drafts: list[_Draft] = []
        try:
            for path in paths:
                drafts.append(stack.enter_context(_Draft(path)))
            yield [draft.temporary for draft in drafts]
            for draft in drafts:
                draft.sync()
        except OSError as error:
            if error.filename is None and error.errno is not None:
                error.filename = ", ".join(str(draft.requested) for draft in drafts)
            for draft in drafts:
                if error.filename == str(draft.temporary):
                    error.filename = str(draft.requested)
            raise
        for number, draft in enumerate(drafts):
            try:
                draft.rename()
            except OSError as error:
                error.filename = str(draft.requested)
                del error.filename2  # None would be printed
                if number == 0:
                    raise
                others = ", ".join(str(other.requested) for other in drafts[:number])
                reason = (error.strerror or str(error)).lower()
                raise InputError(f"cannot write {draft.requested}: {reason}; {others} was written") from error


class _Draft:
    """A temporary file, locked until it is renamed or removed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.requested = Path(path)
        self.path = Path(os.path.realpath(path))
        if not self.path.parent.is_dir():
            raise InputError(f"cannot write {str(self.requested)!r}: its folder does not exist; create it first")
        self._prefix = f".{self.path.stem[:50]}.pyspar-"
        self._handle = -1

    def __enter__(self) -> _Draft:
        with suppress(PermissionError):  # a folder may be writable but not readable
            self._remove_abandoned()
        # A new file gets the permissions that open() gives. A replaced one may be secret, so others cannot read it.
        mode = 0o600 if self.path.exists() else 0o666
        while True:
            self.temporary = self.path.with_name(f"{self._prefix}{secrets.token_hex(8)}{self.path.suffix}")
            try:
                self._handle = os.open(self.temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            except OSError as error:
                error.filename = str(self.requested)
                raise
            if not _lock(self._handle, wait=True) or self._is_at(self.temporary):
                _temporaries.add(self.temporary)
                return self
            os.close(self._handle)  # another process took it for abandoned before it was locked

    def __exit__(self, *error: object) -> None:
        os.close(self._handle)
        with suppress(OSError):  # after a rename it does not exist; on a failed disk the next write removes it
            self.temporary.unlink()
        _temporaries.discard(self.temporary)

    def sync(self) -> None:
        """Wait until the content is on the disk. A full or broken disk may be reported only now."""
        handle = os.open(self.temporary, os.O_RDWR)
        try:
            if self.path.exists():
                self.temporary.chmod(stat.S_IMODE(self.path.stat().st_mode))
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self) -> None:
        try:
            os.replace(self.temporary, self.path)
        except OSError:
            # A file server may rename the file and lose its answer. The repeated request then fails.
            if self.temporary.exists() or not self._is_at(self.path):
                raise
        _sync_folder(self.path.parent)

    def _is_at(self, path: Path) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._handle), os.stat(path))
        return False

    def _remove_abandoned(self) -> None:
        """Remove the temporary files of this path that no process has locked."""
        for name in os.listdir(self.path.parent):
            if name.startswith(self._prefix) and name.endswith(self.path.suffix):
                with suppress(OSError):  # another process may remove it first
                    handle = os.open(self.path.with_name(name), os.O_RDWR)
                    try:
                        if _lock(handle, wait=False):
                            self.path.with_name(name).unlink()
                    finally:
                        os.close(handle)


def _remove_temporaries() -> None:
    for temporary in list(_temporaries):
        temporary.unlink(missing_ok=True)


CLEANUPS.append(_remove_temporaries)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock a file, and return whether it is locked. Some network file systems have no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk. The file is complete, so a file system without this operation is no error."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
