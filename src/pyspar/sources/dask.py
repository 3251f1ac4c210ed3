"""Compute Moments and predictions of Dask collections. Each worker reduces its own blocks; rows are not sent."""

from __future__ import annotations

import sys
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from pyspar.core.moments import Moments, WeightlessRows
from pyspar.errors import need
from pyspar.sources import kind_of

_TREE_BRANCHES = 8  # the number of Moments that one task adds


def moments_of_dask(X: Any, Y: Any = None, sample_weight: Any = None) -> Moments:
    """Return the moments of a Dask array or frame, computed with the current scheduler or cluster."""
    dask: Any = need("dask", "dask")
    summarise, add = dask.delayed(_block_moments, pure=True), dask.delayed(_add_moments, pure=True)
    are_frames = all(part is None or hasattr(part, "to_dask_array") for part in (X, Y, sample_weight))
    blocks = (_blocks_of_frame if are_frames else _blocks_of_arrays)(X, Y, sample_weight)
    level = [summarise(i, *parts) for i, parts in enumerate(blocks)]
    while len(level) > 1:
        level = [add(level[i : i + _TREE_BRANCHES]) for i in range(0, len(level), _TREE_BRANCHES)]
    try:
        (moments,) = dask.compute(level[0])
    except CancelledError as error:
        raise ConnectionError(
            "the connection to the Dask scheduler was lost, and nothing was fitted or adapted; start the scheduler, "
            "connect a new distributed.Client, and call the method again"
        ) from error
    except Exception as error:  # errors of the caller's own tasks are raised unchanged
        distributed: Any = sys.modules.get("distributed")
        if distributed is None or not isinstance(error, distributed.KilledWorker):
            raise
        raise ConnectionError(
            f"the Dask workers that computed one block died {error.allowed_failures + 1} times, and nothing was fitted "
            "or adapted; workers are often killed for memory: use smaller row blocks, or workers with more memory"
        ) from error
    if not isinstance(moments, Moments):
        kind = ValueError if sample_weight is None else WeightlessRows
        raise kind("the Dask collection must have at least one row with a positive weight, got none")
    return moments


def predict_dask(X: Any, coef: np.ndarray, intercept: Any) -> Any:
    """Return lazy predictions, block by block, as a Dask array."""
    rows = _as_array(X)
    shape = {"drop_axis": 1} if coef.ndim == 1 else {"chunks": (rows.chunks[0], (len(coef),))}
    return rows.map_blocks(lambda block: np.asarray(block) @ coef.T + intercept, dtype=np.float64, **shape)


def _block_moments(number: int, X: Any, Y: Any, weight: Any) -> Moments | int:
    """Return the moments of one block, or zero if it has no rows with a positive weight.

    For a joined frame, Y is the number of features, the number of outputs, and whether y has one dimension.
    """
    is_joined = isinstance(Y, tuple)
    if is_joined:
        (d, k, is_flat), frame, X = Y, X, X.iloc[:, : Y[0]]
        Y = frame.iloc[:, d : d + k].to_numpy() if k else None
        Y = Y[:, 0] if Y is not None and is_flat else Y
        weight = frame.iloc[:, d + k].to_numpy() if frame.shape[1] > d + k else None
    try:
        return Moments.of(X, Y, weight) if len(X) else 0
    except WeightlessRows:
        return 0
    except ValueError as error:
        hint = "; rows and labels of frames are matched by their index" if is_joined and "Y must" in str(error) else ""
        raise ValueError(f"row block {number}: {error}{hint}") from None


def _add_moments(parts: list[Moments | int]) -> Moments | int:
    return sum(part for part in parts if isinstance(part, Moments))


def _blocks_of_frame(X: Any, Y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return the partitions of a frame joined with its labels and weights, which alone may have other partitions."""
    labels = [] if Y is None else [Y] if Y.ndim == 1 else [Y[name] for name in Y.columns]
    added = labels + ([] if weight is None else [weight])
    joined = X.assign(**{f"__pyspar_{j}": column for j, column in enumerate(added)}) if added else X
    columns = X.shape[1], len(labels), Y is None or Y.ndim == 1
    return [(block, columns, None) for block in joined.to_delayed()]


def _blocks_of_arrays(X: Any, Y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return delayed row blocks, with the chunks of X if the sizes are known."""
    columns: list[Any] = []
    chunks = _as_array(X).chunks[0]
    for name, data in (("X", X), ("y", Y), ("sample_weight", weight)):
        if data is None:
            columns.append(None)
            continue
        if kind_of(data) != "dask":
            raise TypeError(f"{name} must be a Dask collection because X is one, got {type(data).__name__}")
        rows = _as_array(data)
        own, total = sum(rows.chunks[0]), sum(chunks)
        if not np.isnan(own + total) and rows.chunks[0] != chunks:
            if own != total:
                raise ValueError(f"X and {name} must have the same number of rows, got {total:,} and {own:,}")
            rows = rows.rechunk({0: chunks})
        columns.append(list(rows.to_delayed().ravel()))
    counts = {len(blocks) for blocks in columns if blocks is not None}
    if len(counts) != 1:
        got = f"{sorted(counts)} blocks; rechunk or repartition them"
        raise ValueError(f"X, y and sample_weight must have the same row blocks, got {got}")
    return list(zip(*(blocks or [None] * len(columns[0] or ()) for blocks in columns), strict=True))


def _as_array(data: Any) -> Any:
    """Return a Dask array whose chunks contain all columns."""
    array = data.to_dask_array() if hasattr(data, "to_dask_array") else data
    return array.rechunk({1: -1}) if array.ndim == 2 and len(array.chunks[1]) > 1 else array
