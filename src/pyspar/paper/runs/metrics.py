"""How a prediction is judged: over all rows, and in the group where it does worst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from pyspar.core.arrays import Vector

Groups = NDArray[np.int64]
LOWER_IS_BETTER = {"rmse": True, "mse": True, "r": False, "spearman": False, "minutes": True}
PRINTED = {
    "rmse": "RMSE",
    "mse": "MSE",
    "r": "r",
    "spearman": "Spearman's r",
    "minutes": "minutes",
}


def rmse(prediction: Vector, y: Vector) -> float:
    """Return the root mean squared error.

    >>> rmse(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    1.4142135623730951
    """
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def pearson(prediction: Vector, y: Vector) -> float:
    """Return Pearson's correlation; nan where one of the two does not vary.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    1.0
    """
    if np.ptp(prediction) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.clip(np.corrcoef(prediction, y)[0, 1], -1.0, 1.0))


def spearman(prediction: Vector, y: Vector) -> float:
    """Return Spearman's rank correlation; nan where one of the two does not vary.

    >>> round(spearman(np.array([1.0, 2.0, 30.0]), np.array([0.1, 0.2, 0.3])), 12)
    1.0
    """
    if np.ptp(prediction) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(spearmanr(prediction, y).statistic)


_MEASURES: dict[str, Callable[[Vector, Vector], float]] = {"rmse": rmse, "r": pearson, "spearman": spearman}


def measure(metric: str, prediction: Vector, y: Vector, group: Groups) -> float:
    """Return a metric by its name; "worst-group ..." is that of the group where it is worst.

    A group whose labels do not vary, such as one of a single row, has no correlation and is left out of the worst of
    them. Where a prediction does not vary in a group, the worst correlation is nan, whatever the other groups have.

    >>> y = np.zeros(4)
    >>> measure("worst-group rmse", np.array([1.0, 1.0, 3.0, 3.0]), y, np.array([7, 7, 8, 8]))
    3.0
    """
    plain = metric.removeprefix("worst-group ")
    of = _MEASURES[plain]
    if plain == metric:
        return of(prediction, y)
    rows = [group == g for g in np.unique(group)]
    if LOWER_IS_BETTER[plain]:
        return float(np.max([of(prediction[some], y[some]) for some in rows]))
    values = [of(prediction[some], y[some]) for some in rows if np.ptp(y[some])]
    return float(np.min(values)) if values else float("nan")


def meant_digits(value: float) -> float:
    """Return a number with the seven digits that float32 features can carry.

    The digits behind them differ with where in memory an array happens to lie, and records of one seed should not.

    >>> meant_digits(0.12345678901), meant_digits(48.654999999)
    (0.1234568, 48.655)
    """
    return float(f"{value:.7g}")


def is_number(value: Any) -> bool:
    """Say whether something from a file is a number, and one that a float can hold.

    >>> is_number(3), is_number(1e-300), is_number(True), is_number("3"), is_number(10**400)
    (True, True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def lower_is_better(metric: str) -> bool:
    """Say which way a metric points.

    >>> lower_is_better("worst-group rmse"), lower_is_better("worst-group r")
    (True, False)
    """
    return LOWER_IS_BETTER[metric.removeprefix("worst-group ")]


def printed(metric: str) -> str:
    """Return a metric's name as a table heads it.

    >>> printed("worst-group rmse")
    'worst-group RMSE'
    """
    plain = metric.removeprefix("worst-group ")
    return metric[: len(metric) - len(plain)] + PRINTED.get(plain, plain)
