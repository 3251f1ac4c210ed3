"""The compared uses of a few labels. Each returns predictions for all rows of the target.

A method takes a ``Case``: one set, one fitted model, and the rows of the target whose labels it may use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from benchmarks.labels.bases import NETWORK, Problem, fit_predict
from benchmarks.shifts.methods import PENALTIES
from pyspar.core.drift import find_outlier, fit_drift

FINE_TUNING_STEPS = 200
LEARNING_RATE = 1e-3  # the rate with which the network was trained


@dataclass(frozen=True)
class Case:
    """One set, one fitted model, and the rows whose labels are known."""

    problem: Problem
    base: str
    rows: np.ndarray

    @property
    def Z(self) -> np.ndarray:
        return self.problem.arrays[2]

    @property
    def labels(self) -> np.ndarray:
        """Return the labels of the labelled rows."""
        return self.problem.arrays[3][self.rows]

    @property
    def prediction(self) -> np.ndarray:
        return self.problem.base(self.base)["prediction"]


@dataclass(frozen=True)
class Answer:
    """Predictions for the target, and the ends of 90 % intervals of its rows if the method has them."""

    prediction: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


Method = Callable[[Case], Answer]


class Lookup:
    """A fitted model that returns known predictions of known rows, so that it need not be fitted again."""

    def __init__(self, Z: np.ndarray, prediction: np.ndarray) -> None:
        self.n_features_in_ = Z.shape[1]
        self._known = {row.tobytes(): value for row, value in zip(Z, prediction, strict=True)}

    def fit(self, X: Any, y: Any) -> Lookup:
        raise TypeError("the model is already fitted")

    def predict(self, Z: np.ndarray) -> np.ndarray:
        return np.array([self._known[row.tobytes()] for row in np.ascontiguousarray(Z, dtype=float)])


def no_labels(case: Case) -> Answer:
    return Answer(case.prediction)


def offset(case: Case) -> Answer:
    """Add the mean residual."""
    return Answer(case.prediction + np.mean(case.labels - case.prediction[case.rows]))


def line(case: Case) -> Answer:
    """Replace predictions by the least-squares line through (prediction, label)."""
    q = case.prediction
    known = q[case.rows]
    if np.ptp(known) <= 1e-12 * np.abs(known).max():
        return offset(case)
    slope, start = np.polyfit(known, case.labels, 1)
    return Answer(start + slope * q)


def correct(case: Case) -> Answer:
    """Correct the model with ``TargetCorrection``; the features are the columns of the set."""
    return _correct(case, case.Z, smooth=True)


def correct_linearly(case: Case) -> Answer:
    """Correct the model with ``TargetCorrection(model, smooth=False)``, as ``adapt(Z, y)`` of our estimators does."""
    return _correct(case, case.Z, smooth=False)


def correct_head(case: Case) -> Answer:
    """Correct a network as ``adapt_head`` does; the features are the outputs of its last hidden layer."""
    return _correct(case, case.problem.base(case.base)["hidden"], smooth=False)


def _correct(case: Case, features: np.ndarray, *, smooth: bool) -> Answer:
    """Compute what ``TargetCorrection`` predicts, without its test for a changed relation, which takes longer."""
    before, rows, labels = case.prediction, case.rows, case.labels
    if (outlier := find_outlier(labels - before[rows])) is not None:
        rows, labels = np.delete(rows, outlier), np.delete(labels, outlier)
    drift = fit_drift(
        features[rows], before[rows], labels, target_features=features, target_prediction=before, smooth=smooth
    )
    after = drift.correct(features, before)
    half = drift.quantile(0.9) * drift.predictive_scale(features, before)
    return Answer(after, after - half, after + half)


def target_ridge(case: Case) -> Answer:
    """Fit RidgeCV on the labelled rows alone."""
    return Answer(RidgeCV(PENALTIES).fit(case.Z[case.rows], case.labels).predict(case.Z))


def residual_ridge(case: Case) -> Answer:
    """Fit RidgeCV to the residuals of the labelled rows and add its predictions."""
    residual = case.labels - case.prediction[case.rows]
    return Answer(case.prediction + RidgeCV(PENALTIES).fit(case.Z[case.rows], residual).predict(case.Z))


def append(case: Case) -> Answer:
    """Fit the model again on the source with the labelled rows appended."""
    X, y, Z, _ = case.problem.arrays
    rows, labels = np.vstack([X, Z[case.rows]]), np.concatenate([y, case.labels])
    return Answer(fit_predict(case.base, rows, labels, Z))


def append_weighted(case: Case) -> Answer:
    """Append the labelled rows with weights, so that source and target have the same total weight."""
    X, y, Z, _ = case.problem.arrays
    rows, labels = np.vstack([X, Z[case.rows]]), np.concatenate([y, case.labels])
    weight = np.concatenate([np.ones(len(X)), np.full(len(case.rows), len(X) / len(case.rows))])
    return Answer(fit_predict(case.base, rows, labels, Z, weight * len(rows) / weight.sum()))


def fine_tune_head(case: Case) -> Answer:
    """Continue the training of a network's last layer on the labelled rows: Adam on all rows, 200 steps."""
    base = case.problem.base(case.base)
    scale = float(base["scale"])
    inputs = np.column_stack([base["hidden"], np.ones(len(base["hidden"]))])
    weights = np.append(base["head"], base["bias"]) / scale
    known, labels = inputs[case.rows], case.labels / scale
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, FINE_TUNING_STEPS + 1):
        gradient = known.T @ (known @ weights - labels) / len(labels)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        weights = weights - LEARNING_RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return Answer(inputs @ weights * scale)


CORRECTION = "TargetCorrection"
LINEAR_CORRECTION = "TargetCorrection, smooth=False"
HEAD_CORRECTION = "TargetCorrection, head's features"

METHODS: dict[str, Method] = {
    CORRECTION: correct,
    LINEAR_CORRECTION: correct_linearly,
    HEAD_CORRECTION: correct_head,
    "offset": offset,
    "line": line,
    "target-only ridge": target_ridge,
    "ridge on the residual": residual_ridge,
    "append": append,
    "append, weighted": append_weighted,
    "fine-tuned last layer": fine_tune_head,
}

ONLY_AROUND: dict[str, tuple[str, ...]] = dict.fromkeys((HEAD_CORRECTION, "fine-tuned last layer"), (NETWORK,))
"""The models around which a method is possible, if not around all."""
