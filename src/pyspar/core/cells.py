"""Cells: the source as a few groups of rows that lie near each other, of each the moments alone.

Which part of a source looks like a target is a question about rows; a partition made when they were read answers it
later, without them. The cells are fixed by the first rows (k-means) and every later row joins the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.core.accumulate import folded
from pyspar.core.arrays import Matrix, Vector, root_sum_squares
from pyspar.core.blocks import row_slices
from pyspar.core.moments import Moments

MOST_CELLS = 32
FEWEST_CELLS = 6
ROWS_PER_CELL = 10
NUMBERS_KEPT = 8_000_000
"""Cells are at most so many that their roots stay within 64 MB, where the fewest allow it."""

LOOKED_AT = 2048
"""How many of the first rows the centres are found from."""

_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Cells:
    """Centres in units of the first rows' spread, and the moments of the rows nearest to each (None: no row yet).

    A row x belongs to the cell j with the largest ``x @ slopes[:, j] - offsets[j]``, which is the nearest centre.
    """

    slopes: Matrix
    offsets: Vector
    moments: tuple[Moments | None, ...]

    @classmethod
    def around(cls, rows: Matrix) -> Cells:
        """Choose the centres from a sample of rows."""
        n, d = rows.shape
        count = int(np.clip(NUMBERS_KEPT // d**2, FEWEST_CELLS, MOST_CELLS))
        count = int(np.clip(n // ROWS_PER_CELL, 1, count))
        middle = rows.mean(axis=0)
        spread = root_sum_squares(rows - middle) / np.sqrt(n)
        with np.errstate(divide="ignore"):
            unit = np.where(spread > 0.0, 1.0 / spread, 0.0)
        centres = _k_means((rows - middle) * unit, count)
        slopes = unit[:, None] * centres.T
        offsets = middle @ slopes + 0.5 * (centres**2).sum(axis=1)
        return cls(slopes, offsets, (None,) * count)

    def nearest(self, rows: Any) -> NDArray[np.intp]:
        """Return the cell of each row, of an array or a sparse matrix."""
        place = np.empty(rows.shape[0], dtype=np.intp)
        for some in row_slices(*rows.shape):
            place[some] = np.argmax(rows[some] @ self.slopes - self.offsets, axis=1)
        return place

    def plus(self, found: Sequence[Moments | None]) -> Cells:
        """Return the cells with the moments of more rows, cell by cell."""
        both = zip(self.moments, found, strict=True)
        return replace(self, moments=tuple(b if a is None else a if b is None else a + b for a, b in both))

    def occupied(self) -> tuple[Moments, ...]:
        """Return the moments of the cells that have rows."""
        return tuple(moments for moments in self.moments if moments is not None)


def together(parts: Sequence[Moments]) -> Moments:
    """Return the moments of all rows of several parts, by one QR of their roots about the common mean."""
    if len(parts) == 1:
        return parts[0]
    weight = sum(part.root[0, 0] ** 2 for part in parts)
    mean = np.asarray(sum(part.root[0, 1:] * (part.root[0, 0] / weight) for part in parts))
    stacked = np.vstack([part.root for part in parts])
    starts = np.cumsum([0, *(len(part.root) for part in parts[:-1])])
    stacked[starts, 1:] -= stacked[starts, :1] * mean
    root = folded(stacked[:0], stacked)
    root[0, 1:] += root[0, 0] * mean
    return replace(
        parts[0],
        root=root,
        rows=sum(part.rows for part in parts),
        weight=sum(part.weight for part in parts),
        eps=np.max([part.eps for part in parts], axis=0),
        blur=max(part.blur for part in parts),
    )


def _k_means(rows: Matrix, count: int) -> Matrix:
    """Return centres by a few rounds of Lloyd's algorithm from rows spread over the sample; nothing is random."""
    order = np.argsort(rows @ np.ones(rows.shape[1]), kind="stable")
    centres: Matrix = rows[order[((np.arange(count) + 0.5) / count * len(rows)).astype(int)]]
    for _ in range(_ROUNDS):
        near = np.argmax(rows @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)
        sizes = np.bincount(near, minlength=count)
        sums = (near == np.arange(count)[:, None]).astype(np.float64) @ rows
        moved = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres
