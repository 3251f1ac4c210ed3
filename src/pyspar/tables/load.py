"""Load the two files of a command in one sequence: open both, check them, learn the columns of the source, encode.

The files are tables in memory, whose steps are here, or are reduced to Moments, whose steps are in ``streamed``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

from pyspar.core.moments import Moments
from pyspar.errors import InputError, need
from pyspar.estimators.base import MomentsRegressor
from pyspar.estimators.groups import MAX_FOLDS
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS, find_unseen
from pyspar.io.moments import is_moments_file
from pyspar.sources.files.formats import (
    ARRAYS,
    INPUT_SUFFIXES,
    TEXT,
    check_file,
    describe_file,
    exceeds_memory,
    format_of,
)
from pyspar.sources.files.messages import BadCell, check_column, describe_rows, suggest_drop
from pyspar.sources.files.rows import BATCH_BYTES
from pyspar.tables.columns import (
    LearnedColumns,
    LoadedTable,
    Selection,
    check_drop,
    check_features,
    check_identity,
    check_magnitude,
    check_numbers,
    check_signs,
    describe_other_values,
    describe_unlabelled,
    explain_extremes,
    find_label,
    name_array_columns,
    read_numbers,
    select_features,
)
from pyspar.tables.dates import as_days, date_format, is_later, is_text, read_mostly_dates
from pyspar.tables.encode import (
    TableEncoder,
    as_numbers,
    as_words,
    build_encoder,
    describe_fills,
    encode,
    list_raw_columns,
)
from pyspar.tables.inputs import DataAccount, Fit, Ignored, Imputed, Inputs, Method, Request, Target
from pyspar.tables.label_file import add_labels
from pyspar.tables.read import read_typed
from pyspar.tables.streamed import has_column, open_source
from pyspar.tables.write import Output, RowChunk, predict_chunks
from pyspar.terminal import SILENT, Progress

_LATER = "all rows of the target are later than those of the source, so its weight is extrapolated"


def load_files(
    request: Request,
    progress: Progress,
    *,
    method: Method = "bayes",
    output: Path | None = None,
    fit_groups: bool = True,
) -> Inputs:
    """Read, check and encode both files. Without ``fit_groups`` the source needs no groups."""
    source: Any  # a StreamedSource or a TableSource, which have the same methods
    if is_streamed(request):
        source = open_source(request, method)
    else:
        for path, role in ((request.source, "source"), (request.target, "target")):
            check_input(path, role)
        source = load_source(request, progress, fit_groups=fit_groups)
    label = source.label
    target = source.open_target(request, output, progress)
    check_drop(request.drop, (*source.names, *target.names), label=label, identity=request.identity)
    check_features(target.names, source.selection.names, target.where)
    target_notes = source.check_target(target, request)
    check_signs(source.signs, target.signs, [*source.selection.names, label], request.target, label=label)
    learned = source.learn(request, progress)
    _describe_source(learned.encoder, source)
    encoded = source.encode_target(target, learned, request, progress)

    selection, columns = learned.selection, list_raw_columns(learned.encoder)
    known = {*source.names, label, request.identity, request.groups, request.cost, *request.drop}
    extra = (Ignored(name, "only in the target") for name in target.names if name not in known)
    fills = describe_fills(learned.encoder)
    missing = {name: (int(learned.n_missing[name]), int(encoded.n_missing[name])) for name in fills}
    account = DataAccount(
        label=label,
        n_source=learned.n_rows,
        n_target=encoded.n_rows,
        n_numeric=len(selection.numeric),
        n_categorical=len(selection.categorical),
        n_date=len(selection.date),
        n_encoded=len(columns),
        imputed=tuple(Imputed(name, *missing[name], fill) for name, fill in fills.items() if any(missing[name])),
        ignored=(*selection.ignored, *extra),
        unseen=encoded.unseen,
    )
    notes = (*encoded.alerts, *learned.notes, *target_notes, *selection.notes, *encoded.notes)
    return Inputs(learned.fit, encoded, columns, account, notes, learned.encoder)


def is_streamed(request: Request) -> bool:
    """Return whether files are read in batches: on request, for folders, large files and files of Moments."""
    paths = (request.source, request.target)
    if request.stream or any(path.is_dir() or (format_of(path) == ARRAYS and is_moments_file(path)) for path in paths):
        return True
    return any(map(exceeds_memory, paths)) and all(format_of(path).opener for path in paths)


def fit_source(request: Request, regressor: MomentsRegressor) -> Pipeline:
    """Fit preprocessing and regressor to the source. The target is not read."""
    source = load_source(request, SILENT)
    check_drop(request.drop, source.names, label=source.label, identity=request.identity)
    learned = source.learn(request, SILENT)
    _describe_source(learned.encoder, source)
    return Pipeline([("columns", learned.encoder), ("regressor", learned.fit(regressor))])


def _describe_source(encoder: TableEncoder, source: Any) -> None:
    """Store the label and the signs of the numbers, which the rows of a later file are compared with."""
    used = {*source.selection.names, source.label}
    encoder.signs_ = {name: sign for name, sign in source.signs.items() if name in used}
    encoder.label_ = source.label


def check_input(path: Path, role: str) -> None:
    """Raise InputError if a file does not exist, is empty, or has an unknown format. Nothing is read."""
    check_file(path, role, INPUT_SUFFIXES)
    if package := format_of(path).package:
        need(package, "cli")


def load_table(
    path: Path,
    role: str,
    *,
    as_text: Collection[str] = (),
    verbatim: str | None = None,
    skip: Collection[str | None] = (),
) -> LoadedTable:
    """Check and read a file, and read its text columns with mostly numbers or dates as such.

    The columns ``as_text`` stay text even if they look like numbers, so that ``007`` stays ``007``. The column
    ``verbatim`` is kept unchanged, including the marks of missing values. The columns ``skip`` have no bad cells.
    """
    check_input(path, role)
    if format_of(path) == TEXT:
        from pyspar.sources.files.text import open_file  # here, because it imports pyarrow

        file = open_file(path, role, BATCH_BYTES)
        content, bad = file.read_columns(as_text, (verbatim,))
        frame, notes = content.to_pandas(), file.notes
        kept = {*as_text, verbatim}
        columns = tuple(replace(c, dtype=None, style=None) if c.name in kept else c for c in file.columns)
    else:
        frame, columns, notes, bad = read_typed(path, role, as_text, verbatim, skip)
    for column in columns:
        cells = frame[column.name]
        if column.dtype is not None or column.name in {*as_text, *skip, verbatim} or not is_text(cells):
            continue
        if date_format(cells) is None and (dates := read_mostly_dates(cells)) is not None:
            frame[column.name], rows = dates
            bad += [BadCell(column.name, int(row), str(cells.iloc[row])) for row in rows]
    return LoadedTable(path, role, frame, columns, notes, tuple(bad))


@dataclass(frozen=True, eq=False)
class TableSource:
    """The rows of the source in memory, its labels and features, and the signs of its numbers.

    ``groups`` is the column with the groups of a fit, or None.
    """

    frame: pd.DataFrame
    y: Any
    label: str
    selection: Selection
    signs: dict[str, str]
    notes: tuple[str, ...]
    groups: str | None

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    def open_target(self, request: Request, output: Path | None, progress: Progress) -> LoadedTable:
        """Read the target as the source was read."""
        progress.start("read", "reading the target")
        target = _load(request, request.target, "target", self.selection.categorical)
        if not (format_of(request.target).has_names or format_of(request.source).has_names):
            names = name_array_columns(target.names, self.names, self.label)
            target = replace(target, frame=target.frame.set_axis(names, axis=1))
        progress.finish("read")
        return target

    def check_target(self, target: LoadedTable, request: Request) -> tuple[str, ...]:
        """Raise InputError if a feature of the target has another kind than in the source; return notes."""
        frame, selection = target.frame, self.selection
        if request.identity is not None:
            check_column(request.identity, "--id", frame.columns, target.where)
        check_numbers(frame, selection.numeric, target.path, "target")
        for name in selection.date:
            try:
                layout = date_format(self.frame[name])
                as_days(frame[name], layout, f"correct the values, or {suggest_drop([name])}")
            except InputError as error:
                raise InputError(f"{target.where}, {error}") from error
        used = {*selection.names, self.label}
        return (*target.notes, *target.check_cells(used, request.bad_cells, label=self.label))

    def learn(self, request: Request, progress: Progress) -> LearnedColumns:
        """Fit the preprocessing."""
        progress.start("encode", "encoding the source")
        selection = self.selection
        rows = self.frame[list(selection.names)]
        encoder = build_encoder(self.frame, selection.numeric, selection.categorical, selection.date).fit(rows)
        explain = partial(explain_extremes, request.source, "source", list_raw_columns(encoder), self.label)
        groups = read_groups(self.frame, self.groups, request.source)
        fit = _make_fit(encode(encoder, rows, "source"), self.y, groups, explain)
        progress.finish("encode")
        return LearnedColumns(selection, encoder, fit, len(rows), rows.isna().sum(), self.notes)

    def encode_target(
        self, target: LoadedTable, learned: LearnedColumns, request: Request, progress: Progress
    ) -> Target:
        """Encode the target, and read its labels."""
        progress.start("encode", "encoding the target")
        frame, selection = target.frame, self.selection
        rows = frame[list(selection.names)]
        labels, notes = _target_labels(target, self.label)
        if request.labels is not None:
            table = load_table(request.labels, "labels", verbatim=request.identity)
            labels = add_labels(labels, table, self.label, frame, self.signs, request.identity)
        empty = [
            f"{name}: missing in every target row; all rows were imputed with the same value"
            for name in selection.names
            if rows[name].isna().all()
        ]
        other = [note for c in selection.ignored if (note := describe_other_values(c, self.frame, frame))]
        later = [f"{name}: {_LATER}" for name in selection.date if is_later(rows[name], self.frame[name])]
        features = encode(learned.encoder, rows, "target")
        chunk = RowChunk(features, labels, None if request.identity is None else frame[request.identity])

        def measure() -> Moments:
            with explain_extremes(target.path, "target", list_raw_columns(learned.encoder)):
                return Moments.of(features)

        def predict_and_score(models: Sequence[Any], output: Output, progress: Progress) -> Any:
            if output.path is None and labels is None:
                return None
            return predict_chunks([chunk], models, output, request.identity)

        unseen = find_unseen(learned.encoder, rows) if selection.categorical else NO_UNSEEN_ROWS
        progress.finish("encode")
        return Target(
            features,
            len(rows),
            measure,
            predict_and_score,
            n_missing=rows.isna().sum(),
            alerts=(*empty, *later, *other),
            notes=notes,
            unseen=unseen,
            labels=labels,
            table=frame,
        )


def load_source(request: Request, progress: Progress, *, fit_groups: bool = True) -> TableSource:
    """Read the source into memory, and choose its label and features."""
    progress.start("read", "reading the source")
    read = _load(request, request.source, "source", request.categories)
    label = find_label(read.names, request.source, request.label, lambda: has_column(request.target, request.label))
    check_identity(request.identity, label)
    frame, y = _source_labels(read, label, request)
    selection = select_features(frame, label, request)
    unlabelled = describe_unlabelled(len(read.frame) - len(frame), "source")
    notes = (*read.notes, *read.check_cells(selection.names, request.bad_cells), *unlabelled)
    check_numbers(frame, selection.numeric, request.source, "source")
    progress.finish("read")
    return TableSource(frame, y, label, selection, read.signs, notes, request.groups if fit_groups else None)


def _make_fit(X: Any, y: Any, groups: Any, explain: Callable[[], AbstractContextManager[None]]) -> Fit:
    """Return a function that fits an estimator to the encoded source, with groups if there are any."""

    def fit(estimator: Any) -> Any:
        with explain():
            if groups is None:
                return estimator.fit(X, y)
            if isinstance(estimator, MomentsRegressor):
                return estimator.fit(X, y, groups=groups)
            splits = GroupKFold(min(MAX_FOLDS, len(set(groups)))).split(X, groups=groups)  # of RidgeCV
            return estimator.set_params(cv=list(splits)).fit(X, y)

    return fit


def read_groups(table: pd.DataFrame, name: str | None, path: Path, role: str = "source") -> Any:
    """Return the groups of the rows as text, or None without groups."""
    if name is None:
        return None
    check_column(name, "--groups", table.columns, describe_file(role, path))
    words = as_words(table[name])
    missing = np.flatnonzero(table[name].isna().to_numpy())
    if missing.size:
        raise InputError(
            f"{describe_file(role, path, name)}: {missing.size} groups are missing, in "
            f"{describe_rows(missing.tolist(), path)}; name these groups, or drop the rows"
        )
    if len(set(words)) < 2:
        raise InputError(f"{describe_file(role, path, name)}: --groups needs two groups, got {words[0]!r} only")
    return words


def _load(request: Request, path: Path, role: str, as_text: Collection[str]) -> LoadedTable:
    """Read a file. ``as_text`` are columns of categories, whose values stay as they are."""
    return load_table(path, role, as_text=as_text, verbatim=request.identity, skip={*request.drop, request.groups})


def _source_labels(read: LoadedTable, label: str, request: Request) -> tuple[pd.DataFrame, Any]:
    """Return the source and its labels, which must be numbers and not constant.

    Rows without a label are an error, or are left out on request.
    """
    source, path = read.frame, request.source
    where = describe_file("source", path, label)
    if len(source) < 2:
        raise InputError(f"{describe_file('source', path)}: a fit needs at least two rows, got one")
    read.check_cells((label,), request.bad_cells, label=label)
    values = read_numbers(
        source[label], path, "source", "the label must be numeric; correct the values, or choose another column"
    ).astype(np.float64)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size and not request.drop_unlabelled:
        raise InputError(
            f"{where}: {missing.size} of {len(values)} labels are missing, in {describe_rows(missing.tolist(), path)}; "
            "ignore such rows with --drop-unlabelled"
        )
    check_magnitude(values, where, path, "correct the values, or drop these rows")
    if missing.size:
        known = ~np.isnan(values)
        source, values = source[known], values[known]
        if len(values) < 2:
            raise InputError(f"{where}: a fit needs at least two labels, got {len(values)}")
    if values.min() == values.max():
        raise InputError(f"{where}: all labels are {values[0]:g}; choose another column")
    return source, values


def _target_labels(target: LoadedTable, label: str) -> tuple[Any, tuple[str, ...]]:
    """Return the labels of the target with NaN for missing ones, or None without labels; and notes.

    They only score predictions, so text in their place ('to come') is not an error.
    """
    frame = target.frame
    if label not in frame.columns or frame[label].isna().all():
        return None, ()
    try:
        values = as_numbers(frame[label], "correct the values to score the predictions").astype(np.float64)
    except InputError as error:
        return None, (f"the predictions are not scored: {error}",)
    check_magnitude(values, describe_file("target", target.path, label), target.path)
    return values, ()
