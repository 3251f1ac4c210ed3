"""Groups of source rows, such as patients or shops: the moments of folds, and the error on groups that were left out.

Rows of one group are often similar. An error that is estimated from rows of the same groups is then too small for new
groups. Whole groups are assigned to at most ``MAX_FOLDS`` folds in the order of their first appearance, so that batches
in the same order have the same folds. The moments of the folds are sufficient to refit without each fold and to compute
its error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.sources import kind_of

MAX_FOLDS = 10

Solve = Callable[[Moments], tuple[Matrix, Vector]]
"""A function that returns weights (D, K) and intercepts (K,) for the moments of a source."""
Read = Callable[[Any, Any, Any], Moments]
"""A function that validates rows, labels and weights, and returns their moments."""


@dataclass(frozen=True)
class GroupFolds:
    """The fold of each group by the group's name, and the moments of each fold."""

    fold_of: dict[str, int] = field(default_factory=dict)
    moments: tuple[Moments, ...] = ()

    def including(self, X: Any, y: Any, sample_weight: Any, groups: Any, read: Read) -> GroupFolds:
        """Return the folds with further rows."""
        names = check_groups(groups, X)
        fold_of = dict(self.fold_of)
        for name in dict.fromkeys(names):
            fold_of.setdefault(name, len(fold_of) % MAX_FOLDS)
        folds = np.array([fold_of[name] for name in names])
        moments: list[Moments | None] = [*self.moments, *[None] * (min(len(fold_of), MAX_FOLDS) - len(self.moments))]
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            parts = [None if values is None else _safe_indexing(values, rows) for values in (X, y, sample_weight)]
            if sample_weight is not None and not np.any(parts[2]):
                continue
            found, before = read(*parts), moments[fold]
            moments[fold] = found if before is None else before + found
        return GroupFolds(fold_of, tuple(part for part in moments if part is not None))

    def check_number(self) -> None:
        """Raise ValueError for a single group, which cannot be left out."""
        if len(self.moments) < 2:
            raise ValueError(
                f"groups must contain at least 2 groups, got {len(self.fold_of)}; leave groups out if rows are "
                "independent"
            )

    def left_out_rmse(self, solve: Solve) -> Vector | None:
        """Return the root mean squared error, per output, on each fold by a regressor fitted to the other folds.

        Return None for a single group.
        """
        if len(self.moments) < 2:
            return None
        d = self.moments[0].n_features
        squares = np.zeros(self.moments[0].n_outputs)
        for fold, others in zip(self.moments, sums_without_each(self.moments), strict=True):
            errors = fold.subtract_prediction(*solve(others)).column_lengths()[d:]
            squares += errors**2
        return np.asarray(np.sqrt(squares / sum(fold.weight for fold in self.moments)))


def check_groups(groups: Any, X: Any) -> list[str]:
    """Return the name of each row's group; raise ValueError if they do not match the rows."""
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
        raise ValueError(f"groups must have one entry for each of {n} rows, got shape {labels.shape}")
    missing = [i for i, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise ValueError(f"groups must not be missing, got {labels[missing[0]]} in row {missing[0]}; name these groups")
    is_whole = [isinstance(label, (float, np.floating)) and float(label).is_integer() for label in labels]
    return [str(int(label) if whole else label) for label, whole in zip(labels, is_whole)]


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA. The last three are not equal to themselves.

    An array or tensor is missing if all its entries are.

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(np.ones(1))
    (True, True, False, False)
    """
    is_equal: Any = value is not None and value == value
    if hasattr(is_equal, "any"):
        is_equal = bool(is_equal.any())
    return not isinstance(is_equal, bool) or not is_equal


def sums_without_each(parts: Sequence[Moments]) -> list[Moments]:
    """Return for each part the sum of all other parts, in two passes.

    >>> sums_without_each([1, 2, 4])
    [6, 5, 3]
    """
    before = [None, *accumulate(parts[:-1], add)]
    after = [*reversed(list(accumulate(reversed(parts[1:]), add))), None]
    return [two if one is None else one if two is None else one + two for one, two in zip(before, after, strict=True)]
