"""The compared methods. Each takes X, y, Z and returns predictions for Z, and a forecast of their error if it can.

Features are standardised by the source, and every linear method fits an intercept. The reference is scikit-learn's
RidgeCV with 41 penalties from 1e-4 to 1e6, chosen by leave-one-out. No method uses a label of the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import BayesianRidge, ElasticNetCV, LassoCV, RidgeCV

from pyspar import BayesSpARRegressor, PCRRegressor, SpARRegressor

REFERENCE = "RidgeCV"
PENALTIES = np.logspace(-4, 6, 41)


Forecast = tuple[float, float, float, float]
"""Expected RMSE on the noisy labels of the target, standard deviation of the noise, ends of the 95 % interval."""


@dataclass(frozen=True)
class Answer:
    """Predictions for the target and an optional forecast of their error, a function because it is not timed."""

    predictions: np.ndarray
    forecast: Callable[[], Forecast] | None = None


Method = Callable[[np.ndarray, np.ndarray, np.ndarray], Answer]


def ols(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Answer:
    """Fit least squares with minimum norm."""
    est = SpARRegressor(0.0).fit(X, y)
    return Answer(est.predict(Z), lambda: forecast_of(est, Z))


def forecast_of(est: Any, Z: np.ndarray) -> Forecast:
    forecast = est.expected_rmse(Z)
    return forecast.rmse, float(np.sqrt(forecast.noise)), *forecast.interval95_if_linear


def spar(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Answer:
    return Answer(SpARRegressor(0.999).fit(X, y).adapt(Z).predict(Z))


def pcr(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Answer:
    return Answer(PCRRegressor("gcv").fit(X, y).predict(Z))


def bayes(**how: Any) -> Method:
    def method(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Answer:
        est = BayesSpARRegressor(**how).fit(X, y).adapt(Z)
        return Answer(est.predict(Z), lambda: forecast_of(est, Z))

    return method


def sklearn_model(make: Callable[[], Any]) -> Method:
    return lambda X, y, Z: Answer(np.ravel(make().fit(X, y).predict(Z)))


def ridge_cv() -> Any:
    return RidgeCV(PENALTIES)


def lasso_cv() -> Any:
    return LassoCV(alphas=50, cv=5, max_iter=1000, tol=1e-3, precompute=True)


def elastic_net_cv() -> Any:
    return ElasticNetCV(l1_ratio=[0.2, 0.5, 0.8], alphas=30, cv=5, max_iter=1000, tol=1e-3, precompute=True)


def boosting() -> Any:
    return HistGradientBoostingRegressor(random_state=0)


def forest() -> Any:
    return RandomForestRegressor(random_state=0, n_jobs=1)


OURS = "BayesSpAR"

METHODS: dict[str, Method] = {
    REFERENCE: sklearn_model(ridge_cv),
    "OLS": ols,
    "LassoCV": sklearn_model(lasso_cv),
    "ElasticNetCV": sklearn_model(elastic_net_cv),
    "BayesianRidge": sklearn_model(BayesianRidge),
    "PCR": pcr,
    "SpAR 0.999": spar,
    "BayesSpAR chi2 0.999": bayes(rule="chi2", alpha=0.999),
    "BayesSpAR source units": bayes(units="source"),
    OURS: bayes(),
    "HistGradientBoosting": sklearn_model(boosting),
    "RandomForest": sklearn_model(forest),
}

TREES = ("HistGradientBoosting", "RandomForest")

ONLY_ON: dict[str, tuple[str, ...]] = dict.fromkeys(TREES, ("raw",))
"""The feature maps of a method that is not run on all of them."""
