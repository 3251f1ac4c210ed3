"""Use labels of the target: correct the model of ``spar adapt``, and choose rows for ``spar label``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError
from pyspar.estimators.label_choice import LabelChoice, rows_to_label
from pyspar.estimators.spar import BayesSpARRegressor
from pyspar.progress import SILENT, Progress
from pyspar.sources.files.header import describe_file, suggest_column
from pyspar.tables.account import Correction, DataAccount
from pyspar.tables.encode import as_numbers
from pyspar.tables.in_memory import load_files, read_groups
from pyspar.tables.label_file import write_rows_to_label
from pyspar.tables.request import Method, Request
from pyspar.tables.write import check_path, report_write_errors, write_files

_MIN_LABELS = 3
"""As :class:`pyspar.TargetCorrection` requires."""


@dataclass(frozen=True)
class LabelAccount:
    """The result of ``spar label``: the chosen rows of the target. ``n_known`` rows have a label already."""

    data: DataAccount
    choice: LabelChoice
    n_known: int
    notes: tuple[str, ...]
    output: Path | None


def check_correction(request: Request, method: Method) -> None:
    """Raise InputError if the labels of the target cannot be used."""
    if method not in ("bayes", "spar"):
        raise InputError(f"--use-target-labels needs --method bayes or spar, got {method}")
    if request.is_streamed:
        raise InputError("--use-target-labels needs the target in memory; pass fewer rows, without --stream")


def correct_model(model: Any, target: Any, request: Request) -> Any:
    """Return the model adapted to the target and corrected with its labels."""
    n_known = 0 if target.labels is None else int((~np.isnan(target.labels)).sum())
    if n_known < _MIN_LABELS:
        raise InputError(
            f"{describe_file('target', request.target)}: --use-target-labels needs at least {_MIN_LABELS} labels, got "
            f"{n_known}; choose rows to label with spar label, and pass them with --labels"
        )
    return model.adapted(target.features, target.labels)


def describe_correction(model: Any, target: Any) -> Correction:
    """Return what the labels of the target changed."""
    forecast = model.expected_rmse(target.features)
    return Correction(int((~np.isnan(target.labels)).sum()), forecast, float(model.drift_.p_value))


def label_files(
    request: Request,
    *,
    n: int = 10,
    output: Path | None = None,
    safe_csv: bool = False,
    progress: Progress = SILENT,
) -> LabelAccount:
    """Choose the rows of the target whose labels are the most useful, and write them with an empty label column."""
    request.check()
    inputs_of = (request.source, request.target)
    if output is not None:
        check_path(output, "--output", (".csv", ".tsv", ".parquet"), inputs_of)
    if n < 1:
        raise InputError(f"--rows must be at least 1, got {n}")
    if request.is_streamed:
        raise InputError("spar label needs the rows in memory; pass files of rows that fit, without --stream")
    inputs = load_files(request, progress, fit_groups=False)
    target: Any = inputs.target
    progress.start("fit", "choosing rows")
    model = inputs.fit(BayesSpARRegressor()).adapt(target.features)
    has_label = np.zeros(len(target.features), bool) if target.labels is None else ~np.isnan(target.labels)
    known = np.flatnonzero(has_label)
    costs = _read_costs(target.table, request.cost, request.target)
    groups = read_groups(target.table, request.groups, request.target, "target")
    n_free = len(target.features) - len(known) if costs is None else int((~np.isnan(np.delete(costs, known))).sum())
    if n > n_free:
        raise InputError(f"--rows must be at most {n_free}, the target rows that can be labelled, got {n}")
    choice = rows_to_label(model, target.features, n, groups=groups, cost=costs, exclude=known)
    progress.finish("fit")
    if output is not None:
        with write_files(output) as (temporary,), report_write_errors(output):
            write_rows_to_label(
                request.target, target.table, choice.rows, choice.reasons, inputs.data.label, temporary,
                safe_csv=safe_csv,
            )  # fmt: skip
    return LabelAccount(inputs.data, choice, len(known), inputs.notes, output)


def _read_costs(table: Any, name: str | None, path: Path) -> Any:
    """Return the cost of a label of each row, NaN where it is missing, or None without a column."""
    if name is None:
        return None
    if name not in table.columns:
        raise InputError(
            f"{describe_file('target', path)}: no --cost column {name!r}; {suggest_column(name, table.columns)}"
        )
    costs = as_numbers(table[name]).astype(np.float64)
    if (costs <= 0.0).any() or not np.isfinite(costs).any():
        raise InputError(f"{describe_file('target', path, name)}: costs must be above 0; leave out rows by empty costs")
    return costs
