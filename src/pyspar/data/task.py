"""ShiftTask: a data set cut by a natural rule into the world one learns in and the world one is judged in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Matrix, Vector


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with their labels and the group each belongs to."""

    X: Matrix
    y: Vector
    group: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.y.size)


@dataclass(frozen=True, eq=False)
class ShiftTask:
    """A source, a validation part between the two worlds, and a target; features may hold NaN."""

    name: str
    train: Part
    val: Part
    test: Part
    feature_names: tuple[str, ...]
    group_kind: str
    source: str
    licence: str
