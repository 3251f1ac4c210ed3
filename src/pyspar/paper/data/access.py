"""Look at paths that may be shut: what one is not allowed to read is neither there nor missing, and is said as such.

``Path.is_file`` raises or answers False for a file in a folder that is shut, by the version of Python; these do not.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspar.errors import InputError


class UnreadableError(InputError):
    """A file or folder is there, or may be, but we are not allowed to read it; the text says who can change that."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        shut = _shut(Path(path))
        super().__init__(
            f"expected to be able to read {str(path)!r}. Got: permission denied at {str(shut)!r}. Its owner can allow "
            f"it with: chmod -R {_grant(shut)} {shlex.quote(str(shut))}"
        )


def is_file(path: Path) -> bool:
    """Tell whether a path is a file; refuse to guess where one may not look."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder; refuse to guess where one may not look."""
    return stat.S_ISDIR(_mode(path))


def require_entry(folder: Path) -> None:
    """Refuse a folder that may not be entered."""
    try:
        os.stat(os.path.join(folder, "."))
    except PermissionError as error:
        raise UnreadableError(folder) from error


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder, none where there is no folder."""
    with permitted(folder):
        return sorted(os.listdir(folder)) if is_folder(folder) else []


@contextmanager
def permitted(path: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Raise ``UnreadableError`` in place of a PermissionError, of ``path`` where the error itself names none."""
    try:
        yield
    except PermissionError as error:
        named = error.filename or path
        if named is None:
            raise
        raise UnreadableError(os.fsdecode(named)) from error


def _mode(path: Path) -> int:
    try:
        return os.stat(path).st_mode
    except PermissionError as error:
        raise UnreadableError(path) from error
    except (OSError, ValueError):  # nothing there, or no path at all
        return 0


def _shut(path: Path) -> Path:
    """Return the outermost folder on the way to a path that may not be entered, or else the path."""
    for folder in reversed(path.absolute().parents):
        try:
            os.stat(os.path.join(folder, "."))
        except PermissionError:
            return folder
        except OSError:
            break
    return path


def _grant(path: Path) -> str:
    """Say what to allow: the owner's own files to the owner, somebody else's to be read by all."""
    try:
        return "u+rwX" if os.stat(path).st_uid == os.geteuid() else "a+rX"
    except (OSError, AttributeError):  # AttributeError: Windows has no user numbers
        return "a+rX"
