r"""The prior of the weights: its centre, and the units in which it treats all weights alike.

.. math:: w \sim N(c, \tau^2 U^{-2}), \qquad U = \mathrm{diag}(u)

If the centre's predictions are subtracted from the labels and each feature is divided by its unit, the prior is
``N(0, tau^2 I)``. Every belief is computed in these coordinates, so only this module uses the centre and the units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Belief
from pyspar.core.moments import Moments
from pyspar.core.scaling import in_units_of, inverse


@dataclass(frozen=True, eq=False)
class Prior:
    """The centre and the units of a prior.

    Attributes
    ----------
    units : array of shape (D,)
        The unit of each feature; zero for a feature that keeps the centre's weight.
    coef, intercept : arrays of shape (D, K) and (K,)
        The centre: weights, and the prediction at the origin.
    """

    units: Vector
    coef: Matrix
    intercept: Vector

    def of_source(self, source: Moments) -> Moments:
        """Return a labelled source in the prior's coordinates."""
        given = self.coef.any() or self.intercept.any()
        return in_units_of(source.less_prediction(self.coef, self.intercept) if given else source, self.units)

    def of_target(self, target: Moments) -> Moments:
        """Return a target in the prior's coordinates. Outputs are dropped."""
        return in_units_of(target.without_outputs(), self.units)

    def of_rows(self, rows: Matrix) -> Matrix:
        """Return rows in the prior's coordinates."""
        return np.asarray(rows * inverse(self.units))

    def correction(self, coef: Matrix) -> Matrix:
        """Return the difference of weights from the centre, in the prior's coordinates."""
        return np.asarray((coef - self.coef) * self.units[:, None])

    def weights(self, belief: Belief, correction: Matrix) -> tuple[Matrix, Vector]:
        """Return coefficients (D, K) and intercepts (K,) for a correction to the centre."""
        coef = self.coef + correction * inverse(self.units)[:, None]
        return np.asarray(coef), np.asarray(self.intercept + belief.y_mean - belief.x_mean @ correction)


def plain_prior(units: Vector, n_outputs: int) -> Prior:
    """Return a prior centred at zero."""
    return Prior(units, np.zeros((len(units), n_outputs)), np.zeros(n_outputs))
