"""Cells: the source as a few groups of rows that lie near each other, of each the moments alone.

Which part of a source looks like a target is a question about rows; a partition made when they were read answers it
later, without them. The cells are fixed by the first rows (k-means) and every later row joins the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from pyspar.core.accumulate import folded, root_of_sum
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
        centred = rows - middle
        spread = root_sum_squares(centred) / np.sqrt(n)
        with np.errstate(divide="ignore"):
            unit = np.where(spread > 0.0, 1.0 / spread, 0.0)
        centred *= unit
        centres = _k_means(centred, count)
        slopes = unit[:, None] * centres.T
        offsets = middle @ slopes + 0.5 * (centres**2).sum(axis=1)
        return cls(slopes, offsets, (None,) * count)

    def nearest(self, rows: Any) -> NDArray[np.intp]:
        """Return the cell of each row, of an array or a sparse matrix."""
        place = np.empty(rows.shape[0], dtype=np.intp)
        for some in row_slices(*rows.shape):
            scores = rows[some] @ self.slopes
            scores -= self.offsets
            place[some] = np.argmax(scores, axis=1)
        return place

    def plus(self, found: Sequence[Moments | None]) -> Cells:
        """Return the cells with the moments of more rows, cell by cell."""
        both = zip(self.moments, found, strict=True)
        return replace(self, moments=tuple(b if a is None else a if b is None else a + b for a, b in both))

    def occupied(self) -> tuple[Moments, ...]:
        """Return the moments of the cells that have rows."""
        return tuple(moments for moments in self.moments if moments is not None)


def together(parts: Sequence[Moments]) -> Moments:
    """Return the moments of all rows of several parts, from their roots about the common mean."""
    if len(parts) == 1:
        return parts[0]
    head, between = _means_of(np.array([part.root[0] for part in parts]))
    body = np.vstack([between, *(part.root[1:, 1:] for part in parts)])
    return _summary(parts, head, body if len(body) <= body.shape[1] else folded(body[:0], body))


def both_sides(groups: Sequence[Sequence[Moments]]) -> list[tuple[Moments, Moments]]:
    """Return the moments of all parts before and after each border between successive groups.

    Products add up, so that every part is multiplied once; where a product would cost digits that the parts have, their
    roots are merged instead.
    """
    parts = [part for group in groups for part in group]
    first = [0, *accumulate(map(len, groups))]
    heads = np.array([part.root[0] for part in parts])
    within = [np.concatenate([part.root[1:, 1:] for part in group]) for group in groups]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = [rows.T @ rows for rows in within]
    merged: dict[int, Moments] = {}

    def side(start: int, stop: int) -> Moments:
        here = slice(first[start], first[stop])
        inside = parts[here]
        head, between = _means_of(heads[here])
        rows = [between, *within[start:stop]]
        if sum(map(len, rows)) > between.shape[1]:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                scatter = sum(products[start:stop], between.T @ between)
            body = root_of_sum(scatter, rows, blurred=any(part.blur > 0.0 for part in inside))
            if body is not None:
                return _summary(inside, head, body)
        for place in range(start, stop):
            if place not in merged:
                merged[place] = together(groups[place])
        return together([merged[place] for place in range(start, stop)])

    return [(side(0, border), side(border, len(groups))) for border in range(1, len(groups))]


def _means_of(heads: Matrix) -> tuple[Vector, Matrix]:
    """Return the first row of the common root of parts, given theirs, and a root of the scatter of their means."""
    length = np.sqrt(heads[:, 0] @ heads[:, 0])
    ones = heads[:, 0] / length
    head = ones @ heads
    between = heads[:, 1:] - ones[:, None] * head[1:]
    # One of these rows is a combination of the others; the reflection that turns the ones into (-1, 0, ...) drops it.
    return head, between[1:] - (ones[1:, None] / (1.0 + ones[0])) * between[0]


def _summary(parts: Sequence[Moments], head: Vector, body: Matrix) -> Moments:
    """Return the moments of all parts, given the first row of their root and what is below."""
    root = np.zeros((1 + len(body), len(head)))
    root[0], root[1:, 1:] = head, body
    first = parts[0].eps
    return replace(
        parts[0],
        root=root,
        rows=sum(part.rows for part in parts),
        weight=sum(part.weight for part in parts),
        eps=first if all(part.eps is first for part in parts) else np.max([part.eps for part in parts], axis=0),
        blur=max(part.blur for part in parts),
    )


def _k_means(rows: Matrix, count: int) -> Matrix:
    """Return centres by a few rounds of Lloyd's algorithm from rows spread over the sample; nothing is random.

    Soon few rows change sides: only their share of the sums, and what belongs to centres that moved, is computed anew.
    """
    order = np.argsort(rows @ np.ones(rows.shape[1]), kind="stable")
    centres: Matrix = rows[order[((np.arange(count) + 0.5) / count * len(rows)).astype(int)]]
    cells, moved, before = np.arange(count)[:, None], np.arange(count), np.full(len(rows), -1)
    sums, sizes, scores = np.zeros_like(centres), np.zeros(count), np.empty((len(rows), count))
    for _ in range(_ROUNDS):
        if 2 * len(moved) > count:
            np.matmul(rows, centres.T, out=scores)
            scores -= 0.5 * (centres**2).sum(axis=1)
        else:
            scores[:, moved] = rows @ centres[moved].T - 0.5 * (centres[moved] ** 2).sum(axis=1)
        near = scores.argmax(axis=1)
        changed = np.flatnonzero(near != before)
        if not len(changed):
            break
        if before[0] < 0:
            change = csc_array((np.ones(len(rows)), near, np.arange(len(rows) + 1)), shape=(count, len(rows)))
            sums, sizes = change @ rows, np.bincount(near, minlength=count).astype(np.float64)
            moved = np.flatnonzero(sizes)
        else:
            change = (near[changed] == cells).astype(np.float64)
            change -= before[changed] == cells
            sums += change @ rows[changed]
            sizes += change.sum(axis=1)
            moved = np.flatnonzero(change.any(axis=1) & (sizes > 0.0))
        centres[moved] = sums[moved] / sizes[moved, None]
        before = near
    return centres
