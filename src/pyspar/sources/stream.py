"""Batches: fold any iterable of row blocks into Moments, each row read once, memory independent of their number.

Small batches are gathered until a block is worth a matrix product; the block is in memory, so it can be multiplied
twice where one product would lose digits, and blocks are merged as roots, by QR. That keeps QR's accuracy for rows that
can be read only once, at the price of a product.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from pyspar.core.moments import Moments, Solver, column_names, measured_eps, refuse_masked
from pyspar.sources.kinds import features_of_batch, refuse_dates, refuse_extreme_weights
from pyspar.sources.sparse import moments_of_sparse

_BLOCK_BYTES = 64_000_000


def moments_of_batches(batches: Iterable[Any], *, labelled: bool, solver: Solver = "auto") -> Moments:
    """Fold batches into Moments.

    A labelled batch is ``(X, y)`` or ``(X, y, sample_weight)``; of an unlabelled one only the rows X count, given
    alone or first in a tuple.
    """
    fold = _Fold(solver)
    for number, batch in enumerate(batches):
        fold.add(number, *_parts(batch, labelled, number))
    return fold.result()


class _Fold:
    """The running total, and batches that are waiting to be worth a product."""

    def __init__(self, solver: Solver) -> None:
        self._solver: Solver = solver
        self._total: Moments | None = None
        self._waiting: list[tuple[int, Any, Any, Any]] = []
        self._rows = 0
        self._columns: tuple[int, int] | None = None
        self._kind: Any = None

    def add(self, number: int, X: Any, y: Any, weight: Any) -> None:
        for name, part in (("X", X), ("y", y), ("sample_weight", weight)):
            refuse_masked(f"batch {number}: {name}", part)
        for name, part in (("X", X), ("y", y)):
            refuse_dates(f"batch {number}: {name}", part)
        refuse_extreme_weights(f"batch {number}: sample_weight", weight)
        eps, names, sparse = measured_eps(X), column_names(X), sp.issparse(X)
        X = sp.csr_array(X) if sparse else np.asarray(X)
        rows = X.shape[0] if X.ndim else 0
        y = np.empty((rows, 0)) if y is None else np.asarray(y)
        y = y[:, None] if y.ndim == 1 else y
        if X.ndim != 2:
            raise ValueError(f"batch {number} must be a table of rows and columns. Got shape {X.shape} instead.")
        shape = (X.shape[1], y.shape[1])
        self._columns = self._columns or shape
        if shape != self._columns:
            raise ValueError(
                f"batch {number} has {shape[0]} features and {shape[1]} outputs, the first had {self._columns[0]} and "
                f"{self._columns[1]}."
            )
        if rows == 0:
            return
        kind = (X.dtype, tuple(np.atleast_1d(eps)), names, weight is None, sparse)
        if self._waiting and kind != self._kind:
            self._reduce()
        self._kind = kind
        self._rows += rows
        enough = self._rows >= worth_a_product(sum(shape) + 1)
        # A batch that has to wait is copied: its producer may well fill the same array with the next one.
        parts = (
            (X, y, weight)
            if enough
            else (X.copy(), np.array(y), None if weight is None else np.array(weight, dtype=np.float64))
        )
        self._waiting.append((number, *parts))
        if enough:
            self._reduce()

    def result(self) -> Moments:
        self._reduce()
        if self._total is None:
            raise ValueError("the batches must hold at least one row. Got none; is the iterator used up?")
        return self._total

    def _reduce(self) -> None:
        if not self._waiting:
            return
        eps, names = np.array(self._kind[1]), self._kind[2]
        X, y, weight = (_joined([part[k] for part in self._waiting]) for k in (1, 2, 3))
        try:
            block = _summary(X, y, weight, self._solver, eps)
        except ValueError:
            self._blame()
            raise
        block = replace(block, names=names)
        self._total = block if self._total is None else self._total + block
        self._waiting, self._rows = [], 0

    def _blame(self) -> None:
        """Name the batch that was refused, among those that were gathered."""
        for number, X, y, weight in self._waiting:
            try:
                _summary(X, y, weight, self._solver)
            except ValueError as error:
                raise ValueError(f"batch {number}: {error}") from None


def worth_a_product(columns: int) -> int:
    """Return how many rows make merging a block cheap beside multiplying it, within a bounded memory."""
    return int(max(2 * columns, min(50 * columns, _BLOCK_BYTES // (8 * columns))))


def _summary(X: Any, y: Any, weight: Any, solver: Solver, eps: Any = None) -> Moments:
    if sp.issparse(X):
        return moments_of_sparse(X, y, weight, solver=solver)
    return Moments.of(X, y, weight, solver=solver, eps=eps)


def _joined(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _parts(batch: Any, labelled: bool, number: int) -> tuple[Any, Any, Any]:
    if not labelled:
        return features_of_batch(batch), None, None
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise ValueError(
            f"batch {number} must be (X, y) or (X, y, sample_weight). Got a {type(batch).__name__} instead."
        )
    X, y = batch[0], batch[1]
    weight = batch[2] if len(batch) == 3 else None
    if sp.issparse(y):
        raise ValueError(f"batch {number} must have labels in an array. Got a sparse matrix; pass y.toarray().")
    rows = X.shape[0] if sp.issparse(X) else len(X)
    if len(np.shape(y)) == 0 or len(y) != rows:
        raise ValueError(f"batch {number} has {rows} rows and labels of shape {np.shape(y)}.")
    return X, y, weight


def read_ahead(items: Iterable[Any], depth: int = 2) -> Generator[Any]:
    """Yield items that a thread reads while the last one is being worked on, so that the two overlap.

    An error of the reader is raised here; leaving early, by an error or Ctrl-C, stops the reader.
    """
    import queue
    import threading

    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(entry: tuple[bool, Any]) -> bool:
        while not stop.is_set():
            try:
                ready.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def read() -> None:
        reader = iter(items)
        try:
            for item in reader:
                if not put((True, item)):
                    return
            put((False, None))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for the items
            put((False, error))
        finally:
            if hasattr(reader, "close"):
                reader.close()  # in the thread that reads, so that files are closed when this one goes on

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while True:
            more, item = ready.get()
            if not more:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        thread.join()
