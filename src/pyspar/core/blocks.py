"""Walk rows in blocks that stay in the cache, as columns ``[1 | X | Y]`` in float64.

The rows are read once and never copied as a whole. Where they are float64 and need no shift, scale or weight, the
matrix product reads them in place; otherwise lifting, shifting and weighting happen in one small buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Rows, Vector

# What is copied into a buffer should still be in the cache when it is multiplied. What is read in place need not be,
# and larger blocks revisit the D x D sum less often (32 MB was 12 per cent faster than 4 MB at 512 features).
BLOCK_BYTES = 4_000_000
IN_PLACE_BYTES = 32_000_000

OFFSET_LIMIT = 8.0
"""Products of raw values lose (mean / spread)**2 in accuracy; up to this ratio that is less than two digits."""


@dataclass(frozen=True)
class Table:
    """Rows of X beside rows of Y, with the square roots of their weights (None: all one)."""

    X: Rows
    Y: Rows
    sqrt_weight: Vector | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.X.shape[1] + self.Y.shape[1])


@dataclass(frozen=True)
class Frame:
    """The coordinates in which rows are multiplied: ``([X | Y] - shift) * scale``."""

    shift: Vector
    scale: Vector

    @property
    def plain(self) -> bool:
        """Whether the features are taken as they are; only then can they be read in place."""
        return not self.shift.any() and bool((self.scale == 1.0).all())

    def part(self, columns: slice) -> Frame:
        return Frame(self.shift[columns], self.scale[columns])


def row_slices(n_rows: int, n_columns: int, n_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Cut the rows into runs of about so many bytes, and of at least as many rows as there are columns."""
    step = max(n_bytes // (8 * max(n_columns, 1)), n_columns, 1)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def blocks(table: Table, frame: Frame) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield ``[1 | Y]`` and ``X`` block by block, in the frame's coordinates and times the root of the weights.

    Both may lie in buffers that the next block overwrites.
    """
    d = table.X.shape[1]
    x_frame, y_frame = frame.part(slice(0, d)), frame.part(slice(d, None))
    in_place = table.X.dtype == np.float64 and table.sqrt_weight is None and x_frame.plain
    # The buffer has the rows' own memory order: turning columns into rows would cost more than multiplying them.
    by_columns = table.X.strides[0] < table.X.strides[1]
    buffer = np.empty((0, d))
    for rows in row_slices(table.n_rows, table.n_columns + 1, IN_PLACE_BYTES if in_place else BLOCK_BYTES):
        n = rows.stop - rows.start
        side = np.empty((n, 1 + table.Y.shape[1]))
        side[:, 0] = 1.0
        np.subtract(table.Y[rows], y_frame.shift, out=side[:, 1:])
        side[:, 1:] *= y_frame.scale
        if in_place:
            yield side, np.asarray(table.X[rows], dtype=np.float64)  # float64 already: no copy
            continue
        if len(buffer) < n:
            buffer = np.empty((d, n)).T if by_columns else np.empty((n, d))
        X = buffer[:n]
        np.copyto(X, table.X[rows])  # lifting and subtracting in one step would be three times slower
        if x_frame.shift.any():
            X -= x_frame.shift
        if not (x_frame.scale == 1.0).all():
            X *= x_frame.scale
        if table.sqrt_weight is not None:
            X *= table.sqrt_weight[rows, None]
            side *= table.sqrt_weight[rows, None]
        yield side, X


def augmented_blocks(table: Table, frame: Frame) -> Iterator[Matrix]:
    """Yield the same as whole blocks ``[1 | X | Y]``."""
    for side, X in blocks(table, frame):
        yield np.column_stack([side[:, :1], X, side[:, 1:]])


def typical_frame(table: Table, look_at: int = 1000) -> Frame:
    """Return a frame that takes a large common offset out of the columns, and leaves them alone where there is none.

    Only the first rows are looked at; whether they were typical shows in the product.
    """
    head = np.column_stack([table.X[:look_at], table.Y[:look_at]]).astype(np.float64, copy=False)
    weight = None if table.sqrt_weight is None else table.sqrt_weight[:look_at] ** 2
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.average(head, axis=0, weights=weight)
        spread = np.sqrt(np.average((head - mean) ** 2, axis=0, weights=weight))
    offset = np.abs(mean) > OFFSET_LIMIT * spread
    offset[table.X.shape[1] :] = True  # the outputs are copied in any case
    return Frame(np.where(offset & np.isfinite(mean), mean, 0.0), np.ones(table.n_columns))


def column_sizes(table: Table, frame: Frame) -> Vector:
    """Return the largest magnitude in each column of ``[X | Y]``, in the frame's coordinates."""
    sizes = np.zeros(table.n_columns)
    for block in augmented_blocks(Table(table.X, table.Y), frame):
        np.maximum(sizes, np.abs(block[:, 1:]).max(axis=0), out=sizes)
    return sizes
