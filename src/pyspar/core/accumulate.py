"""The kernels: a root R with ``R'R = A'A`` for ``A = [1 | X | Y]``, whatever the number of rows.

Two ways to obtain it. ``qr_root`` folds blocks through Householder QR: right to the last digit at every condition
number, ten times the price of one matrix product. ``gram_root`` multiplies once and factors the product, which
squares the condition number; where that costs digits it multiplies a second (at most a third) time after
preconditioning by what the first pass learnt, and QR's accuracy is back at a third of QR's price.

Every root has the form ``[[r, r * mean], [0, C]]``: the first row carries the weight and the means, C is a root of
the scatter about the mean. So centring is dropping the first row.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.linalg import lapack

from pyspar.core.arrays import EPS64, Matrix, Vector, power_of_two
from pyspar.core.blocks import Table, augmented_blocks, column_sizes, typical_row

GRAM_SPREAD = 1e-3
"""Smallest over largest singular value (columns at unit length) down to which one product keeps eleven digits."""

_FLOOR = 1e-7
"""Below this share a singular value is lost in the product's rounding; preconditioning stops amplifying there."""

_SAFE_SQUARES = (1e-200, 1e200)


def qr_root(table: Table) -> Matrix:
    """Fold the rows through blocked QR; exact to rounding at every condition number, each row read once."""
    root = np.zeros((0, table.n_columns + 1))
    for block in augmented_blocks(table, np.zeros(table.n_columns)):
        root = merged_root([root, block])
    return root


def gram_root(table: Table, *, refine: bool) -> Matrix:
    """Multiply the rows once; with ``refine`` as often again as the accuracy of QR asks for (at most twice)."""
    shift = typical_row(table)
    gram, scale = _safe_gram(table, shift)
    weight, offset = gram[0, 0], gram[0, 1:]
    if not np.isfinite(gram).all():
        return np.full((1, table.n_columns + 1), np.nan)
    middle = offset / weight
    scatter = gram[1:, 1:] - np.outer(offset, middle)
    root, resolved = _root_of_scatter(scatter)
    mean = shift + middle / scale
    if refine and not resolved:
        root = _refined(table, mean, scale, scatter)
    head = np.sqrt(weight) * np.concatenate([[1.0], mean])
    return np.vstack([head, np.column_stack([np.zeros(root.shape[0]), root / scale])])


def merged_root(roots: list[Matrix]) -> Matrix:
    """Return the root of all the rows behind several roots."""
    root: Matrix = np.linalg.qr(np.vstack(roots), mode="r")  # type: ignore[assignment]  # the stubs miss mode="r"
    return root


def _safe_gram(table: Table, shift: Vector) -> tuple[Matrix, Vector]:
    """Return the product and the power-of-two column scales it was made with: all one unless squares would overflow."""
    scale = np.ones(table.n_columns)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        gram = _gram(augmented_blocks(table, shift), table.n_columns + 1)
    squares = np.diag(gram)[1:]
    low, high = _SAFE_SQUARES
    if ((squares > low) & (squares < high)).all():
        return gram, scale
    # Only now is a second look at the rows worth its price: a zero on the diagonal may be a constant column or an
    # underflow, an infinite one may be an overflow or an infinity of the caller's.
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = column_sizes(table, shift)
    scale = np.array([1.0 / power_of_two(size) for size in sizes])
    if not np.isfinite(sizes).all() or (scale == 1.0).all():
        return gram, np.ones(table.n_columns)
    with np.errstate(under="ignore"):
        return _gram(augmented_blocks(table, shift, scale), table.n_columns + 1), scale


def _gram(blocks: Iterable[Matrix], size: int) -> Matrix:
    total = np.zeros((size, size))
    product = np.empty((size, size))
    for block in blocks:
        total += np.matmul(block.T, block, out=product)
    return total


def _root_of_scatter(scatter: Matrix) -> tuple[Matrix, bool]:
    """Return a root of the scatter and whether it is accurate in every direction."""
    lengths, unit = _equilibrated(scatter)
    try:
        factor = np.linalg.cholesky(unit).T
    except np.linalg.LinAlgError:
        lam, V = _eigen(unit)
        return (lam[:, None] * V.T) * lengths, False
    condition, _ = lapack.dpocon(factor, np.abs(unit).sum(axis=0).max())
    return factor * lengths, bool(condition >= GRAM_SPREAD**2)


def _refined(table: Table, mean: Vector, scale: Vector, scatter: Matrix) -> Matrix:
    """Multiply again in coordinates where the known part of the spectrum is flat.

    With ``A = (A P) P^-1`` and ``P = V / max(lambda, floor)``, the product of ``A P`` is well conditioned up to the
    floor, so each pass uncovers seven more decades. Null directions end as what they are: rounding noise of the rows.
    """
    into = np.eye(scatter.shape[0])
    back = np.eye(scatter.shape[0])
    for _ in range(2):
        lengths, unit = _equilibrated(scatter)
        lam, V = _eigen(unit)
        lam = np.maximum(lam, _FLOOR * lam.max(initial=0.0))
        lam[lam == 0.0] = 1.0
        into = into @ (V / lengths[:, None] / lam)
        back = ((lam[:, None] * V.T) * lengths) @ back
        scatter = _gram((block[:, 1:] @ into for block in augmented_blocks(table, mean, scale)), into.shape[1])
        root, resolved = _root_of_scatter(scatter)
        if resolved:
            break
    return root @ back


def _equilibrated(scatter: Matrix) -> tuple[Vector, Matrix]:
    lengths = np.sqrt(np.maximum(np.diag(scatter), 0.0))
    lengths[lengths == 0.0] = 1.0
    unit = scatter / lengths[:, None] / lengths
    return lengths, unit


def _eigen(scatter: Matrix) -> tuple[Vector, Matrix]:
    squares, V = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(squares, EPS64**2)), V
