"""A data set with a natural shift: training, validation and test parts with labels and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyspar.core.moments import Matrix, Vector

Metric = Literal["rmse", "r"]
RowIndices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with their labels and groups. ``X`` is an array whose first axis is the row, or an object with ``shape``,
    ``len`` and ``X[array of row indices]`` for images that do not fit into memory. The other axes are columns, or
    channels, height and width.
    """

    X: Any
    y: Vector
    group: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.y.size)


@dataclass(frozen=True, eq=False)
class ShiftTask:
    """A training, a validation and a test part. The features of tables may contain NaN. ``unlabeled`` are more inputs
    from the target, which are not in ``test``. ``recreation`` describes the differences from the paper's data set, if
    there are any.
    """

    name: str
    train: Part
    val: Part
    test: Part
    group_kind: str
    source: str
    licence: str
    feature_names: tuple[str, ...] = ()
    unlabeled: Any = None
    metric: Metric = "rmse"
    recreation: str = ""

    @property
    def target_inputs(self) -> Any:
        """The rows that a method may adapt to: the unlabelled pool if there is one, else the test inputs."""
        return self.test.X if self.unlabeled is None else self.unlabeled


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
    """Return the rows of training, validation and test, in the order of the file. Groups are not divided. Training has
    the groups before the one in which the cumulative number of rows reaches the share ``train``. Validation starts with
    that group and ends before the group in which a further share ``val`` is reached.
    """
    numbers, sizes = np.unique(group, return_counts=True)
    cumulative = np.cumsum(sizes)
    first_val = int(np.argmax(cumulative >= int(train * group.size)))
    first_test = int(np.argmax(cumulative >= cumulative[first_val] + int(val * group.size)))
    position = np.searchsorted(numbers, group)
    in_train, in_test = position < first_val, position >= first_test
    return np.flatnonzero(in_train), np.flatnonzero(~in_train & ~in_test), np.flatnonzero(in_test)
