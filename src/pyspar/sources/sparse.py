"""Compute Moments of a scipy CSR or CSC matrix with sparse products, without a dense copy of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from pyspar.core.moments import EPS64, Block, Moments, check_rows, fold_block, measured_eps, product_of, root_of_product

BLOCK_BYTES = 64_000_000


def moments_of_sparse(X: Any, Y: Any = None, sample_weight: Any = None) -> Moments:
    """Return the moments of sparse rows.

    No more rows than columns are made dense, which needs no D x D array. Otherwise ``X'X`` is a sum of sparse products,
    and directions that it does not resolve are measured again by a sparse product with these directions.
    """
    rows, Y, weight = check_rows(sp.csr_array(X), None if Y is None else np.asarray(Y, dtype=np.float64), sample_weight)
    (n, d), eps, rows = rows.shape, np.full(rows.shape[1], measured_eps(rows)), rows.astype(np.float64)
    for name, values in (("X", rows.data), ("y", Y)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, but contains NaN or infinity; impute or drop these rows first")
    sqrt_weight = np.ones(n) if weight is None else np.sqrt(weight)
    shift = np.concatenate([np.zeros(d), sqrt_weight**2 @ Y / (sqrt_weight @ sqrt_weight)])

    def blocks() -> Iterator[Block]:
        step = max(BLOCK_BYTES // (8 * d), 8 * d)
        for start in range(0, n, step):
            part = slice(start, start + step)
            border = np.column_stack([np.ones(len(sqrt_weight[part])), Y[part] - shift[d:]])
            yield border * sqrt_weight[part, None], sp.csr_array(rows[part].multiply(sqrt_weight[part, None]))

    try:
        with np.errstate(over="ignore", invalid="ignore"):
            if n <= d + Y.shape[1]:
                dense = np.column_stack([np.ones(n), rows.toarray(), Y]) * sqrt_weight[:, None]
                root = fold_block(dense[:0], dense)
            else:
                root, _ = root_of_product(product_of(blocks(), d), shift, blocks if eps.min() <= EPS64 else None)
    except MemoryError:
        raise MemoryError(
            f"the summary of {n:,} sparse rows with {d:,} columns needs several arrays of {8e-9 * min(n, d) * d:,.2g} "
            "GB; select or project columns first, for example with sklearn's TruncatedSVD"
        ) from None
    if not np.isfinite(root).all():
        raise ValueError("the squares of X or y overflow float64; rescale them")
    return Moments.of_root(root, d, n, weight, eps)
