"""Partition: the moments of every group of rows, in few and large operations.

Groups are many and small: one by one they would cost more in calls than in arithmetic. The rows of a group that has
more of them than columns are multiplied, and all products are factored at once. Fewer rows are their own root, once a
reflection has turned the column of ones into ``(|1|, 0, ..., 0)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyspar.core.accumulate import BLUR, pivoted_root, squares_are_safe
from pyspar.core.arrays import SAFE_SQUARES, Matrix, Rows, Vector
from pyspar.core.moments import Moments, Solver

Places = NDArray[np.intp]

_LARGE = 100_000
"""A group of so many numbers costs more in arithmetic than in calls, and is summarised alone."""

_ROUNDED = 1e-18
"""Of the scatter: what the rounding of a mean may add to it without being taken out."""

_PIVOT = 1e-6
"""A Cholesky factor (columns at unit length) with no smaller pivot has met no column that depends on others."""


def moments_of_groups(
    X: Rows, Y: Rows, weight: Vector | None, groups: Sequence[Places], eps: float | Vector, *, solver: Solver
) -> list[Moments | None]:
    """Return the moments of the rows of each group, given by their places; None for a group of no weight.

    For "qr" a group of more rows than columns is folded by QR, else it is multiplied once.

    >>> X, Y = np.array([[1.0], [3.0], [8.0]]), np.array([[0.0], [2.0], [4.0]])
    >>> groups = [np.array([0, 1]), np.array([], dtype=int), np.array([2])]
    >>> pair, none, single = moments_of_groups(X, Y, None, groups, 1e-16, solver="gram")
    >>> pair.mean, none, single.mean
    (array([2., 1.]), None, array([8., 4.]))
    """
    n, d = X.shape
    if weight is not None and not weight.all():  # a row of weight zero is absent, whatever it holds
        groups = [index[weight[index] > 0.0] for index in groups]
    Y = Y.reshape(n, -1)
    columns = d + Y.shape[1]
    there = [j for j, index in enumerate(groups) if len(index)]
    small = [j for j in there if len(groups[j]) <= columns or (solver != "qr" and len(groups[j]) * d <= _LARGE)]
    roots: dict[int, Matrix] = {}
    for run in _runs(small, [len(groups[j]) * d for j in small]):
        roots.update(zip(run, _roots(X, Y, weight, [groups[j] for j in run]), strict=True))
    precision = np.broadcast_to(np.asarray(eps, dtype=np.float64), (d,))
    found: list[Moments | None] = [None] * len(groups)
    for j in there:
        index, few = groups[j], len(groups[j]) <= columns
        own = None if weight is None else weight[index]
        if j in roots and np.isfinite(roots[j]).all():
            total = float(len(index) if own is None else own.sum())
            found[j] = Moments(roots[j], d, len(index), total, precision, 0.0 if few else BLUR)
        else:
            found[j] = Moments.of(X[index], Y[index], own, solver="qr" if few else solver, eps=eps)
    return found


def _runs(places: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Cut a list into runs that are not large together, or of one alone."""
    runs: list[list[int]] = []
    room = 0
    for place, size in zip(places, sizes, strict=True):
        if size > room:
            runs.append([])
            room = 10 * _LARGE
        runs[-1].append(place)
        room -= size
    return runs


def _roots(X: Rows, Y: Rows, weight: Vector | None, groups: Sequence[Places]) -> list[Matrix]:
    """Return a root of ``[1 | X | Y]`` for each group; NaN where its squares left the range of float64."""
    d, columns = X.shape[1], X.shape[1] + Y.shape[1]
    sizes = np.array([len(index) for index in groups])
    stops = np.cumsum(sizes)
    starts = stops - sizes
    rows = np.empty((stops[-1], columns))
    for start, stop, index in zip(starts, stops, groups, strict=True):
        rows[start:stop, :d], rows[start:stop, d:] = X[index], Y[index]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        heads, ones, offsets = _centred(rows, None if weight is None else weight[np.concatenate(groups)], starts, sizes)
        parts = [rows[start:stop] for start, stop in zip(starts, stops, strict=True)]
        many = [j for j, part in enumerate(parts) if len(part) > columns]
        scatters = np.empty((len(many), columns, columns))
        for scatter, j in zip(scatters, many, strict=True):
            np.matmul(parts[j].T, parts[j], out=scatter)
        if (offsets[many] ** 2 > _ROUNDED * np.einsum("jii->ji", scatters)).any():
            scatters -= offsets[many, :, None] * offsets[many, None, :]
    bodies = dict(zip(many, _factors(scatters, [parts[j] for j in many]), strict=True))
    roots = []
    for j, part in enumerate(parts):
        if j not in bodies:
            u = ones[starts[j] : stops[j]]
            bodies[j] = part[1:] - np.outer(u[1:], (offsets[j] + part[0]) / (1.0 + u[0]))
        root = np.zeros((1 + len(bodies[j]), 1 + columns))
        root[0], root[1:, 1:] = heads[j], bodies[j]
        roots.append(root)
    return roots


def _centred(rows: Matrix, weight: Vector | None, starts: Places, sizes: Places) -> tuple[Matrix, Vector, Matrix]:
    """Take the mean of each group out of its rows and multiply them by the roots of their weights, in place.

    Return the first row of each group's root, the column of ones, in each group at unit length, and what of the rows is
    still along it: the mean is rounded.
    """
    total = sizes.astype(np.float64) if weight is None else np.add.reduceat(weight, starts)
    weighted = rows if weight is None else rows * weight[:, None]
    means = np.add.reduceat(weighted, starts) / total[:, None]
    for start, size, mean in zip(starts, sizes, means, strict=True):
        rows[start : start + size] -= mean
    if weight is None:
        ones = np.repeat(1.0 / np.sqrt(total), sizes)
        offsets = np.add.reduceat(rows, starts) / np.sqrt(total)[:, None]
    else:
        rows *= np.sqrt(weight)[:, None]
        ones = np.sqrt(weight / np.repeat(total, sizes))
        offsets = np.add.reduceat(rows * ones[:, None], starts)
    length = np.sqrt(total)[:, None]
    return np.hstack([length, length * means + offsets]), ones, offsets


def _factors(scatters: Matrix, parts: Sequence[Matrix]) -> list[Matrix]:
    """Return a root of each scatter, the product of a part, which is overwritten; NaN where squares left range."""
    if not parts:
        return []
    squares = np.einsum("jii->ji", scatters)
    low, high = SAFE_SQUARES
    empty, unsafe = squares <= low, np.zeros(len(parts), dtype=bool)
    if empty.any() or not squares.max() < high:
        unsafe = np.array([not squares_are_safe(own, [part]) for own, part in zip(squares, parts, strict=True)])
        scatters[unsafe] = np.eye(scatters.shape[1])
        empty = squares <= low
    lengths = np.sqrt(np.where(empty, 1.0, squares))
    unit = scatters
    unit /= lengths[:, :, None]
    unit /= lengths[:, None, :]
    np.einsum("jii->ji", unit)[empty] = 1.0  # such a column overlaps with none, and is made empty again below
    lengths[empty] = 0.0
    lengths[unsafe] = np.nan
    return [factor * length for factor, length in zip(_triangles(unit), lengths, strict=True)]


def _triangles(unit: Matrix) -> list[Matrix]:
    """Return the Cholesky factor of each product, a pivoted one where columns depend on others."""
    try:
        factors = np.linalg.cholesky(unit).swapaxes(1, 2)
    except np.linalg.LinAlgError:
        return [_triangles(one[None])[0] for one in unit] if len(unit) > 1 else [pivoted_root(unit[0])]
    sure = np.einsum("jii->ji", factors).min(axis=1) > _PIVOT
    return [factors[j] if sure[j] else pivoted_root(unit[j]) for j in range(len(unit))]
