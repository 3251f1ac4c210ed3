"""Metrics of predictions, over all rows and in the worst group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from pyspar.core.moments import Vector

Groups = NDArray[np.int64]
METRIC_TITLES = {"rmse": "RMSE", "mse": "MSE", "r": "r", "spearman": "Spearman's r", "minutes": "minutes"}
_HIGHER_IS_BETTER = ("r", "spearman")


def rmse(prediction: Vector, y: Vector) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def pearson(prediction: Vector, y: Vector) -> float:
    """Return Pearson's correlation, or nan if either argument is constant."""
    if np.ptp(prediction) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.clip(np.corrcoef(prediction, y)[0, 1], -1.0, 1.0))


def spearman(prediction: Vector, y: Vector) -> float:
    """Return Spearman's rank correlation, or nan if either argument is constant."""
    if np.ptp(prediction) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(spearmanr(prediction, y).statistic)


_FUNCTIONS: dict[str, Callable[[Vector, Vector], float]] = {"rmse": rmse, "r": pearson, "spearman": spearman}


def measure(metric: str, prediction: Vector, y: Vector, group: Groups) -> float:
    """Return a metric by its name. "worst-group ..." is the metric of the group with the worst value.

    Groups with constant labels, such as single rows, have no correlation and are ignored by "worst-group r". If the
    predictions of any other group are constant, the worst correlation is nan.
    """
    plain = metric.removeprefix("worst-group ")
    function = _FUNCTIONS[plain]
    if plain == metric:
        return function(prediction, y)
    groups = [group == g for g in np.unique(group)]
    if lower_is_better(metric):
        return float(np.max([function(prediction[rows], y[rows]) for rows in groups]))
    values = [function(prediction[rows], y[rows]) for rows in groups if np.ptp(y[rows])]
    return float(np.min(values)) if values else float("nan")


def round_to_float32(value: float) -> float:
    """Round a number to seven significant digits, the precision of float32 features.

    Further digits depend on the memory alignment of arrays, so that records of one seed would differ between calls.
    """
    return float(f"{value:.7g}")


def lower_is_better(metric: str) -> bool:
    """Return whether smaller values of a metric are better."""
    return metric.removeprefix("worst-group ") not in _HIGHER_IS_BETTER


def metric_title(metric: str) -> str:
    """Return the name of a metric in the heading of a table."""
    plain = metric.removeprefix("worst-group ")
    return metric[: len(metric) - len(plain)] + METRIC_TITLES.get(plain, plain)
