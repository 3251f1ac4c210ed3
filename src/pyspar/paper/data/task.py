"""ShiftTask: a data set cut by a natural rule into the world one learns in and the world one is judged in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Vector

Metric = Literal["rmse", "r"]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with their labels and the group each belongs to.

    ``X`` is an array, rows first (a table's columns or an image's channels, height and width after them), or anything
    with ``shape``, ``len`` and ``X[array of row numbers]``, for images that do not fit into memory.
    """

    X: Any
    y: Vector
    group: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.y.size)


@dataclass(frozen=True, eq=False)
class ShiftTask:
    """A source, a validation part, and a target; a table's features may hold NaN.

    Attributes
    ----------
    unlabeled : rows like ``test.X``, optional
        More inputs of the target's world, none of them in ``test``.
    metric : {"rmse", "r"}
        How the task is judged: root mean squared error, or Pearson's correlation.
    recreation : str
        What differs from the data set of the paper; empty where nothing does.
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
        """The unlabelled rows that a method may adapt to: the unlabelled pool, or else the test inputs."""
        return self.test.X if self.unlabeled is None else self.unlabeled
