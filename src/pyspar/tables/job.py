"""The jobs behind the verbs: two files in, an account out, and for ``adapt`` predictions and a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline

from pyspar.core.moments import Moments
from pyspar.estimators.pcr import PCRRegressor
from pyspar.estimators.spar import SpARRegressor
from pyspar.estimators.validation import target_moments
from pyspar.tables.account import AdaptAccount, InspectAccount, Scored
from pyspar.tables.expected import bayes_for, choice_text, expected_of, noted
from pyspar.tables.html_report import check_reports, inspected
from pyspar.tables.prepare import Prepared, prepare
from pyspar.tables.request import Method, Request
from pyspar.tables.streamed import adapt_stream, inspect_stream
from pyspar.tables.watch import NOBODY, Watch
from pyspar.tables.write import check_outputs, predictions_table, write_all, write_table

__all__ = ["Method", "Request", "adapt_files", "inspect_files"]

RIDGE_PENALTIES = np.logspace(-4, 8, 49)


def adapt_files(
    request: Request,
    *,
    method: Method = "bayes",
    output: Path | None = None,
    save: Path | None = None,
    watch: Watch = NOBODY,
) -> AdaptAccount:
    """Fit on the source, adapt to the target, and write what was asked for, after everything else has worked."""
    request.checked()
    check_outputs(output, save, inputs=(request.source, request.target), identity=request.identity)
    if request.summarised:
        return adapt_stream(request, method=method, output=output, save=save, watch=watch)
    data = prepare(request, watch)
    watch("fitting and adapting")
    with noted() as of_least_squares:
        plain = SpARRegressor(alpha=request.confidence).fit(data.X, data.y)
        target = target_moments(plain, data.Z, None, solver=plain.solver)
        adapted = plain.adapted(target)
    with noted() as notes:
        model, chosen = _model(method, plain, adapted, data, target, request)
    expected = expected_of(target, plain, adapted.adaptation_, model)
    predictions = model.predict(data.Z)
    account = AdaptAccount(
        tables=data.tables,
        method=method,
        alpha=request.confidence,
        rank=plain.rank_,
        expected=expected,
        chosen=chosen,
        scored=_scored(plain.predict(data.Z), predictions, data.y_target),
        notes=(*data.notes, *(notes if method == "bayes" else of_least_squares)),
        output=output,
        save=save,
    )
    watch("writing")
    pipeline = Pipeline([("columns", data.transformer), ("regressor", model)])
    table = predictions_table(predictions, data.identity)
    write_all(lambda path: write_table(table, path), output, pipeline, save)
    return account


def inspect_files(
    request: Request,
    *,
    top: int = 10,
    report: Path | None = None,
    json: Path | None = None,
    watch: Watch = NOBODY,
) -> InspectAccount:
    """Return the spectral account of a source and a target; nothing is written but the reports that are asked for."""
    request.checked()
    check_reports(report, json, inputs=(request.source, request.target))
    if request.summarised:
        return inspect_stream(request, top=top, report=report, json=json, watch=watch)
    data = prepare(request, watch)
    watch("fitting and adapting")
    with noted() as notes:
        ours = bayes_for(request).fit(data.X, data.y)
    return inspected(
        ours, data.Z, request, data.tables, data.origins,
        top=top, notes=(*data.notes, *notes), html=report, json=json, watch=watch,
    )  # fmt: skip


def _model(
    method: Method, plain: SpARRegressor, adapted: SpARRegressor, data: Prepared, target: Moments, request: Request
) -> tuple[Any, str | None]:
    """Return the regressor that predicts, and what it chose for itself if it did."""
    if method == "bayes":
        bayes = bayes_for(request).fit(data.X, data.y).adapt(target)
        return bayes, choice_text(bayes)
    if method == "ridge":
        ridge = RidgeCV(alphas=RIDGE_PENALTIES).fit(data.X, data.y)
        return ridge, f"penalty {ridge.alpha_:.3g}, by leave-one-out error on the source"
    if method == "pcr":
        pcr = PCRRegressor().fit(data.X, data.y)
        return pcr, f"{pcr.n_components_} of {pcr.rank_} components, by generalised cross-validation on the source"
    return (adapted if method == "spar" else plain), None


def _scored(least_squares: Any, predictions: Any, labels: Any) -> Scored | None:
    if labels is None:
        return None
    known = ~np.isnan(labels)
    return Scored(
        rows=int(known.sum()),
        rmse_least_squares=_rmse(least_squares[known], labels[known]),
        rmse=_rmse(predictions[known], labels[known]),
    )


def _rmse(predictions: Any, labels: Any) -> float:
    return float(np.sqrt(np.mean((predictions - labels) ** 2)))
