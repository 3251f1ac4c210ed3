"""Temporary: import from :mod:`pyspar.estimators.labels` and :mod:`pyspar.estimators.correction` instead."""

from typing import Any

import numpy as np

from pyspar.core.drift import MIN_LABELS, Array, fit_drift
from pyspar.estimators.correction import DriftPart, LabelForecast, TargetDrift, fit_outputs, forecast_error
from pyspar.estimators.labels import check_counts, check_index, read_labels, read_predictions
from pyspar.estimators.validation import refuse_other_than_rows

__all__ = [
    "ENOUGH_LABELS", "DriftPart", "LabelForecast", "TargetDrift", "check_counts", "check_index", "check_labelled_rows",
    "fit_outputs", "forecast_correction", "forecast_error", "read_labels", "read_predictions",
]  # fmt: skip

ENOUGH_LABELS = 10
MAX_FORECAST_LABELS = 100


def check_labelled_rows(Z: Any, y: Any) -> None:
    """Raise TypeError if rows with labels are not dense rows in memory; then as ``check_index``."""
    refuse_other_than_rows("Z", Z, "labels y")
    check_index(Z, y)


def forecast_correction(
    features: Array, prediction: Array, labels: Array, name: str, *, smooth: bool
) -> LabelForecast | None:
    """Return the expected error after a correction with the known labels, None if there are too few or too many."""
    known = np.isfinite(labels)
    n = int(known.sum())
    if known.all() or n < MIN_LABELS or n > MAX_FORECAST_LABELS or np.ptp(labels[known]) == 0.0:
        return None
    if (labels == prediction)[known].all():
        return None
    rows = features[known], prediction[known], labels[known]
    drift = fit_drift(*rows, target_features=features, target_prediction=prediction, smooth=smooth)
    return forecast_error(drift, name)
