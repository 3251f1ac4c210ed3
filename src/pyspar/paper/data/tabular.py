"""Tables cut by their groups: preprocessing and split of Yao et al. (2022), which the paper uses.

Missing values become the column's mean and columns are scaled to [0, 1], both over all rows; labels stay as they are.
Groups are taken whole and in the order of their numbers: the first to training, the next to validation, the last to the
test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Matrix, Vector
from pyspar.paper.data.task import Part

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a data set, in the order of its file."""

    X: Matrix
    y: Vector
    group: NDArray[np.int64]

    def part(self, rows: Rows) -> Part:
        """Return some of the rows."""
        return Part(self.X[rows], self.y[rows], self.group[rows])


def filled_and_scaled(X: Matrix) -> Matrix:
    """Replace NaN by the column's mean, then scale each column to [0, 1]; a constant column becomes 0."""
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray((X - low) / np.where(high > low, high - low, 1.0))


def cut_by_groups(group: NDArray[np.int64], *, train: float = 0.7, val: float = 0.1) -> tuple[Rows, Rows, Rows]:
    """Return the rows of training, validation and test, in the order of the file; no group is cut in two.

    Training takes the groups before the one with which the rows counted so far reach the share ``train``. Validation
    starts with that one, and ends before the group with which a further share ``val`` of the rows is reached.

    >>> [rows.tolist() for rows in cut_by_groups(np.array([1, 1, 1, 2, 2, 2, 3, 4, 4, 4]))]
    [[0, 1, 2, 3, 4, 5], [6], [7, 8, 9]]
    """
    numbers, sizes = np.unique(group, return_counts=True)
    reached = np.cumsum(sizes)
    first_val = int(np.argmax(reached >= int(train * group.size)))
    first_test = int(np.argmax(reached >= reached[first_val] + int(val * group.size)))
    place = np.searchsorted(numbers, group)
    in_train, in_test = place < first_val, place >= first_test
    return np.flatnonzero(in_train), np.flatnonzero(~in_train & ~in_test), np.flatnonzero(in_test)
