"""Data sets by name: what there is, where it lies, and the task it makes."""

from __future__ import annotations

import importlib
import inspect
import os
from types import ModuleType
from typing import Any, Literal

from pyspar.data.entries import ENTRIES
from pyspar.data.files import Found, named_folder
from pyspar.data.task import ShiftTask
from pyspar.errors import InputError, MissingDataError

Folder = str | os.PathLike[str] | None


def names() -> tuple[str, ...]:
    """Return the names of all data sets.

    >>> "skillcraft" in names()
    True
    """
    return tuple(ENTRIES)


def load(name: str, *, folder: Folder = None, seed: int = 0, **options: Any) -> ShiftTask:
    """Load a data set as a ``ShiftTask``.

    Parameters
    ----------
    name : str
        One of ``names()``.
    folder : path, optional
        Where to look first; without it, the folder that the environment variable ``PYSPAR_DATA`` names.
    seed : int
        For sets that are drawn or cut at random; the same seed gives the same bytes.
    **options
        Of this set alone, such as ``raw=True`` for tables; docs/data.md lists them.
    """
    function = _module(name).load
    known = [parameter for parameter in inspect.signature(function).parameters if parameter not in ("folder", "seed")]
    unknown = sorted(set(options) - set(known))
    if unknown:
        has = f"its options are {', '.join(known)}" if known else "it has none"
        raise InputError(f"{name!r} has no option named {', '.join(unknown)}; {has}.")
    task: ShiftTask = function(folder, seed=seed, **options)
    return task


def where(name: str, folder: Folder = None) -> Found:
    """Return where a data set lies, or raise ``MissingDataError`` with the way to get it."""
    found: Found = _module(name).find(folder)
    return found


def state_of(name: str, folder: Folder = None) -> Literal["found", "missing", "changed", "incomplete"]:
    """Say in a word what there is of a data set; a folder that is none is refused."""
    named_folder(folder)
    try:
        found = where(name, folder)
    except MissingDataError:
        return "missing"
    except InputError:
        return "changed"
    return "incomplete" if found.lacks else "found"


def _module(name: str) -> ModuleType:
    if name not in ENTRIES:
        raise InputError(f"there is no data set named {name!r}. The names are {', '.join(ENTRIES)}.")
    return importlib.import_module(ENTRIES[name].module)
