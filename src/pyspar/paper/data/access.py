"""Access to paths that may be unreadable. A missing permission raises an error and is not reported as a missing file.

``Path.is_file`` raises or returns False for a file in an unreadable folder, depending on the version of Python.
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
    """A file or folder cannot be read because of its permissions. The message has the chmod command."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        blocked = _find_blocked(Path(path))
        super().__init__(
            f"cannot read {str(path)!r}: permission denied at {str(blocked)!r}; its owner can allow it with: "
            f"chmod -R {_choose_mode(blocked)} {shlex.quote(str(blocked))}"
        )


def is_file(path: Path) -> bool:
    """Return whether a path is a file. Raise ``UnreadableError`` if the permissions do not allow to find out."""
    return stat.S_ISREG(_read_mode(path))


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder. Raise ``UnreadableError`` if the permissions do not allow to find out."""
    return stat.S_ISDIR(_read_mode(path))


def check_folder_access(folder: Path) -> None:
    """Raise ``UnreadableError`` if a folder cannot be entered."""
    try:
        os.stat(os.path.join(folder, "."))
    except PermissionError as error:
        raise UnreadableError(folder) from error


def list_names(folder: Path) -> list[str]:
    """Return the sorted names in a folder, or an empty list if it does not exist."""
    with convert_permission_errors(folder):
        return sorted(os.listdir(folder)) if is_folder(folder) else []


@contextmanager
def convert_permission_errors(path: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Raise ``UnreadableError`` instead of PermissionError. ``path`` is used if the error has no file name."""
    try:
        yield
    except PermissionError as error:
        file = error.filename or path
        if file is None:
            raise
        raise UnreadableError(os.fsdecode(file)) from error


def _read_mode(path: Path) -> int:
    try:
        return os.stat(path).st_mode
    except PermissionError as error:
        raise UnreadableError(path) from error
    except (OSError, ValueError):  # it does not exist, or is not a valid path
        return 0


def _find_blocked(path: Path) -> Path:
    """Return the outermost parent folder that cannot be entered, else the path."""
    for folder in reversed(path.absolute().parents):
        try:
            os.stat(os.path.join(folder, "."))
        except PermissionError:
            return folder
        except OSError:
            break
    return path


def _choose_mode(path: Path) -> str:
    """Return the chmod mode: full access for the owner, or read access for everyone if the user is not the owner."""
    try:
        return "u+rwX" if os.stat(path).st_uid == os.geteuid() else "a+rX"
    except (OSError, AttributeError):  # AttributeError: Windows has no geteuid
        return "a+rX"
