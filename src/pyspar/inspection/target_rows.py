"""The rows of a target: the moments of each group of rows, and predictions for a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.inspection.compare import Pair
from pyspar.sources.kinds import kind_of

MAX_PREDICTED_ROWS = 2000


@dataclass(frozen=True)
class Predictions:
    """The predictions of least squares (``before``) and of the adapted weights (``after``) for the same rows.

    ``rows`` holds the row numbers in the target: all of them, or an evenly spaced sample.
    """

    rows: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


def predict_sample(Z: Any, before: Pair, after: Pair) -> tuple[Predictions, ...] | None:
    """Predict a sample of rows with two sets of weights, for each output.

    Return None if the target has no rows in memory, or if a prediction is not finite.
    """
    if isinstance(Z, Moments) or kind_of(Z) not in ("rows", "sparse"):
        return None
    Z = Z if hasattr(Z, "iloc") else Z.tocsr() if hasattr(Z, "tocsr") else np.asarray(Z)
    places = choose_rows(Z.shape[0])
    sample = _select_rows(Z, places)
    rows = np.asarray(sample.toarray() if hasattr(sample, "toarray") else sample, dtype=np.float64)
    predicted = [rows @ coef + intercept for coef, intercept in (before, after)]
    if not all(np.isfinite(values).all() for values in predicted):
        return None
    return tuple(
        Predictions(tuple(map(int, places)), *(tuple(map(float, values[:, k])) for values in predicted))
        for k in range(predicted[0].shape[1])
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
        raise InputError(f"groups must have one entry for each row of Z, got the shape {labels.shape} for {target}")
    missing = [place for place, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise InputError(
            f"groups is missing for {len(missing)} of {len(labels)} rows, first in row {missing[0]}; name a group for "
            "these rows, for example with groups.fillna('unknown')"
        )
    places: dict[Any, list[int]] = {}
    for place, label in enumerate(labels):
        try:
            places.setdefault(label, []).append(place)
        except TypeError as error:
            raise InputError(f"groups must be numbers or text, got {label!r} in row {place}") from error
    try:
        ordered = sorted(places)
    except TypeError:  # labels of several types cannot be compared
        ordered = sorted(places, key=str)
    named: dict[str, Any] = {}
    for label in ordered:
        if str(label) in named:
            raise InputError(
                f"groups must have one type, got {str(label)!r} both as a number and as text; pass "
                "[str(group) for group in groups] if they are the same group"
            )
        named[str(label)] = np.array(places[label])
    return named


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA. The last three are not equal to themselves.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    is_equal = value is not None and value == value
    return not isinstance(is_equal, (bool, np.bool_)) or not is_equal


def _select_rows(Z: Any, places: np.ndarray) -> Any:
    return Z.iloc[places] if hasattr(Z, "iloc") else Z[places]
