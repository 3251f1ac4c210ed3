"""Compute Moments and predictions of Dask collections. Each worker reduces its own blocks; rows are not sent."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyspar.core.moments import Moments, WeightlessRows
from pyspar.errors import need
from pyspar.sources import kind_of, refuse_extreme_weights

_TREE_BRANCHES = 8
"""The number of Moments that one task adds."""


def moments_of_dask(X: Any, Y: Any = None, sample_weight: Any = None) -> Moments:
    """Return the moments of a Dask array or frame, computed with the current scheduler or cluster."""
    dask: Any = need("dask", "dask")
    summarise, add = dask.delayed(_block_moments, pure=True), dask.delayed(_add_moments, pure=True)
    are_frames = all(part is None or _is_frame(part) for part in (X, Y, sample_weight))
    blocks = (_blocks_of_frame if are_frames else _blocks_of_arrays)(X, Y, sample_weight)
    level = [summarise(i, *parts) for i, parts in enumerate(blocks)]
    while len(level) > 1:
        level = [add(level[i : i + _TREE_BRANCHES]) for i in range(0, len(level), _TREE_BRANCHES)]
    with _report_lost_cluster():
        (moments,) = dask.compute(level[0])
    if moments is None:
        if sample_weight is not None:
            raise WeightlessRows("the Dask collection must have at least one row with a positive weight, got none")
        raise ValueError("the Dask collection must have at least one row, got none")
    return moments  # type: ignore[no-any-return]


def predict_dask(X: Any, coef: np.ndarray, intercept: Any) -> Any:
    """Return lazy predictions, block by block, as a Dask array."""
    rows = _as_array(X)
    shape = {"drop_axis": 1} if coef.ndim == 1 else {"chunks": (rows.chunks[0], (len(coef),))}
    return rows.map_blocks(lambda block: np.asarray(block) @ coef.T + intercept, dtype=np.float64, **shape)


@contextmanager
def _report_lost_cluster() -> Iterator[None]:
    """Raise ConnectionError with a plain message if the scheduler or the workers of a cluster are lost.

    Errors of the caller's own tasks are raised unchanged.
    """
    try:
        yield
    except CancelledError as error:
        raise ConnectionError(
            "the connection to the Dask scheduler was lost, and nothing was fitted or adapted; start the scheduler, "
            "connect a new distributed.Client, and call the method again"
        ) from error
    except Exception as error:
        distributed: Any = sys.modules.get("distributed")
        if distributed is None or not isinstance(error, distributed.KilledWorker):
            raise
        raise ConnectionError(
            f"the Dask workers that computed one block died {error.allowed_failures + 1} times, and nothing was fitted "
            "or adapted; workers are often killed for memory: use smaller row blocks, or workers with more memory"
        ) from error


def _block_moments(number: int, X: Any, Y: Any, weight: Any) -> Moments | None:
    """Return the moments of one block, or None if all its weights are zero or it is empty.

    For a joined frame, Y is a tuple for _split_frame.
    """
    is_joined = isinstance(Y, tuple)
    if is_joined:
        X, Y, weight = _split_frame(X, *Y)
    if len(X) == 0:
        return None
    try:
        refuse_extreme_weights("sample_weight", weight)
        return Moments.of(X, Y, weight)
    except WeightlessRows:
        return None
    except ValueError as error:
        hint = (
            "; rows and labels of frames are matched by their index" if is_joined and "Y must be" in str(error) else ""
        )
        raise ValueError(f"row block {number}: {error}{hint}") from None


def _add_moments(parts: list[Moments | None]) -> Moments | None:
    nonempty = [part for part in parts if part is not None]
    return functools.reduce(operator.add, nonempty) if nonempty else None


def _blocks_of_frame(X: Any, Y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return the partitions of a frame joined with its labels and weights, with the arguments of _split_frame.

    Dask plans each collection separately, so the partitions of features and labels may differ. Joined columns have the
    same partitions.
    """
    labels = [] if Y is None else [Y] if Y.ndim == 1 else [Y[name] for name in Y.columns]
    added = labels + ([] if weight is None else [weight])
    joined = X.assign(**{f"__pyspar_{j}": column for j, column in enumerate(added)}) if added else X
    columns = X.shape[1], len(labels), Y is None or Y.ndim == 1
    return [(block, columns, None) for block in joined.to_delayed()]


def _split_frame(frame: Any, features: int, outputs: int, is_flat: bool) -> tuple[Any, Any, Any]:
    """Return X, y and weights of a joined frame, None for those that it does not contain."""
    end = features + outputs
    Y = frame.iloc[:, features:end].to_numpy() if outputs else None
    weight = frame.iloc[:, end].to_numpy() if frame.shape[1] > end else None
    return frame.iloc[:, :features], Y[:, 0] if Y is not None and is_flat else Y, weight


def _blocks_of_arrays(X: Any, Y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    columns = [_row_blocks(part, name, X) for name, part in (("X", X), ("y", Y), ("sample_weight", weight))]
    counts = {len(blocks) for blocks in columns if blocks is not None}
    if len(counts) != 1:
        raise ValueError(
            f"X, y and sample_weight must have the same row blocks, got {sorted(counts)} blocks; rechunk or "
            "repartition them"
        )
    n = counts.pop()
    return list(zip(*([None] * n if blocks is None else blocks for blocks in columns), strict=True))


def _row_blocks(data: Any, name: str, X: Any) -> list[Any] | None:
    """Return a collection as delayed row blocks, with the chunks of X if the sizes are known."""
    if data is None:
        return None
    if kind_of(data) != "dask":
        raise TypeError(f"{name} must be a Dask collection because X is one, got {type(data).__name__}")
    rows = _as_array(data)
    chunks = _as_array(X).chunks[0]
    known = not any(np.isnan(size) for size in (*chunks, *rows.chunks[0]))
    if known and sum(rows.chunks[0]) != sum(chunks):
        raise ValueError(
            f"X and {name} must have the same number of rows, got {sum(chunks):,} and {sum(rows.chunks[0]):,}"
        )
    if known and rows.chunks[0] != chunks:
        rows = rows.rechunk({0: chunks})
    return list(rows.to_delayed().ravel())


def _as_array(data: Any) -> Any:
    """Return a Dask array whose chunks contain all columns."""
    array = data.to_dask_array() if _is_frame(data) else data
    return array.rechunk({1: -1}) if array.ndim == 2 and len(array.chunks[1]) > 1 else array


def _is_frame(data: Any) -> bool:
    return hasattr(data, "to_dask_array")
