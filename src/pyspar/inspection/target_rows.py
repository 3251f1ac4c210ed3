"""The rows of a target: predictions, those that no source label resembles, labels, and the moments of groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.calibrated_forecasts import EXCESS
from pyspar.estimators.correction import count_rows
from pyspar.estimators.groups import name_groups
from pyspar.estimators.target_labels import ENOUGH_LABELS, read_labels
from pyspar.inspection.compare import Pair
from pyspar.sources import kind_of

MAX_PREDICTED_ROWS = 2000
FAR_RANGE_SHARE = 0.5
"""A prediction is far outside the range of the source labels if it is outside by more than this share of the range."""
FAR_DEVIATIONS = 6.0
"""Without the range of the labels: the distance from their mean in standard deviations from which a prediction is far
outside. Samples of common distributions rarely contain such a value."""
MAX_LISTED_ROWS = 5
COMMAND_METHODS = {"OLS": "ols", "SpAR": "spar", "Bayes-SpAR": "bayes"}
"""The ``--method`` of ``spar adapt`` for the weights that a command may recommend."""
_NAMES = {"OLS": "least squares", "not adapted": "the model before adapting", "centre": "the given model"}


@dataclass(frozen=True)
class Predictions:
    """The predictions of the weights in use (``before``) and of the adapted weights (``after``) for the same rows.

    ``rows`` holds the row numbers in the target: all of them, or an evenly spaced sample.
    """

    rows: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


class SourceLabels(NamedTuple):
    """The mean and the standard deviation of the source labels, and their range if it is known."""

    mean: float
    std: float
    range: tuple[float, float] | None


@dataclass(frozen=True)
class AbsurdRows:
    """Target rows whose predictions no source label resembles: far outside the source labels, or negative."""

    n_rows: int  # the number of predictions
    n_absurd: int
    n_negative: int  # 0 if a source label is negative or the labels are unknown
    n_far: int
    limits: tuple[float, float]  # predictions outside these limits are far outside the source labels
    extremes: tuple[float, float]  # the smallest and the largest prediction
    rows: tuple[int, ...]  # the row numbers of the worst predictions, from 0


@dataclass(frozen=True)
class LabelEvidence:
    """What labels of target rows show about one set of weights.

    ``interval`` is a 95 % interval of the RMSE on all target rows, if the labelled rows were drawn at random.
    ``confirmed`` is whether at least 10 labels show that the error is at most 1.3 times the error at home. The upper
    end of the interval is compared with this limit, or the RMSE itself if all rows are labelled.
    """

    n: int
    rmse: float
    interval: tuple[float, float]
    confirmed: bool


def weigh_evidence(
    errors: Mapping[str, SquaredErrors], home: float, n_target: float = math.inf
) -> dict[str, LabelEvidence]:
    """Return what the errors on labelled rows show about each set of weights, given the error at home."""
    evidence = {}
    for name, squares in errors.items():
        if squares.n:
            low, high = squares.interval()
            largest = squares.rmse if squares.n >= n_target else high
            is_confirmed = squares.n >= ENOUGH_LABELS and largest <= EXCESS * home
            evidence[name] = LabelEvidence(squares.n, squares.rmse, (low, high), is_confirmed)
    return evidence


def name_weights(name: str) -> str:
    """Return the name of weights in a sentence.

    >>> name_weights("OLS"), name_weights("Bayes-SpAR")
    ('least squares', 'Bayes-SpAR')
    """
    return _NAMES.get(name, name)


def predict_rows(Z: Any, weights: Pair) -> Matrix | None:
    """Predict all rows of a target: (rows, outputs). None without rows in memory, or if a prediction is not finite."""
    if isinstance(Z, Moments) or kind_of(Z) not in ("rows", "sparse"):
        return None
    rows = Z.tocsr() if hasattr(Z, "tocsr") else np.asarray(Z, dtype=np.float64)
    predicted = np.asarray(rows @ weights[0] + weights[1])
    return predicted if np.isfinite(predicted).all() else None


def sample_predictions(before: Vector | None, after: Vector | None) -> Predictions | None:
    """Return the predictions of at most 2000 evenly spaced rows; None if one of the two is unknown."""
    if before is None or after is None:
        return None
    n = len(before)
    places = np.unique(np.linspace(0, n - 1, min(n, MAX_PREDICTED_ROWS)).round().astype(np.int64))
    return Predictions(tuple(places.tolist()), tuple(before[places].tolist()), tuple(after[places].tolist()))


def summarise_labels(estimator: Any, output: int = 0) -> SourceLabels:
    """Return the mean, the standard deviation and the range of one source label of a fitted estimator."""
    source, k = estimator._source, estimator._source.n_features + output
    # An estimator that was fitted on Moments does not know the range.
    known = getattr(estimator, "label_range_", None)
    label_range = None if known is None else (float(known[0, output]), float(known[1, output]))
    return SourceLabels(float(source.mean[k]), float(source.spread[k]), label_range)


def find_absurd_rows(predictions: Vector, labels: SourceLabels) -> AbsurdRows | None:
    """Return the rows whose predictions are far outside the source labels, or None if there are none.

    >>> find_absurd_rows(np.array([3.0, -1.0, 40.0]), SourceLabels(5.0, 2.0, (1.0, 9.0))).rows
    (2, 1)
    """
    if labels.range is None:
        margin, low, high, is_signed = FAR_DEVIATIONS * labels.std, labels.mean, labels.mean, True
    else:
        (low, high), is_signed = labels.range, labels.range[0] < 0.0
        margin = FAR_RANGE_SHARE * (high - low)
    low, high = low - margin, high + margin
    outside = np.maximum(low - predictions, predictions - high)
    distance = outside if is_signed else np.maximum(outside, -predictions)
    absurd = np.flatnonzero(distance > 0.0)
    if not absurd.size or not labels.std > 0.0:
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


def read_target_labels(y: Any, Z: Any, n_outputs: int) -> Matrix:
    """Return the labels of the target rows as (rows, outputs), with NaN where a label is unknown."""
    if kind_of(Z) not in ("rows", "sparse"):
        raise InputError(f"y needs target rows in memory, got {type(Z).__name__} as Z; pass the rows")
    return read_labels(y, count_rows(Z), "inspect", "target y", outputs=n_outputs)[0]


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
            rows = Z.iloc[places] if hasattr(Z, "iloc") else Z[places]
            moments[name] = estimator._target(rows, group_weight)
        except ValueError as error:
            raise InputError(f"group {name!r}: {error}") from error
    return moments


def split_groups(groups: Any, Z: Any) -> dict[str, Any]:
    """Return the row numbers of each group by its name, sorted by label.

    >>> split_groups(["b", "a", "b"], np.zeros((3, 1)))
    {'a': array([1]), 'b': array([0, 2])}
    """
    if not hasattr(Z, "shape"):
        raise InputError(f"target_groups must have target rows in memory, got {type(Z).__name__} as Z; pass the rows")
    names = name_groups(groups, int(Z.shape[0]), "target_groups")
    label_of, places = dict(zip(names, groups)), dict[str, list[int]]()
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    try:
        ordered = sorted(places, key=lambda name: label_of[name])
    except TypeError:  # labels of several types cannot be compared
        ordered = sorted(places)
    return {name: np.array(places[name]) for name in ordered}
