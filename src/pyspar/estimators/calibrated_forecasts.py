"""What the old inspection and tables still use of forecasts. Temporary: it goes with them."""  # temporary

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pyspar.core.forecast import Forecast, expected_square
from pyspar.core.moments import Matrix, Moments, Vector
from pyspar.core.regression import RidgePosterior, spread_about_source
from pyspar.core.separation import Separation, measure_separation
from pyspar.estimators import calibration
from pyspar.estimators.calibration import EXCESS, Outcome, forecast_error

__all__ = ["EXCESS", "BaseRate", "Forecaster", "Kind", "Outcome", "SourceModel", "base_rate", "judge_outcome"]

Kind = Literal["linear", "any"]


@dataclass(frozen=True)
class BaseRate:
    """No rates are known any more."""

    n_tasks: int = 0
    n_exceeded: int = 0
    threshold: float = EXCESS
    is_of_outcome: bool = True
    is_of_separation: bool = True
    rate: float = float("nan")


def base_rate(*_: Any) -> BaseRate | None:
    """Return None: no rates are known any more."""
    return None


def judge_outcome(*, expected: float, home: float, **known: Any) -> Outcome:
    """Return the outcome by the old names of the errors."""
    return calibration.judge_outcome(model_rmse=expected, source_rmse=home, **known)


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Forecasts for several weights on one target."""

    estimator: Any
    target: Moments

    def on(self, target: Moments) -> Forecaster:
        return Forecaster(self.estimator, target)

    @cached_property
    def separation(self) -> Separation:
        return measure_separation(self.estimator.moments_, self.target)

    @cached_property
    def _posterior(self) -> RidgePosterior:
        est = self.estimator
        return est._posterior(spread_about_source(est.moments_, self.target, est._fit.centred))  # type: ignore[no-any-return]

    def best(self) -> tuple[Matrix, Vector]:
        return self._posterior.weights()

    def forecast(self, name: str, coef: Matrix, intercept: Vector, output: int = 0) -> Forecast:
        moments, (source, between) = self.estimator.moments_, self.estimator._source_errors()
        model = np.sqrt(expected_square(self._posterior, coef, intercept, self.target) + between)
        return forecast_error(
            float(source[output]),
            kind="linear",
            separation=self.separation,
            label_spread=float(moments.spread[moments.n_features + output]),
            n_source=moments.weight,
            n_target=self.target.weight,
            model_rmse=float(model[output]),
            name=name,
        )


@dataclass(frozen=True, eq=False)
class SourceModel:
    """The forecaster and the posterior of a fitted estimator."""

    estimator: Any

    def forecaster(self, target: Moments) -> Forecaster:
        return Forecaster(self.estimator, target)

    def predict(self, rows: Matrix) -> tuple[Matrix, list[Matrix]]:
        posterior = self.estimator._posterior(self.estimator._target_spread)
        coef, intercept = posterior.weights()
        if posterior.weight - posterior.centred - posterior.x.rank < 2.0:
            return rows @ coef + intercept, [np.full((len(rows), 1), np.nan)] * coef.shape[1]
        centred = posterior.prior.transform_rows(rows) - posterior.x_mean
        return rows @ coef + intercept, [posterior.error_root(centred, k) for k in range(coef.shape[1])]
