"""The computations of the demo, in the order in which information becomes available: target labels come last."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import (
    BayesSpARRegressor,
    SpARRegressor,
    TargetCorrection,
    adapt_pipeline,
    expected_rmse,
    inspect,
    rows_to_label,
)
from pyspar.demo.traffic import FAST_LIMIT, Rows, Traffic
from pyspar.terminal import SILENT, Progress

N_LABELS = 10
PENALTIES = np.logspace(-4, 6, 41)
RIDGE, BOOSTING, SPAR, OURS = "RidgeCV", "HistGradientBoosting", "SpAR", "pyspar"
UNADAPTED = f"{OURS} before adapt"
OURS_CORRECTED, BOOSTING_CORRECTED = f"{OURS} + {N_LABELS} labels", f"boosting + {N_LABELS} labels"


@dataclass(frozen=True)
class ErrorForecast:
    """An expected RMSE on the target with its 95 % interval, computed without the labels that it is compared with."""

    expected: float
    low: float
    high: float

    @classmethod
    def of(cls, forecast: Any) -> ErrorForecast:
        return cls(float(forecast.rmse), *map(float, forecast.interval95))

    def contains(self, error: float) -> bool:
        """Return whether an error lies in the interval."""
        return self.low <= error <= self.high


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """What is known before any label of the target.

    ``effect_before`` and ``effect_after`` are the predicted deaths per 100,000 that a speed limit of 70 instead of
    65 mph adds, before and after adapting. ``rows`` are the positions of the target rows to label.
    """

    forecasts: dict[str, ErrorForecast]
    auc: float
    effect_before: float
    effect_after: float
    models: dict[str, Any]
    rows: NDArray[np.intp]


@dataclass(frozen=True)
class Claim:
    """One model: the number of target labels that it used, its forecast, and its true RMSE."""

    model: str
    n_labels: int
    forecast: ErrorForecast
    error: float

    @property
    def holds(self) -> bool:
        """Whether the interval contains the true error."""
        return self.forecast.contains(self.error)


@dataclass(frozen=True, eq=False)
class Story:
    """All results of the demo.

    ``labelled`` lists the labelled rows as text. ``predictions`` has the predictions of each model for all target rows.
    True errors are computed on the ``n_scored`` target rows without a known label. ``fast_source`` and ``fast_target``
    are the numbers of rows with a speed limit of 70 mph or more; in the source it was in force for at most a share
    ``longest_fast_source`` of the year.
    """

    n_source: int
    n_target: int
    n_columns: int
    fast_source: int
    fast_target: int
    longest_fast_source: float
    auc: float
    effect_before: float
    effect_after: float
    labelled: tuple[str, ...]
    n_scored: int
    claims: tuple[Claim, ...]
    predictions: dict[str, NDArray[np.float64]]
    seconds: float

    def claim(self, model: str) -> Claim:
        """Return the claim about one model."""
        return next(claim for claim in self.claims if claim.model == model)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain Python, without the predictions and the run time."""
        numbers = {name: value for name, value in vars(self).items() if name not in ("predictions", "seconds")}
        claims = [asdict(claim) | {"holds": claim.holds} for claim in self.claims]
        return numbers | {"claims": claims, "labelled": list(self.labelled)}


def forecast_unlabelled(source: Rows, y: NDArray[np.float64], target: Rows, progress: Progress = SILENT) -> Unlabelled:
    """Fit the models, forecast their errors, adapt, and choose the rows to label. No target label is used."""
    X, Z = source.features, target.features
    forecasts, models = {}, {}
    progress.start("forecasts", "forecasting the error of each model", total=2, unit="models")
    users = {
        RIDGE: make_pipeline(StandardScaler(), RidgeCV(PENALTIES)),
        BOOSTING: HistGradientBoostingRegressor(random_state=0),
    }
    for done, (name, model) in enumerate(users.items(), start=1):
        models[name] = model.fit(X, y)
        inspection = inspect(model, Z, source=(X, y))
        forecasts[name] = ErrorForecast.of(inspection.outputs[0].expected)
        progress.advance("forecasts", done)
    models[UNADAPTED] = BayesSpARRegressor().fit(X, y)
    models[SPAR] = adapt_pipeline(make_pipeline(StandardScaler(), SpARRegressor()).fit(X, y), Z)
    models[OURS] = models[UNADAPTED].adapted(Z)
    for name in (SPAR, UNADAPTED, OURS):
        forecasts[name] = ErrorForecast.of(expected_rmse(models[name], Z))
    progress.finish("forecasts")
    return Unlabelled(
        forecasts=forecasts,
        auc=inspection.separation.auc,
        effect_before=_effect_of_faster_limit(models[UNADAPTED], X),
        effect_after=_effect_of_faster_limit(models[OURS], X),
        models=models,
        rows=rows_to_label(models[OURS], Z, N_LABELS).rows,
    )


def correct_models(
    known: Unlabelled, target: Rows, labels: NDArray[np.float64]
) -> tuple[dict[str, ErrorForecast], dict[str, Any]]:
    """Correct two models with the labels of the chosen rows; ``labels`` is NaN elsewhere."""
    forecasts, models = {}, {}
    for name, model in ((OURS_CORRECTED, OURS), (BOOSTING_CORRECTED, BOOSTING)):
        models[name] = TargetCorrection(known.models[model]).fit(target.features, labels)
        forecasts[name] = ErrorForecast.of(models[name].expected_rmse())
    return forecasts, models


def run_demo(data: Traffic, progress: Progress = SILENT) -> Story:
    """Compute everything, and compare each forecast with the true error at the end."""
    started = time.perf_counter()
    source, target = data.source, data.target
    known = forecast_unlabelled(source, data.y, target, progress)
    labels = np.full(len(target), np.nan)
    labels[known.rows] = data.truth[known.rows]
    forecasts, corrected = correct_models(known, target, labels)
    forecasts, models = known.forecasts | forecasts, known.models | corrected

    is_scored = np.isnan(labels)
    predictions = {name: np.asarray(model.predict(target.features)) for name, model in models.items()}
    squares = {name: np.square(values - data.truth)[is_scored] for name, values in predictions.items()}
    return Story(
        n_source=len(source),
        n_target=len(target),
        n_columns=source.features.shape[1],
        fast_source=int((source.features[FAST_LIMIT] > 0).sum()),
        fast_target=int((target.features[FAST_LIMIT] > 0).sum()),
        longest_fast_source=float(source.features[FAST_LIMIT].max()),
        auc=known.auc,
        effect_before=known.effect_before,
        effect_after=known.effect_after,
        labelled=tuple(f"{target.states[row]} {target.years[row]}" for row in known.rows),
        n_scored=int(is_scored.sum()),
        claims=tuple(
            Claim(name, N_LABELS if name in corrected else 0, forecasts[name], float(np.sqrt(squares[name].mean())))
            for name in forecasts
        ),
        predictions=predictions,
        seconds=time.perf_counter() - started,
    )


def _effect_of_faster_limit(model: Any, X: Any) -> float:
    """Return the change of the prediction if the speed limit is 70 instead of 65 mph for the whole year."""
    limits = dict.fromkeys((name for name in X if name.startswith("sl")), 0.0)
    slow = X.mean().to_frame().T.assign(**{**limits, "sl65": 1.0})
    fast = slow.assign(sl65=0.0, sl70=1.0, **{FAST_LIMIT: 1.0})
    return float(model.predict(fast)[0] - model.predict(slow)[0])
