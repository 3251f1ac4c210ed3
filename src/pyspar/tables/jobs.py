"""The work of ``spar adapt``, ``inspect`` and ``summarize``: read files, compute, write files, return an account."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import Pipeline

from pyspar.core.adapt import Adaptation, removed_shares
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.errors import InputError, collect_warnings
from pyspar.estimators.pcr import PCRRegressor
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
from pyspar.estimators.validation import weights_of
from pyspar.inspection import build_inspection
from pyspar.inspection.compare import compare_weights
from pyspar.inspection.findings import list_quick_findings
from pyspar.inspection.judgement import Judgement, weigh_evidence
from pyspar.io.models import write_model
from pyspar.io.moments import write_moments
from pyspar.progress import SILENT, Progress
from pyspar.reporting import Report
from pyspar.sources.files.header import check_names, suggest_column
from pyspar.sources.files.rows import RowFile
from pyspar.tables.account import (
    AdaptAccount,
    DataAccount,
    Expected,
    Fit,
    InspectAccount,
    Scored,
    SummaryAccount,
)
from pyspar.tables.columns import check_drop, find_label
from pyspar.tables.correct import check_correction, correct_model, describe_correction, label_files
from pyspar.tables.in_memory import load_files
from pyspar.tables.input_file import open_input, store_formats
from pyspar.tables.predict import predict_file
from pyspar.tables.request import (
    BadCells,
    Method,
    Request,
)
from pyspar.tables.streamed import choose_features, describe_number_text, open_files
from pyspar.tables.write import (
    PREDICTIONS_ONLY,
    Writing,
    check_outputs,
    check_path,
    check_reports,
    report_write_errors,
    write_files,
)
from pyspar.wording import describe_new_categories

__all__ = ["Request", "Writing", "adapt_files", "inspect_files", "label_files", "predict_file", "summarize_file"]

METHOD_NAMES: dict[Method, str] = {"bayes": "Bayes-SpAR", "spar": "SpAR", "ols": "OLS", "ridge": "ridge", "pcr": "PCR"}
"""The names of the methods in forecasts and sentences."""
RIDGE_PENALTIES = np.logspace(-4, 8, 49)

_REMOVED_SHARE = 0.995
"""A direction counts as removed if this share of its weight is removed, which prints as 100 %."""


def adapt_files(
    request: Request,
    *,
    method: Method = "bayes",
    output: Path | None = None,
    save: Path | None = None,
    use_target_labels: bool = False,
    writing: Writing = PREDICTIONS_ONLY,
    progress: Progress = SILENT,
) -> AdaptAccount:
    """Fit on the source, adapt to the target, predict its rows, and write predictions and model.

    With ``use_target_labels`` the labels of the target correct the model. Otherwise they only score the predictions.
    """
    request.check()
    if use_target_labels:
        check_correction(request, method)
    check_outputs(output, save, inputs=(request.source, request.target), identity=request.identity, writing=writing)
    if request.is_streamed:
        inputs = open_files(request, progress, method=method, output=output)
    else:
        inputs = load_files(request, progress)
    progress.start("fit", "fitting and adapting")
    with collect_warnings() as plain_notes:
        plain = inputs.fit(SpARRegressor(alpha=request.confidence))
        target = inputs.target.moments()
        adapted = plain.adapted(target)
    with collect_warnings() as model_notes:
        model, chosen = _fit_model(method, request, inputs.fit, target, plain, adapted)
    expected = _forecast(target, plain, adapted.adaptation_, model)
    corrected = correct_model(model, inputs.target, request) if use_target_labels else None
    progress.finish("fit")

    progress.start("write", "predicting and writing")
    with write_files(output, save) as (predictions_file, model_file):
        with report_write_errors(output):
            first_file = predictions_file if corrected is None else None
            errors = inputs.target.predict_and_score((plain, model), first_file, progress, writing=writing)
            if corrected is not None:  # its labels cannot score it
                inputs.target.predict_and_score((corrected,), predictions_file, progress, writing=writing)
        if model_file is not None:
            pipeline = Pipeline([("columns", inputs.make_encoder()), ("regressor", corrected or model)])
            with report_write_errors(save):
                write_model(pipeline, model_file)
    progress.finish("write")
    rows = inputs.target.features
    predictions = None if isinstance(rows, Moments) else np.ravel((corrected or model).predict(rows))
    name = METHOD_NAMES[method] if corrected is None else "the corrected model"
    return AdaptAccount(
        data=inputs.data,
        judgement=_judge(method, expected, model, target, inputs.data, errors),
        method=method,
        alpha=request.confidence,
        rank=plain.rank_,
        expected=expected,
        chosen=chosen,
        scored=None if errors is None else Scored(*errors),
        notes=(*inputs.notes, *(model_notes if method == "bayes" else plain_notes)),
        output=output,
        save=save,
        findings=list_quick_findings(plain, target, inputs.columns, predictions, name),
        has_rows=inputs.target.has_rows,
        correction=None if corrected is None else describe_correction(corrected, inputs.target),
    )


def inspect_files(
    request: Request,
    *,
    top: int = 10,
    reports: Sequence[Path] = (),
    title: str | None = None,
    progress: Progress = SILENT,
) -> InspectAccount:
    """Inspect a fit on the source at the target, and write the reports, each in the format of its suffix."""
    request.check()
    check_reports(reports, inputs=(request.source, request.target))
    inputs = open_files(request, progress) if request.is_streamed else load_files(request, progress)
    progress.start("fit", "fitting and forecasting")
    with collect_warnings() as warned:
        estimator = inputs.fit(_make_bayes(request))
    target = inputs.target.moments()
    models = compare_weights(estimator, target, has_model=False)
    progress.finish("fit")
    linear_models = [_make_linear_model(*weights) for weights in models.candidates.values()]
    errors = inputs.target.predict_and_score(linear_models, None, progress) or ()
    inspection = build_inspection(
        models,
        inputs.target.features,
        columns=inputs.columns,
        outputs=[inputs.data.label],
        description=repr(estimator),
        unseen=inputs.data.unseen,
        errors={name: [squares] for name, squares in zip(models.candidates, errors)},
    )
    notes = (*inputs.notes, *warned)
    document = Report(
        inspection,
        title or f"{inputs.data.label}: {request.source.name} → {request.target.name}",
        _format_command(request, inputs.data.label, reports, title),
        (*_describe_data(inputs.data), *notes),
    )
    progress.start("write", "writing the report")
    _write_reports(document, reports)
    progress.finish("write")
    return InspectAccount(inputs.data, document, top, notes, tuple(reports))


def summarize_file(
    path: Path,
    output: Path,
    *,
    label: str | None = None,
    features: Sequence[str] = (),
    drop: tuple[str, ...] = (),
    bad_cells: BadCells = "stop",
    drop_unlabelled: bool = False,
    progress: Progress = SILENT,
) -> SummaryAccount:
    """Read a file once, and write its Moments with the names of features and label.

    If bad cells are imputed, missing values are imputed too, with the means of the file, which is read twice.
    """
    check_path(output, "--output", (".npz",), (path,))
    source = open_input(path, "source")
    if source.rows is None:
        raise InputError(f"{source.where} is a summary already; pass a file of rows")
    rows = source.rows
    label = None if label is None else find_label(rows.names, path, label)
    check_drop(drop, rows.names, label=label or "", identity=None)
    names, ignored = choose_features(source, label=label, drop=drop)
    if features:
        names, ignored = _split_names(features, rows, label), []
    means = None
    if bad_cells == "impute":
        names, means, empty = source.measure_means(names, progress)
        ignored += empty
    read = source.reduce(names, label, progress, means=means, drop_unlabelled=drop_unlabelled)
    moments, outputs = read.moments, () if label is None else (label,)
    with report_write_errors(output):
        write_moments(moments, output, outputs, store_formats(source, [*names, *outputs]))
    return SummaryAccount(
        rows=moments.rows,
        features=moments.n_features,
        label=label,
        n_bytes_in=rows.n_bytes,
        n_bytes_out=output.stat().st_size,
        ignored=tuple(ignored),
        notes=(*describe_number_text(source, [*names, *outputs]), *read.notes),
        output=output,
    )


def _fit_model(
    method: Method, request: Request, fit: Fit, target: Moments, plain: SpARRegressor, adapted: SpARRegressor
) -> tuple[Any, str | None]:
    """Return the regressor that predicts, and a description of its choices if it makes any."""
    if method == "bayes":
        bayes = fit(_make_bayes(request)).adapt(target)
        rule = f"the paper's rule at alpha {bayes.alpha:g}, " if bayes.rule == "chi2" else ""
        noise = f"{np.sqrt(bayes.sigma2_):.3g}"
        return bayes, f"{rule}features in units of their larger spread, noise {noise} by maximum evidence"
    if method == "ridge":
        ridge = fit(RidgeCV(alphas=RIDGE_PENALTIES))
        return ridge, f"penalty {ridge.alpha_:.3g} by leave-one-out error on the source"
    if method == "pcr":
        pcr = fit(PCRRegressor())
        return pcr, f"{pcr.n_components_} of {pcr.rank_} components by generalised cross-validation on the source"
    return (adapted if method == "spar" else plain), None


def _make_bayes(request: Request) -> BayesSpARRegressor:
    """Return the recommended regressor, with the paper's rule if the request has a confidence."""
    return BayesSpARRegressor() if request.alpha is None else BayesSpARRegressor(rule="chi2", alpha=request.alpha)


def _forecast(target: Moments, plain: SpARRegressor, adaptation: Adaptation, model: Any) -> Expected:
    """Forecast the errors of least squares and of the weights that predict, with the same posterior."""
    with np.errstate(over="ignore", invalid="ignore"):  # a number that exceeds float64 is reported as unknown
        forecaster = plain._model.forecaster(target)
        before, after = (
            forecaster.forecast(name, *weights_of(fitted)) for name, fitted in (("OLS", plain), ("model", model))
        )
        home = float(model.home_rmse() if hasattr(model, "home_rmse") else plain.home_rmse())
    directions, removed, shrunk = _count_directions(adaptation, model)
    outside = getattr(model, "adaptation_", adaptation).outside_energy
    return Expected(directions, removed, shrunk, before, after, outside, home, forecaster.separation)


def _judge(
    method: Method,
    expected: Expected,
    model: Any,
    target: Moments,
    data: DataAccount,
    errors: tuple[SquaredErrors, ...] | None,
) -> Judgement:
    """Judge the forecasts of least squares and of the weights that predict, as ``spar inspect`` does."""
    name, home = METHOD_NAMES[method], expected.home
    return Judgement(
        forecasts=(expected.before, replace(expected.after, name=name)),
        home=home,
        before="OLS",
        adapted=name,
        separation=expected.separation,
        n_target=target.rows,
        outside=expected.outside,
        unseen=data.unseen,
        evidence=weigh_evidence(dict(zip(("OLS", name), errors or ())), home),
    )


def _make_linear_model(coef: Any, intercept: Any) -> LinearRegression:
    """Return a model with given weights (D, 1) and intercepts (1,)."""
    model = LinearRegression()
    model.coef_, model.intercept_ = coef[:, 0], float(intercept[0])
    return model


def _count_directions(adaptation: Adaptation, model: Any) -> tuple[int, int, int]:
    """Return the number of target directions, and how many of them the model removes and shrinks.

    A rule that removes directions counts its own set. With rule "keep" the weights before and after adapting are
    compared along the directions of least squares.
    """
    own: Adaptation | None = getattr(model, "adaptation_", None)
    if own is None:
        return adaptation.z.rank, 0, 0
    if getattr(model, "rule", "chi2") != "keep":
        return own.z.rank, int(own.removed.sum()), 0
    directions = adaptation.z.V
    shares = removed_shares(directions, weights_of(copy.copy(model).reset())[0], weights_of(model)[0])
    shrunk = (shares > 1.0 - _REMOVED_SHARE) & (shares < _REMOVED_SHARE)
    return adaptation.z.rank, int((shares >= _REMOVED_SHARE).sum()), int(shrunk.sum())


def _write_reports(document: Report, paths: Sequence[Path]) -> None:
    """Write pages and JSON, either all that were requested or none."""
    texts = [document.html() if path.suffix.lower() == ".html" else document.json() for path in paths]
    with write_files(*paths) as temporaries:
        for temporary, path, text in zip(temporaries, paths, texts):
            with report_write_errors(path):
                temporary.write_text(text, encoding="utf-8")


def _format_command(request: Request, label: str, reports: Sequence[Path], title: str | None) -> str:
    """Return the command line of an inspection. Absolute paths are replaced by file names."""
    words = ["spar", "inspect", _format_path(request.source), _format_path(request.target), "--label", label]
    if request.alpha is not None:
        words += ["--alpha", f"{request.alpha:g}"]
    if request.features != "all":
        words += ["--features", request.features]
    if request.identity is not None:
        words += ["--id", request.identity]
    for name in request.drop:
        words += ["--drop", name]
    for name in request.categories:
        words += ["--category", name]
    if request.groups is not None:
        words += ["--groups", request.groups]
    if request.labels is not None:
        words += ["--labels", _format_path(request.labels)]
    if request.bad_cells != "stop":
        words += ["--bad-cells", request.bad_cells]
    if request.drop_unlabelled:
        words.append("--drop-unlabelled")
    if request.stream:
        words.append("--stream")
    if title is not None:
        words += ["--title", title]
    for path in reports:
        words += ["--report", _format_path(path)]
    return shlex.join(words)


def _format_path(path: Path) -> str:
    return path.name if path.is_absolute() else str(path)


def _describe_data(data: DataAccount) -> list[str]:
    notes = [f"{column.column}: {column.reason}" for column in data.ignored]
    notes += [
        f"{column.column}: {column.source:,} source and {column.target:,} target values imputed with {column.value}"
        for column in data.imputed
    ]
    notes += [
        f"{column.column}: {describe_new_categories(column.rows, column.categories)}" for column in data.unseen.columns
    ]
    return notes


def _split_names(features: Sequence[str], rows: RowFile, label: str | None) -> list[str]:
    """Return the names of ``--features``. One option may have several names separated by commas."""
    names: list[str] = []
    for text in features:
        names += [text] if text in rows.names else [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name == label:
            raise InputError(f"--features must not contain the label {name!r}")
        if name not in rows.names:
            raise InputError(
                f"--features: {str(rows.path)!r} has no column {name!r}; {suggest_column(name, rows.names)}"
            )
    check_names(names, "--features")
    return names
