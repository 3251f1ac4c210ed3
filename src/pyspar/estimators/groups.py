"""Groups of source rows, such as patients or shops: the moments of folds, and the error on groups that were left out.

Rows of one group are often similar. An error that is estimated from rows of the same groups is then too small for new
groups. Whole groups are assigned to at most ``MAX_FOLDS`` folds in the order of their first appearance, so that batches
in the same order have the same folds. The moments of the folds are sufficient to refit without each fold and to compute
its error.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pyspar.core.arrays import Vector
from pyspar.core.belief import inverse
from pyspar.core.mean_square import t_quantile
from pyspar.core.moments import Moments, WeightlessRows
from pyspar.errors import InputError
from pyspar.estimators.validation import Source, in_columns, is_missing, read_labelled_rows
from pyspar.sources import is_batches, kind_of

MAX_FOLDS = 10


@dataclass(frozen=True)
class GroupFolds:
    """The fold of each group by the group's name, the moments of each fold, and the error on folds left out.

    ``variance`` is the variance of the mean squared error on these folds, divided by the square of this error.
    """

    fold_of: dict[str, int]
    moments: dict[int, Moments]
    rmse: Vector | None = None
    variance: Vector | None = None

    def divide(self, source: Source) -> Source:
        """Return a source with the moments of these folds."""
        return replace(source, folds=tuple(self.moments.values()))

    def measure(self, estimator: Any, y_ndim: int) -> GroupFolds:
        """Return the folds with the root mean squared error, per output, on folds left out of the fit.

        It is None for a single group.
        """
        if len(self.moments) < 2:
            return self
        folds = list(self.moments.values())
        squares, shares = [], np.array([fold.weight for fold in folds])
        weight = shares.sum()
        for i, (fold, others) in enumerate(zip(folds, sums_without_each(folds), strict=True)):
            weights = estimator._solve(Source(others, y_ndim, folds=(*folds[:i], *folds[i + 1 :])))
            errors = fold.subtract_prediction(*in_columns(weights["coef_"], weights["intercept_"]))
            squares.append(np.square(errors.column_lengths()[fold.n_features :] / np.sqrt(weight)))
        mean = np.sum(squares, axis=0)
        variance = variance_by_groups(squares * inverse(mean) - (shares / weight)[:, None])
        return replace(self, rmse=np.sqrt(mean), variance=variance)

    def log_reach(self, level: float, n_source: float, n_target: float) -> Vector:
        """Return the half-width of an interval of log(RMSE on target rows of new groups / its estimate), per output.

        The numbers of rows are sums of weights with the same meaning. The result is zero if there is only one group,
        and for files of earlier versions.
        """
        if self.variance is None:
            return np.zeros(next(iter(self.moments.values())).n_outputs)
        factor = new_group_factor(n_source, n_target, len(self.fold_of))
        return np.asarray(t_quantile(level, len(self.moments)) * 0.5 * np.sqrt(self.variance * (1.0 + factor)))


def extend_folds(
    folds: GroupFolds | None, estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> GroupFolds:
    """Return folds, or None for the first rows, with further rows."""
    names = check_groups(groups, X)
    folds = folds or GroupFolds({}, {})
    fold_of, moments = dict(folds.fold_of), dict(folds.moments)
    for name in dict.fromkeys(names):
        fold_of.setdefault(name, len(fold_of) % MAX_FOLDS)
    number_of_row = np.array([fold_of[name] for name in names])
    for fold in np.unique(number_of_row).tolist():
        rows = np.flatnonzero(number_of_row == fold)
        parts = [None if values is None else _safe_indexing(values, rows) for values in (X, y, sample_weight)]
        try:
            further = read_labelled_rows(estimator, *parts, min_rows=1).moments
        except WeightlessRows:
            continue
        moments[fold] = moments[fold] + further if fold in moments else further
    return GroupFolds(fold_of, moments)


def check_several(folds: GroupFolds | None) -> GroupFolds | None:
    """Return the folds; raise ValueError for a single group, which cannot be left out."""
    if folds is not None and len(folds.moments) < 2:
        raise ValueError(
            f"groups must contain at least 2 groups, got {len(folds.fold_of)}; leave groups out if rows are independent"
        )
    return folds


class UngroupedBatches:
    """Batches for ``fit_batches`` without their groups, which ``folds`` collects."""

    def __init__(self, estimator: Any, batches: Any) -> None:
        if not is_batches(batches):
            got = type(batches).__name__
            raise TypeError(f"batches must be an iterable of (X, y), got {got}; for rows use fit(X, y)")
        self._estimator, self._batches = estimator, batches
        self.folds: GroupFolds | None = None

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self._batches):
            has_groups = isinstance(batch, (tuple, list)) and len(batch) == 4
            if number and has_groups != (self.folds is not None):
                raise ValueError(f"pass groups in all batches or in none; batch {number} differs from the first batch")
            if has_groups:
                self.folds = extend_folds(self.folds, self._estimator, *batch)
                batch = batch[:2] if batch[2] is None else batch[:3]
            yield batch


def check_groups(groups: Any, X: Any) -> list[str]:
    """Return the name of each row's group; raise ValueError if they do not match the rows."""
    if kind_of(X) not in ("rows", "sparse", "torch"):
        raise TypeError(f"groups require rows in memory, got {type(X).__name__}; use partial_fit or fit_batches")
    return name_groups(groups, int(np.shape(X)[0]))


def name_groups(groups: Any, n: int, parameter: str = "groups") -> list[str]:
    """Return the name of the group of each of n rows; equal numbers have the same name.

    >>> name_groups([1, 1.0, "a"], 3)
    ['1', '1', 'a']
    """
    labels = np.asarray(groups, dtype=object)
    if labels.shape != (n,):
        raise InputError(f"{parameter} must have one entry per row, got shape {labels.shape} for {n} rows")
    missing = [i for i, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise InputError(
            f"{parameter} must not be missing, but are for {len(missing)} of {n} rows, got {labels[missing[0]]} in row "
            f"{missing[0]}; name a group for these rows, for example with groups.fillna('unknown')"
        )
    names, label_of = [], dict[str, Any]()
    for row, label in enumerate(labels):
        if not isinstance(label, Hashable):
            raise InputError(f"{parameter} must be numbers or text, got {label!r} in row {row}")
        is_whole = isinstance(label, (float, np.floating)) and float(label).is_integer()
        name = str(int(labels[row]) if is_whole else label)
        if label_of.setdefault(name, label) != label:
            raise InputError(
                f"{parameter} must have one type, got {name!r} both as a number and as text, first in row {row}; pass "
                "[str(group) for group in groups] if they are the same group"
            )
        names.append(name)
    return names


def variance_by_groups(parts: Any) -> Any:
    """Return the variance of a mean, given the deviation that each group, or each fold of groups, contributes to it.

    >>> float(variance_by_groups(np.array([0.5, -0.5])))  # the mean of two groups with the means 1 and -1
    1.0
    """
    return np.square(parts).sum(axis=0) * len(parts) / (len(parts) - 1)


def new_group_factor(n_source: float, n_target: float, n_groups: int) -> float:
    """Return the variance of a mean over the rows of new groups, divided by that over the rows of the source.

    The groups of the target are assumed to be as large as those of the source. The target has at least one group.

    >>> new_group_factor(200, 100, 20), new_group_factor(200, 1, 20)
    (2.0, 20.0)
    """
    return float(min(n_source / n_target, n_groups))


def sums_without_each(parts: Sequence[Moments]) -> list[Moments]:
    """Return for each part the sum of all other parts, in two passes.

    >>> sums_without_each([1, 2, 4])
    [6, 5, 3]
    """
    before = [None, *accumulate(parts[:-1], add)]
    after = [*reversed(list(accumulate(reversed(parts[1:]), add))), None]
    return [two if one is None else one if two is None else one + two for one, two in zip(before, after, strict=True)]
