"""Roots: accumulate any number of rows into R with ``R'R = A'A`` for ``A = [1 | X | Y]``.

``qr_root`` folds blocks of rows through Householder QR, which is accurate at every condition number and costs ten
matrix products. ``gram_root`` factors one product, which squares the condition number. If this loses digits, a second
and at most a third product of preconditioned rows restore the accuracy of QR at a third of its cost.

Every root has the form ``[[r, r * mean], [0, C]]`` with C a root of the scatter about the mean, so centring means
dropping the first row. No more rows than columns are a root already, apart from this form.

Rows are read in blocks that fit in the cache. Blocks of float64 without shift or weight are multiplied in place,
others are converted in a small buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from pyspar.core.arrays import EPS64, Matrix, Rows, Vector

# A copied block should still be in the cache when it is multiplied. A block that is read in place need not be, and
# larger blocks update the D x D sum less often (32 MB was 12 per cent faster than 4 MB for 512 features).
BLOCK_BYTES = 4_000_000
CACHE_BYTES = 1_000_000
IN_PLACE_BYTES = 32_000_000

OFFSET_LIMIT = 8.0
"""Products of raw values lose (mean / spread)**2 in accuracy; up to this ratio that is less than two digits."""

GRAM_SPREAD = 1e-3
"""The ratio of the smallest to the largest singular value, for columns of unit length, down to which one product keeps
eleven digits."""

GRAM_BLUR = 1e-6
"""The relative length below which one Gram product cannot resolve a direction, because squaring halves the digits."""

_FLOOR_SHARE = 1e-7
"""A singular value below this share is lost in the product's rounding, so preconditioning does not amplify it."""


def root_sum_squares(columns: Matrix) -> Vector:
    """Return the norm of each column.

    >>> root_sum_squares(np.array([[3.0], [4.0]]))
    array([5.])
    """
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))


@dataclass(frozen=True)
class WeightedRows:
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


def row_slices(n_rows: int, n_columns: int, n_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of about ``n_bytes`` each, with at least as many rows as columns."""
    return _slices(n_rows, max(n_bytes // (8 * max(n_columns, 1)), n_columns, 1))


def cut_rows(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices that fit into the cache, of any number of rows."""
    return _slices(n_rows, max(CACHE_BYTES // (8 * max(n_columns, 1)), 1))


def _column_slices(n_columns: int, n_rows: int) -> Iterator[slice]:
    """Yield slices of columns whose copy is about ``BLOCK_BYTES``."""
    return _slices(n_columns, max(BLOCK_BYTES // (8 * max(n_rows, 1)), 1))


def _slices(n: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _blocks(data: WeightedRows, shift: Vector) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield ``[1 | Y]`` and ``X`` block by block, minus the shift and times the root of the weights.

    Both may be buffers that the next block overwrites.
    """
    d = data.X.shape[1]
    is_shifted = shift[:d].any()
    in_place = data.X.dtype == np.float64 and data.sqrt_weight is None and not is_shifted
    # The buffer has the memory order of the rows: transposing them would cost more than multiplying them.
    by_columns = data.X.strides[0] < data.X.strides[1]
    buffer = np.empty((0, d))
    for rows in row_slices(data.n_rows, data.n_columns + 1, IN_PLACE_BYTES if in_place else BLOCK_BYTES):
        n = rows.stop - rows.start
        side = np.empty((n, 1 + data.Y.shape[1]))
        side[:, 0] = 1.0
        np.subtract(data.Y[rows], shift[d:], out=side[:, 1:])
        if in_place:
            yield side, np.asarray(data.X[rows], dtype=np.float64)  # float64 already: no copy
            continue
        if len(buffer) < n:
            buffer = np.empty((d, n)).T if by_columns else np.empty((n, d))
        X = buffer[:n]
        np.copyto(X, data.X[rows])  # converting and subtracting in one step would be three times slower
        if is_shifted:
            X -= shift[:d]
        if data.sqrt_weight is not None:
            X *= data.sqrt_weight[rows, None]
            side *= data.sqrt_weight[rows, None]
        yield side, X


def _augmented_blocks(data: WeightedRows, shift: Vector) -> Iterator[Matrix]:
    """Yield the blocks ``[1 | X | Y]``, minus the shift and times the root of the weights."""
    for side, X in _blocks(data, shift):
        yield np.column_stack([side[:, :1], X, side[:, 1:]])


def _typical_shift(data: WeightedRows) -> Vector:
    """Return the means of the first 1000 rows for columns with a large common offset, and zero for others.

    If these rows are not typical, the product loses digits, which its condition number shows.
    """
    weight = None if data.sqrt_weight is None else data.sqrt_weight[:1000] ** 2
    d, mean, spread = data.X.shape[1], np.empty(data.n_columns), np.zeros(data.n_columns)
    with np.errstate(over="ignore", invalid="ignore"):
        if data.Y.shape[1]:
            mean[d:] = np.average(data.Y[:1000], axis=0, weights=weight)  # always shifted: outputs are copied anyway
        for columns in _column_slices(d, min(data.n_rows, 1000)):
            head = data.X[:1000, columns].astype(np.float64, copy=False)
            mean[columns] = np.average(head, axis=0, weights=weight)
            spread[columns] = np.sqrt(np.average((head - mean[columns]) ** 2, axis=0, weights=weight))
    return np.where(np.isfinite(mean) & (np.abs(mean) > OFFSET_LIMIT * spread), mean, 0.0)


def qr_root(data: WeightedRows) -> Matrix:
    """Return a root by blocked QR, exact to rounding at every condition number; each row is read once."""
    shift = _typical_shift(data)
    root = np.zeros((0, data.n_columns + 1))
    for block in _augmented_blocks(data, shift):
        root = fold_block(root, block)
    root[0, 1:] += root[0, 0] * shift
    return root


def gram_root(data: WeightedRows, *, refine: bool) -> Matrix:
    """Return a root from one product, and with ``refine`` from up to two more until it is as accurate as QR.

    QR is used if two more products are not sufficient.
    """
    shift = _typical_shift(data)
    with np.errstate(over="ignore", invalid="ignore"):
        product = _product(data, shift)
    if not np.isfinite(product).all():
        return product  # the caller raises an error
    root, resolved = root_of_product(product, shift)
    if refine and not resolved:
        mean = root[0, 1:] / root[0, 0]

        def read(precondition: Matrix) -> Iterator[tuple[Vector, Matrix]]:
            for block in _augmented_blocks(data, mean):
                yield block[:, 0], block[:, 1:] @ precondition

        factor = refine_factor(read, scatter_of(product)[1])
        if factor is None:
            return qr_root(data)
        root[1:, 1:] = factor
    return root


def root_of_product(product: Matrix, shift: Vector) -> tuple[Matrix, bool]:
    """Return a root from ``A'A`` with ``A = [1 | [X | Y] - shift]``, and whether no digits were lost."""
    middle, scatter = scatter_of(product)
    factor, resolved = _root_of_scatter(scatter)
    # Subtracting a mean of a hundred times the spread costs four digits.
    centred = bool((product[0, 0] * middle**2 <= 1e4 * np.diag(scatter)).all())
    root = np.zeros((factor.shape[0] + 1, product.shape[1]))
    root[0] = np.sqrt(product[0, 0]) * np.concatenate([[1.0], shift + middle])
    root[1:, 1:] = factor
    return root, resolved and centred


def is_well_conditioned(square: Matrix) -> bool:
    """Return whether a product keeps eleven digits (``GRAM_SPREAD``)."""
    return bool(_cholesky(square)[1] >= GRAM_SPREAD**2)


def fold_block(root: Matrix, block: Matrix) -> Matrix:
    """Return a root of the rows of a root and of further rows ``[1 | X | Y]``, which may be overwritten."""
    rows = np.vstack([root, block]) if len(root) else block
    if len(rows) <= rows.shape[1]:
        return _reflect_rows(rows)
    triangle: Matrix = np.linalg.qr(rows, mode="r")  # type: ignore[assignment]  # stubs miss "r"
    return triangle


def _reflect_rows(rows: Matrix) -> Matrix:
    """Reflect rows, in place, so that their first column is zero below the first row.

    >>> _reflect_rows(np.array([[1.0, 2.0], [1.0, 4.0]])).round(12) / np.sqrt(2.0)    # the weight, mean and scatter
    array([[1., 3.],
           [0., 1.]])
    """
    length = np.sqrt(rows[:, 0] @ rows[:, 0])
    # Householder's reflection I - 2 v v' / |v|^2 maps the first column to plus or minus its length, whichever does not
    # cancel in v. Here |v|^2 = 2 |v_0|.
    v = rows[:, 0] / length
    sign = np.copysign(1.0, v[0])
    v[0] += sign
    scale = 1.0 / abs(v[0])
    with np.errstate(over="ignore", invalid="ignore"):  # the caller raises an error for numbers that are not finite
        for columns in _column_slices(rows.shape[1], len(rows)):
            rows[:, columns] -= np.outer(v, scale * (v @ rows[:, columns]))
    rows[0] *= -sign
    rows[:, 0] = 0.0
    rows[0, 0] = length
    return rows


def merge_roots(one: Matrix, two: Matrix) -> Matrix:
    """Return the root of the rows of two roots, computed about the common mean so that an offset costs no digits."""
    weights = one[0, 0] ** 2 + two[0, 0] ** 2
    middle = one[0, 1:] * (one[0, 0] / weights) + two[0, 1:] * (two[0, 0] / weights)
    one, two = one.copy(), two.copy()
    for root in (one, two):
        root[0, 1:] -= root[0, 0] * middle
    merged = fold_block(one, two)
    merged[0, 1:] += merged[0, 0] * middle
    return merged


def _product(data: WeightedRows, shift: Vector) -> Matrix:
    """Return ``A'A`` for ``A = [1 | [X | Y] - shift]``, with one large product of the features per block."""
    d, k = data.X.shape[1], data.Y.shape[1]
    XX, sX, ss = np.zeros((d, d)), np.zeros((1 + k, d)), np.zeros((1 + k, 1 + k))
    scratch = np.empty((d, d))
    for side, X in _blocks(data, shift):
        XX += np.matmul(X.T, X, out=scratch)
        sX += side.T @ X
        ss += side.T @ side
    return np.block([[ss[:1, :1], sX[:1], ss[:1, 1:]], [sX[:1].T, XX, sX[1:].T], [ss[1:, :1], sX[1:], ss[1:, 1:]]])


def scatter_of(product: Matrix) -> tuple[Vector, Matrix]:
    """Return the mean, minus the shift, and the scatter about it."""
    offset = product[0, 1:]
    middle = offset / product[0, 0]
    return middle, product[1:, 1:] - np.outer(offset, middle)


def _root_of_scatter(scatter: Matrix) -> tuple[Matrix, bool]:
    """Return a root of the scatter and whether it is accurate in every direction."""
    lengths, unit = _equilibrate(scatter)
    factor, condition = _cholesky(unit)
    if factor is None or condition == 0.0:
        lam, V = _eigen_root(unit)
        factor = lam[:, None] * V.T
        factor[:, np.diag(scatter) == 0.0] = 0.0  # eigenvectors are rounded, but a column of zeros must remain zero
    return factor * lengths, bool(condition >= GRAM_SPREAD**2)


def _cholesky(unit: Matrix) -> tuple[Matrix | None, float]:
    """Return the triangular factor and the reciprocal condition number; None and zero for a singular matrix."""
    try:
        factor: Matrix = np.asarray(np.linalg.cholesky(unit).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        return None, 0.0
    return factor, float(lapack.dpocon(factor, np.abs(unit).sum(axis=0).max(initial=0.0))[0])


def refine_factor(read: Callable[[Matrix], Iterable[tuple[Vector, Matrix]]], scatter: Matrix) -> Matrix | None:
    """Return a root of the scatter from further products in preconditioned coordinates; None if QR is needed.

    Let A be the weighted rows ``[X | Y] - mean``, so that the scatter is A'A. For any invertible P, a root F of
    (AP)'(AP) gives the root ``F P^-1`` of A'A. ``read(P)`` reads the rows once more and yields the roots of the weights
    and the blocks of AP.

    With ``P = V / max(lambda, floor)`` from the scatter so far, AP is well conditioned down to the floor, so the second
    product is as accurate as QR over ten decades. Null directions need a third product, after which they contain the
    rounding error of the rows. QR is more accurate for a direction that is smaller than this but not null.
    """
    empty = np.diag(scatter) == 0.0
    # The columns are scaled to unit length only once. Scaling again would amplify the rounding error in null
    # directions, which differs between products.
    lengths, scatter = _equilibrate(scatter)
    precondition, undo = np.diag(1.0 / lengths), np.diag(lengths)  # P and its inverse
    for _ in range(2):
        lam, V = _eigen_root(scatter)
        lam = np.maximum(lam, _FLOOR_SHARE * lam.max(initial=0.0))
        precondition, undo = precondition @ (V / lam), (lam[:, None] * V.T) @ undo
        scatter, offset, weight = np.zeros_like(scatter), np.zeros(len(scatter)), np.zeros(())
        for sqrt_weight, rows in read(precondition):
            scatter += rows.T @ rows
            offset += sqrt_weight @ rows
            weight += sqrt_weight @ sqrt_weight
        # The mean that was subtracted is rounded. For many rows that error would add a direction.
        scatter -= np.outer(offset, offset) / weight
        factor, resolved = _root_of_scatter(scatter)
        if resolved:
            break
        lam, _ = _eigen_root(scatter)
        if ((lam > _FLOOR_SHARE * lam.max()) & (lam < GRAM_SPREAD * lam.max())).any():
            return None
    factor = factor @ undo
    factor[:, empty] = 0.0
    return factor


def _equilibrate(scatter: Matrix) -> tuple[Vector, Matrix]:
    """Return the lengths of the columns (one for a column of zeros) and the scatter with columns of unit length."""
    lengths = np.sqrt(np.maximum(np.diag(scatter), 0.0))
    empty = lengths == 0.0
    lengths[empty] = 1.0
    unit = scatter / lengths[:, None] / lengths
    # The overlaps of a column of zeros are rounding errors, which are large if the column has a large offset.
    unit[empty] = 0.0
    unit[:, empty] = 0.0
    return lengths, unit


def _eigen_root(scatter: Matrix) -> tuple[Vector, Matrix]:
    """Return the roots of the eigenvalues, at least machine epsilon, and the eigenvectors."""
    squares, V = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(squares, EPS64**2)), V
