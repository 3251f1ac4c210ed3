"""Compute Moments from an iterable of batches. Each row is read once, and memory does not grow with their number.

Small batches are joined into blocks that are large enough for an efficient product and can be read again if it lost
digits. Blocks are merged by QR of their roots: the accuracy of QR at the cost of a product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from pyspar.core.moments import ExtremeValues, Moments, WeightlessRows, column_names, measured_eps, refuse_masked
from pyspar.sources import features_of_batch, refuse_dates
from pyspar.sources.sparse import BLOCK_BYTES, moments_of_sparse


def moments_of_batches(batches: Iterable[Any], *, labelled: bool) -> Moments:
    """Return the moments of batches: ``(X, y)`` or ``(X, y, sample_weight)`` if labelled, else X or ``(X, ...)``."""
    total: Moments | None = None
    for names, eps, block in _join_batches(batches, labelled):
        try:
            moments = _block_moments([batch[1:] for batch in block], np.array(eps))
        except WeightlessRows:
            continue
        except ValueError:
            for number, *batch in block:
                try:
                    _block_moments([batch])
                except WeightlessRows:
                    continue
                except ExtremeValues as error:
                    raise ExtremeValues(error.place, names, rows=f"batch {number}") from None
                except ValueError as error:
                    raise ValueError(f"batch {number}: {error}") from None
            raise
        moments = replace(moments, names=names)
        total = moments if total is None else total + moments
    if total is None:
        raise WeightlessRows(
            "the batches must have at least one row with a positive weight, got none; the iterator may be exhausted"
        )
    return total


def _join_batches(batches: Iterable[Any], labelled: bool) -> Iterator[tuple[tuple[str, ...], Any, list[Any]]]:
    """Check batches, and yield blocks of one kind: column names, precision, and a list of number, X, y and weights."""
    block: list[Any] = []
    kind: Any = None
    n_rows, first = 0, None
    for number, batch in enumerate(batches):
        X, y, weight = unpack_batch(batch, labelled, number)
        for name, part in (("X", X), ("y", y), ("sample_weight", weight)):
            refuse_masked(f"batch {number}: {name}", part)
            if name != "sample_weight":
                refuse_dates(f"batch {number}: {name}", part)
        eps, names, is_sparse = tuple(np.atleast_1d(measured_eps(X))), column_names(X), sp.issparse(X)
        X = sp.csr_array(X) if is_sparse else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"batch {number}: X must have two dimensions, got shape {X.shape}")
        y = np.empty((X.shape[0], 0)) if y is None else np.asarray(y)
        y = y[:, None] if y.ndim == 1 else y
        shape = X.shape[1], y.shape[1]
        first = first or shape
        if shape != first:
            got = f"{shape[0]} features and {shape[1]} outputs"
            raise ValueError(f"batch {number}: {got}, but the first batch has {first[0]} and {first[1]}")
        if X.shape[0] == 0:
            continue
        previous, kind = kind, (names, eps, X.dtype, weight is not None, is_sparse)
        if block and kind != previous:
            yield *previous[:2], block
            block, n_rows = [], 0
        n_rows += X.shape[0]
        is_block = n_rows >= rows_per_block(sum(shape) + 1)
        if not is_block:  # the batch is copied, because its producer may reuse the array for the next batch
            X, y, weight = X.copy(), np.array(y), None if weight is None else np.array(weight, dtype=np.float64)
        block.append((number, X, y, weight))
        if is_block:
            yield names, eps, block
            block, n_rows = [], 0
    if block:
        yield names, eps, block


def rows_per_block(columns: int, max_bytes: int = BLOCK_BYTES) -> int:
    """Return the number of rows for which merging a block costs little compared with its product, within memory."""
    return int(max(2 * columns, min(50 * columns, max_bytes // (8 * columns))))


def _block_moments(batches: list[Any], eps: Any = None) -> Moments:
    X, y, weight = batches[0]
    if len(batches) > 1:
        rows, labels, weights = zip(*batches)
        X = sp.vstack(rows, format="csr") if sp.issparse(X) else np.concatenate(rows)
        y, weight = np.concatenate(labels), None if weight is None else np.concatenate(weights)
    return moments_of_sparse(X, y, weight) if sp.issparse(X) else Moments.of(X, y, weight, eps=eps)


def unpack_batch(batch: Any, labelled: bool, number: int) -> tuple[Any, Any, Any]:
    """Return X, y and sample_weight of a batch, with None for missing parts."""
    if not labelled:
        return features_of_batch(batch), None, None
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise ValueError(f"batch {number} must be (X, y) or (X, y, sample_weight), got {type(batch).__name__}")
    X, y, *weight = batch
    if sp.issparse(y):
        raise ValueError(f"batch {number}: y must be a dense array, got a sparse matrix; pass y.toarray()")
    if np.shape(y)[:1] != np.shape(X)[:1]:
        shapes = f"{tuple(np.shape(X))} and {tuple(np.shape(y))}"
        raise ValueError(f"batch {number}: X and y must have the same number of rows, got shapes {shapes}")
    return X, y, weight[0] if weight else None
