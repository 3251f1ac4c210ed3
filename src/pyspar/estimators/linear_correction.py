"""Correct a linear model with labels of target rows; the corrected model is linear in the same features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.drift import Drift
from pyspar.estimators.target_labels import (
    LabelForecast,
    TargetDrift,
    check_counts,
    fit_outputs,
    forecast_error,
    read_labels,
)


@dataclass(frozen=True, eq=False)
class LinearCorrection:
    """The drift of a linear model; the corrected model is linear in the same features."""

    coef: Matrix  # the weights before the correction, of shape (D, K)
    intercept: Vector
    drifts: list[Drift]  # one per output

    def corrected_weights(self) -> tuple[Matrix, Vector]:
        """Return the corrected weights (D, K) and intercepts (K,)."""
        pairs = [drift.linear_weights(w, b) for drift, w, b in zip(self.drifts, self.coef.T, self.intercept.tolist())]
        return np.column_stack([w for w, _ in pairs]), np.array([b for _, b in pairs])

    def predictive_scales(self, rows: Matrix) -> Matrix:
        """Return the scale of the labels about the corrected predictions, of shape (m, K)."""
        before = rows @ self.coef + self.intercept
        return np.column_stack([drift.predictive_scale(rows, before[:, k]) for k, drift in enumerate(self.drifts)])

    def half_widths(self, rows: Matrix, level: float) -> Matrix:
        """Return half the widths of intervals that contain the labels with a given probability, of shape (m, K)."""
        return np.asarray(self.predictive_scales(rows) * [drift.quantile(level) for drift in self.drifts])

    def forecasts(self, rows: Matrix, sample_weight: Any, name: str) -> list[LabelForecast]:
        """Return the expected error of the corrected model on target rows, per output."""
        before, counts = rows @ self.coef + self.intercept, check_counts(sample_weight, len(rows))
        return [forecast_error(d.on(rows, before[:, k], counts), name) for k, d in enumerate(self.drifts)]


def fit_linear_correction(
    estimator: Any, weights: tuple[Matrix, Vector], rows: Matrix, y: Any, sample_weight: Any
) -> tuple[LinearCorrection, list[TargetDrift]]:
    """Fit the drift of an adapted estimator with given weights to target rows of which some labels are known."""
    coef, intercept = weights
    labels, _ = read_labels(y, len(rows), type(estimator).__name__, outputs=coef.shape[1])
    counts = check_counts(sample_weight, len(rows))
    prediction = rows @ coef + intercept
    drifts, reports, _ = fit_outputs(rows, prediction, labels, counts, *estimator._model.predict(rows))
    return LinearCorrection(coef, intercept, drifts), reports
