"""Temporary: use ``describe_other_unit`` of :mod:`pyspar.estimators.labels` instead."""

from __future__ import annotations

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.core.roots import root_sum_squares
from pyspar.estimators.target_labels import ENOUGH_LABELS
from pyspar.wording import format_number

MIN_CORRELATION = 0.7
"""Labels and predictions with a smaller correlation are not linearly related."""
MAX_DISTANCE = 10.0
"""The largest distance of target labels from the predictions, in standard deviations of the source labels or of the
predictions on the target. A real change of the relation is rarely larger than a few of them, and labels in other units
usually differ by more: labels with a mean of 150 and a deviation of 30 are 120 deviations from standardised ones."""
MAX_UNIT_SLOPE, UNIT_MARGIN = 8.0, 3.0
"""The unit is doubtful if the slope of target labels on predictions, or its inverse, exceeds the first number by more
than this number of standard errors. Right labels of real shifts exceed it in fewer than 1 of 1,000 draws of ten."""
MIN_NOISE = 0.03
"""Labels whose standard deviation is a smaller share of the source's noise are too close to each other. Ten labels with
the noise of the source are that close with a probability of 1e-5, and the features only add to their variation."""


def describe_other_unit(
    predictions: Vector, labels: Vector, *, slope: float, spread: float, noise: float
) -> str | None:
    """Return what indicates that target labels are in a different unit from their predictions, or None.

    ``slope`` is that of source labels on predictions, as :func:`measure_slopes` returns it. ``spread`` is the larger
    standard deviation of source labels and of predictions on the target. ``noise`` is the standard deviation of the
    source labels about their predictions.
    """
    n, distance = len(labels), median_distance(predictions, labels)
    if distance > MAX_DISTANCE * spread:
        return (
            f"the median distance between {n} labels and their predictions is {format_number(distance)}, but source "
            f"labels and predictions have a standard deviation of at most {format_number(spread)}"
        )
    factor = find_other_unit(slope * predictions, labels)
    if factor is not None:
        return f"the slope of {n} labels on the predictions is {format_number(factor, 2)} times that of source labels"
    deviation = float(np.std(labels, ddof=1))
    if n >= ENOUGH_LABELS and deviation < MIN_NOISE * noise:
        return (
            f"{n} labels have a standard deviation of {format_number(deviation, 2)}, but the noise in the source "
            f"labels is {format_number(noise, 2)}"
        )
    return None


def median_distance(predictions: Vector, labels: Vector) -> float:
    """Return the median distance between labels and predictions, which one wrong label does not change much."""
    return float(np.median(np.abs(labels - predictions)))


def find_other_unit(predictions: Vector, labels: Vector) -> float | None:
    """Return the slope of labels on predictions if it indicates another unit, otherwise None.

    The slope must be outside [2/3, 3/2] by more than three standard errors. The result is None for fewer than ten
    labels, and if labels and predictions are not linearly related. The caller multiplies the predictions by the slope
    on the source, because the predictions of a briefly trained network vary too little in source and target. If that
    slope is NaN, the result is None.
    """
    n, p, y = len(labels), predictions - predictions.mean(), labels - labels.mean()
    if n < ENOUGH_LABELS or not p @ y >= MIN_CORRELATION * np.sqrt((p @ p) * (y @ y)) > 0.0:
        return None
    slope = float(p @ y / (p @ p))
    margin = UNIT_MARGIN * np.sqrt(np.square(y - slope * p).sum() / (n - 2) / (p @ p))
    return None if slope + margin >= 1.0 / MAX_UNIT_SLOPE and slope - margin <= MAX_UNIT_SLOPE else slope


def measure_slopes(source: Moments, coef: Matrix) -> Vector:
    """Return the slope of each source label on its prediction; NaN if they are not linearly related.

    ``coef`` are weights of shape (K, D).
    """
    centred = source.root_about(None)
    predicted, labels = centred[:, : source.n_features] @ coef.T, centred[:, source.n_features :]
    length, product = root_sum_squares(predicted), (predicted * labels).sum(axis=0)
    related = (product >= MIN_CORRELATION * length * root_sum_squares(labels)) & (product > 0.0)
    return np.asarray(np.where(related, product / np.where(length > 0.0, length, np.inf) ** 2, np.nan))
