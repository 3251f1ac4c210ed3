r"""Predictive: the distribution of the label of one row.

Given kappa (see :mod:`pyspar.core.posterior`) the label of a row is a Student t variable about
:math:`z^\top \mu_\kappa`; over kappa it is a mixture of such. A few values of kappa stand for all: the middles of
equally plausible stretches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.posterior import Posterior

_NODES = 15
_HALVINGS = 26
_MANY = 300.0
"""Degrees of freedom from which a t variable is taken for a normal one; it is so to three digits of a probability."""
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Predictive:
    """The distribution of each row's label: a mixture, component x row.

    Attributes
    ----------
    centre, scale : arrays of shape (components, rows)
    degrees : float
        Degrees of freedom of each component.
    """

    centre: Matrix
    scale: Matrix
    degrees: float

    def std_about(self, prediction: Vector) -> Vector:
        """Return the root of the expected squared difference between label and prediction."""
        spread = self.degrees / (self.degrees - 2.0) if self.degrees > 2.0 else 1.0
        return np.asarray(np.sqrt((self.scale**2 * spread + (self.centre - prediction) ** 2).mean(axis=0)))

    def quantile(self, level: float) -> Vector:
        """Return where each row's label stays below with probability ``level``, by bisection.

        The quantile of a mixture lies between the lowest and the highest of its components'.
        """
        each = self.centre + self.scale * stdtrit(self.degrees, level)
        low, high = each.min(axis=0), each.max(axis=0)
        safe = np.where(self.scale > 0.0, self.scale, np.finfo(np.float64).tiny)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            below = self._share_below((middle - self.centre) / safe) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2.0)

    def _share_below(self, standardised: Matrix) -> Vector:
        normal = self.degrees > _MANY
        return np.asarray((ndtr(standardised) if normal else stdtr(self.degrees, standardised)).mean(axis=0))


def predictive(posterior: Posterior, Z: Matrix, offset: Vector | float = 0.0, output: int = 0) -> Predictive:
    """Return the distribution of the labels of rows in the coordinates of the prior.

    ``offset`` is what the prior's centre predicts for each row.
    """
    p, unit = posterior, posterior.unit[output]
    nodes = _representatives(p.weight[:, output])
    kappa = p.kappa[nodes]
    rows = (Z - p.x_mean) / p.reach
    along = rows @ p.V
    centre = (along @ p.shrunk(output)[:, nodes]).T
    share = 1.0 + p.mean_share + np.square(along) @ (1.0 / (p.data.lam[:, None] ** 2 + kappa))
    if p.unseen:
        length, seen = np.square(rows).sum(axis=1), np.square(along).sum(axis=1)
        outside = np.where(length - seen > 64.0 * EPS64 * length, length - seen, 0.0)
        share = share + outside[:, None] / kappa
    degrees = p.degrees(output)
    noise2 = p.residual(output)[nodes] / degrees
    scale = np.sqrt(share * noise2).T
    return Predictive(centre * unit + p.y_mean[output] + offset, scale * unit, degrees)


def blocks(n_rows: int) -> list[slice]:
    """Return slices that cover rows a few thousand at a time: the mixture holds several numbers a row."""
    return [slice(start, start + _ROWS) for start in range(0, n_rows, _ROWS)]


def _representatives(weight: Vector) -> np.ndarray:
    """Return the places of the kappa that stand for equally plausible stretches."""
    middles = (np.arange(_NODES) + 0.5) / _NODES
    return np.minimum(np.searchsorted(np.cumsum(weight), middles), weight.size - 1)
