"""Files that are reduced to Moments: rows that are read in batches, and files of Moments.

Rows are read once to compute the Moments and, for the target, once to predict. Only numeric columns are used. A missing
value or a bad cell raises an error; if they are imputed, the source is read once more to compute its means. The Moments
are standardised, as tables in memory are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS
from pyspar.sources.files.header import describe_file
from pyspar.sources.files.npy import ArrayFile
from pyspar.sources.files.rows import RowFile
from pyspar.tables.columns import (
    DROPPED,
    check_drop,
    check_features,
    check_formats,
    check_identity,
    find_label,
    is_named_like_id,
    list_extra_columns,
    list_imputed,
    name_array_columns,
    no_features_error,
    suggest_id,
)
from pyspar.tables.inputs import DataAccount, Ignored, Inputs, Method, Request
from pyspar.tables.read import describe_separator
from pyspar.tables.reduce import (
    InputFile,
    Scale,
    build_fitted_encoder,
    feature_names,
    fill_missing,
    measure_scale,
    measure_spread,
    open_input,
    read_batches,
    root_mean_square_error,
    select_moments,
    standardise,
)
from pyspar.tables.write import Output, intervals_of, prediction_file
from pyspar.terminal import Progress


@dataclass(frozen=True, eq=False)
class MomentsTarget:
    """The standardised Moments of a target without rows, with the label as output if it has one."""

    z: Moments
    has_rows: ClassVar[bool] = False

    @property
    def features(self) -> Moments:
        return self.moments()

    def moments(self) -> Moments:
        return self.z.without_outputs()

    def predict_and_score(
        self, models: Sequence[Any], output: Output, progress: Progress
    ) -> tuple[SquaredErrors, ...] | None:
        if self.z.n_outputs == 0:
            return None
        errors = [root_mean_square_error(self.z, model.coef_, model.intercept_) for model in models]
        return tuple(SquaredErrors.of_normal(self.z.rows, error) for error in errors)  # Moments have no single errors


@dataclass(frozen=True, eq=False)
class StreamedTarget(MomentsTarget):
    """The standardised Moments of a target, and its file of rows, which is read again to predict."""

    rows: RowFile
    scale: Scale
    label: str | None
    identity: str | None
    impute: bool = False
    has_rows: ClassVar[bool] = True

    def predict_and_score(
        self, models: Sequence[Any], output: Output, progress: Progress
    ) -> tuple[SquaredErrors, ...] | None:
        if output.path is None:
            return None if self.label is None else self._predict_batches(models, None, progress, None)
        with prediction_file(output.path, self.identity, safe_csv=output.safe_csv) as write:
            return self._predict_batches(models, write, progress, output.level)

    def _predict_batches(
        self, models: Sequence[Any], write: Any, progress: Progress, level: float | None
    ) -> tuple[SquaredErrors, ...] | None:
        models = models if self.label is not None else models[-1:]
        errors = [SquaredErrors() for _ in models]
        identity = None if write is None else self.identity
        for batch in read_batches(
            self.rows, "predicting the target", progress, self.scale.names,
            label=self.label, identity=identity, missing_labels=True, missing_features=self.impute,
        ):  # fmt: skip
            X = fill_missing(batch.X, self.scale.mean)[0] if self.impute else batch.X
            predictions = [self.scale.predict(X, model.coef_, model.intercept_) for model in models]
            if write is not None:
                write(batch.ids, predictions[-1], *intervals_of(models[-1], self.scale.standardise(X), level))
            if batch.y is not None:
                errors = [sums + SquaredErrors.of(values - batch.y) for sums, values in zip(errors, predictions)]
        return tuple(errors) if errors[0].n else None


def load_streamed(
    request: Request, progress: Progress, *, method: Method = "bayes", output: Path | None = None
) -> Inputs:
    """Open both files, check everything that needs no rows, and read each file once."""
    source, target = open_input(request.source, "source"), open_input(request.target, "target")
    label = _find_label(source, target, request.label)
    if isinstance(target.content, ArrayFile) and isinstance(source.content, ArrayFile):
        names = name_array_columns(target.names, source.names, label)
        target = replace(target, content=target.content.rename(names))
    features, ignored = _check_columns(request, source, target, label)
    _check_request(request, target, method, output)

    impute = request.bad_cells == "impute"
    read = source.reduce_source(features, label, progress, impute=impute, drop_unlabelled=request.drop_unlabelled)
    varying, constant = _split_constant(source, label, read.moments)
    x = select_moments(read.moments, varying)
    scale = measure_scale(x)
    has_output = target.moments is not None and target.outputs == (label,)  # rows are scored when they are predicted
    target_read = target.reduce(varying, label if has_output else None, progress, means=scale.mean if impute else None)
    z = standardise(target_read.moments, scale)

    extra = list_extra_columns(target.names, {*source.names, label, request.identity or label, *request.drop})
    imputed = list_imputed(
        {name: f"the source mean {mean:.4g}" for name, mean in zip(varying, scale.mean)},
        dict(zip(feature_names(read.moments), read.n_missing)),
        dict(zip(varying, target_read.n_missing)),
    )
    account = DataAccount(
        label=label, n_source=x.rows, n_target=z.rows, n_numeric=len(varying), n_categorical=0, n_date=0,
        n_encoded=len(varying), imputed=imputed, ignored=(*ignored, *read.empty, *constant, *extra),
        unseen=NO_UNSEEN_ROWS,
    )  # fmt: skip
    standard = standardise(x, scale)
    encoded_target = MomentsTarget(z)
    if target.rows is not None:
        scored = label if label in target.rows.numeric else None
        encoded_target = StreamedTarget(z, target.rows, scale, scored, request.identity, impute)
    return Inputs(
        lambda estimator: estimator.fit_moments(standard),
        encoded_target,
        scale.names,
        account,
        (*_list_notes(request, source, target, label, varying), *read.notes, *target_read.notes),
        lambda: build_fitted_encoder(
            scale,
            x.rows,
            single=bool((x.eps > np.finfo(np.float64).eps).all()),
            formats={name: style for name, style in source.formats.items() if name in (*scale.names, label)},
        ),
    )


def _check_columns(
    request: Request, source: InputFile, target: InputFile, label: str
) -> tuple[list[str], list[Ignored]]:
    """Return the features and the ignored columns of the source, after checking that the target has the features."""
    identity, drop = request.identity, request.drop
    check_identity(identity, label)
    check_drop(drop, (*source.names, *target.names), label=label, identity=identity)
    features, ignored = choose_features(source, label=label, identity=identity, drop=drop)
    check_features(target.names, features, target.where)
    if target.rows is not None:
        target.rows.read(features, identity=identity)  # checks the types of the columns and reads no rows yet
    check_formats(source.formats, target.formats, [*features, label], target.path, label=label)
    return features, ignored


def _split_constant(source: InputFile, label: str, x: Moments) -> tuple[list[str], list[Ignored]]:
    """Return the features that vary in the source, and the constant ones as ignored columns."""
    *constant, constant_label = measure_spread(x)[1]
    _check_source(source, label, x, bool(constant_label))
    names = feature_names(x)
    varying = [name for name, is_constant in zip(names, constant, strict=True) if not is_constant]
    ignored = [
        Ignored(name, f"constant in the source ({mean:g})")
        for name, mean, is_constant in zip(names, x.mean, constant)
        if is_constant
    ]
    if not varying:
        raise no_features_error(source.where, ignored)
    return varying, ignored


def choose_features(
    source: InputFile, *, label: str | None, identity: str | None = None, drop: Collection[str] = ()
) -> tuple[list[str], list[Ignored]]:
    """Return the features of a source, and the ignored columns with reasons."""
    features, ignored = [], []
    for name in source.names:
        if name in (label, identity):
            continue
        reason = _reason_to_ignore(source, name, drop)
        if reason is None:
            features.append(name)
        else:
            ignored.append(Ignored(name, reason))
    if not features:
        raise no_features_error(source.where, ignored)
    return features, ignored


def _find_label(source: InputFile, target: InputFile, label: str | None) -> str:
    """Return the name of the label. A file of Moments has one output, and may contain its name."""
    if source.moments is None:
        return find_label(source.names, source.path, label, in_target=lambda: label in target.names)
    if source.moments.n_outputs != 1:
        raise InputError(
            f"{source.where}: the Moments of a source must have one output, got {source.moments.n_outputs}; write them "
            "with spar summarize --label"
        )
    if label is not None and source.outputs and label != source.outputs[0]:
        raise InputError(f"{source.where}: the label of these Moments is {source.outputs[0]!r}, got --label {label}")
    return label or (source.outputs[0] if source.outputs else "y")


def _check_request(request: Request, target: InputFile, method: Method, output: Path | None) -> None:
    for option, value in (
        ("--groups", request.groups),
        ("--labels", request.labels),
        ("--category", request.categories),
    ):
        if value:
            raise InputError(f"{option} is not available when streaming; it needs all rows in memory")
    if method == "ridge":
        raise InputError(
            "--method ridge is not available when streaming, because it needs all rows in memory; use bayes, spar, ols "
            "or pcr"
        )
    if target.moments is not None and output is not None:
        raise InputError(
            f"{target.where} contains Moments and has no rows to predict; remove -o, and use --save to predict rows "
            "later"
        )


def _check_source(source: InputFile, label: str, x: Moments, constant: bool) -> None:
    if x.rows < 2:
        raise InputError(f"{source.where}: a fit needs at least two rows, got one")
    if constant:
        where = describe_file(source.role, source.path, label)
        raise InputError(f"{where}: all labels are {x.mean[-1]:g}; choose another column")


def _reason_to_ignore(source: InputFile, name: str, drop: Collection[str]) -> str | None:
    if name in drop:
        return DROPPED
    if name == "" or re.fullmatch(r"__index_level_\d+__", name):
        return "no name; assumed to be a row index"
    if source.rows is None:
        return None
    column = source.rows.column(name)
    if column.dtype is None:
        return f"type {column.type_name}; streaming uses numeric columns only"
    return "no values in the first rows" if column.type_name == "null" else None


def describe_number_text(file: InputFile, names: Sequence[str]) -> list[str]:
    """Return notes about the text columns of a file of rows that are read as numbers."""
    styles = {name: file.rows.column(name).style for name in names} if file.rows is not None else {}
    return [
        f"{file.role}: {name}: text that is read as numbers" + (", 50% is read as 0.5" if style.percent else "")
        for name, style in styles.items()
        if style is not None
    ]


def _list_notes(
    request: Request, source: InputFile, target: InputFile, label: str, features: Sequence[str]
) -> tuple[str, ...]:
    notes: list[str] = []
    row_files = [file for file in (source, target) if file.rows is not None]
    if row_files and not request.stream:
        notes.append(
            "the rows were streamed: only numeric columns are used"
            + ("" if request.bad_cells == "impute" else ", and missing values are not imputed")
        )
    for file in row_files:
        if separator := getattr(file.content, "separator", None):  # delimited text
            notes += describe_separator(file.path, file.role, separator)
    for file in row_files:
        notes += describe_number_text(file, features)
    notes += [f"{name}: named like an id; {suggest_id(name)}" for name in features if is_named_like_id(name)]
    if target.rows is not None and label in target.names and label not in target.rows.numeric:
        notes.append(f"the predictions are not scored: the target's column {label!r} is not numeric")
    return tuple(notes)
