"""The work of ``spar label``: choose the rows of the target to label, for a source or a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.estimators.label_choice import LabelChoice, rows_to_label
from pyspar.estimators.spar import BayesSpARRegressor
from pyspar.io.models import load
from pyspar.sources.files.formats import TEXT, describe_file, expected_separator, format_of
from pyspar.sources.files.messages import check_column
from pyspar.sources.files.rows import BATCH_BYTES
from pyspar.tables.columns import check_features
from pyspar.tables.encode import as_numbers, as_words
from pyspar.tables.inputs import DataAccount, Request
from pyspar.tables.label_file import REASON, ROW, add_labels
from pyspar.tables.load import is_streamed, load_files, load_table, read_groups
from pyspar.tables.predict import find_label_of, find_signs_of, load_rows_for
from pyspar.tables.write import NO_OUTPUT, Output, check_path, report_write_errors, table_file, write_files
from pyspar.terminal import SILENT, Progress


@dataclass(frozen=True)
class LabelAccount:
    """The result of ``spar label``: the chosen rows of the target. ``n_known`` rows have a label already.

    ``data`` is None for a saved model, whose source is not read. ``ids`` of the column ``identity`` belong to the
    chosen rows; both are None without ids.
    """

    label: str
    n_target: int
    data: DataAccount | None
    choice: LabelChoice
    n_known: int
    notes: tuple[str, ...]
    output: Path | None
    identity: str | None
    ids: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class _Candidates:
    """A model, the rows of the target as it predicts them, their labels or None, and all columns of the target."""

    model: Any
    rows: Any
    labels: Any
    table: pd.DataFrame
    label: str
    data: DataAccount | None
    notes: tuple[str, ...]


def label_files(
    request: Request,
    *,
    n: int = 10,
    output: Output = NO_OUTPUT,
    progress: Progress = SILENT,
) -> LabelAccount:
    """Choose rows of the target that cover the range of the predictions, and write them with an empty label column.

    The source of the request may be a saved model.
    """
    if output.path is not None:
        check_path(
            output.path, "--output", (".csv", ".tsv", ".parquet"), (request.source, request.target, request.labels)
        )
    if n < 1:
        raise InputError(f"--rows must be at least 1, got {n}")
    if is_streamed(request):
        raise InputError("spar label needs the rows in memory; pass files of rows that fit, without --stream")
    is_model = request.source.suffix.lower() == ".skops"
    target = _load_for_model(request) if is_model else _load_and_fit(request, progress)
    progress.start("fit", "choosing rows")
    n_rows = len(target.table)
    known = np.flatnonzero(np.zeros(n_rows, bool) if target.labels is None else ~np.isnan(target.labels))
    costs = _read_costs(target.table, request.cost, request.target)
    groups = read_groups(target.table, request.groups, request.target, "target")
    n_free = n_rows - len(known) if costs is None else int((~np.isnan(np.delete(costs, known))).sum())
    if n > n_free:
        raise InputError(f"--rows must be at most {n_free}, the target rows that can be labelled, got {n}")
    exclude = known if costs is None else np.union1d(known, np.flatnonzero(np.isnan(costs)))  # temporary
    choice = rows_to_label(target.model, target.rows, n, groups=groups, exclude=exclude)
    progress.finish("fit")
    if output.path is not None:
        with write_files(output.path) as (temporary,), report_write_errors(output.path):
            _write_rows(target, choice, request.target, temporary, safe_csv=output.safe_csv)
    identity = request.identity
    ids = None if identity is None else tuple(as_words(target.table[identity].iloc[list(choice.rows)]))
    return LabelAccount(target.label, n_rows, target.data, choice, len(known), target.notes, output.path, identity, ids)


def _write_rows(candidates: _Candidates, choice: LabelChoice, target: Path, output: Path, *, safe_csv: bool) -> None:
    """Write the chosen rows of a target with an empty label column, their positions, and the reasons."""
    table, label = candidates.table, candidates.label
    if label in (ROW, REASON):
        raise InputError(f"the label must not be named {label!r}, which is a column of the output; rename it")
    separator = expected_separator(output)
    if format_of(target) == TEXT:  # the cells as they are in the file
        from pyspar.sources.files.text import open_file  # here, because it imports pyarrow

        file = open_file(target, "target", BATCH_BYTES)
        table = file.read_columns((), file.names)[0].to_pandas()
        separator = file.separator if separator == expected_separator(target) else separator
    chosen = table.iloc[list(choice.rows)].reset_index(drop=True)
    others = chosen.drop(columns=[name for name in (ROW, REASON, label) if name in chosen.columns])
    first = pd.DataFrame({ROW: np.asarray(choice.rows, dtype=np.int64), label: "", REASON: list(choice.reasons)})
    written = pd.concat([first, others], axis=1)
    if output.suffix.lower() == ".parquet":
        written[label] = np.nan
    with table_file(output, safe_csv=safe_csv, separator=separator) as write:
        write(dict(written.items()))


def _load_and_fit(request: Request, progress: Progress) -> _Candidates:
    """Load both files, and adapt a fit on the source to the target."""
    inputs = load_files(request, progress, fit_groups=False)
    target: Any = inputs.target
    model = inputs.fit(BayesSpARRegressor()).adapt(target.features)
    return _Candidates(
        model, target.features, target.labels, target.table, inputs.data.label, inputs.data, inputs.notes
    )


def _load_for_model(request: Request) -> _Candidates:
    """Load the target for a saved model, as ``spar predict`` does."""
    options = {"--drop": request.drop, "--category": request.categories, "--drop-unlabelled": request.drop_unlabelled}
    for option, value in {**options, "--features": request.features != "all"}.items():
        if value:
            raise InputError(f"{option} is not available with a saved model, which already defines its columns")
    model = load(request.source)
    label = request.label or find_label_of(model)
    if label is None:
        raise InputError(f"{str(request.source)!r} does not store the name of its label; add --label")
    frame, used, notes = load_rows_for(
        model, request.target, "target", identity=request.identity, label=label, bad_cells=request.bad_cells
    )
    where = describe_file("target", request.target)
    check_column(request.identity, "--id", frame.columns, where)
    check_features(list(frame.columns), used, where)
    labels = as_numbers(frame[label]).astype(np.float64) if label in frame.columns else None
    if request.labels is not None:
        table = load_table(request.labels, "labels", verbatim=request.identity)
        labels = add_labels(labels, table, label, frame, find_signs_of(model), request.identity)
    return _Candidates(model, frame[used], labels, frame, label, None, notes)


def _read_costs(table: Any, name: str | None, path: Path) -> Any:
    """Return the cost of a label of each row, NaN where it is missing, or None without a column."""
    if name is None:
        return None
    check_column(name, "--cost", table.columns, describe_file("target", path))
    costs = as_numbers(table[name]).astype(np.float64)
    if (costs <= 0.0).any() or not np.isfinite(costs).any():
        raise InputError(
            f"{describe_file('target', path, name)}: costs must be above 0; leave a cost empty to exclude its row"
        )
    return costs
