"""The steps of ``load`` for files that are reduced to Moments: rows that are read in batches, and files of Moments.

Rows are read once to compute the Moments and, for the target, once to predict. Only numeric columns are used. A missing
value or a bad cell raises an error; if they are imputed, the source is read once more to compute its means. The Moments
are standardised, as tables in memory are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.arrays import EPS64
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments, refuse_extremes
from pyspar.errors import InputError
from pyspar.sources.files.formats import describe_file
from pyspar.sources.files.npy import ArrayFile
from pyspar.sources.files.rows import RowBatch, RowFile
from pyspar.tables.columns import (
    DROPPED,
    LearnedColumns,
    Selection,
    check_identity,
    describe_examples,
    explain_extremes,
    find_label,
    is_named_like_id,
    name_array_columns,
    no_features_error,
    note_other_values,
    suggest_id,
)
from pyspar.tables.inputs import Ignored, Method, Request, Target
from pyspar.tables.reduce import (
    InputFile,
    build_fitted_encoder,
    feature_names,
    fill_missing,
    open_input,
    read_batches,
    select_moments,
    standardise_moments,
)
from pyspar.tables.write import Output, RowChunk, predict_chunks
from pyspar.terminal import Progress

_ROUNDING = 64.0 * EPS64
"""A spread below this share of the values is the rounding error of a constant column."""


@dataclass(frozen=True, eq=False)
class StreamedSource:
    """An open source, its label and its features; some of them may turn out to be constant."""

    file: InputFile
    label: str
    selection: Selection

    @property
    def names(self) -> tuple[str, ...]:
        return self.file.names

    @property
    def signs(self) -> dict[str, str]:
        return self.file.signs

    def open_target(self, request: Request, output: Path | None, progress: Progress) -> InputFile:
        """Open the target. No rows are read."""
        target = open_input(request.target, "target", request.identity)
        if target.moments is not None and output is not None:
            raise InputError(
                f"{target.where} contains Moments and has no rows to predict; remove -o, and use --save to predict "
                "rows later"
            )
        if isinstance(target.content, ArrayFile) and isinstance(self.file.content, ArrayFile):
            names = name_array_columns(target.names, self.names, self.label)
            target = replace(target, content=target.content.rename(names))
        return target

    def check_target(self, target: InputFile, request: Request) -> tuple[str, ...]:
        """Raise InputError if a feature of the target is not numeric. No rows are read."""
        if target.rows is not None:
            target.rows.read(self.selection.names, identity=request.identity)
        return ()

    def learn(self, request: Request, progress: Progress) -> LearnedColumns:
        """Read the source, and return its standardised Moments as a fit, without constant features."""
        file, impute = self.file, request.bad_cells == "impute"
        read = file.reduce_source(
            self.selection.numeric, self.label, progress, impute=impute, drop_unlabelled=request.drop_unlabelled
        )
        varying, constant = _split_constant(file, self.label, read.moments)
        x = select_moments(read.moments, varying)
        encoder = build_fitted_encoder(x)
        scaler = encoder.named_transformers_["numeric"]["scale"]
        standard = standardise_moments(x, scaler.mean_, scaler.scale_)
        ids = tuple(f"{name}: named like an id; {suggest_id(name)}" for name in varying if is_named_like_id(name))
        selection = Selection(tuple(varying), (), (), (*self.selection.ignored, *read.empty, *constant), ids)
        notes = (*describe_rows_read(file, varying), *read.notes)
        means = dict(zip(feature_names(read.moments), read.moments.mean))
        constants = {column.column: float(means[column.column]) for column in constant}
        return LearnedColumns(
            selection, encoder, lambda model: model.fit(standard), x.rows, read.n_missing, notes, constants
        )

    def encode_target(self, target: InputFile, learned: LearnedColumns, request: Request, progress: Progress) -> Target:
        """Read the target, and return its standardised Moments, with its rows if it has rows."""
        names, impute = learned.selection.numeric, request.bad_cells == "impute"
        scaler = learned.encoder.named_transformers_["numeric"]["scale"]
        is_labelled = target.moments is not None and target.outputs == (self.label,)  # rows are scored when predicted
        means = scaler.mean_ if impute else None
        read = target.reduce(
            names, self.label if is_labelled else None, progress, means=means, constants=learned.constants
        )
        z = standardise_moments(read.moments, scaler.mean_, scaler.scale_)
        with explain_extremes(target.path, target.role, names, self.label):
            refuse_extremes(z)
        notes = (*describe_rows_read(target, names), *read.notes)
        alerts = tuple(note for name, n in read.n_other.items() if (note := note_other_values(name, n, z.rows)))
        if not request.stream and (self.file.rows is not None or target.rows is not None):
            missing = "" if impute else ", and missing values are not imputed"
            alerts += (f"the rows were streamed: only numeric columns are used{missing}",)
        if target.rows is None:
            score = partial(_score_moments, z)
        else:
            label = self.label if self.label in target.rows.numeric else None
            if label is None and self.label in target.names:
                notes += (f"the predictions are not scored: the target's column {self.label!r} is not numeric",)
            score = partial(_predict_rows, target.rows, names, scaler, label, request.identity, impute)
        features, has_rows = z.without_outputs(), target.rows is not None
        return Target(features, z.rows, lambda: features, score, read.n_missing, alerts, notes, has_rows=has_rows)


def _score_moments(
    z: Moments, models: Sequence[Any], output: Output, progress: Progress
) -> tuple[SquaredErrors, ...] | None:
    """Return the errors of linear models on a target of Moments, whose output is the label if it has one."""
    if z.n_outputs == 0:
        return None
    residuals = [z.subtract_prediction(m.coef_[:, None], np.array([m.intercept_])) for m in models]
    errors = [float(moments.column_lengths()[-1] / np.sqrt(moments.weight)) for moments in residuals]
    return tuple(SquaredErrors.of_normal(z.rows, error) for error in errors)  # Moments have no single errors


def _predict_rows(
    rows: RowFile, names: Sequence[str], scaler: Any, label: str | None, identity: str | None, impute: bool,
    models: Sequence[Any], output: Output, progress: Progress,
) -> tuple[SquaredErrors, ...] | None:  # fmt: skip
    """Read a target again to predict and score its rows."""
    if output.path is None and label is None:
        return None
    batches = read_batches(
        rows, progress, names, "predicting the target", label=label,
        identity=None if output.path is None else identity, missing_labels=True, missing_features=impute,
    )  # fmt: skip

    def standardise(batch: RowBatch) -> RowChunk:
        X = fill_missing(batch.X, scaler.mean_)[0] if impute else batch.X
        return RowChunk(np.subtract(X, scaler.mean_, dtype=np.float64) / scaler.scale_, batch.y, batch.ids)

    return predict_chunks(map(standardise, batches), models, output, identity)


def open_source(request: Request, method: Method) -> StreamedSource:
    """Open the source, and choose its label and features. No rows are read."""
    _check_options(request, method)
    file = open_input(request.source, "source")
    label = _find_label(file, request)
    check_identity(request.identity, label)
    return StreamedSource(file, label, choose_features(file, label, identity=request.identity, drop=request.drop))


def has_column(path: Path, name: str | None) -> bool:
    """Return whether a file can be opened and has a column."""
    try:
        return name in open_input(path, "target").names
    except InputError:
        return False


def choose_features(
    source: InputFile, label: str | None, *, identity: str | None = None, drop: Collection[str] = ()
) -> Selection:
    """Return the features of a source, and the ignored columns with reasons."""
    reasons = {name: _reason_to_ignore(source, name, drop) for name in source.names if name not in (label, identity)}
    features = tuple(name for name, reason in reasons.items() if reason is None)
    ignored = tuple(Ignored(name, reason) for name, reason in reasons.items() if reason is not None)
    if not features:
        raise no_features_error(source.where, ignored)
    return Selection(features, (), (), ignored)


def _find_label(source: InputFile, request: Request) -> str:
    """Return the name of the label. A file of Moments has one output, and may contain its name."""
    label = request.label
    if source.moments is None:
        return find_label(source.names, source.path, label, lambda: has_column(request.target, label))
    if source.moments.n_outputs != 1:
        raise InputError(
            f"{source.where}: the Moments of a source must have one output, got {source.moments.n_outputs}; write them "
            "with spar summarize --label"
        )
    if label is not None and source.outputs and label != source.outputs[0]:
        raise InputError(f"{source.where}: the label of these Moments is {source.outputs[0]!r}, got --label {label}")
    return label or (source.outputs[0] if source.outputs else "y")


def _check_options(request: Request, method: Method) -> None:
    """Raise InputError for options that need all rows in memory."""
    options = {"--groups": request.groups, "--labels": request.labels, "--category": request.categories}
    for option, value in options.items():
        if value:
            raise InputError(f"{option} is not available when streaming; it needs all rows in memory")
    if method == "ridge":
        raise InputError(
            "--method ridge is not available when streaming, because it needs all rows in memory; use bayes, spar or "
            "ols"
        )


def _split_constant(source: InputFile, label: str, x: Moments) -> tuple[list[str], list[Ignored]]:
    """Return the features that vary in the source, and the constant ones as ignored columns."""
    *constant, is_constant_label = x.spread * np.sqrt(x.weight) <= _ROUNDING * x.column_lengths()
    if x.rows < 2:
        raise InputError(f"{source.where}: a fit needs at least two rows, got one")
    if is_constant_label:
        where = describe_file(source.role, source.path, label)
        raise InputError(f"{where}: all labels are {x.mean[-1]:g}; choose another column")
    columns = list(zip(feature_names(x), x.mean, constant))
    varying = [name for name, _, is_constant in columns if not is_constant]
    ignored = [
        Ignored(name, f"constant in the source ({mean:g})") for name, mean, is_constant in columns if is_constant
    ]
    if not varying:
        raise no_features_error(source.where, ignored)
    return varying, ignored


def _reason_to_ignore(source: InputFile, name: str, drop: Collection[str]) -> str | None:
    if name in drop:
        return DROPPED
    if re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name):
        return "no name; assumed to be a row index"
    if source.rows is None:
        return None
    column = source.rows.column(name)
    if column.dtype is None:
        return f"type {column.type_name}; streaming uses numeric columns only"
    return "no values in the first rows" if column.type_name == "null" else None


def describe_rows_read(file: InputFile, names: Sequence[str]) -> list[str]:
    """Return notes about the separator of a text file, and about numbers with separators or signs."""
    if file.rows is None:
        return []
    return [*getattr(file.rows, "notes", ()), *describe_examples(file.rows.columns, names, file.role)]
