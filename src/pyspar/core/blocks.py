"""Walk rows in blocks that stay in the cache, as columns ``[1 | X | Y]`` in float64.

The rows are read once and never copied as a whole: lifting float32 to float64, weighting and shifting all happen in
one small buffer that the matrix product reads next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Rows, Vector

# Large enough for the matrix product to reach its speed, small enough for a core's cache (measured: 1 to 16 MB differ
# by less than the noise up to 512 columns, above that the D x D result must not be revisited too often).
BLOCK_BYTES = 4_000_000


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


def row_slices(n_rows: int, n_columns: int, *, at_least: int = 1) -> Iterator[slice]:
    """Cut the rows into runs of about ``BLOCK_BYTES``, and of at least as many rows as there are columns."""
    step = max(BLOCK_BYTES // (8 * max(n_columns, 1)), n_columns, at_least)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def augmented_blocks(table: Table, shift: Vector, scale: Vector | None = None) -> Iterator[Matrix]:
    """Yield ``sqrt(weight) * [1 | ([X | Y] - shift) * scale]`` block by block, in a buffer that is used again."""
    d, p = table.X.shape[1], table.n_columns
    buffer: Matrix | None = None
    for rows in row_slices(table.n_rows, p + 1):
        if buffer is None:
            buffer = np.empty((rows.stop - rows.start, p + 1))
        block = buffer[: rows.stop - rows.start]
        block[:, 0] = 1.0
        np.subtract(table.X[rows], shift[:d], out=block[:, 1 : d + 1])
        np.subtract(table.Y[rows], shift[d:], out=block[:, d + 1 :])
        if scale is not None:
            block[:, 1:] *= scale
        if table.sqrt_weight is not None:
            block *= table.sqrt_weight[rows, None]
        yield block


def typical_row(table: Table) -> Vector:
    """Return the mean of the first block: a shift that takes most of a common offset out of the products.

    Products of raw values lose (mean / spread)**2 in accuracy; after the shift that ratio is near one.
    """
    for rows in row_slices(table.n_rows, table.n_columns):
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.concatenate(
                [table.X[rows].mean(axis=0, dtype=np.float64), table.Y[rows].mean(axis=0, dtype=np.float64)]
            )
        return np.where(np.isfinite(mean), mean, 0.0)
    return np.zeros(table.n_columns)


def column_sizes(table: Table, shift: Vector) -> Vector:
    """Return the largest magnitude in each shifted column of ``[X | Y]``."""
    sizes = np.zeros(table.n_columns)
    for block in augmented_blocks(Table(table.X, table.Y), shift):
        np.maximum(sizes, np.abs(block[:, 1:]).max(axis=0), out=sizes)
    return sizes
