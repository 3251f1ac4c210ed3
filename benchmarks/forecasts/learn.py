"""The tables of ``pyspar.estimators.calibration``, learnt from records.

Data sets are the units: the records of one data set share a weight of one. A quantile over a few hundred data sets is
uncertain, so the outer quantiles are learnt at levels further out by one-sided confidence bounds.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq, linprog
from scipy.sparse import csr_array, hstack, identity

from benchmarks.forecasts.measure import KINDS, NEED
from pyspar.core.forecast import LEVELS
from pyspar.core.separation import LEVEL
from pyspar.estimators.calibration import MAX_SIGNAL, QUANTILES

CONFIDENCE = 0.8
"""Of the bound on a quantile over data sets."""
ROW_LEVELS = (0.5, 0.8, 0.9, 0.95)
ROW_SURPLUS = 0.1
"""Row intervals miss this share less than their level permits, over the data sets that they are learnt from."""
ROW_MODEL = "BayesSpAR"
TABLES = ("linear", "regressor")
"""The kinds with tables of their own. Networks use those of regressors."""


def prepare(records: pd.DataFrame) -> pd.DataFrame:
    """Return the usable records with their kind, features, log ratios and weights."""
    usable = (records["source"] > 1e-9 * records["spread"]) & (records["actual"] > 0.0) & np.isfinite(records["known"])
    table = records[usable].copy()
    table["kind"] = table["model"].map(KINDS)
    table["shifted"] = (table["p_value"] <= LEVEL) | table["matched"]
    table["ratio"] = np.log(table["actual"] / table["known"])
    table["distance"] = (2.0 * table["auc"] - 1.0).clip(0.0, 1.0) ** 4
    table["signal"] = np.log((table["spread"] / table["source"]).clip(1.0, MAX_SIGNAL))
    table["error"] = 0.5 * np.sqrt(table["variation"] * (1.0 / table["n"] + 1.0 / table["m"]))
    table["is_natural"] = table["split"] == "shift"
    groups = table.groupby(["kind", "is_natural", "set"])["set"]
    table["weight"] = 1.0 / groups.transform("size")
    return table


def learn(table: pd.DataFrame) -> dict[str, Any]:
    """Return the tables of the package."""
    shift, stretch = {}, {}
    for kind in TABLES:
        own = table[table["kind"] == kind]
        natural = own[own["is_natural"] & own["shifted"]]
        shift[kind] = [_fit_quantile(natural, q) for q in QUANTILES]
        alike = own[~own["shifted"]]
        halves = alike.groupby("is_natural")["weight"].transform("sum")  # random splits and natural ones count alike
        alike = alike.assign(weight=alike["weight"] / halves)
        stretch[kind] = {level: _stretch(alike, level) for level in LEVELS}
    return {"SHIFT": shift, "STRETCH": stretch, "ROWS": _learn_rows(table, shift["linear"])}


def _features(table: pd.DataFrame) -> np.ndarray:
    distance, signal = table["distance"], table["signal"]
    return np.column_stack([np.ones(len(table)), distance, signal, distance * signal])


def _fit_quantile(table: pd.DataFrame, q: float) -> list[float]:
    """Return the coefficients of the quantile, further out than q by its confidence bound, except the median."""
    n = table["set"].nunique()
    reach = NormalDist().inv_cdf(CONFIDENCE) * math.sqrt(q * (1.0 - q) / n) * np.sign(q - 0.5)
    coefficients = quantile_regression(_features(table), table["ratio"], table["weight"], q + reach)
    return [_round(value) for value in coefficients]


def quantile_regression(X: np.ndarray, y: Any, weights: Any, q: float) -> np.ndarray:
    """Return the coefficients b that minimise the weighted quantile loss of y - X b, by linear programming.

    >>> quantile_regression(np.ones((5, 1)), np.arange(5.0), np.ones(5), 0.5)
    array([2.])
    """
    (n, p), weights = X.shape, np.asarray(weights)
    rows = hstack([csr_array(X), -csr_array(X), identity(n), -identity(n)])
    cost = np.concatenate([np.zeros(2 * p), q * weights, (1.0 - q) * weights])
    found = linprog(cost, A_eq=rows, b_eq=np.asarray(y), method="highs")
    return np.asarray(found.x[:p] - found.x[p : 2 * p])


def weighted_quantile(values: Any, weights: Any, q: float) -> float:
    """Return a quantile of weighted values."""
    values, weights = np.asarray(values), np.asarray(weights)
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return float(values[order[min(int(np.searchsorted(below, q - 1e-9)), len(order) - 1)]])


def _stretch(alike: pd.DataFrame, level: float) -> list[float]:
    """Return the factors of both distances of the interval of sampling, such that both tails have their share."""
    reach = NormalDist().inv_cdf((1.0 + level) / 2.0) * alike["error"]
    scaled = alike["ratio"] / reach
    tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
    low, high = (weighted_quantile(scaled, alike["weight"], q) for q in tails)
    return [_round(max(-low, 1.0)), _round(max(high, 1.0))]


def row_cover(need: str, factor: float) -> float:
    """Return the share of target rows whose label lies in the row interval with a factor."""
    values = [0.0, *map(float, need.split())]
    return float(np.interp(factor, values, [0.0, *NEED]))


def _learn_rows(table: pd.DataFrame, shift: list[list[float]]) -> dict[float, float]:
    """Return the factors for which the mean coverage over data sets exceeds each level by the surplus."""
    own = table[(table["model"] == ROW_MODEL) & table["is_natural"] & table["shifted"] & table["need"].notna()]
    median = np.maximum(np.exp(_features(own) @ np.array(shift[QUANTILES.index(0.5)])), 1.0)

    def miss(factor: float, level: float) -> float:
        normal = NormalDist().inv_cdf((1.0 + level) / 2.0)
        covers = [row_cover(need, factor * normal * of) for need, of in zip(own["need"], median, strict=True)]
        return float(np.average(covers, weights=own["weight"])) - (level + ROW_SURPLUS * (1.0 - level))

    return {level: _round(max(brentq(miss, 0.1, 20.0, args=(level,)), 1.0)) for level in ROW_LEVELS}


def _round(value: float) -> float:
    return float(f"{value:.3g}")
