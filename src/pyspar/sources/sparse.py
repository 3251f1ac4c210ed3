"""Sparse rows: Moments of a scipy CSR or CSC matrix by sparse products; no row is ever made dense."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from pyspar.core.accumulate import BLUR, Frame, fold_block, refine_factor, root_of_product, scatter_of
from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.moments import Moments, Solver, measured_eps

_BLOCK_BYTES = 16_000_000


def moments_of_sparse(X: Any, Y: Any = None, sample_weight: Any = None, *, solver: Solver = "auto") -> Moments:
    """Summarise sparse rows: ``X'X`` is one sparse product, and the ones and outputs are its thin border.

    Where one product loses digits, the rows are multiplied again after preconditioning: sparse rows times a dense D x D
    matrix, block by block. Only where that is not enough either, a few rows at a time go through QR as dense rows.
    """
    Y = np.empty((X.shape[0], 0)) if Y is None else np.asarray(Y, dtype=np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    # Outputs and weights go through the gate that dense rows go through, beside a column of ones in place of X.
    border = Moments.of(np.ones((X.shape[0], 1)), Y, sample_weight)
    sqrt_weight = np.ones(X.shape[0]) if sample_weight is None else np.sqrt(np.asarray(sample_weight, dtype=np.float64))
    rows = sp.csr_array(X, dtype=np.float64)
    if not np.isfinite(rows.data).all():
        raise ValueError("X must be finite. Got NaN or infinity among its stored values; impute or drop them first.")
    eps = np.full(X.shape[1], measured_eps(X))
    refine = solver == "auto" and eps.min() <= EPS64
    root = None if solver == "qr" else _root(rows, Y, sqrt_weight, border.mean[1:], refine)
    if root is None:
        root = _dense_fold(rows, Y, sqrt_weight)
    return replace(border, root=root, n_features=X.shape[1], eps=eps, blur=BLUR if solver == "gram" else 0.0)


def _root(rows: Any, Y: Matrix, sqrt_weight: Vector, y_mean: Vector, refine: bool) -> Matrix | None:
    """Return a root by products, or None where only QR will do."""
    product = _product(rows, Y - y_mean, sqrt_weight)
    if not np.isfinite(product).all():
        raise ValueError("X must be small enough to be squared in float64. Got values near its limit; rescale it.")
    d, k = rows.shape[1], Y.shape[1]
    largest = np.concatenate([np.abs(rows).max(axis=0).toarray().ravel(), np.abs(Y - y_mean).max(axis=0, initial=0.0)])
    if ((largest > 0.0) & (largest < 1e-140)).any():
        raise ValueError(
            "X and y must be large enough to be squared in float64. Got values below 1e-140; rescale them."
        )
    root, resolved = root_of_product(product, Frame(np.concatenate([np.zeros(d), y_mean]), np.ones(d + k)))
    if resolved or not refine:
        return root
    mean = root[0, 1:] / root[0, 0]
    factor = refine_factor(partial(_flat_blocks, rows, Y, sqrt_weight, mean), scatter_of(product)[1])
    if factor is None:
        return None
    root[1:, 1:] = factor
    return root


def _product(rows: Any, Y: Matrix, sqrt_weight: Vector) -> Matrix:
    weighted = rows.multiply(sqrt_weight[:, None]).tocsr()
    side = np.column_stack([np.ones(rows.shape[0]), Y]) * sqrt_weight[:, None]
    XX = (weighted.T @ weighted).toarray()
    sX = (weighted.T @ side).T
    ss = side.T @ side
    return np.block([[ss[:1, :1], sX[:1], ss[:1, 1:]], [sX[:1].T, XX, sX[1:].T], [ss[1:, :1], sX[1:], ss[1:, 1:]]])


def _flat_blocks(
    rows: Any, Y: Matrix, sqrt_weight: Vector, mean: Vector, into: Matrix
) -> Iterator[tuple[Vector, Matrix]]:
    d = rows.shape[1]
    for part in _slices(rows.shape[0], into.shape[1]):
        flat = rows[part] @ into[:d] + Y[part] @ into[d:] - mean @ into
        yield sqrt_weight[part], flat * sqrt_weight[part, None]


def _dense_fold(rows: Any, Y: Matrix, sqrt_weight: Vector) -> Matrix:
    """Fold a few rows at a time through QR: the last resort, for directions smaller than 1e-10 of the largest."""
    root = np.zeros((0, 1 + rows.shape[1] + Y.shape[1]))
    for part in _slices(rows.shape[0], root.shape[1]):
        block = np.column_stack([np.ones(part.stop - part.start), rows[part].toarray(), Y[part]])
        root = fold_block(root, block * sqrt_weight[part, None])
    return root


def _slices(n_rows: int, columns: int) -> Iterator[slice]:
    step = max(_BLOCK_BYTES // (8 * columns), columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
