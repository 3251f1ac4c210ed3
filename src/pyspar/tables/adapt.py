"""The work of ``spar adapt``: fit on the source, adapt to the target, predict its rows, and forecast the errors."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline

from pyspar.core.adapt import Adaptation, removed_shares
from pyspar.core.drift import MIN_LABELS
from pyspar.core.forecast import Forecast
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.errors import InputError, collect_warnings
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.label_units import describe_other_unit, measure_slopes
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
from pyspar.estimators.target_labels import LabelForecast
from pyspar.estimators.validation import check_alpha, in_columns, weights_of
from pyspar.inspection import add_correction
from pyspar.inspection.findings import Finding, describe_label_unit, list_quick_findings, sort_by_severity
from pyspar.inspection.judgement import Judgement
from pyspar.inspection.target_rows import summarise_labels, weigh_evidence
from pyspar.io.models import write_model
from pyspar.sources.files.formats import describe_file
from pyspar.tables.inputs import DataAccount, Fit, Inputs, Method, Request
from pyspar.tables.load import is_streamed, load_files
from pyspar.tables.write import NO_OUTPUT, Output, check_outputs, report_write_errors, write_files
from pyspar.terminal import SILENT, Progress
from pyspar.wording import format_number

METHOD_NAMES: dict[Method, str] = {"bayes": "Bayes-SpAR", "spar": "SpAR", "ols": "OLS", "ridge": "ridge"}
"""The names of the methods in forecasts and sentences."""
RIDGE_PENALTIES = np.logspace(-4, 8, 49)
_REMOVED_SHARE = 0.995
"""A direction counts as removed if this share of its weight is removed, which prints as 100 %."""
_DEFAULT_ALPHA = 0.999
"""The confidence of the paper's rule."""


class Directions(NamedTuple):
    """The number of target directions, of those that were removed, and of those whose weight became smaller."""

    total: int
    removed: int
    shrunk: int


class Scored(NamedTuple):
    """The errors of least squares and of the model on the labels of the target, which are used for nothing else."""

    least_squares: SquaredErrors
    model: SquaredErrors


@dataclass(frozen=True)
class Correction:
    """What the target's labels changed: the expected error after the correction, and the test of the relation.

    ``n_labels`` labels were used. ``p_value`` is that of the hypothesis that the relation between features and label is
    the same in the target.
    """

    n_labels: int
    expected: LabelForecast
    p_value: float


@dataclass(frozen=True)
class AdaptAccount:
    """The result of ``spar adapt``. ``has_rows`` is False for a target of Moments, which has no predictions."""

    data: DataAccount
    judgement: Judgement
    method: Method
    alpha: float
    rank: int
    directions: Directions
    chosen: str | None
    scored: Scored | None
    notes: tuple[str, ...]
    output: Path | None
    save: Path | None
    findings: tuple[Finding, ...] = ()
    has_rows: bool = True
    correction: Correction | None = None

    @property
    def before(self) -> Forecast:
        """The forecast of least squares on the target, on noisy labels."""
        return self.judgement.forecasts[0]

    @property
    def after(self) -> Forecast:
        """The forecast of the weights that predict, with the same posterior; without a correction by labels."""
        return self.judgement.forecast(METHOD_NAMES[self.method])


def adapt_files(
    request: Request,
    *,
    method: Method = "bayes",
    output: Output = NO_OUTPUT,
    save: Path | None = None,
    use_target_labels: bool = False,
    progress: Progress = SILENT,
) -> AdaptAccount:
    """Fit on the source, adapt to the target, predict its rows, and write predictions and model.

    With ``use_target_labels`` the labels of the target correct the model. Otherwise they only score the predictions.
    """
    alpha = check_confidence(request.alpha)
    if use_target_labels and method not in ("bayes", "spar"):
        raise InputError(f"--use-target-labels needs --method bayes or spar, got {method}")
    if use_target_labels and is_streamed(request):
        raise InputError("--use-target-labels needs the target in memory; pass fewer rows, without --stream")
    check_outputs(output, save, inputs=(request.source, request.target, request.labels), identity=request.identity)
    inputs = load_files(request, progress, method=method, output=output.path)
    progress.start("fit", "fitting and adapting")
    with collect_warnings() as plain_notes:
        plain = inputs.fit(SpARRegressor(alpha=alpha))
        target = inputs.target.moments()
        adapted = copy.copy(plain).adapt(target)
    with collect_warnings() as model_notes:
        model, chosen = _fit_model(method, request, inputs.fit, target, plain, adapted)
    with collect_warnings():  # they concern another model than the one that predicts
        bayes = model if method == "bayes" else inputs.fit(make_bayes(request)).adapt(target)
    fitted = {"OLS": plain, "SpAR": adapted, "Bayes-SpAR": bayes, METHOD_NAMES[method]: model}
    judgement = _judge(fitted, target, inputs)
    with collect_warnings() as correction_notes:
        corrected = _correct_model(model, inputs.target, request) if use_target_labels else None
    progress.finish("fit")

    progress.start("write", "predicting and writing")
    models = (*fitted.values(), model)
    errors = _write_results(inputs, models, corrected, output, save, progress)
    progress.finish("write")
    name = METHOD_NAMES[method]
    evidence = weigh_evidence(dict(zip(fitted, errors or ())), judgement.home, judgement.n_target)
    judgement = replace(judgement, evidence=evidence, used=name if corrected is None else None)
    if inputs.target.labels is not None:
        weights = {judgement.recommended: weights_of(fitted[judgement.recommended])}
        judgement = add_correction(judgement, inputs.target.features, weights, inputs.target.labels)
    correction = None
    if corrected is not None:
        expected = corrected.expected_rmse(inputs.target.features)
        unchanged = 1.0 - float(corrected.drift_.probability)  # temporary, until the account shows the probability
        correction = Correction(round(expected.n_labels), expected, unchanged)
    return AdaptAccount(
        data=inputs.data,
        judgement=judgement,
        method=method,
        alpha=alpha,
        rank=plain.rank_,
        directions=_count_directions(adapted.adaptation_, model),
        chosen=chosen,
        scored=None if errors is None else Scored(errors[0], errors[-1]),
        notes=(*inputs.notes, *(model_notes if method == "bayes" else plain_notes), *correction_notes),
        output=output.path,
        save=save,
        findings=_list_findings(inputs, target, plain, model, corrected, judgement.forecast(name)),
        has_rows=inputs.target.has_rows,
        correction=correction,
    )


def _list_findings(
    inputs: Inputs, target: Moments, plain: SpARRegressor, model: Any, corrected: Any, forecast: Forecast
) -> tuple[Finding, ...]:
    """Return the findings about the target, its predictions, and the labels that corrected the model."""
    rows = inputs.target.features
    predictions = None if isinstance(rows, Moments) else np.ravel((corrected or model).predict(rows))
    name = forecast.name if corrected is None else "the corrected model"
    findings = list(list_quick_findings(plain, target, inputs.columns, predictions, name))
    findings += [] if corrected is None else _check_label_unit(model, inputs.target, plain, forecast)
    return sort_by_severity(findings)


def _write_results(
    inputs: Inputs, models: tuple[Any, ...], corrected: Any, output: Output, save: Path | None, progress: Progress
) -> tuple[SquaredErrors, ...] | None:
    """Write predictions and model, and return the errors of the models if the target has labels.

    The corrected model predicts if there is one. Its labels cannot score it.
    """
    target = inputs.target
    with write_files(output.path, save) as (predictions_file, model_file):
        temporary = replace(output, path=predictions_file)
        with report_write_errors(output.path):
            errors = target.predict_and_score(models, NO_OUTPUT if corrected else temporary, progress)
            if corrected is not None:
                target.predict_and_score((corrected,), temporary, progress)
        if model_file is not None:
            pipeline = Pipeline([("columns", inputs.encoder), ("regressor", corrected or models[-1])])
            with report_write_errors(save):
                write_model(pipeline, model_file)
    return errors


def _fit_model(
    method: Method, request: Request, fit: Fit, target: Moments, plain: SpARRegressor, adapted: SpARRegressor
) -> tuple[Any, str | None]:
    """Return the regressor that predicts, and a description of its choices if it makes any."""
    if method == "bayes":
        bayes = fit(make_bayes(request)).adapt(target)
        rule = f"the paper's rule at alpha {bayes.alpha:g}, " if bayes.alpha is not None else ""
        noise = format_number(float(np.sqrt(bayes.sigma2_)), 3)
        return bayes, f"{rule}features in units of their larger spread, noise {noise} by maximum evidence"
    if method == "ridge":
        ridge = fit(RidgeCV(alphas=RIDGE_PENALTIES))
        by = "leave-one-out error" if ridge.cv is None else "the error on left-out groups"
        return ridge, f"penalty {ridge.alpha_:.3g} by {by} on the source"
    return (adapted if method == "spar" else plain), None


def check_confidence(alpha: float | None) -> float:
    """Return the confidence of the paper's rule, with its default for None; raise InputError if it is not in [0, 1]."""
    confidence = _DEFAULT_ALPHA if alpha is None else alpha
    try:
        check_alpha(confidence)
    except ValueError as error:
        raise InputError(str(error)) from error
    return confidence


def make_bayes(request: Request) -> BayesSpARRegressor:
    """Return the recommended regressor, with the paper's rule if the request has a confidence."""
    return BayesSpARRegressor(alpha=request.alpha)


def _judge(fitted: dict[str, Any], target: Moments, inputs: Inputs) -> Judgement:
    """Judge the forecasts as ``spar inspect`` does, and forecast the error of the model if it is of another method.

    The advice does not depend on the method, so both commands give the same advice for the same files.
    """
    bayes = fitted["Bayes-SpAR"]
    with np.errstate(over="ignore", invalid="ignore"):  # a number that exceeds float64 is reported as unknown
        forecaster = bayes._model.forecaster(target)
        return Judgement(
            forecasts=tuple(forecaster.forecast(name, *weights_of(each)) for name, each in fitted.items()),
            home=float(bayes.source_rmse()),
            home_is_of_groups=bayes._folds is not None,
            before="OLS",
            adapted="Bayes-SpAR",
            separation=forecaster.separation,
            is_command=not isinstance(inputs.target.features, Moments),
            n_target=target.rows,
            outside=bayes.adaptation_.outside_energy,
            unseen=inputs.data.unseen,
        )


def _count_directions(adaptation: Adaptation, model: Any) -> Directions:
    """Count the target directions, and those that the model removes and shrinks.

    A rule that removes directions counts its own set. With rule "keep" the weights before and after adapting are
    compared along the directions of least squares.
    """
    own: Adaptation | None = getattr(model, "adaptation_", None)
    if own is None:
        return Directions(adaptation.z.rank, 0, 0)
    if model.alpha is not None:
        return Directions(own.n_directions, int(own.removed.sum()), 0)
    directions = adaptation.z.V
    shares = removed_shares(
        directions, in_columns(model.coef_source_, model.intercept_source_)[0], weights_of(model)[0]
    )
    shrunk = (shares > 1.0 - _REMOVED_SHARE) & (shares < _REMOVED_SHARE)
    return Directions(adaptation.z.rank, int((shares >= _REMOVED_SHARE).sum()), int(shrunk.sum()))


def _correct_model(model: Any, target: Any, request: Request) -> Any:
    """Return the model adapted to the target and corrected with its labels."""
    n_known = 0 if target.labels is None else int((~np.isnan(target.labels)).sum())
    if n_known < MIN_LABELS:
        raise InputError(
            f"{describe_file('target', request.target)}: --use-target-labels needs at least {MIN_LABELS} labels, got "
            f"{n_known}; choose rows to label with spar label, and pass them with --labels"
        )
    return TargetCorrection(model, smooth=False).fit(target.features, target.labels)


def _check_label_unit(model: Any, target: Any, plain: SpARRegressor, forecast: Forecast) -> list[Finding]:
    """Return the finding about target labels in another unit, if any, by the predictions before the correction."""
    known, predictions = ~np.isnan(target.labels), np.ravel(model.predict(target.features))
    reason = describe_other_unit(
        predictions[known],
        target.labels[known],
        slope=float(measure_slopes(plain._source, weights_of(model)[0].T)[0]),
        spread=max(summarise_labels(plain).std, float(predictions.std())),
        noise=float(np.sqrt(forecast.noise)),
    )
    return [] if reason is None else [describe_label_unit(reason)]
