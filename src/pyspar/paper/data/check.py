"""Check of a data set: checksums, numbers of rows, shapes, and finite labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pyspar.errors import InputError, MissingDataError, MissingExtraError, collect_warnings
from pyspar.paper.data.catalogue import DATASETS, DatasetEntry
from pyspar.paper.data.registry import Folder, UnreadableError, load, where
from pyspar.paper.data.task import ShiftTask


@dataclass(frozen=True)
class CheckResult:
    """The result of a check. ``detail`` is the location, the way to get the data set, or the problem."""

    name: str
    state: Literal["good", "missing", "wrong"]
    detail: str


def check_dataset(name: str, folder: Folder = None) -> CheckResult:
    """Find and load a data set, and compare it with its entry in the catalogue.

    Files with a known checksum are hashed. Every image file must exist, and the first and last image of each part are
    read.
    """
    try:
        location = where(name, folder)
    except MissingDataError as error:
        return CheckResult(name, "missing", str(error))
    except InputError as error:
        return CheckResult(name, "wrong", _describe_error(error))
    try:
        with collect_warnings() as warned:
            task = load(name, folder=folder)
            problems = _find_problems(DATASETS[name], task)
    except (InputError, MissingExtraError) as error:
        return CheckResult(name, "wrong", _describe_error(error))
    except Exception as error:  # noqa: BLE001 - one unreadable data set must not stop the check of the others
        return CheckResult(name, "wrong", f"cannot read {location.path} ({type(error).__name__}: {error})")
    if problems:
        return CheckResult(name, "wrong", f"{location.path}: {'; '.join(problems)}")
    notes = "".join(f"; note: {text}" for text in warned)
    return CheckResult(name, "good", f"{location.path}, in {location.place}{notes}")


def _describe_error(error: InputError | MissingExtraError) -> str:
    return f"unreadable: {error}" if isinstance(error, UnreadableError) else str(error)


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
