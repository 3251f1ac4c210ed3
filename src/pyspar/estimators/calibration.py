"""Calibration: what real shifts showed about forecasts, and the known error that they start from.

The known error needs no target labels. For our linear regressors it is the expectation of their posterior on the
target, for others the cross-validated error on the source, for networks the error on held-out rows. After real shifts
the error is usually larger: ``python -m benchmarks.forecasts`` measures it and prints the tables of this module.

Each quantile of log(actual error / known error) is linear in distance, signal and their product. The distance is the
fourth power of 2 AUC - 1, where AUC tells how well source and target rows can be distinguished. The signal is the
logarithm of the label's standard deviation over the in-distribution error.

If no shift is found, the median is the known error, and the interval is that of sampling, stretched by what random
splits and natural shifts without a finding need; both count equally. Unseen categories are not covered.
"""

from __future__ import annotations

from itertools import combinations
from math import exp, inf, isfinite, log, nan, sqrt
from operator import mul
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import fdtr, ndtri

from pyspar.core.forecast import LEVELS, Forecast
from pyspar.core.moments import Matrix
from pyspar.core.separation import Separation

Kind = Literal["linear", "regressor", "network"]
Outcome = Literal["hurts", "no-shift", "unverified", "unknown"]

# The tables of ``python -m benchmarks.forecasts``, learnt on the data sets of the part ``develop``.
QUANTILES = (0.025, 0.1, 0.5, 0.9, 0.975)
SHIFT: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "linear": (
        (-0.382, 0.0362, 0.193, -0.577),
        (-0.114, 0.0067, 0.0101, -0.126),
        (0.0358, 0.00973, 0.0877, 0.154),
        (0.426, 0.341, 0.423, -0.0375),
        (0.819, 0.708, 0.314, 0.0506),
    ),
    "regressor": (
        (-0.515, 0.283, 0.204, -0.193),
        (-0.174, 0.0931, -0.0156, 0.103),
        (0.0386, 0.0212, 0.0588, 0.432),
        (0.407, 0.322, 0.439, 0.487),
        (0.733, 0.997, 0.434, 0.228),
    ),
}
"""For each quantile of log(actual / known error) after a shift: a constant, and the coefficients of distance, signal
and their product. Networks have the table of other regressors."""
STRETCH = {
    # If no shift is found: the factors of the lower and the upper distance of the interval of sampling.
    "linear": {0.8: (1.4, 2.01), 0.95: (2.0, 2.53)},
    "regressor": {0.8: (1.45, 1.66), 0.95: (1.72, 2.45)},
}
ROWS = {0.5: 1.14, 0.8: 1.17, 0.9: 1.27, 0.95: 1.42}  # factors of half-widths of row intervals after a shift

EXCESS = 1.3  # an error above this many times the in-distribution error is a serious increase
HURTS_RATIO = 1.1  # a shift hurts if the model expects an error above this many times the in-distribution error
OUTSIDE_LIMIT = 0.01  # the outcome is unknown if more of the target's variation lies outside the span of the source
SIGNS = 400  # random signs of the errors in the test for training rows
MAX_SIGNAL = 10.0  # larger ratios of label spread and in-distribution error count as this one: few sets have them


def forecast_error(
    source_rmse: float, *, kind: Kind, separation: Separation, label_spread: float, n_source: float, n_target: float,
    model_rmse: float | None = None, variation: float = 2.0, name: str = "",
) -> Forecast:  # fmt: skip
    """Return the calibrated forecast of the RMSE on a target without labels.

    ``source_rmse`` is the expected error on new source rows; for a network, that of held-out rows, with the separation
    of the features of its head. ``label_spread`` is the standard deviation of the source labels. ``model_rmse``, for
    "linear" only, is the posterior's. ``variation`` is the squared coefficient of variation of a squared error: 2 for
    normal errors, more for heavy tails.
    """
    table = "linear" if kind == "linear" else "regressor"
    known = source_rmse if model_rmse is None else model_rmse
    expected = nan if model_rmse is None else model_rmse
    if not isfinite(known):
        return Forecast(name, known, (known, known), (known, known), source_rmse, expected)
    low95, low80, median, high80, high95 = _shift_quantiles(table, separation, source_rmse, label_spread)
    error = 0.5 * sqrt(variation * (1.0 / n_source + 1.0 / n_target))  # the standard error of the logarithm
    intervals = []
    for level, low, high in zip(LEVELS, (low80, low95), (high80, high95), strict=True):
        down, up = (stretch * error * float(ndtri((1.0 + level) / 2.0)) for stretch in STRETCH[table][level])
        intervals.append((known * exp(min(low, median - down)), known * exp(max(high, median + up))))
    return Forecast(name, known * exp(median), intervals[0], intervals[1], source_rmse, expected)


def row_factor(level: float, separation: Separation | None, *, source_rmse: float, label_spread: float) -> float:
    """Return the half-width of a row interval divided by ``row_scale``; ``None`` is a regressor without a target.

    After a shift the scale is multiplied by the same median factor as the forecast of the RMSE.
    """
    normal = float(ndtri((1.0 + level) / 2.0))
    if separation is None or not (separation.found or separation.matched):
        return normal
    known = [float(ndtri((1.0 + of) / 2.0)) for of in ROWS]
    median = _shift_quantiles("linear", separation, source_rmse, label_spread)[2]
    return normal * float(np.interp(normal, known, list(ROWS.values()))) * max(exp(median), 1.0)


def _shift_quantiles(table: str, separation: Separation, source_rmse: float, label_spread: float) -> list[float]:
    """Return the quantiles of log(actual / known error) in ascending order; zeros if no shift was found.

    Matched rows were not drawn at random, so they count as shifted.
    """
    if not (separation.found or separation.matched):
        return [0.0] * len(QUANTILES)
    distance = max(2.0 * separation.auc - 1.0, 0.0) ** 4
    signal = label_spread / source_rmse if source_rmse > 0.0 else inf
    log_signal = log(min(max(signal, 1.0), MAX_SIGNAL))
    features = 1.0, distance, log_signal, distance * log_signal
    return sorted(sum(map(mul, row, features)) for row in SHIFT[table])


def judge_outcome(
    *, model_rmse: float, source_rmse: float, separation: Separation, outside: float = 0.0, unseen: bool = False
) -> Outcome:
    """Return the outcome for a target without labels.

    ``outside`` is the share of the target's variation outside the span of the source, and ``unseen`` whether the target
    has new categories. "unverified" is a shift without a much larger expected error, which only labels can verify.
    """
    if unseen or not outside <= OUTSIDE_LIMIT or not (isfinite(model_rmse) and isfinite(source_rmse)):
        return "unknown"
    if model_rmse > HURTS_RATIO * source_rmse and (separation.found or model_rmse > EXCESS * source_rmse):
        return "hurts"
    return "unverified" if separation.found else "no-shift"


def forecast_from_errors(
    errors: Matrix, labels: Matrix, *, kind: Kind, separation: Separation, n_target: float
) -> list[Forecast]:
    """Return one forecast per output from errors (n, K) on source rows that the model was not fitted to."""
    squares = np.square(errors)
    mean, spread = squares.mean(axis=0), labels.reshape(len(labels), -1).std(axis=0)
    variation = squares.var(axis=0) / np.square(np.where(mean > 0.0, mean, 1.0))
    return [
        forecast_error(
            sqrt(mean[k]), kind=kind, separation=separation, label_spread=float(spread[k]), n_source=len(errors),
            n_target=n_target, variation=float(variation[k]),
        )
        for k in range(errors.shape[1])
    ]  # fmt: skip


def training_p_value(inputs: Matrix, errors: Matrix) -> float:
    """Return the p-value of the hypothesis that a model with errors (n, K) on these rows was not trained on them.

    On new rows, errors are independent, apart from a smooth misfit, so their energy decreases along the eigenvectors of
    a kernel of the inputs. Training fits leading ones first, so later ones have more. Ranges of eigenvectors are
    compared with all later ones, and the result with those for random signs of the errors.
    """
    n, rows = len(inputs), inputs[:, np.ptp(inputs, axis=0) > 0.0]
    if not (rows.size and errors.any() and np.isfinite(errors).all()):
        return 1.0
    distance = cdist(rows, rows, "seuclidean")
    U = np.linalg.eigh(np.exp(-distance / (np.median(distance) or 1.0)))[1][:, ::-1]
    signs = np.where(np.arange(SIGNS), np.random.default_rng(0).choice([1.0, -1.0], (n, SIGNS)), 1.0)
    energy = sum(np.square(U.T @ (signs * e)) / np.maximum(np.square(U.T) @ e**2, 1e-300) for e in errors.T[:, :, None])
    pairs = combinations([0, *(2**power for power in range((n - 1).bit_length()))], 2)
    ratios = ((a, b, energy[a:b].mean(axis=0) / np.maximum(energy[b:].mean(axis=0), 1e-300)) for a, b in pairs)
    score = np.min([fdtr(b - a, n - b, ratio) for a, b, ratio in ratios], axis=0)
    return float((score <= score[0]).mean())
