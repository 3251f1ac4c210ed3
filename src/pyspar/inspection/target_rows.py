"""The rows of a target: the moments of each group of rows, and predictions for a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.groups import is_missing
from pyspar.inspection.compare import Pair
from pyspar.sources import kind_of

MAX_PREDICTED_ROWS = 2000
FAR_RANGE_SHARE = 0.5
"""A prediction is far outside the range of the source labels if it is outside by more than this share of the range."""
FAR_DEVIATIONS = 6.0
"""Without the range of the labels: the distance from their mean in standard deviations from which a prediction is far
outside. Samples of common distributions rarely contain such a value."""
MAX_LISTED_ROWS = 5


@dataclass(frozen=True)
class Predictions:
    """The predictions of the weights in use (``before``) and of the adapted weights (``after``) for the same rows.

    ``rows`` holds the row numbers in the target: all of them, or an evenly spaced sample.
    """

    rows: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class AbsurdRows:
    """Target rows whose predictions no source label resembles.

    Attributes
    ----------
    n_rows, n_absurd : int
        The number of predictions, and of those that are far outside the source labels or negative.
    n_negative, n_far : int
        The number of negative predictions (0 if a source label is negative or the labels are unknown), and of those
        that are far outside the source labels.
    limits : pair of float
        Predictions outside these limits are far outside the source labels.
    extremes : pair of float
        The smallest and the largest prediction.
    rows : tuple of int
        The row numbers of the worst predictions, from 0.
    """

    n_rows: int
    n_absurd: int
    n_negative: int
    n_far: int
    limits: tuple[float, float]
    extremes: tuple[float, float]
    rows: tuple[int, ...]


def has_rows(Z: Any) -> bool:
    """Return whether a target has rows in memory."""
    return not isinstance(Z, Moments) and kind_of(Z) in ("rows", "sparse")


def predict_rows(Z: Any, weights: Pair) -> np.ndarray | None:
    """Predict all rows of a target: (rows, outputs). None without rows in memory, or if a prediction is not finite."""
    if not has_rows(Z):
        return None
    rows = Z.tocsr() if hasattr(Z, "tocsr") else np.asarray(Z, dtype=np.float64)
    predicted = np.asarray(rows @ weights[0] + weights[1])
    return predicted if np.isfinite(predicted).all() else None


def sample_predictions(before: np.ndarray | None, after: np.ndarray | None, output: int) -> Predictions | None:
    """Return the predictions of a sample of rows for one output; None if one of them is unknown."""
    if before is None or after is None:
        return None
    places = choose_rows(len(before))
    values = (tuple(map(float, predicted[places, output])) for predicted in (before, after))
    return Predictions(tuple(map(int, places)), *values)


def find_absurd_rows(
    predictions: np.ndarray, label_range: tuple[float, float] | None, mean: float, std: float
) -> AbsurdRows | None:
    """Return the rows whose predictions are far outside the source labels, or None if there are none.

    ``label_range`` is the smallest and the largest source label, or None if only mean and standard deviation are known.

    >>> find_absurd_rows(np.array([3.0, -1.0, 40.0]), (1.0, 9.0), 5.0, 2.0).rows
    (2, 1)
    """
    if label_range is None:
        low, high, is_signed = mean - FAR_DEVIATIONS * std, mean + FAR_DEVIATIONS * std, True
    else:
        margin = FAR_RANGE_SHARE * (label_range[1] - label_range[0])
        low, high, is_signed = label_range[0] - margin, label_range[1] + margin, label_range[0] < 0.0
    outside = np.maximum(low - predictions, predictions - high)
    distance = outside if is_signed else np.maximum(outside, -predictions)
    absurd = np.flatnonzero(distance > 0.0)
    if not absurd.size or not std > 0.0:
        return None
    worst = absurd[np.argsort(-distance[absurd], kind="stable")[:MAX_LISTED_ROWS]]
    return AbsurdRows(
        n_rows=len(predictions),
        n_absurd=int(absurd.size),
        n_negative=0 if is_signed else int((predictions < 0.0).sum()),
        n_far=int((outside > 0.0).sum()),
        limits=(float(low), float(high)),
        extremes=(float(predictions.min()), float(predictions.max())),
        rows=tuple(map(int, worst)),
    )


def choose_rows(n: int, limit: int = MAX_PREDICTED_ROWS) -> np.ndarray:
    """Return at most ``limit`` evenly spaced row numbers.

    >>> choose_rows(10, 4)
    array([0, 3, 6, 9])
    """
    return np.unique(np.linspace(0, n - 1, min(n, limit)).round().astype(np.int64))


def compute_group_moments(estimator: Any, Z: Any, groups: Any, sample_weight: Any) -> dict[str, Moments]:
    """Return the moments of each group of rows by its name; ``groups`` may be None."""
    if groups is None:
        return {}
    Z = np.asarray(Z) if isinstance(Z, (list, tuple)) else Z
    Z = Z.tocsr() if hasattr(Z, "tocsr") else Z  # some sparse formats have no row selection
    weight = None if sample_weight is None else np.asarray(sample_weight)
    moments = {}
    for name, places in split_groups(groups, Z).items():
        group_weight = None if weight is None else weight[places]
        if group_weight is not None and not group_weight.any():
            raise InputError(
                f"sample_weight is zero for all {len(places)} rows of the group {name!r}; remove these rows from Z, "
                "groups and sample_weight, or give them a positive weight"
            )
        try:
            moments[name] = estimator._target(_select_rows(Z, places), group_weight)
        except ValueError as error:
            raise InputError(f"group {name!r}: {error}") from error
    return moments


def split_groups(groups: Any, Z: Any) -> dict[str, Any]:
    """Return the row numbers of each group by its name, sorted by label.

    >>> split_groups(["b", "a", "b"], np.zeros((3, 1)))
    {'a': array([1]), 'b': array([0, 2])}
    """
    labels = np.asarray(groups, dtype=object)
    if labels.ndim != 1 or not hasattr(Z, "shape") or len(labels) != Z.shape[0]:
        target = f"{Z.shape[0]} rows" if hasattr(Z, "shape") else f"{type(Z).__name__}, which has no rows in memory"
        raise InputError(
            f"target_groups must have one entry for each row of Z, got the shape {labels.shape} for {target}"
        )
    missing = [place for place, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise InputError(
            f"target_groups is missing for {len(missing)} of {len(labels)} rows, first in row {missing[0]}; name "
            "a group for these rows, for example with groups.fillna('unknown')"
        )
    places: dict[Any, list[int]] = {}
    for place, label in enumerate(labels):
        try:
            places.setdefault(label, []).append(place)
        except TypeError as error:
            raise InputError(f"target_groups must be numbers or text, got {label!r} in row {place}") from error
    try:
        ordered = sorted(places)
    except TypeError:  # labels of several types cannot be compared
        ordered = sorted(places, key=str)
    named: dict[str, Any] = {}
    for label in ordered:
        if str(label) in named:
            raise InputError(
                f"target_groups must have one type, got {str(label)!r} both as a number and as text; pass "
                "[str(group) for group in groups] if they are the same group"
            )
        named[str(label)] = np.array(places[label])
    return named


def _select_rows(Z: Any, places: np.ndarray) -> Any:
    return Z.iloc[places] if hasattr(Z, "iloc") else Z[places]
