"""The kernels: a root R with ``R'R = A'A`` for ``A = [1 | X | Y]``, whatever the number of rows.

Two ways to obtain it. ``qr_root`` folds blocks through Householder QR: right to the last digit at every condition
number, ten times the price of one matrix product. ``gram_root`` multiplies once and factors the product, which
squares the condition number; where that costs digits it multiplies a second (at most a third) time after
preconditioning by what the first pass learnt, and QR's accuracy is back at a third of QR's price. Where even that is
not enough, it ends in QR.

Every root has the form ``[[r, r * mean], [0, C]]``: the first row carries the weight and the means, C is a root of
the scatter about the mean. So centring is dropping the first row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from scipy.linalg import lapack

from pyspar.core.arrays import EPS64, SAFE_SQUARES, Matrix, Vector, power_of_two
from pyspar.core.blocks import Frame, Table, augmented_blocks, blocks, column_sizes, typical_frame

GRAM_SPREAD = 1e-3
"""Smallest over largest singular value (columns at unit length) down to which one product keeps eleven digits."""

BLUR = 1e-6
"""A direction shorter than this share of the rows is not seen by one product: squares have half the digits."""

_FLOOR = 1e-7
"""Below this share a singular value is lost in the product's rounding; preconditioning stops amplifying there."""


def qr_root(table: Table) -> Matrix:
    """Fold the rows through blocked QR; exact to rounding at every condition number, each row read once."""
    frame = typical_frame(table)
    root = np.zeros((0, table.n_columns + 1))
    for block in augmented_blocks(table, frame):
        root = folded(root, block)
    root[0, 1:] += root[0, 0] * frame.shift
    return root


def gram_root(table: Table, *, refine: bool) -> Matrix:
    """Multiply the rows once; with ``refine`` as often again as the accuracy of QR asks for (at most twice)."""
    product, frame = _safe_product(table)
    if not np.isfinite(product).all():
        return np.full((1, table.n_columns + 1), np.nan)
    root, resolved = root_of_product(product, frame)
    if refine and not resolved:
        mean = root[0, 1:] / root[0, 0]
        factor = refined(partial(_flat_blocks, table, Frame(mean, frame.scale)), scatter_of(product)[1])
        if factor is None:
            return qr_root(table)
        root[1:, 1:] = factor / frame.scale
    return root


def root_of_product(product: Matrix, frame: Frame) -> tuple[Matrix, bool]:
    """Return a root from ``A'A`` with ``A = [1 | ([X | Y] - shift) * scale]``, and whether it kept its digits."""
    middle, scatter = scatter_of(product)
    factor, conditioned = _root_of_scatter(scatter)
    # A column whose mean exceeds its spread a hundredfold has lost four digits when the mean was taken out.
    centred = bool((product[0, 0] * middle**2 <= 1e4 * np.diag(scatter)).all())
    mean = frame.shift + middle / frame.scale
    root = np.zeros((factor.shape[0] + 1, product.shape[1]))
    with np.errstate(over="ignore"):  # values near the limit of float64 end as infinity, which the caller refuses
        root[0] = np.sqrt(product[0, 0]) * np.concatenate([[1.0], mean])
        root[1:, 1:] = factor / frame.scale
    return root, conditioned and centred


def conditioned(square: Matrix, spread: float) -> bool:
    """Tell whether the smallest singular value behind a product is surely at least such a share of the largest."""
    with np.errstate(under="ignore"):
        return bool(_cholesky(square)[1] >= spread**2)


def folded(root: Matrix, block: Matrix) -> Matrix:
    """Return the triangular root of the rows behind a root and of more rows ``[1 | X | Y]``."""
    triangle: Matrix = np.linalg.qr(np.vstack([root, block]), mode="r")  # type: ignore[assignment]  # stubs miss "r"
    return triangle


def merged_root(one: Matrix, two: Matrix) -> Matrix:
    """Return the root of all the rows behind two roots, merged about their mean so that no offset costs digits."""
    weights = one[0, 0] ** 2 + two[0, 0] ** 2
    middle = one[0, 1:] * (one[0, 0] / weights) + two[0, 1:] * (two[0, 0] / weights)
    one, two = one.copy(), two.copy()
    for root in (one, two):
        root[0, 1:] -= root[0, 0] * middle
    merged = folded(one, two)
    merged[0, 1:] += merged[0, 0] * middle
    return merged


def _safe_product(table: Table) -> tuple[Matrix, Frame]:
    """Return the product and the frame it was made in; columns are scaled only where squares would overflow."""
    frame = typical_frame(table)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = _product(table, frame)
    squares = np.diag(product)[1:]
    low, high = SAFE_SQUARES
    if ((squares > low) & (squares < high)).all():
        return product, frame
    # Only now is a second look at the rows worth its price: a zero on the diagonal may be a constant column or an
    # underflow, an infinite one may be an overflow or an infinity of the caller's.
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = column_sizes(table, frame)
    scaled = Frame(frame.shift, np.array([1.0 / power_of_two(size) for size in sizes]))
    if not np.isfinite(sizes).all() or (scaled.scale == 1.0).all():
        return product, frame
    with np.errstate(under="ignore"):
        return _product(table, scaled), scaled


def _product(table: Table, frame: Frame) -> Matrix:
    """Return ``A'A`` for ``A = [1 | X | Y]`` in a frame: the features' share by one large product per block."""
    d, k = table.X.shape[1], table.Y.shape[1]
    XX, sX, ss = np.zeros((d, d)), np.zeros((1 + k, d)), np.zeros((1 + k, 1 + k))
    scratch = np.empty((d, d))
    for side, X in blocks(table, frame):
        XX += np.matmul(X.T, X, out=scratch)
        sX += side.T @ X
        ss += side.T @ side
    return np.block([[ss[:1, :1], sX[:1], ss[:1, 1:]], [sX[:1].T, XX, sX[1:].T], [ss[1:, :1], sX[1:], ss[1:, 1:]]])


def scatter_of(product: Matrix) -> tuple[Vector, Matrix]:
    """Return the mean and the scatter about it, both in the frame of the product."""
    offset = product[0, 1:]
    middle = offset / product[0, 0]
    return middle, product[1:, 1:] - np.outer(offset, middle)


def _root_of_scatter(scatter: Matrix) -> tuple[Matrix, bool]:
    """Return a root of the scatter and whether it is accurate in every direction."""
    lengths, unit = _equilibrated(scatter)
    factor, condition = _cholesky(unit)
    if factor is None or condition == 0.0:
        lam, V = _eigen(unit)
        factor = lam[:, None] * V.T
        factor[:, np.diag(scatter) == 0.0] = 0.0  # eigenvectors carry rounding; a column of zeros must stay one
    return factor * lengths, bool(condition >= GRAM_SPREAD**2)


def _cholesky(unit: Matrix) -> tuple[Matrix | None, float]:
    """Return the triangular factor and the condition of the square; None and zero where it is singular."""
    try:
        factor: Matrix = np.asarray(np.linalg.cholesky(unit).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        return None, 0.0
    return factor, float(lapack.dpocon(factor, np.abs(unit).sum(axis=0).max(initial=0.0))[0])


def refined(read: Callable[[Matrix], Iterable[tuple[Vector, Matrix]]], scatter: Matrix) -> Matrix | None:
    """Multiply again in coordinates where the known part of the spectrum is flat; None where only QR will do.

    ``read(P)`` reads the rows once more: the roots of their weights, and the weighted rows ``[X | Y] - mean`` times P.
    With ``A = (A P) P^-1`` and ``P = V / max(lambda, floor)``, the product of ``A P`` is well conditioned down to the
    floor, so the second pass is as good as QR over ten decades. Null directions take a third, and end as what they are:
    rounding noise of the rows. A direction that is real and smaller still is measured better by QR.
    """
    # The columns are brought to unit length once. Doing so again would blow up what the first pass left of a null
    # direction, which is rounding, and rounding comes out differently in each pass.
    empty = np.diag(scatter) == 0.0
    lengths, scatter = _equilibrated(scatter)
    into, back = np.diag(1.0 / lengths), np.diag(lengths)
    for _ in range(2):
        lam, V = _eigen(scatter)
        lam = np.maximum(lam, _FLOOR * lam.max(initial=0.0))
        into, back = into @ (V / lam), (lam[:, None] * V.T) @ back
        scatter, offset, weight = np.zeros_like(scatter), np.zeros(len(scatter)), np.zeros(())
        for ones, flat in read(into):
            scatter += flat.T @ flat
            offset += ones @ flat
            weight += ones @ ones
        # The mean of the first pass is rounded; over many rows even that would become a direction.
        scatter -= np.outer(offset, offset) / weight
        root, resolved = _root_of_scatter(scatter)
        if resolved:
            break
        left, _ = _eigen(scatter)
        if ((left > _FLOOR * left.max()) & (left < GRAM_SPREAD * left.max())).any():
            return None
    root = root @ back
    root[:, empty] = 0.0
    return root


def _flat_blocks(table: Table, frame: Frame, into: Matrix) -> Iterator[tuple[Vector, Matrix]]:
    for block in augmented_blocks(table, frame):
        yield block[:, 0], block[:, 1:] @ into


def _equilibrated(scatter: Matrix) -> tuple[Vector, Matrix]:
    lengths = np.sqrt(np.maximum(np.diag(scatter), 0.0))
    empty = lengths == 0.0
    lengths[empty] = 1.0
    unit = scatter / lengths[:, None] / lengths
    # A column of no length overlaps with nothing; what is there is rounding, of any size where the column was huge.
    unit[empty] = 0.0
    unit[:, empty] = 0.0
    return lengths, unit


def _eigen(scatter: Matrix) -> tuple[Vector, Matrix]:
    squares, V = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(squares, EPS64**2)), V
