r"""The predictive distribution of the label of one row.

Given kappa (see :mod:`pyspar.core.posterior`) the label of a row is a Student t variable about
:math:`z^\top \mu_\kappa`. Averaged over kappa and the units of the prior it is a mixture of Student t distributions.
kappa is integrated with equal-probability nodes: the midpoints of intervals with equal probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, ndtr, stdtr, stdtrit

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.posterior import Posterior, prior_probabilities

_NODES = 30
_MAX_STEPS = 60
_TOLERANCE = 1e-7
"""A quantile is accurate to this share of the smallest scale of its components."""
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
        """Return the quantile of each row's label at ``level``, by Newton steps inside a bracket.

        The quantile of a mixture lies between the smallest and the largest quantile of its components. A step that
        leaves this bracket is replaced by a bisection.
        """
        scale = np.where(self.scale > 0.0, self.scale, np.finfo(np.float64).tiny)
        quantiles = self.centre + self.scale * stdtrit(self.degrees, level)
        low, high = quantiles.min(axis=0), quantiles.max(axis=0)
        value = (low + high) / 2.0
        for _ in range(_MAX_STEPS):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                probability, density = self._distribution(value, scale)
                new = value - (probability - level) / density
            low, high = np.where(probability < level, value, low), np.where(probability < level, high, value)
            new = np.where((new >= low) & (new <= high), new, (low + high) / 2.0)
            step, value = np.abs(new - value), new
            if (step <= _TOLERANCE * scale.min(axis=0)).all():
                break
        return np.asarray(value)

    def _distribution(self, value: Vector, scale: Matrix) -> tuple[Vector, Vector]:
        """Return the probability of a label below each row's value, and its density there."""
        t = (value - self.centre) / scale
        if self.degrees > _NORMAL_DEGREES:
            probability, density = ndtr(t), np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi)
        else:
            v = self.degrees
            peak = np.exp(gammaln((v + 1.0) / 2.0) - gammaln(v / 2.0)) / np.sqrt(v * np.pi)
            probability, density = stdtr(v, t), peak * (1.0 + t**2 / v) ** (-(v + 1.0) / 2.0)
        return probability.mean(axis=0), (density / scale).mean(axis=0)


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
