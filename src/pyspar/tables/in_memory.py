"""Two files in memory: read, checked, and encoded with the preprocessing of the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer

from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.inspection.unseen_categories import NO_UNSEEN_ROWS, find_unseen
from pyspar.progress import Progress
from pyspar.sources.files.header import describe_file, suggest_column, suggest_drop
from pyspar.sources.files.predictions import prediction_file
from pyspar.sources.files.rows import MAX_MAGNITUDE
from pyspar.tables.account import DataAccount, Imputed, Inputs
from pyspar.tables.columns import (
    Selection,
    build_encoder,
    check_drop,
    check_features,
    check_identity,
    find_label,
    list_extra_columns,
    list_raw_columns,
    select_features,
)
from pyspar.tables.encode import ISO, MISSING_CATEGORY, as_days, as_numbers, date_format, date_like_form
from pyspar.tables.read import check_input, has_names, read_table
from pyspar.tables.request import Request


@dataclass(frozen=True, eq=False)
class MemoryTarget:
    """The encoded features of the target, and its labels and ids if it has any."""

    features: Any
    labels: Any
    ids: pd.Series[Any] | None
    has_rows: ClassVar[bool] = True

    def moments(self) -> Moments:
        return Moments.of(self.features)

    def predict_and_score(
        self, models: Sequence[Any], output: Path | None, progress: Progress
    ) -> tuple[SquaredErrors, ...] | None:
        if output is None and self.labels is None:
            return None
        predictions = [model.predict(self.features) for model in models]
        if output is not None:
            _write_predictions(predictions[-1], self.ids, output)
        if self.labels is None:
            return None
        return tuple(SquaredErrors.of(values - self.labels) for values in predictions)


def load_files(request: Request, progress: Progress) -> Inputs:
    """Read, check and encode both files. The target's labels are only used to score predictions."""
    source_path, target_path, identity = request.source, request.target, request.identity
    for path, role in ((source_path, "source"), (target_path, "target")):
        check_input(path, role)
    progress.start("read", "reading the source")
    source, source_notes = read_table(source_path, "source", verbatim=identity)
    label = find_label(list(source.columns), source_path, request.label)
    check_identity(identity, label)
    y = _source_labels(source, source_path, label)
    selection = select_features(source, label=label, identity=identity, features=request.features, drop=request.drop)
    _check_numbers(source, selection.numeric, source_path, "source")

    progress.finish("read")
    progress.start("read", "reading the target")
    target, target_notes = read_table(target_path, "target", as_text=selection.categorical, verbatim=identity)
    target = _rename_arrays(target, target_path, source, source_path, label)
    check_drop(request.drop, (*source.columns, *target.columns), label=label, identity=identity)
    _check_target(target, target_path, selection, source, identity=identity)
    labels, label_notes = _target_labels(target, target_path, label)

    progress.finish("read")
    progress.start("encode", "encoding the columns")
    used = list(selection.names)
    encoder = build_encoder(source, selection).fit(source[used])
    columns = list_raw_columns(encoder)
    X = _encode(encoder, source[used], columns, "source")
    Z = _encode(encoder, target[used], columns, "target")
    known = {*source.columns, label, identity or label, *request.drop}
    account = DataAccount(
        label=label,
        n_source=len(source),
        n_target=len(target),
        n_numeric=len(selection.numeric),
        n_categorical=len(selection.categorical),
        n_date=len(selection.date),
        n_encoded=X.shape[1],
        imputed=_list_imputed(encoder, selection, source, target),
        ignored=selection.ignored + list_extra_columns(target.columns, known),
        unseen=find_unseen(encoder, target[used]) if selection.categorical else NO_UNSEEN_ROWS,
    )
    progress.finish("encode")
    ids = None if identity is None else target[identity]
    empty = [
        f"{name}: missing in every target row; all rows were imputed with the same value"
        for name in used
        if target[name].isna().all()
    ]
    notes = (*empty, *source_notes, *target_notes, *selection.notes, *label_notes)
    target_rows = MemoryTarget(Z, labels, ids)
    return Inputs(lambda estimator: estimator.fit(X, y), target_rows, columns, account, notes, lambda: encoder)


def _source_labels(source: pd.DataFrame, path: Path, label: str) -> Any:
    """Return the labels of the source. They must be numbers, complete, and not constant."""
    where = describe_file("source", path, label)
    if len(source) < 2:
        raise InputError(f"{describe_file('source', path)}: a fit needs at least two rows, got one")
    values = _numbers(
        source[label], path, "source", "the label must be numeric; correct the values, or choose another column"
    ).astype(np.float64)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        rows = ", ".join(map(str, missing[:5])) + (", ..." if missing.size > 5 else "")
        raise InputError(
            f"{where}: {missing.size} of {len(values)} labels are missing (rows {rows}; the first row is 0); drop "
            "these rows"
        )
    _check_magnitude(values, where, "correct the values, or drop these rows")
    if values.min() == values.max():
        raise InputError(f"{where}: all labels are {values[0]:g}; choose another column")
    return values


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
    _check_magnitude(values, describe_file("target", path, label))
    return values, ()


def _rename_arrays(
    target: pd.DataFrame, target_path: Path, source: pd.DataFrame, source_path: Path, label: str
) -> pd.DataFrame:
    """Return the target with the column names of the source.

    Arrays have no column names. A target array with one column less than the source lacks the label, which may be at
    any position in the source.
    """
    if has_names(target_path) or has_names(source_path):
        return target
    expected = [name for name in source.columns if name != label]
    numbered = all(re.fullmatch(r"x\d+", name) for name in [*expected, *target.columns])
    if numbered and len(target.columns) == len(expected):
        return target.set_axis(expected, axis=1)
    return target


def _check_target(
    target: pd.DataFrame, path: Path, selection: Selection, source: pd.DataFrame, *, identity: str | None
) -> None:
    """Raise InputError if the target lacks a feature, or if a feature has another kind than in the source."""
    where = describe_file("target", path)
    if identity is not None and identity not in target.columns:
        raise InputError(f"{where}: no --id column {identity!r}; {suggest_column(identity, target.columns)}")
    check_features(list(target.columns), selection.names, where)
    _check_numbers(target, selection.numeric, path, "target")
    for name in selection.date:
        try:
            as_days(target[name], date_format(source[name]), _suggest_fix(name))
        except InputError as error:
            raise InputError(f"{where}, {error}") from error
    for name in selection.categorical:
        _check_date_form(target[name], source[name], path)


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
        _check_magnitude(_numbers(table[name], path, role), describe_file(role, path, name))


def _numbers(column: pd.Series[Any], path: Path, role: str, fix: str | None = None) -> Any:
    try:
        return as_numbers(column, fix or _suggest_fix(str(column.name)))
    except InputError as error:
        raise InputError(f"{describe_file(role, path)}, {error}") from error


def _suggest_fix(name: str) -> str:
    return f"correct the values, or {suggest_drop([name])}"


def _check_magnitude(values: Any, where: str, fix: str = "correct the values, or leave them empty") -> None:
    infinite = np.flatnonzero(np.abs(values, dtype=np.float64) > MAX_MAGNITUDE)
    if infinite.size:
        row = int(infinite[0])
        raise InputError(
            f"{where}: values must be finite and below {MAX_MAGNITUDE:g}, got {values[row]:g} in row {row} "
            f"({infinite.size} of {len(values)} values; the first row is 0); {fix}"
        )


def _encode(encoder: ColumnTransformer, table: pd.DataFrame, columns: Sequence[str], role: str) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        encoded = encoder.transform(table)
    bad = np.flatnonzero(~np.isfinite(encoded).all(axis=0))
    if bad.size:
        raise InputError(
            f"{role}, column {columns[int(bad[0])]!r}: the values are too large to standardise; rescale the column"
        )
    return encoded


def _list_imputed(
    encoder: ColumnTransformer, selection: Selection, source: pd.DataFrame, target: pd.DataFrame
) -> tuple[Imputed, ...]:
    steps = encoder.named_transformers_
    means = steps["numeric"]["fill"].statistics_ if selection.numeric else ()
    values = {name: f"the source mean {mean:.4g}" for name, mean in zip(selection.numeric, means)}
    for j, name in enumerate(selection.categorical):
        fill = steps[f"category{j}"]["read"].fill_[0]
        own = fill == MISSING_CATEGORY
        values[name] = "a separate category" if own else f"the most frequent source value {fill!r}"
    counts = {name: (int(source[name].isna().sum()), int(target[name].isna().sum())) for name in selection.names}
    return tuple(
        Imputed(name, *counts[name], values.get(name, "the source mean of each date part"))
        for name in selection.names
        if any(counts[name])
    )


def _write_predictions(predictions: Any, ids: pd.Series[Any] | None, path: Path) -> None:
    """Write predictions with the id column or the row numbers from 0, in the format of the suffix."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        with prediction_file(path, None) as write:  # np.save reports a full disk without its reason
            write(None, predictions)
        return
    key, values = ("row", np.arange(len(predictions))) if ids is None else (str(ids.name), ids.to_numpy())
    table = pd.DataFrame({key: values, "predicted" if key == "prediction" else "prediction": predictions})
    if suffix == ".parquet":
        table.to_parquet(path, index=False, write_page_checksum=True)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
