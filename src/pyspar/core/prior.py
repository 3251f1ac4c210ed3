r"""The normal prior of the weights: its centre, and the units in which it treats all weights alike.

.. math:: w \sim N(c, \tau^2 U^{-2}), \qquad U = \mathrm{diag}(u)

If the centre's predictions are subtracted from the labels and each feature is divided by its unit, the prior is
``N(0, tau^2 I)``. Every belief is computed in these coordinates, so only this module uses the centre and the units.

A prior that treats all weights alike depends on the units of the features. Three choices are useful:

- "common": the same unit for all features.
- "source": the spread of each feature over the source.
- "target": the larger of its spreads over source and target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.linalg import root_sum_squares
from pyspar.core.moments import Moments
from pyspar.core.ridge import Belief
from pyspar.core.spectrum import ROUNDING_SLACK

Units = Literal["target", "source", "common"]


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

    def transform_source(self, source: Moments) -> Moments:
        """Return a labelled source in the prior's coordinates."""
        if self.coef.any() or self.intercept.any():
            source = source.subtract_prediction(self.coef, self.intercept)
        return in_units_of(source, self.units)

    def transform_target(self, target: Moments) -> Moments:
        """Return a target in the prior's coordinates. Outputs are dropped."""
        return in_units_of(target.without_outputs(), self.units)

    def correction(self, coef: Matrix) -> Matrix:
        """Return the difference of weights from the centre, in the prior's coordinates."""
        return np.asarray((coef - self.coef) * self.units[:, None])

    def weights(self, belief: Belief, correction: Matrix) -> tuple[Matrix, Vector]:
        """Return coefficients (D, K) and intercepts (K,) for a correction to the centre."""
        coef = self.coef + correction * inverse(self.units)[:, None]
        return np.asarray(coef), np.asarray(self.intercept + belief.y_mean - belief.x_mean @ correction)


def units_of_features(
    source: Moments, target_spread: Vector | None, units: Units, *, fit_intercept: bool, include_unseen: bool = False
) -> Vector:
    """Return the unit of each feature.

    ``target_spread`` is the root mean square of each target feature about the source mean, or about zero without an
    intercept. Without it, "target" equals "source". A feature that is constant in the source gets unit 0 and is dropped
    when fitting. With ``include_unseen=True`` (forecasts) it gets its spread over the target, or the common unit.

    >>> X = np.array([[-1.0, -1.0], [1.0, 1.0]])
    >>> units_of_features(Moments.of(X), np.array([5.0, 0.1]), "target", fit_intercept=True)
    array([5., 1.])
    """
    spread = spread_of_features(source, fit_intercept=fit_intercept)
    if target_spread is None:
        target_spread = np.zeros_like(spread)
    if units == "common":
        unit = unit_if_constant = np.ones_like(spread)
    else:
        unit, unit_if_constant = np.maximum(spread, target_spread) if units == "target" else spread, target_spread
    return np.where(spread > 0.0, unit, unit_if_constant if include_unseen else 0.0)


def spread_of_features(source: Moments, *, fit_intercept: bool) -> Vector:
    """Return the standard deviation of each feature; zero if it does not exceed the rounding error.

    Without an intercept, return the root mean square about the origin.

    >>> spread_of_features(Moments.of(np.array([[1.0, 7.0], [3.0, 7.0]])), fit_intercept=True)
    array([1., 0.])
    """
    d = source.n_features
    origin = None if fit_intercept else np.zeros_like(source.mean)
    length = root_sum_squares(source.root_about(origin)[:, :d])
    rounding = ROUNDING_SLACK * source.eps * source.column_lengths()[:d]
    return np.asarray(np.where(length > rounding, length / np.sqrt(source.weight), 0.0))


def spread_about_source(source: Moments, target: Moments, centred: bool) -> Vector:
    """Return the root mean square of each target feature about the source mean, or about zero if not centred."""
    mean = source.mean[: target.n_features]
    return target.spread_about(mean if centred else np.zeros_like(mean))


def inverse(units: Vector) -> Vector:
    """Return the factor by which each feature is multiplied; zero for a feature without a unit, which drops it.

    >>> inverse(np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(units > 0.0, 1.0 / units, 0.0))


def in_units_of(moments: Moments, units: Vector) -> Moments:
    """Return the moments of the rows with each feature divided by its unit."""
    root = moments.root.copy()
    root[:, 1 : len(units) + 1] *= inverse(units)
    return moments.with_root(root)
