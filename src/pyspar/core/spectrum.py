"""Spectrum: the singular values and right singular vectors of a data set, without directions that are rounding.

A direction is kept if it is longer than the rounding error of the rows can make it. The bound on the rounding error of
a column is 8 eps (``ROUNDING_SLACK``) times the column's length, at the precision in which the column was stored:
float32 features have rounding errors of 1e-7, and ``1 / lambda_x**2`` would make such an error the largest Var_z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, svd

from pyspar.core.moments import EPS64, GRAM_SPREAD, ROUNDING_SLACK, Matrix, Moments, Vector, column_norms

Eigen: TypeAlias = Callable[[Matrix], tuple[Vector, Matrix]]
"""A function like ``gram_eigen``, which may compute on another device."""
_PROJECTION_SLACK = 4.0  # rounding error of a projected column, in epsilons of the length of all columns together
MAX_CUTOFF = 1e-3  # the largest default cutoff, for any number of rows


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values of a data matrix, descending, and their right singular vectors.

    Examples
    --------
    >>> import numpy as np
    >>> s = Spectrum.of(np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> s.lam, s.rank
    (array([3., 2.]), 2)
    """

    lam: Vector  # positive, but zeros from ``complete_spectrum``
    V: Matrix  # column j is the direction of lam[j]
    rounding: Vector | float = 0.0  # at most, of each column; that of a combination e of columns: |e|' rounding

    @classmethod
    def of(cls, data: Any) -> Spectrum:
        """Return the spectrum of rows, or of their Moments, about the origin, as in the paper."""
        moments = data if isinstance(data, Moments) else Moments.of(data)
        return cls.about(moments, np.zeros(moments.n_features))

    @classmethod
    def about(cls, data: Moments, origin: Vector, eigen: Eigen | None = None) -> Spectrum:
        """Return the spectrum of the features of a data set about an origin."""
        features = data.without_outputs()
        # Rounding occurred in the data as measured, so a large common offset counts, and so does the subtracted origin.
        lengths = np.hypot(features.column_lengths(), np.abs(origin) * np.sqrt(data.weight))
        return decompose(features.root_about(origin), ROUNDING_SLACK * features.eps * lengths, eigen=eigen)[0]

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


def decompose(
    root: Matrix, rounding: Vector, outputs: Matrix | None = None, eigen: Eigen | None = None
) -> tuple[Spectrum, Matrix, Matrix]:
    """Return the spectrum of a root without directions that are rounding, ``U'Y`` for outputs Y, and least squares.

    The weights of least squares have minimum norm. ``rounding`` is the bound on the rounding error of each column. A
    column that does not exceed it is constant and has no weight. If the smallest singular value is at least 1e-3 of
    the largest, or all smaller ones are rounding, an eigenproblem is solved. Otherwise the directions that rounding can
    explain are dropped first, for columns of unit length, so that a small feature next to a large one is kept. This is
    the only rank tolerance.
    """
    Y = np.zeros((len(root), 0)) if outputs is None else outputs
    lengths = column_norms(root)
    varies = lengths > rounding
    R, limit = (root, rounding) if varies.all() else (root[:, varies], rounding[varies])
    found, w = _by_square(R, Y, limit, eigen or gram_eigen), None
    if found is None or found[0][-1] <= np.sqrt(limit @ limit):
        scale = lengths[varies]
        U, s, Vt = thin_svd(R / scale)
        # Rounding changes a combination v of columns by at most the sum of |v_j| rounding_j.
        keep = s > np.maximum(np.abs(Vt) @ (limit / scale), ROUNDING_SLACK * EPS64)
        U, s, Vt = U[:, keep], s[keep], Vt[keep]
        if len(s) == len(scale):  # independent columns: the scale does not matter, and unit lengths lose no digits
            w = (Vt.T @ ((U.T @ Y) / s[:, None])) / scale[:, None]
        else:
            R, Y = s[:, None] * Vt * scale, U.T @ Y
            found = _by_square(R, Y, limit, eigen or gram_eigen)
        if w is not None or found is None:
            U, s, Vt = thin_svd(R)
            positive = s > 0.0
            found = s[positive], Vt[positive].T, U[:, positive].T @ Y
    lam, V, c = found
    w = V @ (c / lam[:, None]) if w is None else w
    if not varies.all():
        V, w = _embed(V, varies), _embed(w, varies)
    return Spectrum(lam, V, rounding), c, w


def _by_square(R: Matrix, Y: Matrix, rounding: Vector, eigen: Eigen) -> tuple[Vector, Matrix, Matrix] | None:
    """Return lambda, V and U'Y from the eigenproblem of R'R, or of RR' if that is smaller; None if it loses digits."""
    is_short = len(R) < R.shape[1]
    squares, E = eigen(R.T if is_short else R)
    rank = int((squares > GRAM_SPREAD**2 * squares[:1]).sum())
    if rank == 0 or (is_short and rank < len(squares)):
        return None
    lam, E, rest = np.sqrt(squares[:rank]), E[:, :rank], E[:, rank:]
    if rest.size:
        # R has more digits than R'R: they make the rest orthogonal to E in the rows, and then E orthogonal to the rest.
        rest = rest - (E / lam**2) @ (E.T @ (R.T @ (R @ rest)))
        lengths = column_norms(R)  # a small column next to a large one may be mixed with rounding of the large one
        if lengths.min() < GRAM_SPREAD * lengths.max() or (column_norms(R @ rest) > rounding @ np.abs(rest)).any():
            return None
        E = E - rest @ (rest.T @ E)
    if not is_short:
        return lam, E, (E.T @ (R.T @ Y)) / lam[:, None]
    V = R.T @ (E / lam)
    # The columns of V are orthogonal to the digits that the square kept. One Newton step doubles their number.
    return lam, V @ (1.5 * np.eye(len(R)) - 0.5 * (V.T @ V)), E.T @ Y


def gram_eigen(root: Matrix) -> tuple[Vector, Matrix]:
    """Return the eigenvalues of ``root' root``, descending, and its eigenvectors."""
    squares, V = np.linalg.eigh(root.T @ root)
    # BLAS does not support negative strides: without a contiguous copy every later product would copy.
    return squares[::-1], np.ascontiguousarray(V[:, ::-1])


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


def _embed(rows: Matrix, varies: Any) -> Matrix:
    """Return rows at the features that vary, and zeros for the others."""
    whole = np.zeros((len(varies), rows.shape[1]))
    whole[varies] = rows
    return whole


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
    _, lam, Vt = thin_svd(root - (root @ z.V) @ z.V.T)
    extra = Vt[lam > 64.0 * EPS64 * max(root.shape)].T
    extra = extra - z.V @ (z.V.T @ extra)  # repeat, because a short remainder is orthogonal to few digits only
    extra = extra / column_norms(extra)
    return replace(z, lam=np.concatenate([z.lam, np.zeros(extra.shape[1])]), V=np.hstack([z.V, extra]))


def default_cutoff(features: Moments) -> float:
    """Return ``max(N, D) eps``, the default rank tolerance of numerical libraries, but at most a thousandth.

    The paper's published least-squares errors used this tolerance in float32. The features of one layer of a network
    share a unit and have passed many nonlinear layers in float32. Along a direction with a ten-thousandth of the
    largest singular value, least squares fits rounding and curvature and extrapolates them.
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
    >>> rotate_features(Moments.of(X), np.array([[0.6, 0.8]])).mean.round(6)
    array([7.5])
    """
    d, root = features.n_features, features.root
    along = root[:, 1 : d + 1] @ directions.T
    rounding, lengths = np.abs(directions) @ (features.eps * features.column_lengths()[:d]), column_norms(along)
    # At most a half: that exceeds every column.
    eps = np.minimum(np.divide(rounding, lengths, out=np.full(len(lengths), 0.5), where=lengths > 0.0), 0.5)
    rotated = np.hstack([root[:, :1], along, root[:, d + 1 :]])
    return replace(features, root=rotated, n_features=len(directions), eps=eps, names=())


def project_features(features: Moments, directions: Matrix) -> Moments:
    """Project the features onto orthonormal directions (rows). A column reduced to rounding counts as constant."""
    d = features.n_features
    if len(directions) == d:
        return features
    root = features.root.copy()
    root[:, 1 : d + 1] = (root[:, 1 : d + 1] @ directions.T) @ directions
    rounding = _PROJECTION_SLACK * EPS64 * np.linalg.norm(features.column_lengths()[:d])
    lengths = column_norms(root[:, 1 : d + 1])
    share = np.divide(rounding, lengths, out=np.full(d, 0.5), where=lengths > 0.0)
    return replace(features, root=root, eps=np.maximum(features.eps, np.minimum(share, 0.5)))
