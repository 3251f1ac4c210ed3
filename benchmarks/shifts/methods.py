"""The compared methods. Each takes X, y, Z and returns predictions for Z. No method uses a label of the target.

Features are standardised by the source, and every linear method fits an intercept. The reference is scikit-learn's
RidgeCV with 41 penalties from 1e-4 to 1e6, chosen by leave-one-out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import BayesianRidge, ElasticNetCV, LassoCV, LinearRegression, RidgeCV

from pyspar import BayesSpARRegressor, SpARRegressor

REFERENCE = "RidgeCV"
OURS = "BayesSpAR"
PENALTIES = np.logspace(-4, 6, 41)

Method = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def ridge_cv() -> Any:
    return RidgeCV(PENALTIES)


def _adapted(make: Callable[[], Any]) -> Method:
    return lambda X, y, Z: make().fit(X, y).adapt(Z).predict(Z)


def _fitted(make: Callable[[], Any]) -> Method:
    return lambda X, y, Z: np.ravel(make().fit(X, y).predict(Z))


METHODS: dict[str, Method] = {
    REFERENCE: _fitted(ridge_cv),
    "OLS": _fitted(LinearRegression),
    "LassoCV": _fitted(lambda: LassoCV(alphas=50, cv=5, max_iter=1000, tol=1e-3, precompute=True)),
    "ElasticNetCV": _fitted(
        lambda: ElasticNetCV(l1_ratio=[0.2, 0.5, 0.8], alphas=30, cv=5, max_iter=1000, tol=1e-3, precompute=True)
    ),
    "BayesianRidge": _fitted(BayesianRidge),
    "SpAR 0.999": _adapted(lambda: SpARRegressor(0.999)),
    "BayesSpAR 0.999": _adapted(lambda: BayesSpARRegressor(alpha=0.999)),
    "BayesSpAR source scale": _adapted(lambda: BayesSpARRegressor(prior_scale="source")),
    OURS: _adapted(BayesSpARRegressor),
    "HistGradientBoosting": _fitted(lambda: HistGradientBoostingRegressor(random_state=0)),
    "RandomForest": _fitted(lambda: RandomForestRegressor(random_state=0, n_jobs=1)),
}

ONLY_ON: dict[str, tuple[str, ...]] = {"HistGradientBoosting": ("raw",), "RandomForest": ("raw",)}
"""The feature maps of a method that is not run on all of them."""
