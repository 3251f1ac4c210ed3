"""Spectrum: the singular values and right singular vectors of a data set, without directions that are rounding.

A direction is kept if it is longer than the rounding error of the rows can make it. The bound on the rounding error of
a column is 8 eps (``ROUNDING_SLACK``) times the column's length, at the precision in which the column was stored, not
that of the computation: float32 features converted to float64 have rounding errors of 1e-7, and ``1 / lambda_x**2``
would make such an error the largest Var_z. The bound is relative to the length, so it has no factor for the number of
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, TypeAlias

import numpy as np

from pyspar.core.accumulate import GRAM_SPREAD, is_well_conditioned
from pyspar.core.arrays import EPS64, Mask, Matrix, Vector
from pyspar.core.linalg import algebra, power_of_two, root_sum_squares, thin_svd
from pyspar.core.moments import Moments

Solve: TypeAlias = Callable[[Matrix], Matrix]
"""A function that returns the least-squares solution of minimum norm for a root of the outputs."""

ROUNDING_SLACK = 8.0
"""The bound on the rounding error of a column, in eps times its length. Storing a column costs at most half an eps."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values of a data matrix, descending, and their right singular vectors.

    Attributes
    ----------
    lam : array of shape (rank,)
        The singular values; all positive.
    V : array of shape (D, rank)
        Column j is the direction of ``lam[j]``.
    rounding : array of shape (D,)
        The bound on the rounding error of each column. The rounding error of a combination ``e`` of columns is at most
        ``|e|' rounding``.

    Examples
    --------
    >>> import numpy as np
    >>> s = Spectrum.of(np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> s.lam, s.rank
    (array([3., 2.]), 2)
    """

    lam: Vector
    V: Matrix
    rounding: Vector

    @classmethod
    def of(cls, data: Any) -> Spectrum:
        """Return the spectrum of rows, or of their Moments, about the origin, as in the paper."""
        moments = data if isinstance(data, Moments) else Moments.of(data)
        return cls.about(moments, np.zeros(moments.n_features))

    @classmethod
    def about(cls, data: Moments, origin: Vector) -> Spectrum:
        """Return the spectrum of the features of a data set about an origin."""
        features = data.without_outputs()
        # Rounding occurred in the data as measured, so a large common offset counts, and so does the subtracted origin.
        lengths = np.hypot(features.column_lengths(), np.abs(origin) * np.sqrt(data.weight))
        return decompose(features.root_about(origin), lengths, features.eps, features.blur)[0]

    @property
    def rank(self) -> int:
        return int(self.lam.size)

    @property
    def n_features(self) -> int:
        return int(self.V.shape[0])


def outside_share(x: Spectrum, z: Spectrum) -> Vector:
    """Return the share of each target direction that lies outside the span of the source.

    ``thm:ols_loss`` does not cover this part: its least-squares weight is zero, and the labels carry no information
    about it.
    """
    return np.asarray(np.clip(1.0 - ((x.V.T @ z.V) ** 2).sum(axis=0), 0.0, 1.0))


def decompose(root: Matrix, column_lengths: Vector, eps: Vector, blur: float = 0.0) -> tuple[Spectrum, Solve]:
    """Return the spectrum of a root without directions that are rounding, and the least-squares solver on it.

    ``column_lengths`` are those of the data as measured, before centring, because the measured data were rounded.
    ``blur`` is the share of a column's length in the root below which the root is inaccurate. The fastest method that
    keeps the digits is used:

    ==========================================================  ======================
    root                                                        method
    ==========================================================  ======================
    at least as many rows as columns, smallest singular value   eigenproblem of R'R
    at least 1e-3 of the largest
    fewer rows than columns, likewise                           eigenproblem of RR'
    otherwise, or if a direction may be rounding                SVD, with the rank
                                                                decided column by column
    ==========================================================  ======================
    """
    size = power_of_two(float(np.maximum.reduce(column_lengths, initial=0.0)))
    size = 1.0 if 1e-100 < size < 1e100 else size  # squares in this range are safe, so no scaled copy is needed
    root = root if size == 1.0 else root / size
    lengths = root_sum_squares(root)
    rounding = np.maximum(ROUNDING_SLACK * eps * (column_lengths / size), blur * lengths)
    svd: Svd | None
    limit = rounding
    if len(root) >= len(lengths):
        svd = _svd_by_square(root)
    else:  # with fewer directions than columns, no direction is short because of a constant column
        varies = lengths > rounding
        limit = np.where(varies, rounding, 0.0)
        svd = _svd_by_short_square(root if varies.all() else np.where(varies, root, 0.0))
    if svd is None or svd.lam[-1] <= sqrt(limit @ limit):
        svd = _svd_without_rounding(root, lengths, rounding)
    solve = svd.solve
    return Spectrum(svd.lam * size, svd.V, rounding * size), lambda outputs: solve(outputs) / size


@dataclass(frozen=True, eq=False)
class Svd:
    """Singular values and right singular vectors of a root, and the least-squares solver on them."""

    lam: Vector
    V: Matrix
    solve: Solve


def _svd_by_square(root: Matrix) -> Svd | None:
    """Return the SVD by an eigenproblem, which is three times faster; None if it would lose digits.

    The condition is the same for float32 columns. Their rounding limits the accuracy of each column, but a solution
    that loses more digits than that is wrong for a small column.
    """
    squares, V = algebra().gram_eigen(root)
    if not squares.size or squares[-1] <= 0.0 or squares[-1] < GRAM_SPREAD**2 * squares[0]:
        return None

    def solve(outputs: Matrix) -> Matrix:
        return np.asarray(V @ ((V.T @ (root.T @ outputs)) / squares[:, None]))

    return Svd(np.sqrt(squares), V, solve)


def _svd_by_short_square(root: Matrix) -> Svd | None:
    """Return the SVD of a root with fewer rows than columns by an eigenproblem of its rows; None if digits are lost."""
    # A tenth of the cost of the eigenproblem, unless the columns are so many that the product costs more than both.
    if root.shape[1] < 10 * len(root) and not is_well_conditioned(root @ root.T):
        return None
    squares, U = algebra().gram_eigen(root.T)
    if not squares.size or squares[-1] < GRAM_SPREAD**2 * squares[0]:
        return None
    lam = np.sqrt(squares)
    V = root.T @ (U / lam)
    # The columns of V are orthogonal to the digits that the square kept. One Newton step doubles their number.
    V = V @ (1.5 * np.eye(len(root)) - 0.5 * (V.T @ V))
    return _svd_of(U, lam, V)


def right_svd(root: Matrix) -> tuple[Vector, Matrix]:
    """Return the singular values of any matrix and its right singular vectors, by the fastest accurate method.

    >>> right_svd(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))[0]
    array([2., 1.])
    """
    svd = _svd_by_short_square(root) if len(root) < root.shape[1] else None
    if svd is not None:
        return svd.lam, svd.V
    _, lam, Vt = thin_svd(root)
    return lam, Vt.T


def _svd_of(U: Matrix, lam: Vector, V: Matrix) -> Svd:
    return Svd(lam, V, lambda outputs: np.asarray(V @ ((U.T @ outputs) / lam[:, None])))


def _svd_without_rounding(root: Matrix, lengths: Vector, rounding: Vector) -> Svd:
    """Return the SVD without directions that may be rounding.

    Rounding changes a combination v of columns by at most the sum of ``|v_j| rounding_j``. Directions up to this length
    are dropped; this is the only rank tolerance. The columns are scaled to unit length for the comparison, so a small
    feature next to a large one is kept, while a combination that cancels is dropped. A column that does not exceed its
    rounding bound is constant and has no weight.
    """
    varies = lengths > rounding
    scale = np.where(varies, lengths, 1.0)
    U, lam, Vt = thin_svd(root / np.where(varies, lengths, np.inf))
    limit = np.maximum(np.abs(Vt) @ np.where(varies, rounding / scale, 0.0), ROUNDING_SLACK * EPS64)
    U, lam, Vt = U[:, lam > limit], lam[lam > limit], Vt[lam > limit]
    if len(lam) < varies.sum():
        return _truncated_svd((U * lam) @ (Vt * scale), len(lam), varies)

    def solve_at_unit_length(outputs: Matrix) -> Matrix:
        # The solution for independent columns does not depend on their scale, and unit lengths lose no digits.
        return np.asarray((Vt.T @ ((U.T @ outputs) / lam[:, None])) / scale[:, None] * varies[:, None])

    clean = root if varies.all() else (U * lam) @ (Vt * scale)
    return replace(_truncated_svd(clean, len(lam), varies), solve=solve_at_unit_length)


def _truncated_svd(root: Matrix, rank: int, varies: Mask) -> Svd:
    """Return the SVD of a root with at most ``rank`` directions and no weight on columns that do not vary."""
    U, lam, Vt = thin_svd(root)
    rank = min(rank, int((lam > 0.0).sum()))
    return _svd_of(U[:, :rank], lam[:rank], np.where(varies[:, None], Vt[:rank].T, 0.0))
