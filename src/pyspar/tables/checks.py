"""What two tables must be before a fit: a usable label, finite numbers, a target with the source's columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.tables.arrays import has_names
from pyspar.tables.columns import Ignored, Selection
from pyspar.tables.names import few, meant
from pyspar.tables.values import as_days, as_numbers

_LARGEST = 1e150
"""Beyond it the square of a number is near the limit of floating point; infinity is beyond it too."""

_LABEL = "numbers, since it is the label"


def label_name(source: pd.DataFrame, path: Path, label: str) -> str:
    """Return the name of the label's column; files without names take its number too, from the end if negative."""
    if label in source.columns:
        return label
    where = f"source {str(path)!r}"
    if not has_names(path) and re.fullmatch(r"-?\d+", label):
        width = len(source.columns)
        if not -width <= int(label) < width:
            raise InputError(f"{where}: expected --label to number one of its {width} columns, from 0. Got {label}.")
        return str(source.columns[int(label)])
    raise InputError(
        f"{where}: expected the label column {label!r}. Got no such column; {meant(label, source.columns)}"
    )


def label_values(source: pd.DataFrame, path: Path, label: str) -> Any:
    """Return the labels of the source: numbers, none missing, not all the same."""
    where = f"source {str(path)!r}"
    if len(source) < 2:
        raise InputError(f"{where}: expected at least two rows to fit. Got one.")
    values = _numbers(source[label], where, _LABEL).astype(np.float64)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        rows = ", ".join(map(str, missing[:5])) + (", ..." if missing.size > 5 else "")
        raise InputError(
            f"{where}, column {label!r}: expected a label in every row. Got {missing.size} missing of {len(values)} "
            f"(rows {rows}; the first row is 0); drop these rows."
        )
    _refuse_infinity(values, label, where)
    if values.min() == values.max():
        raise InputError(
            f"{where}, column {label!r}: expected labels that differ. Got {values[0]:g} only; name another column."
        )
    return values


def check_finite(table: pd.DataFrame, names: Iterable[str], where: str) -> None:
    """Refuse infinity in numeric columns; missing values are no error, they are filled in."""
    for name in names:
        _refuse_infinity(as_numbers(table[name]), name, where)


def aligned_target(target: pd.DataFrame, target_path: Path, source: pd.DataFrame, source_path: Path, label: str) -> Any:
    """Return the target under the source's names.

    Arrays have no names, only positions. A target array that is one column narrower than the source's is the source's
    without the label, wherever in the source that is.
    """
    if has_names(target_path) or has_names(source_path):
        return target
    expected = [name for name in source.columns if name != label]
    numbered = all(re.fullmatch(r"x\d+", name) for name in [*expected, *target.columns])
    if numbered and len(target.columns) == len(expected):
        return target.set_axis(expected, axis=1)
    return target


def check_target(target: pd.DataFrame, path: Path, selection: Selection, *, identity: str | None) -> None:
    """Refuse a target whose features are not there or not of the source's kind."""
    where = f"target {str(path)!r}"
    if identity is not None and identity not in target.columns:
        raise InputError(
            f"{where}: expected the --id column {identity!r}. Got no such column; {meant(identity, target.columns)}"
        )
    missing = [name for name in selection.names if name not in target.columns]
    if missing:
        raise InputError(
            f"{where}: expected the source's feature columns. Got a table without {few(missing)} "
            f"({len(missing)} of {len(selection.names)} missing); {meant(missing[0], target.columns)}"
        )
    for name in selection.numeric:
        _refuse_infinity(_numbers(target[name], where), name, where)
    for name in selection.date:
        try:
            as_days(target[name])
        except InputError as error:
            raise InputError(f"{where}, {error}") from error


def extra_columns(
    target: pd.DataFrame, source: pd.DataFrame, *, label: str, identity: str | None
) -> tuple[Ignored, ...]:
    """Return the columns that only the target has."""
    known = {*source.columns, label, identity}
    return tuple(Ignored(name, "is in the target only") for name in target.columns if name not in known)


def target_labels(target: pd.DataFrame, path: Path, label: str) -> tuple[Any, tuple[str, ...]]:
    """Return the target's own labels, missing ones as NaN, or None where it has none, and notes.

    They only score predictions, so text in their place ('to come') is no reason to refuse the file.
    """
    if label not in target.columns or target[label].isna().all():
        return None, ()
    try:
        values = as_numbers(target[label], "numbers").astype(np.float64)
    except InputError as error:
        return None, (f"the target's labels were not used to score: {error}",)
    _refuse_infinity(values, label, f"target {str(path)!r}")
    return values, ()


def _numbers(column: Any, where: str, expected: str | None = None) -> Any:
    try:
        return as_numbers(column) if expected is None else as_numbers(column, expected)
    except InputError as error:
        raise InputError(f"{where}, {error}") from error


def _refuse_infinity(values: Any, name: str, where: str) -> None:
    infinite = np.flatnonzero(np.abs(values, dtype=np.float64) > _LARGEST)
    if infinite.size:
        row = int(infinite[0])
        raise InputError(
            f"{where}, column {name!r}: expected finite numbers that can be squared. Got {values[row]:g} in row {row} "
            f"({infinite.size} such of {len(values)}; the first row is 0); mend them, or leave them empty."
        )
