"""A data set with a natural shift: training, validation and test parts with labels and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyspar.core.moments import Vector

Metric = Literal["rmse", "r"]
RowIndices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with their labels and groups.

    ``X`` is an array whose first axis is the row, or an object with ``shape``, ``len`` and ``X[array of row indices]``
    for images that do not fit into memory. The other axes are columns, or channels, height and width.
    """

    X: Any
    y: Vector
    group: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.y.size)


@dataclass(frozen=True, eq=False)
class ShiftTask:
    """A training, a validation and a test part. The features of tables may contain NaN.

    Attributes
    ----------
    unlabeled : rows like ``test.X``, optional
        More inputs from the target, which are not in ``test``.
    metric : {"rmse", "r"}
        The metric of the task: root mean squared error, or Pearson's correlation.
    recreation : str
        The differences from the paper's data set. Empty if there are none.
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
