"""Spectrum: the singular values and right singular vectors that a data set really has.

A direction exists if it is longer than the rounding of the rows can make it. Storing x in floating point moves each
entry by at most ``eps / 2`` of itself, so the rows by a matrix of norm at most ``eps / 2 * ||X||_F``: the cut-off is
sixteen times that. It follows the precision the rows were *measured* in, not the one we compute in: float32 features
lifted to float64 carry rounding noise of 1e-7, and ``1 / lambda_x**2`` would make that noise the largest Var_z of all.
It does not grow with the number of rows, because the noise of a row does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import svd

from pyspar.core.accumulate import GRAM_SPREAD
from pyspar.core.arrays import EPS64, Matrix, Vector, power_of_two
from pyspar.core.moments import Moments

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

    Examples
    --------
    >>> import numpy as np
    >>> s = Spectrum.of(np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> s.lam, s.rank
    (array([3., 2.]), 2)
    """

    lam: Vector
    V: Matrix

    @classmethod
    def of(cls, data: Any) -> Spectrum:
        """Return the spectrum of rows, or of their Moments, about the origin (as the paper has it)."""
        moments = (data if isinstance(data, Moments) else Moments.of(data)).without_outputs()
        root = moments.root_about(np.zeros(moments.n_features))
        return decompose(root, moments.column_lengths(), moments.eps)[1]

    @property
    def rank(self) -> int:
        return int(self.lam.size)

    @property
    def n_features(self) -> int:
        return int(self.V.shape[0])


def rounding_floor(column_lengths: Vector, eps: float) -> float:
    """Return the length up to which a direction of these columns may be rounding alone: the one rank tolerance."""
    return ROUNDING_SLACK * eps * float(np.linalg.norm(column_lengths))


def decompose(root: Matrix, column_lengths: Vector, eps: float) -> tuple[Matrix, Spectrum]:
    """Return ``U, (lambda, V)`` with ``root = U diag(lambda) V'``, of the directions that exist.

    ``column_lengths`` are those of the data as measured, before any centring: that is what was rounded.
    """
    size = power_of_two(float(max(np.abs(root).max(initial=0.0), column_lengths.max(initial=0.0))))
    root, column_lengths = root / size, column_lengths / size
    U, lam, V = _factor(root, eps)
    if lam.size < root.shape[1] or lam[-1] <= rounding_floor(column_lengths, eps):
        U, lam, V = _without_rounding(root, column_lengths, eps)
    return U, Spectrum(lam * size, V)


def _factor(root: Matrix, eps: float) -> tuple[Matrix, Vector, Matrix]:
    """Return a thin SVD: through the squared matrix where that keeps the digits (three times faster), else directly."""
    rows, columns = root.shape
    if rows >= columns:
        with np.errstate(under="ignore"):
            squares, V = np.linalg.eigh(root.T @ root)
        squares, V = squares[::-1], V[:, ::-1]
        enough = GRAM_SPREAD if eps <= EPS64 else eps
        if squares.size and squares[-1] > 0.0 and squares[-1] >= enough**2 * squares[0]:
            lam = np.sqrt(squares)
            return root @ V / lam, lam, V
    U, lam, Vt = svd(root, full_matrices=False, check_finite=False)
    return U, lam, Vt.T


def _without_rounding(root: Matrix, column_lengths: Vector, eps: float) -> tuple[Matrix, Vector, Matrix]:
    """Drop what is rounding, column by column.

    The noise of a column is in proportion to its own length. Judged with the columns at unit length, a small feature
    beside a huge one is kept, while a combination of features that cancels is not.
    """
    lengths = np.where(column_lengths > 0.0, column_lengths, 1.0)
    unit = root / lengths
    U, lam, Vt = svd(unit, full_matrices=False, check_finite=False)
    kept = lam > rounding_floor(np.ones(int((column_lengths > 0.0).sum())), eps)
    clean = (U[:, kept] * lam[kept]) @ (Vt[kept] * lengths)
    U, lam, Vt = svd(clean, full_matrices=False, check_finite=False)
    rank = min(int(kept.sum()), int((lam > 0.0).sum()))
    return U[:, :rank], lam[:rank], Vt[:rank].T
