"""Data sets by name: what there is, where it lies, and the task it makes."""

from __future__ import annotations

import importlib
import inspect
import operator
import os
from types import ModuleType
from typing import Any, Literal

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import UnreadableError, permitted
from pyspar.paper.data.entries import ENTRIES
from pyspar.paper.data.files import Found, require_places
from pyspar.paper.data.task import ShiftTask

Folder = str | os.PathLike[str] | None
State = Literal["found", "missing", "changed", "incomplete", "unreadable"]


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
        For sets that are drawn or cut at random, 0 or more; the same seed gives the same bytes.
    **options
        Of this set alone, such as ``raw=True`` for tables; docs/data.md lists them.
    """
    function = _module(name).load
    known = [parameter for parameter in inspect.signature(function).parameters if parameter not in ("folder", "seed")]
    unknown = sorted(set(options) - set(known))
    if unknown:
        has = f"its options are {', '.join(known)}" if known else "it has none"
        raise InputError(f"{name!r} has no option named {', '.join(unknown)}; {has}.")
    seed = _whole(seed)
    with permitted():
        task: ShiftTask = function(folder, seed=seed, **options)
    return task


def where(name: str, folder: Folder = None) -> Found:
    """Return where a data set lies, or raise ``MissingDataError`` with the way to get it."""
    module = _module(name)
    with permitted():
        found: Found = module.find(folder)
    return found


def state_of(name: str, folder: Folder = None) -> State:
    """Say in a word what there is of a data set; a place that cannot be is refused."""
    require_places(folder)
    try:
        found = where(name, folder)
    except MissingDataError:
        return "missing"
    except UnreadableError:
        return "unreadable"
    except InputError:
        return "changed"
    return "incomplete" if found.lacks else "found"


def _whole(seed: int) -> int:
    """Return a seed as a plain int; what is none would be refused far from here, or name a file of its own."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise InputError(f"seed must be a whole number, 0 or more. Got {seed!r} instead; seed=0 is the usual one.")
    return number


def _module(name: str) -> ModuleType:
    if name not in ENTRIES:
        raise InputError(f"there is no data set named {name!r}. The names are {', '.join(ENTRIES)}.")
    return importlib.import_module(ENTRIES[name].module)
