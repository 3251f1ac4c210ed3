"""The compared uses of a few labels. Each returns predictions for all rows of the target.

A ``Case`` has the features of the target, the predictions of one or two fitted models, and the labelled rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from sklearn.linear_model import RidgeCV

from pyspar import TargetCorrection

PENALTIES = np.logspace(-3, 5, 17)


@dataclass(frozen=True)
class Case:
    """The target of one set, the predictions of the trained model, the labels, and predictions of other candidates."""

    Z: np.ndarray
    prediction: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    others: dict[str, np.ndarray] = field(default_factory=dict)

    def candidates(self, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Return predictions of the trained model, which is the default, and of the named candidates."""
        return {"trained": self.prediction} | {name: self.others[name] for name in names}

    @property
    def residual(self) -> np.ndarray:
        return self.labels - self.prediction[self.rows]


@dataclass(frozen=True)
class Answer:
    """Predictions of the target, and the fitted correction and 90 % intervals if the method has them."""

    prediction: np.ndarray
    fitted: TargetCorrection | None = None
    interval: tuple[np.ndarray, np.ndarray] | None = None


Method = Callable[[Case], Answer]


@dataclass(frozen=True)
class Known:
    """A model whose predictions of the target are known, so that it need not be fitted again."""

    prediction: np.ndarray

    def predict(self, Z: np.ndarray) -> np.ndarray:
        return self.prediction


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


def correct(case: Case) -> Answer:
    """Correct the trained model; the features are the columns."""
    return _correct(case, case.prediction)


def _correct(case: Case, model: np.ndarray | dict[str, np.ndarray]) -> Answer:
    labels = np.full(len(case.Z), np.nan)
    labels[case.rows] = case.labels
    models = {name: Known(values) for name, values in model.items()} if isinstance(model, dict) else Known(model)
    fitted = TargetCorrection(models).fit(case.Z, labels)
    low, high = fitted.predict_interval(case.Z)
    return Answer((low + high) / 2.0, fitted, (low, high))


def mapped(case: Case) -> Answer:
    """Map each column of the target to the mean and spread of the source; labels are not used."""
    return Answer(case.others[MAPPED])


def choose(case: Case, others: tuple[str, ...]) -> Answer:
    """Choose between the trained model and others with the labels, without a correction."""
    fitted = average_and_correct(case, others).fitted
    assert fitted is not None
    return Answer(case.candidates(others)[fitted.chosen_])


def average_and_correct(case: Case, others: tuple[str, ...]) -> Answer:
    """Correct all candidates and average them by a power of their evidence."""
    return _correct(case, case.candidates(others))


MAPPED, SPAR = "columns mapped", "SpAR"
CORRECTION = "TargetCorrection"
METHODS: dict[str, Method] = {
    CORRECTION: correct,
    "offset": offset,
    "offset * n / (n + 2)": shrunk_offset,
    "James-Stein offset": james_stein_offset,
    "line": line,
    "ridge on the residual": residual_ridge,
}
CANDIDATES: dict[str, Method] = {
    MAPPED: mapped,
    "chosen_": partial(choose, others=(MAPPED,)),
    "chosen_, three candidates": partial(choose, others=(MAPPED, SPAR)),
    "TargetCorrection, two candidates": partial(average_and_correct, others=(MAPPED,)),
    "TargetCorrection, three candidates": partial(average_and_correct, others=(MAPPED, SPAR)),
}
"""Methods with candidates, around boosting only. The third one is `BayesSpARRegressor` on the columns, adapted."""
SHRUNK = ("offset * n / (n + 2)", "James-Stein offset")
