"""Spectrum: the singular values and right singular vectors that a data set really has.

A direction exists if it is longer than the rounding of the rows can make it. Storing x in floating point moves a
column by at most ``eps / 2`` of its length; sixteen times that counts as its noise. It follows the precision the column
was *measured* in, not the one we compute in: float32 features lifted to float64 carry rounding noise of 1e-7, and
``1 / lambda_x**2`` would make that noise the largest Var_z of all. It does not grow with the number of rows, because
the noise of a row does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, TypeAlias

import numpy as np

from pyspar.core.accumulate import GRAM_SPREAD, is_well_conditioned
from pyspar.core.arrays import EPS64, Mask, Matrix, Vector
from pyspar.core.linalg import algebra, power_of_two, root_sum_squares, thin_svd
from pyspar.core.moments import Moments

Solve: TypeAlias = Callable[[Matrix], Matrix]
"""The least-squares solution of minimum norm, as a function of the outputs' root."""

ROUNDING_SLACK = 8.0
"""How many machine epsilons of a column count as its noise; storing it costs at most half of one."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values of a data matrix, descending, and their right singular vectors.

    Attributes
    ----------
    lam : array of shape (rank,)
        The singular values; all positive.
    V : array of shape (D, rank)
        Column j is the direction of ``lam[j]``.
    noise : array of shape (D,)
        The length that each column may have by rounding alone. A combination ``e`` of columns may have the length
        ``|e|' noise`` by rounding alone.

    Examples
    --------
    >>> import numpy as np
    >>> s = Spectrum.of(np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> s.lam, s.rank
    (array([3., 2.]), 2)
    """

    lam: Vector
    V: Matrix
    noise: Vector

    @classmethod
    def of(cls, data: Any) -> Spectrum:
        """Return the spectrum of rows, or of their Moments, about the origin (as the paper has it)."""
        moments = (data if isinstance(data, Moments) else Moments.of(data)).without_outputs()
        root = moments.root_about(np.zeros(moments.n_features))
        return decompose(root, moments.column_lengths(), moments.eps, moments.blur)[0]

    @property
    def rank(self) -> int:
        return int(self.lam.size)

    @property
    def n_features(self) -> int:
        return int(self.V.shape[0])


def decompose(root: Matrix, column_lengths: Vector, eps: Vector, blur: float = 0.0) -> tuple[Spectrum, Solve]:
    """Return the spectrum of the directions that exist behind a root, and the least-squares solver on them.

    ``column_lengths`` are those of the data as measured, before any centring: that is what was rounded. ``blur`` is the
    share of a column's own length in the root below which the root itself is not to be trusted.
    """
    size = power_of_two(float(np.maximum.reduce(column_lengths, initial=0.0)))
    size = 1.0 if 1e-100 < size < 1e100 else size  # the squares are safe, and a copy of the root is saved
    root = root if size == 1.0 else root / size
    own = root_sum_squares(root)
    noise = np.maximum(ROUNDING_SLACK * eps * (column_lengths / size), blur * own)
    if len(root) >= len(own):
        found = _through_the_square(root)
    else:  # a constant column is not found by the length of directions when there are fewer of these than columns
        found = _through_the_shorter_square(root) if (own > noise).all() else None
    if found is None or found[0][-1] <= sqrt(noise @ noise):
        found = _without_rounding(root, own, noise)
    lam, V, solve = found
    return Spectrum(lam * size, V, noise * size), lambda outputs: solve(outputs) / size


def _through_the_square(root: Matrix) -> tuple[Vector, Matrix, Solve] | None:
    """Return the SVD by way of an eigenproblem, three times faster, where that keeps the digits; else None.

    The rule is the same for float32 columns: their rounding limits what is known of each column, but a solution that
    loses more digits than that to a small column is a wrong solution for that column.
    """
    squares, V = algebra().squares_and_vectors(root)
    if not squares.size or squares[-1] <= 0.0 or squares[-1] < GRAM_SPREAD**2 * squares[0]:
        return None
    return np.sqrt(squares), V, lambda outputs: np.asarray(V @ ((V.T @ (root.T @ outputs)) / squares[:, None]))


def _through_the_shorter_square(root: Matrix) -> tuple[Vector, Matrix, Solve] | None:
    """Return the same of fewer rows than columns, of which all are independent."""
    if not is_well_conditioned(root @ root.T, GRAM_SPREAD):  # a tenth of the price of the eigenproblem
        return None
    squares, U = algebra().squares_and_vectors(root.T)
    if not squares.size or squares[-1] < GRAM_SPREAD**2 * squares[0]:
        return None
    lam = np.sqrt(squares)
    V = root.T @ (U / lam)
    # They are orthogonal to as many digits as the square left; one step of Newton's method doubles their number.
    V = 1.5 * V - 0.5 * (V @ (V.T @ V))
    return lam, V, lambda outputs: np.asarray(V @ ((U.T @ outputs) / lam[:, None]))


def _without_rounding(root: Matrix, own: Vector, noise: Vector) -> tuple[Vector, Matrix, Solve]:
    """Return the SVD without what may be rounding, judged with the columns at unit length.

    Rounding moves a combination v of columns by at most the sum of ``|v_j| noise_j``: the one rank tolerance. Judged
    column by column, a small feature beside a huge one stays, while a combination that cancels goes; a column that does
    not even exceed its own noise is a constant, and gets no weight at all.
    """
    varies = own > noise
    scale = np.where(varies, own, 1.0)
    U, lam, Vt = thin_svd(np.where(varies, root / scale, 0.0))
    kept = lam > np.maximum(np.abs(Vt) @ np.where(varies, noise / scale, 0.0), ROUNDING_SLACK * EPS64)
    U, lam, Vt = U[:, kept], lam[kept], Vt[kept]
    independent = int(kept.sum()) == int(varies.sum())
    clean = root if independent and varies.all() else (U * lam) @ (Vt * scale)
    raw_lam, V, solve = _svd(clean, int(kept.sum()), varies)

    def solve_at_unit_length(outputs: Matrix) -> Matrix:
        # With independent columns the solution does not depend on their scale, and this one loses nothing to it.
        return np.asarray((Vt.T @ ((U.T @ outputs) / lam[:, None])) / scale[:, None] * varies[:, None])

    return raw_lam, V, solve_at_unit_length if independent else solve


def _svd(root: Matrix, rank: int, varies: Mask) -> tuple[Vector, Matrix, Solve]:
    U, lam, Vt = thin_svd(root)
    rank = min(rank, int((lam > 0.0).sum()))
    U, lam, V = U[:, :rank], lam[:rank], np.where(varies[:, None], Vt[:rank].T, 0.0)
    return lam, V, lambda outputs: np.asarray(V @ ((U.T @ outputs) / lam[:, None]))
