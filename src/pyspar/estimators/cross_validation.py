"""The error on source rows that a fit has not seen. With groups, such as patients or shops, whole groups are left out.

Rows of one group are often similar, so an error from the same groups is too small for new groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from pyspar.core.moments import Matrix, Vector, WeightlessRows
from pyspar.errors import InputError
from pyspar.estimators.validation import is_missing, read_labelled_rows
from pyspar.sources import kind_of

MAX_FOLDS = 10


def left_out_group_rmse(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Vector:
    """Return the RMSE of one of pyspar's regressors, per output, on at most ``MAX_FOLDS`` folds of whole groups."""
    fold_of_row = number_groups(groups, X) % MAX_FOLDS
    folds = []
    for fold in np.unique(fold_of_row):
        rows = np.flatnonzero(fold_of_row == fold)
        parts = [None if values is None else _safe_indexing(values, rows) for values in (X, y, sample_weight)]
        try:
            folds.append(read_labelled_rows(estimator, *parts, min_rows=1).moments)
        except WeightlessRows:
            continue
    if len(folds) < 2:
        raise InputError("groups must contain at least 2 groups with a positive weight, got 1; leave groups out")
    squares: Any = 0.0
    for fold in folds:  # the moments of the others suffice to fit without it
        fit = estimator._solve(sum(other for other in folds if other is not fold))
        errors = fold.subtract_prediction(*estimator._weights(fit, fit.w_hat))
        squares = squares + np.square(errors.column_lengths()[fold.n_features :])
    return np.asarray(np.sqrt(squares / sum(fold.weight for fold in folds)))


def left_out_errors(model: Any, X: Any, y: Any, groups: Any = None, folds: int = 5) -> Matrix:
    """Return the error of each source row by a clone of any model that was fitted without it, of shape (n, outputs)."""
    labels = np.asarray(y, dtype=np.float64)
    splitter, options = KFold(folds, shuffle=True, random_state=0), dict[str, Any]()
    if groups is not None:
        groups = number_groups(groups, X)
        count = int(groups.max()) + 1
        splitter = GroupKFold(min(folds, count))
        # A search passes the groups to its splitter, and a regressor may choose its parameters by them.
        if hasattr(model, "best_estimator_") or (has_fit_parameter(model, "groups") and count > 2):
            options = {"groups": groups}
    errors = np.zeros(labels.shape)
    for kept, left_out in splitter.split(labels, groups=groups):  # cross_val_predict needs a request for metadata
        own = {key: of[kept] for key, of in options.items()}
        fitted = clone(model).fit(_safe_indexing(X, kept), labels[kept], **own)
        predicted = np.asarray(fitted.predict(_safe_indexing(X, left_out)), dtype=np.float64)
        errors[left_out] = predicted.reshape(labels[left_out].shape) - labels[left_out]
    return errors.reshape(len(labels), -1)


def number_groups(groups: Any, X: Any) -> NDArray[np.intp]:
    """Return the number of each row's group, in order of first appearance.

    >>> number_groups(["b", "a", "b"], np.ones((3, 1)))
    array([0, 1, 0])
    """
    if kind_of(X) not in ("rows", "sparse", "torch"):
        raise TypeError(f"groups require rows in memory, got {type(X).__name__}; leave groups out, or fit a sample")
    names, n = np.asarray(groups, dtype=object), int(np.shape(X)[0])
    if names.shape != (n,):
        raise InputError(f"groups must have one entry per row, got shape {names.shape} for {n} rows")
    for row, name in enumerate(names):
        if is_missing(name):
            raise InputError(f"groups must be numbers or text, got {name!r} in row {row}; name a group for it")
    number_of: dict[Any, int] = {}
    numbers = np.array([number_of.setdefault(name, len(number_of)) for name in names])
    if len(number_of) < 2:
        raise InputError(f"groups must contain at least 2 groups, got {len(number_of)}; leave groups out")
    return numbers
