r"""Compute the interval of the RMSE on rows of new groups from the squared errors of the source groups.

Let :math:`p_g` be the share of group g in the rows, :math:`c = \sum_g p_g^2`, and :math:`\rho` the share of the squared
error that the rows of a group have in common. For normal errors with an offset per group, the mean of n squared errors
has the relative variance :math:`2 (\rho^2 c + (1 - \rho^2) / n)`, so the common part varies like the mean of 1 / c
squared normal values (Kish's effective number of groups). The ratio of this part on new groups to its estimate has an F
distribution with the effective numbers of groups as degrees of freedom. The mean uses one degree of freedom of the
estimate. At least one is left, because even two groups differ. The rest of the squared error varies as without groups.

The share is the larger of two estimates. One is the mean squared offset of the groups over the squared error. The other
solves the formula for :math:`\rho`, given the variance that the mean squared errors of groups imply. It is also large
for groups with different slopes or noise. If this variance is larger than that of normal offsets, the effective number
is that of normal offsets with the same variance, at least 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import fdtri

from pyspar.core.arrays import Vector
from pyspar.core.belief import inverse
from pyspar.core.forecast import Interval
from pyspar.core.mean_square import NORMAL_VARIATION

ROUNDING = 1e-9
"""A sum of squared shares equals that of single rows, up to rounding, if it exceeds it by less than this share."""


@dataclass(frozen=True)
class GroupErrors:
    """The dependence of squared errors on groups: one number for the sizes of groups, two per output.

    Attributes
    ----------
    concentration : float
        The sum of the squared shares of the groups in the rows. Its inverse is the effective number of groups.
    offset : Vector
        The mean squared offset of the groups, divided by the mean squared error.
    variance : Vector
        The variance of the mean squared error, divided by its square.
    """

    concentration: float
    offset: Vector
    variance: Vector

    @classmethod
    def of(cls, weights: Vector, part: Any, squares: Any, means: Any) -> GroupErrors:
        """Summarise the errors of groups with given weights; ``part`` is the index of the part of each group.

        ``squares`` and ``means`` are the sum of the squared errors and the mean error of each part, per output. A part
        may be a single group. The offsets and the variance are unbiased if the groups have independent offsets of
        variance b and mean squared errors of variance v, whatever their sizes: in a part with the share P, whose groups
        have squared shares that sum to A, the mean error has the variance b A / P^2, and the deviation of its squares
        from P times all squares has the variance v ((1 - P)^2 A + P^2 (c - A)). The whole has the variance v c.

        >>> two = GroupErrors.of(np.array([5.0, 5.0]), [0, 1], np.array([[5.0], [15.0]]), np.array([[-1.0], [1.0]]))
        >>> two.concentration, two.offset, two.variance
        (0.5, array([0.5]), array([0.25]))
        """
        shares = weights / weights.sum()
        own, share = np.bincount(part, np.square(shares)), np.bincount(part, shares)
        total, relative = own.sum(), squares * inverse(squares.sum(axis=0))
        deviations = np.square(relative - share[:, None]).sum(axis=0)
        expected = (own * np.square(1.0 - share) + np.square(share) * (total - own)).sum()
        mean = squares.sum(axis=0) / weights.sum()
        offset = share @ np.square(means) * inverse(mean) / (own / share).sum()
        return cls(float(total), offset, deviations * total / expected)

    def widen(
        self, interval: Interval, rmse: float, *, level: float, n_source: float, n_target: float, output: int = 0
    ) -> Interval:
        """Return the interval of the RMSE on target rows of new groups, given the interval for independent rows.

        The groups of the target are assumed to be as large as those of the source. The interval never becomes narrower.
        The numbers of rows are effective numbers.

        >>> one_row_each = GroupErrors(concentration=0.01, offset=np.ones(1), variance=np.array([0.02]))
        >>> one_row_each.widen((0.75, 1.33), 1.0, level=0.95, n_source=100, n_target=100)
        (0.75, 1.33)
        """
        if not 0.0 < rmse < np.inf:
            return interval
        excess = min(float(self.variance[output]) / NORMAL_VARIATION, 1.0)
        effective, between = 1.0 / max(self.concentration, excess), self.concentration - 1.0 / n_source
        squared = max(excess - 1.0 / n_source, 0.0) / between if between > ROUNDING * self.concentration else 1.0
        share = min(max(float(self.offset[output]), np.sqrt(squared)), 1.0)
        new, old = max(effective * n_target / n_source, 1.0), max(effective - 1.0, 1.0)
        ends = []
        for end, tail, wider in zip(interval, (1.0 - level, 1.0 + level), (min, max), strict=True):
            without = (end / rmse) ** 2
            common = wider(without, float(fdtri(new, old, tail / 2.0)))
            ends.append(float(rmse * np.sqrt((1.0 - share) * without + share * common)))
        return ends[0], ends[1]
