"""A cutoff for directions of a network's features that are too small for least squares.

The features of one layer share a unit, so a direction with a ten-thousandth of the largest singular value is small in
every unit. A network computes in float32 through many layers with nonlinear activations. Along such a direction least
squares fits rounding and curvature, and extrapolates them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyspar.core.arrays import Matrix
from pyspar.core.linalg import thin_svd
from pyspar.core.moments import Moments

MAX_CUTOFF = 1e-3
"""The largest default cutoff, for any number of rows."""


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


def project_features(features: Moments, directions: Matrix) -> Moments:
    """Return the moments with the features projected onto directions (one per row). Outputs are unchanged."""
    d = features.n_features
    if len(directions) == d:
        return features
    root = features.root.copy()
    root[:, 1 : d + 1] = (root[:, 1 : d + 1] @ directions.T) @ directions
    return replace(features, root=root)
