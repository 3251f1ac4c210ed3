"""Spectrum: the singular values and right singular vectors that a data set really has.

A direction exists if it is longer than the rounding of the rows can make it. Storing x in floating point moves each
entry by at most ``eps / 2`` of itself, so the rows by a matrix of norm at most ``eps / 2 * ||X||_F``: the cut-off is
sixteen times that. It follows the precision the rows were *measured* in, not the one we compute in: float32 features
lifted to float64 carry rounding noise of 1e-7, and ``1 / lambda_x**2`` would make that noise the largest Var_z of all.
It does not grow with the number of rows, because the noise of a row does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import svd

from pyspar.core.accumulate import GRAM_SPREAD
from pyspar.core.arrays import EPS64, Matrix, Vector, power_of_two
from pyspar.core.eigen import squares_and_vectors
from pyspar.core.moments import Moments

Left: TypeAlias = Callable[[Matrix], Matrix]
"""Left singular vectors U, as the function ``outputs -> U' outputs``."""

ROUNDING_SLACK = 8.0
"""The cut-off in units of ``eps * ||X||_F``; the rounding itself is at most half such a unit."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values of a data matrix, descending, and their right singular vectors.

    Attributes
    ----------
    lam : array of shape (rank,)
        The singular values; all positive.
    V : array of shape (D, rank)
        Column j is the direction of ``lam[j]``.
    floor : float
        How long a direction may be by rounding alone.

    Examples
    --------
    >>> import numpy as np
    >>> s = Spectrum.of(np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> s.lam, s.rank
    (array([3., 2.]), 2)
    """

    lam: Vector
    V: Matrix
    floor: float = 0.0

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


def rounding_floor(column_lengths: Vector, eps: float) -> float:
    """Return the length up to which a direction of these columns may be rounding alone: the one rank tolerance."""
    return ROUNDING_SLACK * eps * float(np.linalg.norm(column_lengths))


def decompose(root: Matrix, column_lengths: Vector, eps: float, blur: float = 0.0) -> tuple[Spectrum, Left]:
    """Return the spectrum of the directions that exist behind a root, and its left singular vectors.

    ``column_lengths`` are those of the data as measured, before any centring: that is what was rounded.
    """
    size = power_of_two(float(max(np.abs(root).max(initial=0.0), column_lengths.max(initial=0.0))))
    root, column_lengths = root / size, column_lengths / size
    blurred = np.maximum(column_lengths, blur / (ROUNDING_SLACK * eps) * np.linalg.norm(root, axis=0))
    floor = rounding_floor(blurred, eps)
    lam, V, left = _factor(root, eps)
    if lam.size < root.shape[1] or lam[-1] <= floor:
        lam, V, left = _without_rounding(root, blurred, eps)
    return Spectrum(lam * size, V, floor * size), left


def _factor(root: Matrix, eps: float) -> tuple[Vector, Matrix, Left]:
    """Return a thin SVD: through the square where that keeps the digits (three times faster), else directly."""
    rows, columns = root.shape
    if rows >= columns:
        squares, V = squares_and_vectors(root)
        squares, V = squares[::-1], V[:, ::-1]
        enough = GRAM_SPREAD if eps <= EPS64 else eps
        if squares.size and squares[-1] > 0.0 and squares[-1] >= enough**2 * squares[0]:
            lam = np.sqrt(squares)
            # U = root V / lambda is never formed: that would be one more product of the size of the eigenproblem.
            return lam, V, lambda outputs: np.asarray((V.T @ (root.T @ outputs)) / lam[:, None])
    return _svd(root, min(rows, columns))


def _without_rounding(root: Matrix, column_lengths: Vector, eps: float) -> tuple[Vector, Matrix, Left]:
    """Drop what is rounding, column by column.

    The noise of a column is in proportion to its own length. Judged with the columns at unit length, a small feature
    beside a huge one is kept, while a combination of features that cancels is not.
    """
    lengths = np.where(column_lengths > 0.0, column_lengths, 1.0)
    U, lam, Vt = svd(root / lengths, full_matrices=False, check_finite=False)
    kept = lam > rounding_floor(np.ones(int((column_lengths > 0.0).sum())), eps)
    return _svd((U[:, kept] * lam[kept]) @ (Vt[kept] * lengths), int(kept.sum()))


def _svd(root: Matrix, rank: int) -> tuple[Vector, Matrix, Left]:
    U, lam, Vt = svd(root, full_matrices=False, check_finite=False)
    rank = min(rank, int((lam > 0.0).sum()))
    U = U[:, :rank]
    return lam[:rank], Vt[:rank].T, lambda outputs: np.asarray(U.T @ outputs)
