r"""The interval of a root mean squared error that is estimated from n squared errors.

The mean of n squared errors has the relative variance c / n, where c is the squared coefficient of variation of one
squared error: 2 for normal errors, more for heavy tails. A chi-squared variable with 2 n / c degrees of freedom, over
its mean, has the same variance, and its quantiles give the interval. It is exact for normal errors of mean zero.

A few rows rarely contain the largest errors. The upper end is therefore computed as if one more row had the largest
squared error of all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from pyspar.core.arrays import Vector

NORMAL_VARIATION = 2.0
"""The squared coefficient of variation of the square of a normal variable."""


@dataclass(frozen=True)
class SquaredErrors:
    """A summary of squared errors: their number, sum, sum of squares and maximum. Summaries can be added."""

    n: int = 0
    total: float = 0.0
    total_squares: float = 0.0
    largest: float = 0.0

    @classmethod
    def of(cls, errors: Vector) -> SquaredErrors:
        """Return the summary of errors; NaN marks rows without a label, which are ignored.

        >>> SquaredErrors.of(np.array([1.0, -2.0, np.nan]))
        SquaredErrors(n=2, total=5.0, total_squares=17.0, largest=4.0)
        """
        squares = np.square(errors[~np.isnan(errors)])
        return cls(squares.size, float(squares.sum()), float(np.square(squares).sum()), float(squares.max(initial=0.0)))

    @classmethod
    def of_normal(cls, n: int, rmse: float) -> SquaredErrors:
        """Return the summary that is typical of n normal errors with a known RMSE."""
        square = rmse**2
        return cls(n, n * square, n * (1.0 + NORMAL_VARIATION) * square**2, 2.0 * math.log(max(n, 2)) * square)

    def __add__(self, other: SquaredErrors) -> SquaredErrors:
        return SquaredErrors(
            self.n + other.n,
            self.total + other.total,
            self.total_squares + other.total_squares,
            max(self.largest, other.largest),
        )

    @property
    def rmse(self) -> float:
        return math.sqrt(self.total / self.n) if self.n else math.nan

    @property
    def variation(self) -> float:
        """The squared coefficient of variation of a squared error, at least that of normal errors."""
        if self.n < 2 or not 0.0 < self.total_squares < math.inf:
            return NORMAL_VARIATION
        excess = self.n * (self.total_squares / self.total) / self.total - 1.0
        return max(NORMAL_VARIATION, excess * self.n / (self.n - 1))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a central interval of the RMSE on all rows, if these rows were drawn at random from them."""
        with_one_more = self + SquaredErrors(1, self.largest, self.largest * self.largest, self.largest)
        high = with_one_more.rmse * rmse_factor(self.n, with_one_more.variation, (1.0 - level) / 2.0)
        return self.rmse * rmse_factor(self.n, self.variation, (1.0 + level) / 2.0), high


def rmse_factor(n: float, variation: float, tail: float) -> float:
    """Return the true RMSE divided by the RMSE of n rows, at a quantile of the sampling distribution.

    >>> round(rmse_factor(40, 2.0, 0.025), 2)  # sqrt(40 / 24.43)
    1.28
    """
    half = n / variation  # half the degrees of freedom
    quantile = float(gammaincinv(half, tail))
    return math.sqrt(half / quantile) if quantile > 0.0 else math.inf
