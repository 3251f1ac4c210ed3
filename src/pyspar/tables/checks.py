"""What two tables must be before a fit: a usable label, finite numbers, a target with the source's columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.sources.files.names import few, left_out, meant
from pyspar.sources.files.rows import LARGEST
from pyspar.tables.arrays import has_names
from pyspar.tables.columns import Ignored, Selection
from pyspar.tables.values import ISO, as_days, as_numbers, date_form, looks_like_dates

_LABEL = "numbers, since it is the label"


def label_name(names: Sequence[str], path: Path, label: str | None) -> str:
    """Return the name of the label's column; files without names take its number too, from the end if negative."""
    where = f"source {str(path)!r}"
    if label is None:
        raise InputError(
            f"{where}: expected --label and the name of the label's column. Got none; there are {few(names)}."
        )
    if label in names:
        return label
    if not has_names(path) and re.fullmatch(r"-?\d+", label):
        width = len(names)
        if not -width <= int(label) < width:
            raise InputError(f"{where}: expected --label to number one of its {width} columns, from 0. Got {label}.")
        return str(names[int(label)])
    raise InputError(f"{where}: expected the label column {label!r}. Got no such column; {meant(label, names)}")


def label_values(source: pd.DataFrame, path: Path, label: str) -> Any:
    """Return the labels of the source: numbers, none missing, not all the same."""
    where = f"source {str(path)!r}"
    if len(source) < 2:
        raise InputError(f"{where}: expected at least two rows to fit. Got one.")
    values = _numbers(
        source[label], where, _LABEL, "mend these values, drop their rows, or name another column"
    ).astype(np.float64)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        rows = ", ".join(map(str, missing[:5])) + (", ..." if missing.size > 5 else "")
        raise InputError(
            f"{where}, column {label!r}: expected a label in every row. Got {missing.size} missing of {len(values)} "
            f"(rows {rows}; the first row is 0); drop these rows."
        )
    _refuse_infinity(values, label, where, "mend them, or drop these rows")
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


def check_target(
    target: pd.DataFrame, path: Path, selection: Selection, source: pd.DataFrame, *, identity: str | None
) -> None:
    """Refuse a target whose features are not there or not of the source's kind."""
    where = f"target {str(path)!r}"
    if identity is not None and identity not in target.columns:
        raise InputError(
            f"{where}: expected the --id column {identity!r}. Got no such column; {meant(identity, target.columns)}"
        )
    missing = [name for name in selection.names if name not in target.columns]
    if missing:
        raise lacking(where, missing, len(selection.names), target.columns)
    for name in selection.numeric:
        _refuse_infinity(_numbers(target[name], where), name, where)
    for name in selection.date:
        try:
            as_days(target[name], date_form(source[name]))
        except InputError as error:
            raise InputError(f"{where}, {error}") from error
    for name in selection.categorical:
        _refuse_other_dates(target[name], source[name], where)


def lacking(where: str, missing: Sequence[str], wanted: int, names: Iterable[str]) -> InputError:
    """Return the refusal of a target without some of the source's features."""
    return InputError(
        f"{where}: expected the source's feature columns. Got a table without {few(missing)} ({len(missing)} of "
        f"{wanted} missing); {meant(missing[0], names)} To do without, {left_out(missing)}."
    )


def check_drop(drop: Iterable[str], names: Iterable[str], *, label: str, identity: str | None) -> None:
    """Refuse to drop a column that is in neither file, or that is needed."""
    known = list(dict.fromkeys(names))
    for name in drop:
        if name in (label, identity):
            raise InputError(f"expected --drop to name a feature. Got {name!r}, which is the label or the id.")
        if name not in known:
            raise InputError(f"expected --drop to name a column. Got {name!r}; {meant(name, known)}")


def extra_columns(target: Iterable[str], known: Collection[str]) -> tuple[Ignored, ...]:
    """Return the columns that only the target has."""
    return tuple(Ignored(name, "is in the target only") for name in target if name not in known)


def target_labels(target: pd.DataFrame, path: Path, label: str) -> tuple[Any, tuple[str, ...]]:
    """Return the target's own labels, missing ones as NaN, or None where it has none, and notes.

    They only score predictions, so text in their place ('to come') is no reason to refuse the file.
    """
    if label not in target.columns or target[label].isna().all():
        return None, ()
    try:
        values = as_numbers(target[label], "numbers", "mend these values to have them scored").astype(np.float64)
    except InputError as error:
        return None, (f"the target's labels were not used to score: {error}",)
    _refuse_infinity(values, label, f"target {str(path)!r}", "mend them, or leave them empty")
    return values, ()


def _refuse_other_dates(target: pd.Series[Any], source: pd.Series[Any], where: str) -> None:
    """Refuse dates in another form than the source's, which would all be unseen categories."""
    form, other = looks_like_dates(source), looks_like_dates(target)
    typed = pd.api.types.is_datetime64_any_dtype(target.dtype)
    if form is not None and (typed or (other is not None and other != form)):
        raise InputError(
            f"{where}, column {str(target.name)!r}: expected dates in the source's form, such as "
            f"{str(source.dropna().iloc[0])!r}. Got {str(target.dropna().iloc[0])!r}; write both as {ISO}, or "
            f"{left_out([str(target.name)])}."
        )


def _numbers(column: Any, where: str, *texts: str) -> Any:
    try:
        return as_numbers(column, *texts)
    except InputError as error:
        raise InputError(f"{where}, {error}") from error


def _refuse_infinity(values: Any, name: str, where: str, cure: str = "mend them, or leave them empty") -> None:
    infinite = np.flatnonzero(np.abs(values, dtype=np.float64) > LARGEST)
    if infinite.size:
        row = int(infinite[0])
        raise InputError(
            f"{where}, column {name!r}: expected finite numbers that can be squared. Got {values[row]:g} in row {row} "
            f"({infinite.size} such of {len(values)}; the first row is 0); {cure}."
        )
