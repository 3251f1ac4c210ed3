r"""The predictive distribution of the label of one row.

Given kappa (see :mod:`pyspar.core.posterior`) the label of a row is a Student t variable about
:math:`z^\top \mu_\kappa`. Averaged over kappa and the units of the prior it is a mixture of Student t distributions.
kappa is integrated with equal-probability nodes: the midpoints of intervals with equal probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.posterior import Posterior, prior_probabilities

_NODES = 30
_BISECTIONS = 26
_NORMAL_DEGREES = 300.0
"""Above this many degrees of freedom a t variable is approximated by a normal one, to three digits of a probability."""
BLOCK_ROWS = 4096
"""Rows are processed in blocks, because the mixture needs several numbers per row."""


@dataclass(frozen=True, eq=False)
class Predictive:
    """The distribution of each row's label, a mixture of Student t distributions.

    Attributes
    ----------
    centre, scale : arrays of shape (components, rows)
    degrees : float
        The degrees of freedom of every component.
    """

    centre: Matrix
    scale: Matrix
    degrees: float

    def std_about(self, prediction: Vector) -> Vector:
        """Return the root of the expected squared difference between label and prediction."""
        spread = self.degrees / (self.degrees - 2.0) if self.degrees > 2.0 else 1.0
        return np.asarray(np.sqrt((self.scale**2 * spread + (self.centre - prediction) ** 2).mean(axis=0)))

    def quantile(self, level: float) -> Vector:
        """Return the quantile of each row's label at ``level``, by bisection.

        The quantile of a mixture lies between the smallest and the largest quantile of its components.
        """
        quantiles = self.centre + self.scale * stdtrit(self.degrees, level)
        low, high = quantiles.min(axis=0), quantiles.max(axis=0)
        safe = np.where(self.scale > 0.0, self.scale, np.finfo(np.float64).tiny)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            standardised = (middle - self.centre) / safe
            normal = self.degrees > _NORMAL_DEGREES
            below = (ndtr(standardised) if normal else stdtr(self.degrees, standardised)).mean(axis=0) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2.0)


def predictive(
    posteriors: Sequence[Posterior], rows: Sequence[Matrix], offset: Vector | float = 0.0, output: int = 0
) -> Predictive:
    """Return the distribution of the labels of rows under several priors, each weighted by its evidence.

    ``rows`` are the same rows in the coordinates of each prior. ``offset`` is the centre's prediction for each row.
    """
    # The nodes divide (0, 1) equally. Each prior has the interval of nodes whose length is its evidence share, and a
    # node's place in that interval is a quantile of kappa under the prior.
    nodes = (np.arange(_NODES) + 0.5) / _NODES
    shares = prior_probabilities(posteriors, output)
    ends = np.cumsum(shares)
    components = []
    for posterior, Z, share, end in zip(posteriors, rows, shares, ends, strict=True):
        start = end - share
        own = nodes[(start <= nodes) & (nodes < end)]
        if own.size:
            components.append(_components(posterior, Z, (own - start) / share, output))
    centres, scales = zip(*components, strict=True)
    return Predictive(np.concatenate(centres) + offset, np.concatenate(scales), posteriors[0].degrees(output))


def _components(p: Posterior, Z: Matrix, shares: Vector, output: int) -> tuple[Matrix, Matrix]:
    """Return centre and scale of the labels at given quantiles of kappa."""
    label_length = p.label_length[output]
    nodes = np.minimum(np.searchsorted(np.cumsum(p.probability[:, output]), shares), p.kappa.size - 1)
    kappa = p.kappa[nodes]
    rows = (Z - p.fit.x_mean) / p.lam_max
    along = rows @ p.fit.x.V
    centre = (along @ p.shrunk(output)[:, nodes]).T
    variance = 1.0 + p.relative_mean_variance + np.square(along) @ (1.0 / (p.data.lam[:, None] ** 2 + kappa))
    if p.unseen:
        length, seen = np.square(rows).sum(axis=1), np.square(along).sum(axis=1)
        outside = np.where(length - seen > 64.0 * EPS64 * length, length - seen, 0.0)
        variance = variance + outside[:, None] / kappa
    noise2 = p.residual(output)[nodes] / p.degrees(output)
    return centre * label_length + p.fit.y_mean[output], np.sqrt(variance * noise2).T * label_length
