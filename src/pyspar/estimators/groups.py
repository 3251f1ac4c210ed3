"""Groups of source rows, such as patients or shops: the error on groups that were left out of the fit.

Rows of one group are often similar. An error that is estimated from rows of the same groups is then too small for new
groups. The moments of folds of whole groups suffice to refit without each fold and to compute its error. Only the
in-distribution error depends on groups: intervals do not cover how few groups there are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pyspar.core.moments import Matrix, Moments, Vector, WeightlessRows
from pyspar.errors import InputError
from pyspar.estimators.validation import is_missing, read_labelled_rows
from pyspar.sources import kind_of

MAX_FOLDS = 10


def split_by_groups(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> list[Moments]:
    """Return the moments of at most ``MAX_FOLDS`` folds of whole groups. Folds without weight are skipped."""
    names = check_groups(groups, X)
    fold_of = {name: number % MAX_FOLDS for number, name in enumerate(dict.fromkeys(names))}
    fold_of_row = np.array([fold_of[name] for name in names])
    folds = []
    for fold in np.unique(fold_of_row):
        rows = np.flatnonzero(fold_of_row == fold)
        parts = [None if values is None else _safe_indexing(values, rows) for values in (X, y, sample_weight)]
        try:
            folds.append(read_labelled_rows(estimator, *parts, min_rows=1).moments)
        except WeightlessRows:
            continue
    if len(folds) < 2:
        raise ValueError(
            f"groups must contain at least 2 groups with a positive weight, got {len(folds)}; leave groups out if rows "
            "are independent"
        )
    return folds


def left_out_rmse(folds: list[Moments], fit: Callable[[Moments], tuple[Matrix, Vector]]) -> Vector:
    """Return the RMSE, per output, on each fold of the weights that are fitted to the others."""
    squares: Any = 0.0
    for fold in folds:
        others: Any = sum(other for other in folds if other is not fold)
        errors = fold.subtract_prediction(*fit(others))
        squares = squares + np.square(errors.column_lengths()[fold.n_features :])
    return np.asarray(np.sqrt(squares / sum(fold.weight for fold in folds)))


def check_groups(groups: Any, X: Any) -> list[str]:
    """Return the name of each row's group; equal numbers have the same name.

    >>> check_groups([1, 1.0, "a"], np.ones((3, 1)))
    ['1', '1', 'a']
    """
    if kind_of(X) not in ("rows", "sparse", "torch"):
        raise TypeError(f"groups require rows in memory, got {type(X).__name__}; leave groups out, or fit a sample")
    labels, n = np.asarray(groups, dtype=object), int(np.shape(X)[0])
    if labels.shape != (n,):
        raise InputError(f"groups must have one entry per row, got shape {labels.shape} for {n} rows")
    names = []
    for row, label in enumerate(labels):
        if not isinstance(label, Hashable) or is_missing(label):
            raise InputError(f"groups must be numbers or text, got {label!r} in row {row}; name a group for it")
        is_whole = isinstance(label, (float, np.floating)) and float(label).is_integer()
        names.append(str(int(labels[row]) if is_whole else label))
    return names
