"""Dask: each block becomes Moments where it lies, and Moments are added as a tree; rows never travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.moments import Moments, Solver
from pyspar.errors import need
from pyspar.sources.kinds import refuse_extreme_weights

_FAN_IN = 8


def moments_of_dask(X: Any, Y: Any = None, sample_weight: Any = None, *, solver: Solver = "auto") -> Moments:
    """Summarise the rows of a Dask array or frame, with the scheduler or cluster that is in force."""
    dask: Any = need("dask", "dask")
    summarise, add = dask.delayed(_summary, pure=True), dask.delayed(_total, pure=True)
    blocks = _blocks_of_frame(X, Y, sample_weight) if _is_frame(X) else None
    if blocks is None:
        blocks = _blocks_of_arrays(X, Y, sample_weight)
    level = [summarise(i, *parts, solver) for i, parts in enumerate(blocks)]
    while len(level) > 1:
        level = [add(level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
    (found,) = dask.compute(level[0])
    if found is None:
        raise ValueError("the Dask collection must hold at least one row. Got none.")
    return found  # type: ignore[no-any-return]


def predict_dask(X: Any, coef: np.ndarray, intercept: Any) -> Any:
    """Return lazy predictions, block by block, as a Dask array."""
    rows = _as_array(X)
    if coef.ndim == 1:
        return rows.map_blocks(lambda block: np.asarray(block) @ coef + intercept, drop_axis=1, dtype=np.float64)
    return rows.map_blocks(
        lambda block: np.asarray(block) @ coef.T + intercept, chunks=(rows.chunks[0], (len(coef),)), dtype=np.float64
    )


def _summary(number: int, X: Any, Y: Any, weight: Any, solver: Solver) -> Moments | None:
    if isinstance(Y, _Columns):
        X, Y, weight = Y.split(X)
    if len(X) == 0:
        return None
    try:
        refuse_extreme_weights("sample_weight", weight)
        return Moments.of(X, Y, weight, solver=solver)
    except ValueError as error:
        raise ValueError(f"row block {number}: {error}") from None


def _total(parts: list[Moments | None]) -> Moments | None:
    present = [part for part in parts if part is not None]
    total = present[0] if present else None
    for part in present[1:]:
        total = part if total is None else total + part
    return total


@dataclass(frozen=True)
class _Columns:
    """Which columns of a joined frame are features, outputs and weights, by their number."""

    features: int
    outputs: int
    flat: bool
    weighted: bool

    def split(self, frame: Any) -> tuple[Any, Any, Any]:
        end = self.features + self.outputs
        Y = frame.iloc[:, self.features : end].to_numpy() if self.outputs else None
        weight = frame.iloc[:, end].to_numpy() if self.weighted else None
        return frame.iloc[:, : self.features], Y[:, 0] if Y is not None and self.flat else Y, weight


def _blocks_of_frame(X: Any, Y: Any, weight: Any) -> list[tuple[Any, Any, Any]] | None:
    """Return the partitions of a frame joined with its labels, or None where those are no frames.

    Dask plans the reading of each collection by itself, and may cut features otherwise than labels; joined, they are
    one collection.
    """
    if not all(part is None or _is_frame(part) for part in (Y, weight)):
        return None
    more = [] if Y is None else [Y] if Y.ndim == 1 else [Y[name] for name in Y.columns]
    columns = _Columns(X.shape[1], len(more), Y is None or Y.ndim == 1, weight is not None)
    more += [] if weight is None else [weight]
    joined = X.assign(**{f"__pyspar_{j}": column for j, column in enumerate(more)}) if more else X
    return [(block, columns, None) for block in joined.to_delayed()]


def _blocks_of_arrays(X: Any, Y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    columns = [_row_blocks(part, name, X) for name, part in (("X", X), ("y", Y), ("sample_weight", weight))]
    counts = {len(blocks) for blocks in columns if blocks is not None}
    if len(counts) != 1:
        raise ValueError(
            f"X, y and sample_weight must be cut into the same row blocks. Got {sorted(counts)} blocks; "
            "rechunk or repartition them alike."
        )
    n = counts.pop()
    filled = [[None] * n if blocks is None else blocks for blocks in columns]
    return list(zip(*filled, strict=True))


def _row_blocks(data: Any, name: str, X: Any) -> list[Any] | None:
    """Return a collection as delayed row blocks, cut as X is cut where the sizes are known."""
    if data is None:
        return None
    if not _is_collection(data):
        raise TypeError(f"{name} must be a Dask collection, as X is. Got {type(data).__name__} instead.")
    rows = _as_array(data)
    wanted = _as_array(X).chunks[0]
    known = not any(np.isnan(size) for size in (*wanted, *rows.chunks[0]))
    if known and rows.chunks[0] != wanted:
        rows = rows.rechunk({0: wanted})
    return list(rows.to_delayed().ravel())


def _as_array(data: Any) -> Any:
    """Return a Dask array that is cut along the rows alone."""
    array = data.to_dask_array() if _is_frame(data) else data
    return array.rechunk({1: -1}) if array.ndim == 2 and len(array.chunks[1]) > 1 else array


def _is_collection(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "dask"


def _is_frame(data: Any) -> bool:
    return hasattr(data, "to_dask_array")
