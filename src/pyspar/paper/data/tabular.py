"""Preprocessing and split of tables by groups, as in Yao et al. (2022) and in the paper.

Missing values are imputed with the column mean and columns are scaled to [0, 1], both over all rows. Labels are not
changed. Groups are not divided. In the order of their numbers, the first are for training, the next for validation and
the last for the test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyspar.core.moments import Matrix, Vector
from pyspar.paper.data.task import Part, RowIndices


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a data set, in the order of its file."""

    X: Matrix
    y: Vector
    group: NDArray[np.int64]

    def part(self, rows: RowIndices) -> Part:
        return Part(self.X[rows], self.y[rows], self.group[rows])


def impute_and_scale(X: Matrix) -> Matrix:
    """Replace NaN by the column mean, then scale each column to [0, 1]. A constant column becomes 0."""
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray((X - low) / np.where(high > low, high - low, 1.0))


def split_by_groups(
    group: NDArray[np.int64], *, train: float = 0.7, val: float = 0.1
) -> tuple[RowIndices, RowIndices, RowIndices]:
    """Return the rows of training, validation and test, in the order of the file. Groups are not divided.

    Training has the groups before the one in which the cumulative number of rows reaches the share ``train``.
    Validation starts with that group and ends before the group in which a further share ``val`` is reached.
    """
    numbers, sizes = np.unique(group, return_counts=True)
    cumulative = np.cumsum(sizes)
    first_val = int(np.argmax(cumulative >= int(train * group.size)))
    first_test = int(np.argmax(cumulative >= cumulative[first_val] + int(val * group.size)))
    position = np.searchsorted(numbers, group)
    in_train, in_test = position < first_val, position >= first_test
    return np.flatnonzero(in_train), np.flatnonzero(~in_train & ~in_test), np.flatnonzero(in_test)
