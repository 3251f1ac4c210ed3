"""The jobs behind the verbs: two files in, an account out, and for ``adapt`` predictions and a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline

from pyspar._checks import check_alpha
from pyspar.core.adapt import Adaptation
from pyspar.errors import InputError, SparWarning
from pyspar.estimators import PCRRegressor, SpARRegressor
from pyspar.tables.account import AdaptAccount, Direction, Expected, InspectAccount, Scored
from pyspar.tables.columns import Features
from pyspar.tables.prepare import Prepared, Step, prepare
from pyspar.tables.write import check_outputs, predictions_table, write_all

Method = Literal["spar", "ols", "ridge", "pcr"]

RIDGE_PENALTIES = np.logspace(-4, 8, 49)


@dataclass(frozen=True)
class Request:
    """What both verbs are asked."""

    source: Path
    target: Path
    label: str
    alpha: float = 0.999
    features: Features = "all"
    identity: str | None = None


def silent(_: str) -> None:
    """Tell nobody."""


def adapt_files(
    request: Request,
    *,
    method: Method = "spar",
    output: Path | None = None,
    save: Path | None = None,
    step: Step = silent,
) -> AdaptAccount:
    """Fit on the source, adapt to the target, and write what was asked for, after everything else has worked."""
    _check_alpha(request.alpha)
    check_outputs(output, save, inputs=(request.source, request.target), identity=request.identity)
    data = _prepared(request, step)
    step("fitting and adapting")
    with _noted() as notes:
        plain = SpARRegressor(alpha=request.alpha).fit(data.X, data.y)
        adapted = plain.adapted(data.Z)
        model, chosen = _model(method, plain, adapted, data)
    predictions = model.predict(data.Z)
    account = AdaptAccount(
        tables=data.tables,
        method=method,
        alpha=request.alpha,
        rank=plain.rank_,
        expected=_expected(adapted.adaptation_, len(data.y)),
        chosen=chosen,
        scored=_scored(plain.predict(data.Z), predictions, data.y_target),
        notes=(*data.notes, *notes),
        output=output,
        save=save,
    )
    step("writing")
    pipeline = Pipeline([("columns", data.transformer), ("regressor", model)])
    write_all(predictions_table(predictions, data.identity), output, pipeline, save)
    return account


def inspect_files(request: Request, *, top: int = 10, step: Step = silent) -> InspectAccount:
    """Return the spectral account of a source and a target; nothing is written."""
    _check_alpha(request.alpha)
    data = _prepared(request, step)
    step("fitting and adapting")
    with _noted() as notes:
        est = SpARRegressor(alpha=request.alpha).fit(data.X, data.y).adapt(data.Z)
    found = est.adaptation_
    total = float(found.risk_before[0])
    order = np.argsort(-found.var[:, 0], kind="stable")[:top]
    return InspectAccount(
        tables=data.tables,
        alpha=request.alpha,
        rank=est.rank_,
        expected=_expected(found, len(data.y)),
        directions=tuple(_direction(found, int(j), total, data.origins) for j in order),
        mean_share=float(found.mean_risk[0]) / total if total > 0.0 else 0.0,
        notes=(*data.notes, *notes),
    )


def _prepared(request: Request, step: Step) -> Prepared:
    return prepare(
        request.source, request.target,
        label=request.label, features=request.features, identity=request.identity, step=step,
    )  # fmt: skip


def _check_alpha(alpha: float) -> None:
    try:
        check_alpha(alpha)
    except ValueError as error:
        raise InputError(str(error)) from error


def _model(method: Method, plain: SpARRegressor, adapted: SpARRegressor, data: Prepared) -> tuple[Any, str | None]:
    """Return the regressor that predicts, and what it chose for itself if it did."""
    if method == "ridge":
        ridge = RidgeCV(alphas=RIDGE_PENALTIES).fit(data.X, data.y)
        return ridge, f"penalty {ridge.alpha_:.3g}, by leave-one-out error on the source"
    if method == "pcr":
        pcr = PCRRegressor().fit(data.X, data.y)
        return pcr, f"{pcr.n_components_} of {pcr.rank_} components, by generalised cross-validation on the source"
    return (adapted if method == "spar" else plain), None


def _expected(found: Adaptation, n_source: int) -> Expected:
    # A source with no more rows than directions (and the intercept) is fitted exactly, but for rounding.
    known = n_source > found.x.rank + 1 and bool(found.sigma2[0] > 0.0)
    return Expected(
        directions=found.z.rank,
        removed=int(found.removed.sum()),
        rmse_before=float(np.sqrt(found.risk_before[0] / found.n_target)) if known else None,
        rmse_after=float(np.sqrt(found.risk_after[0] / found.n_target)) if known else None,
        outside=found.outside_energy,
    )


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


def _direction(found: Adaptation, j: int, total: float, origins: list[str]) -> Direction:
    loads: dict[str, float] = {}
    for name, square in zip(origins, found.z.V[:, j] ** 2):
        loads[name] = loads.get(name, 0.0) + float(square)
    var = float(found.var[j, 0])
    return Direction(
        var=var,
        inflation=float(found.inflation[j, 0]),
        share=var / total if total > 0.0 else 0.0,
        outside=float(found.outside[j]),
        removed=bool(found.removed[j, 0]),
        loads=tuple(sorted(loads.items(), key=lambda item: -item[1])[:3]),
    )


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect our own warnings as notes, each once; those of others are shown as always."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SparWarning)
        yield notes
    for warning in caught:
        if issubclass(warning.category, SparWarning):
            notes.extend([str(warning.message)] if str(warning.message) not in notes else [])
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
