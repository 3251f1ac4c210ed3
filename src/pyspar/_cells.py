"""Rows of any kind into cells: what the shell adds to ``pyspar.core.cells`` and ``pyspar.core.leave_one_out``."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.candidates import Asked
from pyspar.core.cells import LOOKED_AT, Cells
from pyspar.core.faint import along
from pyspar.core.leave_one_out import MOST_ROWS, ask
from pyspar.core.moments import Moments, Solver, measured_eps
from pyspar.core.partition import moments_of_groups
from pyspar.core.ridge import RidgeBelief
from pyspar.core.scaling import inverse
from pyspar.sources import kind_of, moments_of
from pyspar.sources.stream import worth_a_product

Rows: TypeAlias = tuple[Any, Any, Any]
"""X, y and weights or None."""

SAMPLE_BYTES = 64_000_000


def cells_of(before: Cells | None, X: Any, y: Any, sample_weight: Any, *, solver: Solver) -> Cells | None:
    """Return the cells with more rows, made from these rows where there are none; None where rows cannot be told apart.

    The rows were checked before. Dask collections are left alone: their rows lie elsewhere, and would be read again.
    """
    kind = kind_of(X)
    if kind == "dask":
        return None
    eps = measured_eps(X)
    X, y, weight = _present(_plain(X, kind), _plain(y, kind_of(y)), sample_weight)
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
    X, y = (_in_memory(part) if kind_of(part) == "torch" else part for part in (X, y))
    X, y, weight = _present(X, y, sample_weight)
    y = np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1)
    return ask(belief, inverse(scale), X, y, weight)


def check_gathered(moments: Moments, cells: Any, rows: Any) -> None:
    """Refuse cells and rows that are not those of the moments, before anything is changed."""
    if cells is not None and not isinstance(cells, Cells):
        raise TypeError(f"cells must be Cells of the rows behind the moments. Got {type(cells).__name__} instead.")
    if cells is not None:
        outputs = {each.n_outputs for each in cells.occupied()} or {moments.n_outputs}
        found = len(cells.slopes), *outputs
        if found != (moments.n_features, moments.n_outputs):
            raise ValueError(
                f"cells must have the {moments.n_features} features and {moments.n_outputs} output(s) of the moments. "
                f"Got {len(cells.slopes)} and {' or '.join(map(str, sorted(outputs)))}; gather both from the same rows."
            )
    if rows is None:
        return
    if not isinstance(rows, tuple) or len(rows) != 3:
        raise TypeError("rows must be a tuple of X, y and weights, which may be None. Got something else.")
    X, y, weight = (np.asarray(part, dtype=np.float64) for part in (*rows[:2], 1.0 if rows[2] is None else rows[2]))
    n = len(X) if X.ndim == 2 and X.shape[1] == moments.n_features else 0
    if n == 0 or y.size != n * moments.n_outputs or weight.shape not in ((), (n,)):
        raise ValueError(
            f"rows must be X of shape (n, {moments.n_features}), y with {moments.n_outputs} label(s) for each, and "
            f"weights of shape (n,) or None. Got shapes {X.shape}, {y.shape} and {weight.shape}."
        )
    if not all(np.isfinite(part).all() for part in (X, y, weight)):
        raise ValueError("rows must be finite. Got NaN or infinity; leave those rows out.")


class Sample:
    """Every row of a stream, or every second, fourth, …: no more than leave-one-out asks, or fit into some memory."""

    def __init__(self) -> None:
        self._kept: list[Rows] = []
        self._step = 1
        self._seen = self._rows = 0

    def add(self, X: Any, y: Any, weight: Any) -> None:
        """Take in rows that nobody changes later."""
        start = -self._seen % self._step
        self._seen += len(X)
        self._keep(X[start :: self._step], y[start :: self._step], weight[start :: self._step])
        most = min(MOST_ROWS, max(SAMPLE_BYTES // (X.itemsize * X.shape[1]), 2))
        while self._rows > most:
            X, y, weight = (np.concatenate(part)[::2] for part in zip(*self._kept, strict=True))
            self._step, self._kept, self._rows = 2 * self._step, [], 0
            self._keep(X, y, weight)

    def rows(self) -> Rows | None:
        """Return X, y and weights; None if there were no rows."""
        if not self._kept:
            return None
        X, y, weight = (np.concatenate(part) for part in zip(*self._kept, strict=True))
        return X, y, weight

    def _keep(self, X: Any, y: Any, weight: Any) -> None:
        self._kept.append((X.copy(), y.copy(), weight.copy()))  # a view would keep every row it was taken from
        self._rows += len(X)


class Gathering:
    """Cells from a stream of batches, gathered until a block is worth its products, and a sample of its rows."""

    def __init__(self, solver: Solver) -> None:
        self.cells: Cells | None = None
        self.sample = Sample()
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

    def along(self, directions: Matrix) -> tuple[Cells | None, Rows | None]:
        """Return cells and sample of rows that have nothing but some directions left, one in each row of these."""
        cells, rows = self.flush(), self.sample.rows()
        if cells is None or rows is None:
            return None, None
        found = tuple(None if each is None else along(directions, each) for each in cells.moments)
        return replace(cells, moments=found), ((rows[0] @ directions.T) @ directions, *rows[1:])

    def flush(self) -> Cells | None:
        """Put what waits into cells, and return them."""
        if self._rows:
            X, y, weight = (np.concatenate([part[i] for part in self._waiting]) for i in range(3))
            self.cells = cells_of(self.cells, X, y, weight, solver=self._solver)
            self.sample.add(X, y, weight)
        self._waiting, self._rows = [], 0
        return self.cells


def _present(X: Any, y: Any, sample_weight: Any) -> Rows:
    """Return the rows that have a weight: one of weight zero is absent, whatever it holds."""
    if sample_weight is None:
        return X, y, None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.all():
        return X, y, weight
    there = np.flatnonzero(weight)
    return X[there], y[there], weight[there]


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
