"""Faint directions: those of a network's features that least squares should not be asked about.

The features of one layer share a unit, so a direction that is a ten-thousandth as long as the longest is faint, and not
merely measured in another unit. A network computes in float32, layer upon layer, and its activations bend: along such a
direction least squares fits what is half rounding, half curvature, and extrapolates it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyspar.core.arrays import Matrix
from pyspar.core.moments import Moments
from pyspar.core.singular import thin_svd

FAINTEST = 1e-3
"""However many rows there are, what is longer than this share of the longest direction is never called faint."""


def customary_cutoff(features: Moments) -> float:
    """Return ``max(N, D) eps``, the share at which numerical libraries cut by default, but at most a thousandth.

    Authors: their published least-squares errors are those of such a cut, made in float32.

    >>> import numpy as np
    >>> round(customary_cutoff(Moments.of(np.eye(100, dtype=np.float32))), 7)
    1.19e-05
    """
    return float(min(max(features.rows, features.n_features) * features.eps.max(), FAINTEST))


def loud_directions(features: Moments, cutoff: float) -> Matrix:
    """Return the directions that are longer than a share of the longest, about the origin, one in each row.

    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0], [2.0, 2.001]])
    >>> [len(loud_directions(Moments.of(X), cutoff)) for cutoff in (0.0, 0.01)]
    [2, 1]
    """
    _, lam, Vt = thin_svd(features.root[:, 1 : features.n_features + 1])
    return np.asarray(Vt[lam > cutoff * lam[0]])


def along(directions: Matrix, features: Moments) -> Moments:
    """Return moments of which the features have nothing but some directions left; the outputs stay."""
    d = features.n_features
    if len(directions) == d:
        return features
    root = features.root.copy()
    root[:, 1 : d + 1] = (root[:, 1 : d + 1] @ directions.T) @ directions
    return replace(features, root=root)
