"""Compute Moments from an iterable of batches. Each row is read once, and memory does not grow with their number.

Small batches are joined into blocks that are large enough for an efficient matrix product. A block is in memory, so it
can be read again if its product lost digits. Blocks are merged by QR of their roots. The result has the accuracy of QR
at the cost of a product.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pyspar.core.moments import ExtremeValues, Moments, WeightlessRows, column_names, measured_eps, refuse_masked
from pyspar.sources import features_of_batch, refuse_dates, refuse_extreme_weights
from pyspar.sources.sparse import moments_of_sparse

MAX_BLOCK_BYTES = 64_000_000


def moments_of_batches(batches: Iterable[Any], *, labelled: bool) -> Moments:
    """Return the moments of all batches.

    A labelled batch is ``(X, y)`` or ``(X, y, sample_weight)``. An unlabelled batch is X or a tuple that begins with
    X.
    """
    total: Moments | None = None
    is_empty = True
    for kind, block in _join_batches(batches, labelled):
        is_empty = False
        try:
            moments = _block_moments([batch[1:] for batch in block], np.array(kind.eps))
        except WeightlessRows:
            continue
        except ValueError:
            for number, *batch in block:
                try:
                    _block_moments([batch])
                except WeightlessRows:
                    continue
                except ExtremeValues as error:
                    raise error.describe(kind.names, rows=f"batch {number}") from None
                except ValueError as error:
                    raise ValueError(f"batch {number}: {error}") from None
            raise
        moments = replace(moments, names=kind.names)
        total = moments if total is None else total + moments
    if total is None and is_empty:
        raise ValueError("the batches must have at least one row, got none; the iterator may be exhausted")
    if total is None:
        raise WeightlessRows("the batches must have at least one row with a positive weight, got none")
    return total


class _Kind(NamedTuple):
    """What batches that are joined have in common."""

    dtype: Any
    eps: tuple[float, ...]
    names: tuple[str, ...]
    is_weighted: bool
    is_sparse: bool


def _join_batches(batches: Iterable[Any], labelled: bool) -> Iterator[tuple[_Kind, list[Any]]]:
    """Check batches, and yield blocks: lists of batches of one kind, each with its number, X, y and sample_weight."""
    block: list[Any] = []
    first: tuple[int, int] | None = None
    kind: Any = None
    n_rows = 0
    for number, batch in enumerate(batches):
        X, y, weight = split_batch(batch, labelled, number)
        for name, part in (("X", X), ("y", y), ("sample_weight", weight)):
            refuse_masked(f"batch {number}: {name}", part)
        for name, part in (("X", X), ("y", y)):
            refuse_dates(f"batch {number}: {name}", part)
        refuse_extreme_weights(f"batch {number}: sample_weight", weight)
        eps, names, is_sparse = measured_eps(X), column_names(X), sp.issparse(X)
        X = sp.csr_array(X) if is_sparse else np.asarray(X)
        rows = X.shape[0] if X.ndim else 0
        y = np.empty((rows, 0)) if y is None else np.asarray(y)
        y = y[:, None] if y.ndim == 1 else y
        if X.ndim != 2:
            raise ValueError(f"batch {number}: X must have two dimensions, got shape {X.shape}")
        shape = X.shape[1], y.shape[1]
        first = first or shape
        if shape != first:
            raise ValueError(
                f"batch {number}: {shape[0]} features and {shape[1]} outputs, but the first batch has "
                f"{first[0]} and {first[1]}"
            )
        if rows == 0:
            continue
        previous, kind = kind, _Kind(X.dtype, tuple(np.atleast_1d(eps)), names, weight is not None, is_sparse)
        if block and kind != previous:
            yield previous, block
            block, n_rows = [], 0
        n_rows += rows
        is_block = n_rows >= rows_per_block(sum(shape) + 1)
        if not is_block:  # the batch is copied, because its producer may reuse the array for the next batch
            X, y, weight = X.copy(), np.array(y), None if weight is None else np.array(weight, dtype=np.float64)
        block.append((number, X, y, weight))
        if is_block:
            yield kind, block
            block, n_rows = [], 0
    if block:
        yield kind, block


def rows_per_block(columns: int) -> int:
    """Return the number of rows for which merging a block costs little compared with its product, within memory."""
    return int(max(2 * columns, min(50 * columns, MAX_BLOCK_BYTES // (8 * columns))))


def _block_moments(batches: list[Any], eps: Any = None) -> Moments:
    X, y, weight = batches[0]
    if len(batches) > 1:
        rows, labels, weights = zip(*batches)
        X = sp.vstack(rows, format="csr") if sp.issparse(X) else np.concatenate(rows)
        y, weight = np.concatenate(labels), None if weight is None else np.concatenate(weights)
    if sp.issparse(X):
        return moments_of_sparse(X, y, weight)
    return Moments.of(X, y, weight, eps=eps)


def split_batch(batch: Any, labelled: bool, number: int) -> tuple[Any, Any, Any]:
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


def read_ahead(items: Iterable[Any]) -> Generator[Any]:
    """Yield the items of an iterable. A thread reads the next item while the caller processes one.

    Errors of the reader are raised by this generator. Closing the generator, also by an error or Ctrl-C, stops the
    reader.
    """
    reader, end = iter(items), object()
    try:
        with ThreadPoolExecutor(1) as thread:
            following = thread.submit(next, reader, end)
            while (item := following.result()) is not end:
                following = thread.submit(next, reader, end)
                yield item
    finally:
        if hasattr(reader, "close"):
            reader.close()  # closes its files
