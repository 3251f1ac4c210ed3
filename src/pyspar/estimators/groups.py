"""Groups of source rows, such as patients or shops: the error on groups that were left out of the fit.

Rows of one group are often similar. An error that is estimated from rows of the same groups is then too small for new
groups. The moments of folds of whole groups suffice to refit without each fold and to compute its error. Only the
in-distribution error depends on groups: intervals do not cover how few groups there are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pyspar.core.moments import Matrix, Moments, Vector, WeightlessRows
from pyspar.errors import InputError
from pyspar.estimators.validation import is_missing, read_labelled_rows
from pyspar.sources import is_batches, kind_of

MAX_FOLDS = 10


@dataclass(frozen=True)
class GroupFolds:
    """Whole groups in at most ``MAX_FOLDS`` folds, in the order of their first appearance, as batches need it.

    ``fold_of`` is the fold of each group by its name, ``moments`` are those of each fold, and ``rmse`` is the error on
    folds left out of the fit, per output; None for a single fold.
    """

    fold_of: dict[str, int]
    moments: dict[int, Moments]
    rmse: Vector | None = None

    def measure(self, fit: Callable[[Moments], tuple[Matrix, Vector]]) -> GroupFolds:
        """Return the folds with the error on each fold of the weights that are fitted to the others."""
        if len(self.moments) < 2:
            return self
        folds = list(self.moments.values())
        before: list[Any] = [0, *accumulate(folds)]  # the sums of all folds before and after each one
        after: list[Any] = [0, *accumulate(reversed(folds))]
        squares: Any = 0.0
        for fold, *others in zip(folds, before, reversed(after[:-1])):
            errors = fold.subtract_prediction(*fit(sum(part for part in others if part)))
            squares = squares + np.square(errors.column_lengths()[fold.n_features :])
        return replace(self, rmse=np.sqrt(squares / sum(fold.weight for fold in folds)))


def extend_folds(
    folds: GroupFolds | None, estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> GroupFolds:
    """Return folds, or None for the first rows, with further rows. Rows without weight are skipped."""
    names = check_groups(groups, X)
    fold_of, moments = (dict(folds.fold_of), dict(folds.moments)) if folds else ({}, {})
    for name in dict.fromkeys(names):
        fold_of.setdefault(name, len(fold_of) % MAX_FOLDS)
    fold_of_row = np.array([fold_of[name] for name in names])
    for fold in np.unique(fold_of_row).tolist():
        rows = np.flatnonzero(fold_of_row == fold)
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
            f"groups must contain at least 2 groups with a positive weight, got {len(folds.moments)}; leave groups out "
            "if rows are independent"
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
    """Return the name of each row's group; raise an error if they do not match the rows."""
    if kind_of(X) not in ("rows", "sparse", "torch"):
        raise TypeError(f"groups require rows in memory, got {type(X).__name__}; use partial_fit or fit_batches")
    return name_groups(groups, int(np.shape(X)[0]))


def name_groups(groups: Any, n: int) -> list[str]:
    """Return the name of the group of each of n rows; equal numbers have the same name.

    >>> name_groups([1, 1.0, "a"], 3)
    ['1', '1', 'a']
    """
    labels = np.asarray(groups, dtype=object)
    if labels.shape != (n,):
        raise InputError(f"groups must have one entry per row, got shape {labels.shape} for {n} rows")
    names, label_of = [], dict[str, Any]()
    for row, label in enumerate(labels):
        if not isinstance(label, Hashable) or is_missing(label):
            raise InputError(f"groups must be numbers or text, got {label!r} in row {row}; name a group for it")
        is_whole = isinstance(label, (float, np.floating)) and float(label).is_integer()
        names.append(str(int(labels[row]) if is_whole else label))
        if label_of.setdefault(names[-1], label) != label:
            raise InputError(
                f"groups must have one type, got {names[-1]!r} both as a number and as text, first in row {row}; pass "
                "[str(group) for group in groups] if they are the same group"
            )
    return names
