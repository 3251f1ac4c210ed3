"""Data sets by name: list them, find their files, and load them."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Literal

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.catalogue import DATASETS
from pyspar.paper.data.files import Location, named_folder
from pyspar.paper.data.task import ShiftTask
from pyspar.paper.parameters import check_integer
from pyspar.wording import suggest_name

Folder = str | os.PathLike[str] | None
State = Literal["found", "missing", "changed", "incomplete", "unreadable"]


class UnreadableError(InputError):
    """A file or folder of a data set cannot be read because of its permissions."""


@contextmanager
def _convert_permission_errors() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise UnreadableError(f"cannot read {error.filename!r}: permission denied; change its permissions") from error


def names() -> tuple[str, ...]:
    """Return the names of all data sets.

    >>> "skillcraft" in names()
    True
    """
    return tuple(DATASETS)


def load(name: str, *, folder: Folder = None, seed: int = 0, **options: Any) -> ShiftTask:
    """Load a data set as a ``ShiftTask``.

    Parameters
    ----------
    name : str
        One of ``names()``.
    folder : path, optional
        The folder to search first. The default is the environment variable ``PYSPAR_DATA``.
    seed : int
        For data sets with random draws or random splits. Equal seeds give equal bytes.
    **options
        Options of the data set, such as ``raw=True`` for tables. docs/data.md lists them.
    """
    function = _import_module(name).load
    known = [parameter for parameter in inspect.signature(function).parameters if parameter not in ("folder", "seed")]
    unknown = sorted(set(options) - set(known))
    if unknown:
        available = f"its options are {', '.join(known)}" if known else "it has no options"
        raise InputError(f"{name!r} has no option {', '.join(unknown)}; {available}")
    seed = check_integer("seed", seed, low=0)
    with _convert_permission_errors():
        task: ShiftTask = function(folder, seed=seed, **options)
    return task


def where(name: str, folder: Folder = None) -> Location:
    """Return the location of a data set, or raise ``MissingDataError`` with the way to get it."""
    module = _import_module(name)
    with _convert_permission_errors():
        location: Location = module.find(folder)
    return location


def state_of(name: str, folder: Folder = None) -> State:
    """Return the state of a data set in one word. Raise if ``folder`` is not a folder."""
    named_folder(folder)
    try:
        location = where(name, folder)
    except MissingDataError:
        return "missing"
    except UnreadableError:
        return "unreadable"
    except InputError:
        return "changed"
    return "incomplete" if location.missing else "found"


def check_name(name: str) -> None:
    """Raise if there is no data set with this name."""
    if name not in DATASETS:
        hint = suggest_name(name, DATASETS) or f"the data sets are {', '.join(DATASETS)}"
        raise InputError(f"unknown data set {name!r}; {hint}")


def _import_module(name: str) -> ModuleType:
    check_name(name)
    return importlib.import_module(DATASETS[name].module)
