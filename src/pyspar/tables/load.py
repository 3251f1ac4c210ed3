"""Load the two files of a command: read, checked, and encoded with the preprocessing of the source.

This module loads tables in memory; ``load_streamed`` reads files in batches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.base import MomentsRegressor
from pyspar.estimators.groups import MAX_FOLDS
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS, find_unseen
from pyspar.io.moments import is_moments_file
from pyspar.sources.files import open_rows
from pyspar.sources.files.header import (
    ARRAYS,
    check_column,
    describe_file,
    describe_rows,
    exceeds_memory,
    format_of,
    suggest_drop,
)
from pyspar.sources.files.number_text import NumberFormat
from pyspar.sources.files.rows import MAX_MAGNITUDE
from pyspar.tables.columns import (
    Selection,
    check_drop,
    check_features,
    check_formats,
    check_identity,
    find_label,
    list_extra_columns,
    list_imputed,
    name_array_columns,
    select_features,
)
from pyspar.tables.dates import ISO, as_days, date_format, date_like_form
from pyspar.tables.encode import as_numbers, as_words, build_encoder, describe_fills, encode, list_raw_columns
from pyspar.tables.inputs import DataAccount, Fit, Inputs, Method, Request
from pyspar.tables.label_file import add_labels
from pyspar.tables.load_streamed import load_streamed
from pyspar.tables.read import LoadedTable, check_input, load_table
from pyspar.tables.write import Output, intervals_of, write_predictions
from pyspar.terminal import Progress

_LATER = "all rows of the target are later than those of the source, so its weight is extrapolated"


@dataclass(frozen=True, eq=False)
class MemoryTarget:
    """The encoded features of the target, its labels and ids if it has any, and all of its columns."""

    features: Any
    labels: Any
    ids: pd.Series[Any] | None
    table: pd.DataFrame
    has_rows: ClassVar[bool] = True

    def moments(self) -> Moments:
        return Moments.of(self.features)

    def predict_and_score(
        self, models: Sequence[Any], output: Output, progress: Progress
    ) -> tuple[SquaredErrors, ...] | None:
        if output.path is None and self.labels is None:
            return None
        predictions = [model.predict(self.features) for model in models]
        if output.path is not None:
            is_array = output.path.suffix.lower() == ".npy"
            ends = () if is_array else intervals_of(models[-1], self.features, output.level)
            write_predictions((predictions[-1], *ends), self.ids, output.path, safe_csv=output.safe_csv)
        if self.labels is None:
            return None
        return tuple(SquaredErrors.of(values - self.labels) for values in predictions)


@dataclass(frozen=True, eq=False)
class _Source:
    """The rows of the source, its labels and features, and the formats of its numbers."""

    frame: pd.DataFrame
    y: Any
    label: str
    selection: Selection
    formats: dict[str, NumberFormat]
    notes: tuple[str, ...]


def load_files(request: Request, progress: Progress, *, method: Method = "bayes", output: Path | None = None) -> Inputs:
    """Read and encode both files: in memory, or in batches if they are too large or are Moments."""
    if is_streamed(request):
        return load_streamed(request, progress, method=method, output=output)
    return load_tables(request, progress)


def is_streamed(request: Request) -> bool:
    """Return whether files are read in batches: on request, for folders, large files and files of Moments."""
    paths = (request.source, request.target)
    if request.stream or any(path.is_dir() or (format_of(path) == ARRAYS and is_moments_file(path)) for path in paths):
        return True
    return any(map(exceeds_memory, paths)) and all(format_of(path).opener for path in paths)


def load_tables(request: Request, progress: Progress, *, fit_groups: bool = True) -> Inputs:
    """Read, check and encode both files in memory. Without ``fit_groups`` the source needs no groups."""
    for path, role in ((request.source, "source"), (request.target, "target")):
        check_input(path, role)
    progress.start("read", "reading the source")
    source = _load_source(request)
    progress.finish("read")
    progress.start("read", "reading the target")
    target, labels, target_notes, label_notes = _load_target(request, source)
    progress.finish("read")

    progress.start("encode", "encoding the columns")
    used = list(source.selection.names)
    encoder, X = _fit_encoder(source)
    columns = list_raw_columns(encoder)
    Z = encode(encoder, target[used], "target")
    account = _describe_columns(request, source, target, encoder, X.shape[1])
    progress.finish("encode")
    empty = [
        f"{name}: missing in every target row; all rows were imputed with the same value"
        for name in used
        if target[name].isna().all()
    ]
    later = [f"{name}: {_LATER}" for name in source.selection.date if _is_later(target[name], source.frame[name])]
    ids = None if request.identity is None else target[request.identity]
    groups = read_groups(source.frame, request.groups, request.source) if fit_groups else None
    return Inputs(
        _make_fit(X, source.y, groups),
        MemoryTarget(Z, labels, ids, target),
        columns,
        account,
        (*empty, *later, *source.notes, *target_notes, *source.selection.notes, *label_notes),
        lambda: encoder,
    )


def fit_source(request: Request, regressor: MomentsRegressor) -> Pipeline:
    """Fit preprocessing and regressor to the source. The target is not read."""
    check_input(request.source, "source")
    source = _load_source(request)
    check_drop(request.drop, source.frame.columns, label=source.label, identity=request.identity)
    encoder, X = _fit_encoder(source)
    groups = read_groups(source.frame, request.groups, request.source)
    return Pipeline([("columns", encoder), ("regressor", _make_fit(X, source.y, groups)(regressor))])


def _load_source(request: Request) -> _Source:
    """Read the source, and choose its label and features."""
    read = _load(request, request.source, "source", request.categories)
    label = find_label(
        list(read.frame.columns), request.source, request.label, lambda: _has_column(request.target, request.label)
    )
    check_identity(request.identity, label)
    frame, y = _source_labels(read, label, request)
    selection = select_features(frame, label, request)
    notes = (*read.notes, *read.check_cells(selection.names, request.bad_cells))
    _check_numbers(frame, selection.numeric, request.source, "source")
    formats = {name: style for name, style in read.formats.items() if name in (*selection.numeric, label)}
    return _Source(frame, y, label, selection, formats, notes)


def _load_target(request: Request, source: _Source) -> tuple[pd.DataFrame, Any, tuple[str, ...], tuple[str, ...]]:
    """Read the target and compare it with the source; return its rows, its labels, and notes about each."""
    path, label, selection, formats = request.target, source.label, source.selection, source.formats
    read = _load(request, path, "target", selection.categorical, formats)
    target = read.frame
    if not (format_of(path).has_names or format_of(request.source).has_names):
        target = target.set_axis(name_array_columns(list(target.columns), list(source.frame.columns), label), axis=1)
    check_drop(request.drop, (*source.frame.columns, *target.columns), label=label, identity=request.identity)
    _check_target(target, path, selection, source.frame, identity=request.identity)
    notes = read.check_cells({*selection.names, label}, request.bad_cells, label=label)
    check_formats(formats, read.formats, formats, path, label=label)
    labels, label_notes = _target_labels(target, path, label)
    if request.labels is not None:
        labels = add_labels(labels, request.labels, label, target, formats)
    return target, labels, (*read.notes, *notes), label_notes


def _describe_columns(
    request: Request, source: _Source, target: pd.DataFrame, encoder: ColumnTransformer, n_encoded: int
) -> DataAccount:
    selection = source.selection
    used = list(selection.names)
    known = {*source.frame.columns, source.label, request.identity, request.groups, request.cost, *request.drop}
    return DataAccount(
        label=source.label,
        n_source=len(source.frame),
        n_target=len(target),
        n_numeric=len(selection.numeric),
        n_categorical=len(selection.categorical),
        n_date=len(selection.date),
        n_encoded=n_encoded,
        imputed=list_imputed(describe_fills(encoder), source.frame[used].isna().sum(), target[used].isna().sum()),
        ignored=selection.ignored + list_extra_columns(target.columns, known),
        unseen=find_unseen(encoder, target[used]) if selection.categorical else NO_UNSEEN_ROWS,
    )


def _make_fit(X: Any, y: Any, groups: Any) -> Fit:
    """Return a function that fits an estimator to the encoded source, with groups if there are any."""

    def fit(estimator: Any) -> Any:
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


def _load(
    request: Request, path: Path, role: str, as_text: Collection[str], expected: dict[str, NumberFormat] | None = None
) -> LoadedTable:
    """Read a file. ``as_text`` are columns of categories, whose values stay as they are."""
    skip = {*request.drop, request.groups or ""}
    return load_table(path, role, as_text=as_text, verbatim=request.identity, skip=skip, expected=expected)


def _has_column(path: Path, name: str | None) -> bool:
    try:
        return name in open_rows(path).names
    except InputError:
        return False


def _source_labels(read: LoadedTable, label: str, request: Request) -> tuple[pd.DataFrame, Any]:
    """Return the source and its labels, which must be numbers and not constant.

    Rows without a label are an error, or are left out on request.
    """
    source, path = read.frame, request.source
    where = describe_file("source", path, label)
    if len(source) < 2:
        raise InputError(f"{describe_file('source', path)}: a fit needs at least two rows, got one")
    read.check_cells((label,), request.bad_cells, label=label)
    values = _numbers(
        source[label], path, "source", "the label must be numeric; correct the values, or choose another column"
    ).astype(np.float64)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size and not request.drop_unlabelled:
        raise InputError(
            f"{where}: {missing.size} of {len(values)} labels are missing, in {describe_rows(missing.tolist(), path)}; "
            "ignore such rows with --drop-unlabelled"
        )
    _check_magnitude(values, where, path, "correct the values, or drop these rows")
    if missing.size:
        known = ~np.isnan(values)
        source, values = source[known], values[known]
        if len(values) < 2:
            raise InputError(f"{where}: a fit needs at least two labels, got {len(values)}")
    if values.min() == values.max():
        raise InputError(f"{where}: all labels are {values[0]:g}; choose another column")
    return source, values


def _target_labels(target: pd.DataFrame, path: Path, label: str) -> tuple[Any, tuple[str, ...]]:
    """Return the labels of the target with NaN for missing ones, or None without labels; and notes.

    They only score predictions, so text in their place ('to come') is not an error.
    """
    if label not in target.columns or target[label].isna().all():
        return None, ()
    try:
        values = as_numbers(target[label], "correct the values to score the predictions").astype(np.float64)
    except InputError as error:
        return None, (f"the predictions are not scored: {error}",)
    _check_magnitude(values, describe_file("target", path, label), path)
    return values, ()


def _check_target(
    target: pd.DataFrame, path: Path, selection: Selection, source: pd.DataFrame, *, identity: str | None
) -> None:
    """Raise InputError if the target lacks a feature, or if a feature has another kind than in the source."""
    where = describe_file("target", path)
    check_column(identity, "--id", target.columns, where)
    check_features(list(target.columns), selection.names, where)
    _check_numbers(target, selection.numeric, path, "target")
    for name in selection.date:
        try:
            as_days(target[name], date_format(source[name]), f"correct the values, or {suggest_drop([name])}")
        except InputError as error:
            raise InputError(f"{where}, {error}") from error
    for name in selection.categorical:
        _check_date_form(target[name], source[name], path)


def _is_later(target: pd.Series[Any], source: pd.Series[Any]) -> bool:
    """Return whether all dates of the target are after those of the source."""
    if target.isna().all():
        return False
    return bool(np.nanmin(as_days(target, date_format(source))) > np.nanmax(as_days(source)))


def _check_date_form(target: pd.Series[Any], source: pd.Series[Any], path: Path) -> None:
    """Raise InputError for dates in another form than in the source, which would all be unseen categories."""
    name = str(target.name)
    source_form, target_form = date_like_form(source), date_like_form(target)
    is_date = pd.api.types.is_datetime64_any_dtype(target.dtype)
    if source_form is not None and (is_date or (target_form is not None and target_form != source_form)):
        raise InputError(
            f"{describe_file('target', path, name)}: the dates have another format "
            f"({str(target.dropna().iloc[0])!r}) than in the source ({str(source.dropna().iloc[0])!r}); "
            f"write both as {ISO}, or {suggest_drop([name])}"
        )


def _check_numbers(table: pd.DataFrame, names: Iterable[str], path: Path, role: str) -> None:
    """Raise InputError for text and infinity in numeric columns. Missing values are imputed."""
    for name in names:
        _check_magnitude(_numbers(table[name], path, role), describe_file(role, path, name), path)


def _numbers(column: pd.Series[Any], path: Path, role: str, fix: str | None = None) -> Any:
    try:
        return as_numbers(column, fix or f"correct the values, or {suggest_drop([str(column.name)])}")
    except InputError as error:
        raise InputError(f"{describe_file(role, path)}, {error}") from error


def _check_magnitude(values: Any, where: str, path: Path, fix: str = "correct the values, or leave them empty") -> None:
    infinite = np.flatnonzero(np.abs(values, dtype=np.float64) > MAX_MAGNITUDE)
    if infinite.size:
        row = int(infinite[0])
        raise InputError(
            f"{where}: values must be finite and below {MAX_MAGNITUDE:g}, got {values[row]:g} in "
            f"{describe_rows([row], path)}, {infinite.size} of {len(values)} values; {fix}"
        )


def _fit_encoder(source: _Source) -> tuple[ColumnTransformer, Any]:
    """Return the preprocessing of the source, and its encoded features."""
    selection = source.selection
    rows = source.frame[list(selection.names)]
    encoder = build_encoder(source.frame, *selection.kinds).fit(rows)
    encoder.formats_ = source.formats
    return encoder, encode(encoder, rows, "source")
