"""A cutoff for directions of a network's features that are too small for least squares.

The features of one layer share a unit, so a direction with a ten-thousandth of the largest singular value is small in
every unit. A network computes in float32 through many layers with nonlinear activations. Along such a direction least
squares fits rounding and curvature, and extrapolates them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.linalg import root_sum_squares, thin_svd
from pyspar.core.moments import Moments
from pyspar.core.spectrum import ROUNDING_SLACK, Spectrum

MAX_CUTOFF = 1e-3
"""The largest default cutoff, for any number of rows."""

PROJECTION_SLACK = 4.0
"""The bound on the rounding error of a projected column, in machine epsilons of the length of all columns together."""


def default_cutoff(features: Moments) -> float:
    """Return ``max(N, D) eps``, the default rank tolerance of numerical libraries, but at most a thousandth.

    The paper's published least-squares errors used this tolerance in float32.

    >>> import numpy as np
    >>> round(default_cutoff(Moments.of(np.eye(100, dtype=np.float32))), 7)
    1.19e-05
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

    Other directions are absent from the result. The precision of a coordinate follows from the rounding of the
    features: the rounding of a combination v of columns is at most ``|v|' (eps * lengths)``.

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
    return replace(features, root=rotated, n_features=len(directions), eps=eps, names=())


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
    return replace(features, root=root, eps=np.maximum(features.eps, _relative(np.full(d, rounding), lengths)))


def restore_spectrum(rotated: Spectrum, directions: Matrix, features: Moments) -> Spectrum:
    """Return the spectrum of coordinates along directions as a spectrum of the features."""
    rounding = ROUNDING_SLACK * features.eps * features.column_lengths()[: features.n_features]
    return Spectrum(rotated.lam, directions.T @ rotated.V, rounding)


def _relative(rounding: Vector, lengths: Vector) -> Vector:
    """Return rounding errors as shares of lengths, at most a half, which exceeds every column."""
    share = np.divide(rounding, lengths, out=np.full(len(lengths), 0.5), where=lengths > 0.0)
    return np.asarray(np.minimum(share, 0.5))
