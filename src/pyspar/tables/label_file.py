"""Read the labels of target rows from the file that ``spar label`` wrote and a person filled in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.sources.files.formats import describe_file
from pyspar.sources.files.messages import describe_rows
from pyspar.tables.columns import LoadedTable, check_signs
from pyspar.tables.encode import as_numbers, as_words

ROW, REASON = "row", "reason"
"""The columns with the position of a row in the target, counted from 0, and with the reason to label it."""


def add_labels(
    labels: Any,
    table: LoadedTable,
    label: str,
    target: pd.DataFrame,
    signs: Mapping[str, str],
    identity: str | None = None,
) -> Any:
    """Return the labels of the target with those of a file, which has the columns ``row`` and the label.

    ``signs`` has the sign of the source's labels, and ``identity`` is the column with the ids of the target.
    """
    n_rows, path, frame = len(target), table.path, table.frame
    for name in (ROW, label):
        if name not in frame.columns:
            raise InputError(f"{describe_file('labels', path)}: no column {name!r}; write the file with spar label")
    check_signs(signs, table.signs, (label,), path, "labels", label)
    table.check_cells((ROW, label), label=label)
    rows, values = as_numbers(frame[ROW]), as_numbers(frame[label]).astype(np.float64)
    wrong = np.flatnonzero(~((rows >= 0) & (rows < n_rows) & (rows == np.floor(rows))))
    if wrong.size:
        raise InputError(
            f"{describe_file('labels', path, ROW)}: row numbers of the target must be in [0, {n_rows - 1}], got "
            f"{rows[wrong[0]]:g} in {describe_rows([int(wrong[0])], path)}; pass the target file "
            "that was used with spar label"
        )
    repeated = np.flatnonzero(pd.Series(rows).duplicated().to_numpy())
    if repeated.size:
        raise InputError(f"{describe_file('labels', path, ROW)}: row {rows[repeated[0]]:g} occurs twice; keep one")
    if np.isinf(values).any():
        raise InputError(f"{describe_file('labels', path, label)}: labels must be finite")
    known = ~np.isnan(values)
    if not known.any():
        raise InputError(
            f"{describe_file('labels', path, label)}: all {len(frame)} labels are empty; fill them in, or leave out "
            "--labels"
        )
    places = rows.astype(np.int64)
    if identity in frame.columns and identity not in (ROW, REASON):
        _check_same_ids(frame[identity], target[identity].iloc[places], places, path)
    _check_same_rows(frame, target, places, path)
    merged = np.full(n_rows, np.nan) if labels is None else np.array(labels, dtype=np.float64)
    merged[places[known]] = values[known]
    return merged


def _check_same_ids(ids: pd.Series[Any], expected: pd.Series[Any], places: Any, path: Path) -> None:
    """Raise InputError if an id is not that of its row in the target.

    A spreadsheet may have removed leading zeros, and ``--safe-csv`` may have added ' at the start.
    """
    words = [pd.Series(as_words(column)).fillna("").str.removeprefix("'") for column in (ids, expected)]
    theirs, ours = words
    numbers = [pd.to_numeric(each, errors="coerce") for each in words]
    wrong = np.flatnonzero((theirs != ours) & (numbers[0] != numbers[1]))
    if wrong.size:
        first = int(wrong[0])
        raise InputError(
            f"{describe_file('labels', path, str(ids.name))}: {theirs[first]!r} in {describe_rows([first], path)} is "
            f"not the id of row {places[first]} of the target, {ours[first]!r}; pass the target file that was used "
            "with spar label, with its rows in the same order"
        )


def _check_same_rows(frame: pd.DataFrame, target: pd.DataFrame, places: Any, path: Path) -> None:
    """Raise InputError if the numbers in a row of the file are not those of the row of the target that it names.

    Half of the numbers may differ, because a spreadsheet may have reformatted some of them.
    """
    shared = [name for name in frame.columns if name in target.columns and name not in (ROW, REASON)]
    numeric = [name for name in shared if pd.api.types.is_numeric_dtype(target[name])]
    if not numeric:
        return
    theirs = np.column_stack([as_numbers(frame[name]) for name in numeric]).astype(np.float64)
    ours = target[numeric].to_numpy(dtype=np.float64, na_value=np.nan)[places]
    comparable = ~np.isnan(theirs) & ~np.isnan(ours)
    agrees = np.isclose(theirs, ours, rtol=1e-6, atol=0.0) & comparable
    wrong = np.flatnonzero(2 * agrees.sum(axis=1) < comparable.sum(axis=1))
    if wrong.size:
        raise InputError(
            f"{describe_file('labels', path, ROW)}: {describe_rows([int(wrong[0])], path)} refers to row "
            f"{places[wrong[0]]} of the target, whose values differ; pass the target file that was used with spar label"
        )
