"""Compute Moments of a scipy CSR or CSC matrix with sparse products, without a dense copy of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.moments import Marginals, Moments, Solver, measured_eps
from pyspar.core.roots import GRAM_BLUR, fold_block, refine_factor, root_of_product, row_slices, scatter_of

MAX_BLOCK_BYTES = 16_000_000


def moments_of_sparse(X: Any, Y: Any = None, sample_weight: Any = None, *, solver: Solver = "auto") -> Moments:
    """Return the moments of sparse rows.

    No more rows than columns are made dense, which needs no D x D array. Otherwise ``X'X`` is one sparse product; a
    column of ones and the outputs add a narrow border to it. If the product loses digits, the rows are multiplied by a
    dense D x D preconditioner, block by block, and the product is computed again. If that is not sufficient either,
    blocks of rows are made dense and merged by QR.
    """
    Y = np.empty((X.shape[0], 0)) if Y is None else np.asarray(Y, dtype=np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    # Moments.of checks outputs and weights as for dense rows. A column of ones takes the place of X.
    border = Moments.of(np.ones((X.shape[0], 1)), Y, sample_weight)
    sqrt_weight = np.ones(X.shape[0]) if sample_weight is None else np.sqrt(np.asarray(sample_weight, dtype=np.float64))
    rows = sp.csr_array(X, dtype=np.float64)
    if not np.isfinite(rows.data).all():
        raise ValueError("X must be finite, but its stored values contain NaN or infinity; impute or drop them first")
    eps = np.full(X.shape[1], measured_eps(X))
    refine = solver == "auto" and eps.min() <= EPS64
    has_few_rows = rows.shape[0] <= X.shape[1] + Y.shape[1]
    root = None
    try:
        if solver == "gram" or (solver == "auto" and not has_few_rows):
            root = _root_by_products(rows, Y, sqrt_weight, border.mean[1:], refine)
        if root is None:
            root = _root_by_qr(rows, Y, sqrt_weight)
    except MemoryError:
        n_bytes = 8.0 * min(rows.shape) * rows.shape[1]
        raise MemoryError(
            f"the summary of {rows.shape[0]:,} sparse rows with {rows.shape[1]:,} columns needs several arrays of "
            f"{n_bytes / 1e9:,.2g} GB; select or project columns first, for example with sklearn's TruncatedSVD"
        ) from None
    if not np.isfinite(root).all():
        raise ValueError("the sums of X or y overflow float64; rescale them")
    blur = GRAM_BLUR if solver == "gram" else 0.0
    moments = replace(border, root=root, n_features=X.shape[1], eps=eps, blur=blur, tails=None)
    return replace(moments, tails=_measure_tails(rows, np.square(sqrt_weight), moments.describe_features()))


def _measure_tails(rows: Any, weight: Vector, features: Marginals) -> Matrix:
    """Return skewness and kurtosis of each column from its stored values; the other values are zero."""
    mean, factor = features.unit()
    rows = rows.copy()
    rows.sum_duplicates()
    column = rows.indices
    value, zero = (rows.data - mean[column]) * factor[column], -mean * factor
    counts = np.repeat(weight, np.diff(rows.indptr))
    zeros = features.weight - np.bincount(column, counts, len(mean))
    powers = [np.bincount(column, counts * value**k, len(mean)) + zeros * zero**k for k in (3, 4)]
    return np.array(powers) / features.weight


def _root_by_products(rows: Any, Y: Matrix, sqrt_weight: Vector, y_mean: Vector, refine: bool) -> Matrix | None:
    """Return a root of the products, or None if QR is required."""
    product = _weighted_product(rows, Y - y_mean, sqrt_weight)
    if not np.isfinite(product).all():
        raise ValueError("the squares of X overflow float64; rescale X")
    d = rows.shape[1]
    largest = np.concatenate([np.abs(rows).max(axis=0).toarray().ravel(), np.abs(Y - y_mean).max(axis=0, initial=0.0)])
    if ((largest > 0.0) & (largest < 1e-140)).any():
        raise ValueError("X or y has a column with values below 1e-140, whose squares underflow float64; rescale it")
    root, resolved = root_of_product(product, np.concatenate([np.zeros(d), y_mean]))
    if resolved or not refine:
        return root
    mean = root[0, 1:] / root[0, 0]
    factor = refine_factor(partial(_preconditioned_blocks, rows, Y, sqrt_weight, mean), scatter_of(product)[1])
    if factor is None:
        return None
    root[1:, 1:] = factor
    return root


def _weighted_product(rows: Any, Y: Matrix, sqrt_weight: Vector) -> Matrix:
    """Return ``[1 | X | Y]' W [1 | X | Y]``."""
    weighted = rows.multiply(sqrt_weight[:, None]).tocsr()
    border = np.column_stack([np.ones(rows.shape[0]), Y]) * sqrt_weight[:, None]
    XX = (weighted.T @ weighted).toarray()
    bX = (weighted.T @ border).T
    bb = border.T @ border
    return np.block([[bb[:1, :1], bX[:1], bb[:1, 1:]], [bX[:1].T, XX, bX[1:].T], [bb[1:, :1], bX[1:], bb[1:, 1:]]])


def _preconditioned_blocks(
    rows: Any, Y: Matrix, sqrt_weight: Vector, mean: Vector, preconditioner: Matrix
) -> Iterator[tuple[Vector, Matrix]]:
    """Yield the square roots of the weights, and the weighted, centred rows times the preconditioner."""
    d = rows.shape[1]
    for part in row_slices(rows.shape[0], preconditioner.shape[1], MAX_BLOCK_BYTES):
        product = rows[part] @ preconditioner[:d] + Y[part] @ preconditioner[d:] - mean @ preconditioner
        yield sqrt_weight[part], product * sqrt_weight[part, None]


def _root_by_qr(rows: Any, Y: Matrix, sqrt_weight: Vector) -> Matrix:
    """Return a root by QR of dense blocks, for directions that are shorter than 1e-10 of the longest."""
    root = np.zeros((0, 1 + rows.shape[1] + Y.shape[1]))
    for part in row_slices(rows.shape[0], root.shape[1], MAX_BLOCK_BYTES):
        block = np.column_stack([np.ones(part.stop - part.start), rows[part].toarray(), Y[part]])
        root = fold_block(root, block * sqrt_weight[part, None])
    return root
