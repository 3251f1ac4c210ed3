"""The compared uses of a few labels. Each returns predictions for all rows of the target.

A ``Case`` has the features of the target, the predictions of one or two fitted models, and the labelled rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import RidgeCV

from pyspar.core.drift import Drift, fit_drift
from pyspar.estimators.correction import choose_candidate

PENALTIES = np.logspace(-3, 5, 17)


@dataclass(frozen=True)
class Case:
    """The target of one set, the predictions of the trained model and after mapping the columns, and the labels."""

    Z: np.ndarray
    prediction: np.ndarray
    mapped: np.ndarray | None
    rows: np.ndarray
    labels: np.ndarray

    @property
    def residual(self) -> np.ndarray:
        return self.labels - self.prediction[self.rows]


@dataclass(frozen=True)
class Answer:
    """Predictions of the target, and the drift if the method has one."""

    prediction: np.ndarray
    scale: np.ndarray | None = None
    drift: Drift | None = None


Method = Callable[[Case], Answer]


def offset(case: Case) -> Answer:
    """Add the mean residual."""
    return Answer(case.prediction + case.residual.mean())


def shrunk_offset(case: Case) -> Answer:
    """Add the mean residual times n / (n + 2)."""
    n = len(case.rows)
    return Answer(case.prediction + case.residual.mean() * n / (n + 2))


def james_stein_offset(case: Case) -> Answer:
    """Add the mean residual, shrunk by the positive part of 1 - (its standard error / its size)^2."""
    mean = case.residual.mean()
    error2 = case.residual.var(ddof=1) / len(case.rows)
    return Answer(case.prediction + (mean * max(0.0, 1.0 - error2 / mean**2) if mean else 0.0))


def line(case: Case) -> Answer:
    """Replace predictions by the least-squares line through (prediction, label)."""
    known = case.prediction[case.rows]
    if np.ptp(known) <= 1e-12 * np.abs(known).max():
        return offset(case)
    slope, start = np.polyfit(known, case.labels, 1)
    return Answer(start + slope * case.prediction)


def residual_ridge(case: Case) -> Answer:
    """Fit RidgeCV to the residuals of the labelled rows and add its predictions."""
    return Answer(case.prediction + RidgeCV(PENALTIES).fit(case.Z[case.rows], case.residual).predict(case.Z))


def target_ridge(case: Case) -> Answer:
    """Fit RidgeCV on the labelled rows alone."""
    return Answer(RidgeCV(PENALTIES).fit(case.Z[case.rows], case.labels).predict(case.Z))


def correct(case: Case) -> Answer:
    """Correct the trained model, as ``TargetCorrection(model)`` does with the columns as features."""
    return _correct(case, case.prediction)


def correct_linearly(case: Case) -> Answer:
    """Correct the trained model, as ``TargetCorrection(model, smooth=False)`` does."""
    return _correct(case, case.prediction, smooth=False)


def _correct(case: Case, before: np.ndarray, *, smooth: bool = True) -> Answer:
    drift = fit_drift(
        case.Z[case.rows], before[case.rows], case.labels, target_features=case.Z, target_prediction=before,
        smooth=smooth,
    )  # fmt: skip
    return Answer(*drift.correct(case.Z, before), drift)


def _chosen(case: Case) -> np.ndarray:
    assert case.mapped is not None
    candidates = {"trained": case.prediction, "mapped": case.mapped}
    labels = np.full((len(case.Z), 1), np.nan)
    labels[case.rows, 0] = case.labels
    _, name = choose_candidate({k: v[:, None] for k, v in candidates.items()}, labels, np.ones(len(labels)))
    return candidates[name]


def mapped(case: Case) -> Answer:
    """Map each column of the target to the mean and spread of the source; labels are not used."""
    assert case.mapped is not None
    return Answer(case.mapped)


def choose(case: Case) -> Answer:
    """Choose between the trained model and mapped columns with the labels."""
    return Answer(_chosen(case))


def choose_and_correct(case: Case) -> Answer:
    """Choose, then correct with the same labels, as ``TargetCorrection({"trained": ..., "mapped": ...})`` does."""
    return _correct(case, _chosen(case))


def correct_mapped(case: Case) -> Answer:
    """Map the columns and correct, without a choice."""
    assert case.mapped is not None
    return _correct(case, case.mapped)


CORRECTION = "TargetCorrection"
METHODS: dict[str, Method] = {
    CORRECTION: correct,
    "TargetCorrection, linear": correct_linearly,
    "offset": offset,
    "offset * n / (n + 2)": shrunk_offset,
    "James-Stein offset": james_stein_offset,
    "line": line,
    "ridge on the residual": residual_ridge,
    "target-only ridge": target_ridge,
}
CANDIDATES: dict[str, Method] = {
    "columns mapped": mapped,
    "choice": choose,
    "choice + TargetCorrection": choose_and_correct,
    "columns mapped + TargetCorrection": correct_mapped,
}
"""Methods with two candidates, around boosting only."""
SHRUNK = ("offset * n / (n + 2)", "James-Stein offset")
