"""``adapt`` and ``inspect`` through Moments: rows are read in batches, once to learn and once to predict.

Numeric columns only, and no missing values. Standardising happens inside the Moments, so the results are those of the
tables in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.pcr import PCRRegressor
from pyspar.estimators.spar import SpARRegressor
from pyspar.inspection.unseen_categories import NO_UNSEEN_ROWS
from pyspar.sources.files.predictions import Write, prediction_file
from pyspar.sources.stream import read_ahead
from pyspar.tables.account import AdaptAccount, InspectAccount, Scored, Tables
from pyspar.tables.checks import check_drop, extra_columns
from pyspar.tables.columns import Ignored, named_id
from pyspar.tables.delimited import separator_note
from pyspar.tables.expected import bayes_for, choice_text, expected_of, noted
from pyspar.tables.html_report import inspected
from pyspar.tables.inputs import Given, aligned, check_features, label_of, open_given, usable
from pyspar.tables.request import Method, Request
from pyspar.tables.standardise import (
    Standard,
    features_of,
    fitted_preprocessing,
    root_mean_square,
    spread_of,
    standard_of,
    standardised,
)
from pyspar.tables.watch import Watch
from pyspar.tables.write import write_all


@dataclass(frozen=True, eq=False)
class Summaries:
    """Source and target as standardised Moments, and how they came about."""

    x: Moments
    z: Moments
    target: Given
    standard: Standard
    tables: Tables
    notes: tuple[str, ...]
    single: bool


def adapt_stream(
    request: Request, *, method: Method, output: Path | None, save: Path | None, watch: Watch
) -> AdaptAccount:
    """Fit and adapt from Moments, and predict in a second pass over the target."""
    data = summaries(request, watch, method=method, output=output)
    watch("fitting and adapting")
    with noted() as of_least_squares:
        plain = SpARRegressor(alpha=request.confidence).fit_moments(data.x)
        adapted = plain.adapted(data.z)
    model: Any = {"spar": adapted, "ols": plain}.get(method)
    chosen = None
    with noted() as notes:
        if method == "bayes":
            model = bayes_for(request).fit_moments(data.x).adapt(data.z)
            chosen = choice_text(model)
    if method == "pcr":
        model = PCRRegressor().fit_moments(data.x)
        chosen = f"{model.n_components_} of {model.rank_} components, by generalised cross-validation on the source"
    expected = expected_of(data.z.without_outputs(), plain, adapted.adaptation_, model)
    scored = _second_pass(data, plain, model, None, None, watch) if output is None else None

    def predict(path: Path) -> None:
        nonlocal scored
        with prediction_file(path, request.identity) as write:
            scored = _second_pass(data, plain, model, request.identity, write, watch)

    pipeline = None
    if save is not None:
        prepared = fitted_preprocessing(data.standard, data.x.rows, single=data.single)
        pipeline = Pipeline([("columns", prepared), ("regressor", model)])
    write_all(predict, output, pipeline, save)
    return AdaptAccount(
        tables=data.tables,
        method=method,
        alpha=request.confidence,
        rank=plain.rank_,
        expected=expected,
        chosen=chosen,
        scored=scored,
        notes=(*data.notes, *(notes if method == "bayes" else of_least_squares)),
        output=output,
        save=save,
        has_rows=data.target.rows is not None,
    )


def inspect_stream(
    request: Request, *, top: int, watch: Watch, report: Path | None = None, json: Path | None = None
) -> InspectAccount:
    """Inspect from Moments."""
    data = summaries(request, watch)
    watch("fitting and adapting")
    with noted() as notes:
        ours = bayes_for(request).fit_moments(data.x)
    return inspected(
        ours, data.z.without_outputs(), request, data.tables, data.standard.names,
        top=top, notes=(*data.notes, *notes), html=report, json=json, watch=watch,
    )  # fmt: skip


def summaries(request: Request, watch: Watch, *, method: Method = "bayes", output: Path | None = None) -> Summaries:
    """Open both files, refuse what can be refused without reading rows, and then read each once."""
    source, target = open_given(request.source, "source"), open_given(request.target, "target")
    label, identity = label_of(source, request.label), request.identity
    _check_possible(request, target, label, method, output)
    target = aligned(target, source, label)
    check_drop(request.drop, (*source.names, *target.names), label=label, identity=identity)
    features, ignored = usable(source, label=label, identity=identity, drop=request.drop)
    check_features(target, features)
    if target.rows is not None:
        target.rows.read(features, keep=identity)  # refuses text among them before the source is read

    found = source.summary(features, label, watch)
    _, constant = spread_of(found)
    _check_label(source, label, found, bool(constant[-1]))
    for j in np.flatnonzero(constant[:-1]):
        ignored.append(Ignored(features[j], f"has one value in the source ({found.mean[j]:g})"))
    varied = [name for name, same in zip(features, constant[:-1]) if not same]
    if not varied:
        raise InputError(f"{source.where}: expected a column that varies. Got {len(features)} with one value each.")
    x = features_of(found, varied)
    standard = standard_of(x)
    z = target.summary(varied, _target_label(target, label), watch)
    extra = extra_columns(target.names, {*source.names, label, identity or label, *request.drop})
    tables = Tables(
        label=label, n_source=x.rows, n_target=z.rows, n_numeric=len(varied), n_categorical=0, n_date=0,
        n_encoded=len(varied), filled=(), ignored=(*ignored, *extra), unseen=NO_UNSEEN_ROWS,
    )  # fmt: skip
    return Summaries(
        standardised(x, standard), standardised(z, standard), target, standard, tables,
        _notes(request, source, target, tables, varied),
        single=bool((x.eps > np.finfo(np.float64).eps).all()),
    )  # fmt: skip


def _check_possible(request: Request, target: Given, label: str, method: Method, output: Path | None) -> None:
    if method == "ridge":
        raise InputError(
            "--method ridge: expected rows in memory, which leave-one-out errors are made of. Got a stream or a file "
            "of Moments; use bayes, spar, ols or pcr."
        )
    if label == request.identity:
        raise InputError(f"expected --id and --label to name different columns. Got {label!r} for both.")
    if target.moments is not None and output is not None:
        raise InputError(
            f"{target.where}: expected rows to predict. Got Moments, which have none; leave -o out, and --save the "
            "model to predict rows later."
        )


def _check_label(source: Given, label: str, found: Moments, constant: bool) -> None:
    if found.rows < 2:
        raise InputError(f"{source.where}: expected at least two rows to fit. Got one.")
    if constant:
        raise InputError(
            f"{source.where}, column {label!r}: expected labels that differ. Got {found.mean[-1]:g} only; name another "
            "column."
        )


def _target_label(target: Given, label: str) -> str | None:
    """Return the label where the target's Moments hold it; rows are scored when they are predicted."""
    return label if target.moments is not None and target.outputs == (label,) else None


def _notes(request: Request, source: Given, target: Given, tables: Tables, names: Sequence[str]) -> tuple[str, ...]:
    notes: list[str] = []
    read = [given for given in (source, target) if given.rows is not None]
    if read and not request.stream:
        notes.append("rows were read in a stream: numeric columns only, and none may have missing values")
    for given in read:
        notes += separator_note(given.path, given.role)
    notes += [
        f"{name}: is named like an id; if it names the rows, pass --id {name}" for name in names if named_id(name)
    ]
    if target.rows is not None and tables.label in target.names and tables.label not in target.rows.numeric:
        notes.append("the target's labels were not used to score: they are not numbers")
    return tuple(notes)


def _second_pass(
    data: Summaries, plain: Any, model: Any, identity: str | None, write: Write | None, watch: Watch
) -> Scored | None:
    """Predict the target's rows, write the predictions where asked, and score them where there are labels."""
    label, rows = data.tables.label, data.target.rows
    if rows is None:
        if data.z.n_outputs == 0:
            return None
        errors = [root_mean_square(data.z, est.coef_, est.intercept_) for est in (plain, model)]
        return Scored(data.z.rows, *errors)
    scored = label if label in rows.numeric else None
    if write is None and scored is None:
        return None
    progress = watch.reading("predicting the target", rows.n_bytes)
    models = (model,) if scored is None else (plain, model)
    squares, known = np.zeros(2), 0
    for batch in read_ahead(rows.read(data.standard.names, label=scored, keep=identity, gaps=True)):
        predictions = [data.standard.predict(batch.X, est.coef_, est.intercept_) for est in models]
        if write is not None:
            write(batch.kept, predictions[-1])
        if batch.y is not None:
            there = ~np.isnan(batch.y)
            squares += [float(np.sum((p[there] - batch.y[there]) ** 2)) for p in predictions]
            known += int(there.sum())
        progress(batch.rows, batch.n_bytes)
    if not known:
        return None
    least_squares, of_model = np.sqrt(squares / known)
    return Scored(known, float(least_squares), float(of_model))
