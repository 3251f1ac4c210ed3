r"""Predictive: what the label of one row may be.

Given kappa (see :mod:`pyspar.core.posterior`) the label of a row is a Student t variable about
:math:`z^\top \mu_\kappa`; over kappa it is a mixture of such. A few values of kappa stand for all: the middles of
equally plausible stretches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.posterior import Posterior
from pyspar.core.scaling import inverse

_NODES = 25
_HALVINGS = 40
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
        """Return where each row's label stays below with probability ``level``, by bisection."""
        reach = 10.0 * self.scale.max(axis=0) * (1.0 + 20.0 / self.degrees)
        low, high = self.centre.min(axis=0) - reach, self.centre.max(axis=0) + reach
        safe = np.where(self.scale > 0.0, self.scale, 1.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            below = np.where(
                self.scale > 0.0, stdtr(self.degrees, (middle - self.centre) / safe), middle >= self.centre
            ).mean(axis=0)
            low, high = np.where(below < level, middle, low), np.where(below < level, high, middle)
        return np.asarray((low + high) / 2.0)


def predictive(posterior: Posterior, Z: Matrix, output: int = 0) -> Predictive:
    """Return the distribution of the labels of rows."""
    p, unit = posterior, posterior.unit[output]
    nodes = _representatives(p.weight[:, output])
    kappa = p.kappa[nodes]
    rows = (Z - p.x_mean) * (inverse(p.spread) / p.reach)
    along = rows @ p.V
    centre = (along @ p.shrunk(output)[:, nodes]).T
    share = 1.0 + p.mean_share + np.square(along) @ (1.0 / (p.data.lam[:, None] ** 2 + kappa))
    if p.unseen:
        outside = np.maximum(np.square(rows).sum(axis=1) - np.square(along).sum(axis=1), 0.0)
        share = share + outside[:, None] / kappa
    noise2 = p.residual(output)[nodes] / p.degrees
    scale = np.sqrt(share * noise2).T
    return Predictive(centre * unit + p.y_mean[output], scale * unit, p.degrees)


def blocks(n_rows: int) -> list[slice]:
    """Return slices that cover rows a few thousand at a time: the mixture holds several numbers a row."""
    return [slice(start, start + _ROWS) for start in range(0, n_rows, _ROWS)]


def _representatives(weight: Vector) -> np.ndarray:
    """Return the places of the kappa that stand for equally plausible stretches."""
    middles = (np.arange(_NODES) + 0.5) / _NODES
    return np.minimum(np.searchsorted(np.cumsum(weight), middles), weight.size - 1)
