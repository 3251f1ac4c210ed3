"""Rows of any kind into cells: what the shell adds to ``pyspar.core.cells`` and ``pyspar.core.leave_one_out``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pyspar.core.arrays import Vector
from pyspar.core.candidates import Asked
from pyspar.core.cells import LOOKED_AT, Cells
from pyspar.core.leave_one_out import ask
from pyspar.core.moments import Moments, Solver, measured_eps
from pyspar.core.partition import moments_of_groups
from pyspar.core.ridge import RidgeBelief
from pyspar.core.scaling import inverse
from pyspar.sources import kind_of, moments_of
from pyspar.sources.stream import worth_a_product


def cells_of(before: Cells | None, X: Any, y: Any, sample_weight: Any, *, solver: Solver) -> Cells | None:
    """Return the cells with more rows, made from these rows where there are none; None where rows cannot be told apart.

    The rows were checked before. Dask collections are left alone: their rows lie elsewhere, and would be read again.
    """
    kind = kind_of(X)
    if kind == "dask":
        return None
    eps = measured_eps(X)
    X, y, weight = _plain(X, kind), _plain(y, kind_of(y)), None if sample_weight is None else np.asarray(sample_weight)
    cells = Cells.around(_first_rows(X, kind)) if before is None else before
    place = _nearest(cells, X, kind)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(cells.moments) + 1))
    groups = [order[start:stop] for start, stop in pairwise(bounds)]
    # A strength is chosen among a few and needs no tenth digit: the rows of a cell are multiplied once.
    once: Solver = "qr" if solver == "qr" else "gram"
    if kind == "rows":
        return cells.plus(moments_of_groups(X, y, weight, groups, eps, solver=once))
    found: list[Moments | None] = []
    for index in groups:
        part = None if weight is None else weight[index]
        if not len(index) or (part is not None and not part.any()):
            found.append(None)
            continue
        # Where rows are fewer than the columns, QR is as cheap and its root has no more rows than they.
        found.append(moments_of(X[index], y[index], part, solver="qr" if len(index) <= X.shape[1] else once))
    return cells.plus(found)


def asked_of(belief: RidgeBelief, scale: Vector, X: Any, y: Any, sample_weight: Any) -> Asked | None:
    """Return the penalties that leave-one-out asks for; None where the rows lie elsewhere."""
    kind = kind_of(X)
    if kind == "dask":
        return None
    X, y = _plain(X, kind), _plain(y, kind_of(y))
    X, y = (part.cpu() if kind_of(part) == "torch" else part for part in (X, y))
    y = np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight is not None and not weight.all():  # a row of weight zero is absent, whatever it holds
        there = np.flatnonzero(weight)
        X, y, weight = X[there], y[there], weight[there]
    return ask(belief, inverse(scale), X, y, weight)


class Gathering:
    """Cells from a stream of batches, gathered until a block is worth its products."""

    def __init__(self, solver: Solver) -> None:
        self.cells: Cells | None = None
        self._solver: Solver = solver
        self._waiting: list[tuple[Any, Any, Any]] = []
        self._rows = 0

    def add(self, batch: Any) -> None:
        """Take in ``(X, y)`` or ``(X, y, sample_weight)``, which was checked before."""
        X, y, weight = (*batch, None)[:3]
        X, y = (_in_memory(part) for part in (X, y))
        weight = np.ones(len(X)) if weight is None else np.array(weight, dtype=np.float64)
        self._waiting.append((X, y, weight))
        self._rows += len(X)
        # As much as the moments wait for, so that they refuse NaN first, and name its batch.
        columns = X.shape[1] + (1 if y.ndim == 1 else y.shape[1]) + 1
        if self._rows >= max(worth_a_product(columns), LOOKED_AT):
            self.flush()

    def flush(self) -> Cells | None:
        """Put what waits into cells, and return them."""
        if self._rows:
            X, y, weight = (np.concatenate([part[i] for part in self._waiting]) for i in range(3))
            self.cells = cells_of(self.cells, X, y, weight, solver=self._solver)
        self._waiting, self._rows = [], 0
        return self.cells


def _plain(rows: Any, kind: str) -> Any:
    if kind == "sparse":
        return rows.tocsr()
    if kind == "torch":
        return rows.detach() if rows.is_floating_point() else rows.detach().double()
    rows = np.asarray(rows)
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)


def _in_memory(rows: Any) -> Any:
    """Return a copy of a batch as an array: its producer may well fill the same memory with the next one."""
    if kind_of(rows) == "torch":
        rows = rows.detach().cpu()
        rows = rows if str(rows.dtype) in ("torch.float32", "torch.float64") else rows.double()
    return np.array(_plain(rows, "rows"))


def _first_rows(X: Any, kind: str) -> Any:
    step = max(1, X.shape[0] // LOOKED_AT)
    rows = X[::step][:LOOKED_AT]
    if kind == "sparse":
        rows = rows.toarray()
    elif kind == "torch":
        rows = rows.double().cpu().numpy()
    return np.asarray(rows, dtype=np.float64)


def _nearest(cells: Cells, X: Any, kind: str) -> Any:
    if kind != "torch":
        return cells.nearest(X)
    slopes, offsets = X.new_tensor(cells.slopes), X.new_tensor(cells.offsets)
    return (X @ slopes - offsets).argmax(1).cpu().numpy()
