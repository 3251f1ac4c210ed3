"""Spectrum: the singular values and right singular vectors of a data set, without directions that are rounding.

A direction is kept if it is longer than the rounding error of the rows can make it. The bound on the rounding error of
a column is 8 eps (``ROUNDING_SLACK``) times the column's length, at the precision in which the column was stored:
float32 features have rounding errors of 1e-7, and ``1 / lambda_x**2`` would make such an error the largest Var_z.

The features of one layer of a network share a unit and have passed many nonlinear layers in float32. Along a direction
with a ten-thousandth of the largest singular value, least squares fits rounding and curvature and extrapolates them.
``directions_above`` a cutoff excludes such directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, svd

from pyspar.core.arrays import EPS64, Mask, Matrix, Vector
from pyspar.core.moments import ROUNDING_SLACK, Moments
from pyspar.core.roots import GRAM_SPREAD, is_well_conditioned, root_sum_squares

Solve: TypeAlias = Callable[[Matrix], Matrix]
"""A function that returns the least-squares solution of minimum norm for a root of the outputs."""

MAX_CUTOFF = 1e-3
"""The largest default cutoff, for any number of rows."""

PROJECTION_SLACK = 4.0
"""The bound on the rounding error of a projected column, in machine epsilons of the length of all columns together."""


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

    @property
    def largest(self) -> float:
        """The largest singular value, or one if there are none."""
        return float(self.lam[0]) if self.rank else 1.0


def outside_share(x: Spectrum, z: Spectrum) -> Vector:
    """Return the share of each target direction outside the span of the source, which ``thm:ols_loss`` excludes."""
    return np.asarray(np.clip(1.0 - ((x.V.T @ z.V) ** 2).sum(axis=0), 0.0, 1.0))


def complete_spectrum(z: Spectrum, x: Spectrum) -> Spectrum:
    """Append the directions in which only the source varies to a target's spectrum, with ``lambda = 0``.

    >>> import numpy as np
    >>> z, x = Spectrum.of(np.array([[0.0, 2.0]])), Spectrum.of(np.diag([3.0, 1.0]))
    >>> complete_spectrum(z, x).lam, np.abs(complete_spectrum(z, x).V)
    (array([2., 0.]), array([[0., 1.],
           [1., 0.]]))
    """
    if z.rank == z.n_features or x.rank == 0:
        return z
    root = (x.lam / x.lam[0])[:, None] * x.V.T
    rest = root - (root @ z.V) @ z.V.T
    _, lam, Vt = thin_svd(rest)
    extra = Vt[lam > 64.0 * EPS64 * max(root.shape)].T
    extra = extra - z.V @ (z.V.T @ extra)  # repeat, because a short remainder is orthogonal to few digits only
    extra = extra / root_sum_squares(extra)
    return replace(z, lam=np.concatenate([z.lam, np.zeros(extra.shape[1])]), V=np.hstack([z.V, extra]))


def decompose(root: Matrix, column_lengths: Vector, eps: Vector, blur: float = 0.0) -> tuple[Spectrum, Solve]:
    """Return the spectrum of a root without directions that are rounding, and the least-squares solver on it.

    ``column_lengths`` are those of the data as measured, before centring, because the measured data were rounded.
    ``blur`` is the share of a column's length in the root below which the root is inaccurate. If the smallest singular
    value is at least 1e-3 of the largest, the eigenproblem of R'R is solved, or of RR' for fewer rows than columns.
    Otherwise, or if a direction may be rounding, an SVD is computed and the rank is decided column by column.
    """
    lengths = root_sum_squares(root)
    rounding = np.maximum(ROUNDING_SLACK * eps * column_lengths, blur * lengths)
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
    return Spectrum(svd.lam, svd.V, rounding), svd.solve


@dataclass(frozen=True, eq=False)
class Svd:
    """Singular values and right singular vectors of a root, and the least-squares solver on them."""

    lam: Vector
    V: Matrix
    solve: Solve


def _svd_by_square(root: Matrix) -> Svd | None:
    """Return the SVD by an eigenproblem, which is three times faster; None if it would lose digits."""
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


def _svd_of(U: Matrix, lam: Vector, V: Matrix) -> Svd:
    return Svd(lam, V, lambda outputs: np.asarray(V @ ((U.T @ outputs) / lam[:, None])))


def _svd_without_rounding(root: Matrix, lengths: Vector, rounding: Vector) -> Svd:
    """Return the SVD without directions that may be rounding. This is the only rank tolerance.

    Rounding changes a combination v of columns by at most the sum of ``|v_j| rounding_j``. Directions up to this length
    are dropped, for columns of unit length, so that a small feature next to a large one is kept. A column that does not
    exceed its rounding bound is constant and has no weight.
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


def default_cutoff(features: Moments) -> float:
    """Return ``max(N, D) eps``, the default rank tolerance of numerical libraries, but at most a thousandth.

    The paper's published least-squares errors used this tolerance in float32.
    """
    return float(min(max(features.rows, features.n_features) * features.eps.max(), MAX_CUTOFF))


def directions_above(features: Moments, cutoff: float) -> Matrix:
    """Return the right singular vectors (rows) whose singular value exceeds ``cutoff`` times the largest.

    The features are not centred.

    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0], [2.0, 2.001]])
    >>> [len(directions_above(Moments.of(X), cutoff)) for cutoff in (0.0, 0.01)]
    [2, 1]
    """
    _, lam, Vt = thin_svd(features.root[:, 1 : features.n_features + 1])
    return np.asarray(Vt[lam > cutoff * lam[0]])


def rotate_features(features: Moments, directions: Matrix) -> Moments:
    """Return the moments of the features' coordinates along orthonormal directions (one per row).

    The rounding of a coordinate, a combination v of columns, is at most ``|v|' (eps * lengths)``.

    >>> import numpy as np
    >>> X = np.array([[3.0, 4.0], [6.0, 8.0]])
    >>> rotate_features(Moments.of(X), np.array([[0.6, 0.8]])).second_moment().round(6)
    array([[125.]])
    """
    d = features.n_features
    root = features.root
    along = root[:, 1 : d + 1] @ directions.T
    precision = np.maximum(features.eps, features.blur / ROUNDING_SLACK)
    eps = _relative(np.abs(directions) @ (precision * features.column_lengths()[:d]), root_sum_squares(along))
    rotated = np.hstack([root[:, :1], along, root[:, d + 1 :]])
    return replace(features, root=rotated, n_features=len(directions), eps=eps, names=(), tails=None)


def project_features(features: Moments, directions: Matrix) -> Moments:
    """Return the moments with the features projected onto orthonormal directions (one per row).

    Outputs are unchanged. The precision of a column that the projection reduces to rounding is lowered, so that the
    column counts as constant.
    """
    d = features.n_features
    if len(directions) == d:
        return features
    root = features.root.copy()
    root[:, 1 : d + 1] = (root[:, 1 : d + 1] @ directions.T) @ directions
    rounding = PROJECTION_SLACK * EPS64 * np.linalg.norm(features.column_lengths()[:d])
    lengths = root_sum_squares(root[:, 1 : d + 1])
    eps = np.maximum(features.eps, _relative(np.full(d, rounding), lengths))
    return replace(features, root=root, eps=eps, tails=None)


def restore_spectrum(rotated: Spectrum, directions: Matrix, features: Moments) -> Spectrum:
    """Return the spectrum of coordinates along directions as a spectrum of the features."""
    return Spectrum(rotated.lam, directions.T @ rotated.V, features.rounding())


def _relative(rounding: Vector, lengths: Vector) -> Vector:
    """Return rounding errors as shares of lengths, at most a half, which exceeds every column."""
    share = np.divide(rounding, lengths, out=np.full(len(lengths), 0.5), where=lengths > 0.0)
    return np.asarray(np.minimum(share, 0.5))


def thin_svd(matrix: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """Return U, the singular values and V'.

    LAPACK's fast driver occasionally does not converge for many dependent columns, such as products of indicators. The
    slower driver is then used. Both take twice as long for a wide matrix as for its transpose.
    """
    if matrix.shape[0] < matrix.shape[1]:
        V, lam, Ut = thin_svd(matrix.T)
        return Ut.T, lam, V.T
    try:
        U, lam, Vt = svd(matrix, full_matrices=False, check_finite=False)
    except LinAlgError:
        U, lam, Vt = svd(matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, lam, Vt


class Algebra:
    """The two operations whose cost grows as D cubed, in numpy. A subclass computes them on another device."""

    def gram_eigen(self, root: Matrix) -> tuple[Vector, Matrix]:
        """Return the eigenvalues of ``root' root``, descending, and its eigenvectors."""
        squares, V = np.linalg.eigh(root.T @ root)
        # BLAS does not support negative strides: without a contiguous copy every later product would copy.
        return squares[::-1], np.ascontiguousarray(V[:, ::-1])

    def overlap_sums(self, V: Matrix, E: Matrix, weights: Matrix) -> Matrix:
        """Return ``weights @ (V' E)**2``: weighted sums of squared overlaps, one row per row of weights."""
        overlap = V.T @ E
        return np.asarray(weights @ np.square(overlap, out=overlap))


_current_algebra: ContextVar[Algebra] = ContextVar("pyspar_algebra", default=Algebra())  # noqa: B039


def algebra() -> Algebra:
    """Return the implementation in use."""
    return _current_algebra.get()


@contextmanager
def use_algebra(implementation: Algebra) -> Iterator[None]:
    """Use another implementation inside a ``with`` block, in the current thread only."""
    token = _current_algebra.set(implementation)
    try:
        yield
    finally:
        _current_algebra.reset(token)
