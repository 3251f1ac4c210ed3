"""Check what is found of a data set: sums, rows, shapes, and that labels are numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pyspar.errors import InputError, MissingDataError, MissingExtraError, SparWarning
from pyspar.paper.data.access import UnreadableError
from pyspar.paper.data.entries import ENTRIES, Entry
from pyspar.paper.data.registry import Folder, load, where
from pyspar.paper.data.task import ShiftTask


@dataclass(frozen=True)
class Checked:
    """What came of a check; ``detail`` is the place, the way to get the set, or what is wrong with it."""

    name: str
    state: Literal["good", "missing", "wrong"]
    detail: str


def checked(name: str, folder: Folder = None) -> Checked:
    """Find and load a data set, and compare it with what it should be.

    Files with a known checksum are summed. Of images in files, each must be there, and the first and last of each part
    are read.
    """
    try:
        found = where(name, folder)
    except MissingDataError as error:
        return Checked(name, "missing", str(error))
    except InputError as error:
        return Checked(name, "wrong", _told(error))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SparWarning)
            task = load(name, folder=folder)
            wrong = _differences(ENTRIES[name], task)
    except (InputError, MissingExtraError) as error:
        return Checked(name, "wrong", _told(error))
    except Exception as error:  # noqa: BLE001 - one set that cannot be read must not end the check of the others
        return Checked(name, "wrong", f"{found.path} cannot be read ({type(error).__name__}: {error})")
    if wrong:
        return Checked(name, "wrong", f"{found.path}: {'; '.join(wrong)}")
    notes = "".join(f"; note: {warning.message}" for warning in caught)
    return Checked(name, "good", f"{found.path}, in {found.place}{notes}")


def _told(error: InputError | MissingExtraError) -> str:
    return f"unreadable: {error}" if isinstance(error, UnreadableError) else str(error)


def _differences(entry: Entry, task: ShiftTask) -> list[str]:
    parts = {"training": task.train, "validation": task.val, "test": task.test}
    wrong = []
    rows = tuple(len(part) for part in parts.values())
    if entry.parts and rows != entry.parts:
        wrong.append(f"expected {entry.parts} rows of training, validation and test, got {rows}")
    for kind, part in parts.items():
        if not len(part):
            wrong.append(f"the {kind} part is empty")
        elif tuple(part.X.shape) != (len(part), *entry.shape):
            wrong.append(f"expected {kind} inputs of shape {(len(part), *entry.shape)}, got {tuple(part.X.shape)}")
        elif not np.isfinite(np.asarray(part.X[np.array([0, len(part) - 1])], np.float64)).all():
            wrong.append(f"the {kind} inputs hold values that are no numbers")
        if not np.isfinite(part.y).all():
            wrong.append(f"the {kind} labels hold values that are no numbers")
    return wrong
