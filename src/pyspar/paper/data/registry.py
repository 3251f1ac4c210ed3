"""Data sets by name: list them, find their files, load them and check them.

To add a data set, write a module with two functions and add an entry. ``find(folder)`` returns the ``Location`` of the
data set or raises ``MissingDataError`` with the way to get it. ``load(folder, *, seed, ...)`` returns the
``ShiftTask``, and its other keywords are the options of the data set. A module is imported when it is first used.
"""

from __future__ import annotations

import importlib
import inspect
import os
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import numpy as np

from pyspar.errors import InputError, MissingDataError, MissingExtraError, collect_warnings
from pyspar.paper.data.files import Location, named_folder
from pyspar.paper.data.task import ShiftTask
from pyspar.paper.parameters import check_integer, check_name


@dataclass(frozen=True)
class DatasetEntry:
    """The name and module of a data set, and its expected content. ``parts`` are the rows of training, validation and
    test, empty if they depend on the user's files. ``shape`` is that of one row. ``obtain`` names the files that the
    user has to obtain, and is empty if a package contains them.
    """

    name: str
    module: str
    parts: tuple[int, ...]
    shape: tuple[int, ...]
    licence: str
    about: str
    obtain: str = ""


_ENTRIES = (
    DatasetEntry("communities-and-crime", "communities", (1390, 231, 373), (122,),
                 "CC BY 4.0", "violent crime from census figures, across states"),
    DatasetEntry("skillcraft", "skillcraft", (1878, 806, 711), (17,),
                 "CC BY 4.0", "a player's action latency, across leagues"),
    DatasetEntry("rcf-mnist", "rcf_mnist", (40_000, 10_000, 10_000), (3, 28, 28),
                 "MIT", "rotation of clothing, with misleading colours"),
    DatasetEntry("chair-angles-tails", "chairs.published", (), (3, 64, 64),
                 "its authors'", "rotation of a chair, beyond the training angles", "RC-49, from its authors"),
    DatasetEntry("chair-angles-recreated", "chairs.recreated", (), (3, 64, 64),
                 "CC0, CC BY 3.0", "the same with free models, rendered by pyspar"),
    DatasetEntry("povertymap", "povertymap", (9797, 3909, 3963), (8, 224, 224),
                 "DHS terms", "wealth from satellite images, across countries", "PovertyMap (13 GB)"),
    DatasetEntry("povertymap-angola", "povertymap_angola", (351, 87, 417), (8, 56, 56),
                 "DHS terms", "a small version, from towns to villages", "images computed from PovertyMap"),
)  # fmt: skip
DATASETS = {entry.name: entry for entry in _ENTRIES}


Folder = str | os.PathLike[str] | None
State = Literal["found", "missing", "changed", "incomplete", "unreadable"]


class UnreadableError(InputError):
    """A file or folder of a data set cannot be read because of its permissions."""


def names() -> tuple[str, ...]:
    """Return the names of all data sets."""
    return tuple(DATASETS)


def load(name: str, *, folder: Folder = None, seed: int = 0, **options: Any) -> ShiftTask:
    """Load a data set as a ``ShiftTask``. ``folder`` is searched first; by default it is the environment variable
    ``PYSPAR_DATA``. ``seed`` is for data sets with random draws or splits; equal seeds give equal bytes. docs/data.md
    lists the options of each data set.
    """
    function = _import_module(name).load
    known = [parameter for parameter in inspect.signature(function).parameters if parameter not in ("folder", "seed")]
    for option in options:
        check_name(f"option of {name}", option, known)
    task: ShiftTask = _call(function, folder, seed=check_integer("seed", seed, low=0), **options)
    return task


def where(name: str, folder: Folder = None, **options: Any) -> Location:
    """Return the location of a data set, or raise ``MissingDataError`` with the way to get it."""
    location: Location = _call(_import_module(name).find, folder, **options)
    return location


def _call(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except PermissionError as error:
        raise UnreadableError(f"cannot read {error.filename!r}: permission denied; change its permissions") from error


def state_of(name: str, folder: Folder = None, **options: Any) -> State:
    """Return the state of a data set in one word. Raise if ``folder`` is not a folder."""
    named_folder(folder)
    try:
        return "incomplete" if where(name, folder, **options).missing else "found"
    except MissingDataError:
        return "missing"
    except UnreadableError:
        return "unreadable"
    except InputError:
        return "changed"


def _import_module(name: str) -> ModuleType:
    return importlib.import_module(f"pyspar.paper.data.{DATASETS[check_name('data set', name, DATASETS)].module}")


@dataclass(frozen=True)
class CheckResult:
    """The result of a check. ``detail`` is the location, the way to get the data set, or the problem."""

    name: str
    state: Literal["good", "missing", "wrong"]
    detail: str


def check_dataset(name: str, folder: Folder = None) -> CheckResult:
    """Find and load a data set, and compare it with its entry in the catalogue. Every image file must exist, and the
    first and last image of each part are read.
    """
    try:
        location = where(name, folder)
        with collect_warnings() as warned:
            problems = _find_problems(DATASETS[name], load(name, folder=folder))
    except MissingDataError as error:
        found = "location" in locals()  # files of the data set are missing
        return CheckResult(name, "wrong" if found else "missing", str(error))
    except (InputError, MissingExtraError) as error:
        return CheckResult(name, "wrong", str(error))
    except Exception as error:  # noqa: BLE001 - one unreadable data set must not stop the check of the others
        return CheckResult(name, "wrong", f"cannot read {location.path} ({type(error).__name__}: {error})")
    if problems:
        return CheckResult(name, "wrong", f"{location.path}: {'; '.join(problems)}")
    notes = "".join(f"; note: {text}" for text in warned)
    return CheckResult(name, "good", f"{location.path}, in {location.place}{notes}")


def _find_problems(entry: DatasetEntry, task: ShiftTask) -> list[str]:
    parts = {"training": task.train, "validation": task.val, "test": task.test}
    problems = []
    rows = tuple(len(part) for part in parts.values())
    if entry.parts and rows != entry.parts:
        problems.append(f"expected {entry.parts} rows in the training, validation and test parts, got {rows}")
    for name, part in parts.items():
        expected = (len(part), *entry.shape)
        if not len(part):
            problems.append(f"the {name} part is empty")
        elif tuple(part.X.shape) != expected:
            problems.append(f"expected {name} inputs of shape {expected}, got {tuple(part.X.shape)}")
        elif not np.isfinite(np.asarray(part.X[np.array([0, len(part) - 1])], np.float64)).all():
            problems.append(f"the {name} inputs contain NaN or infinity")
        if not np.isfinite(part.y).all():
            problems.append(f"the {name} labels contain NaN or infinity")
    return problems
