r"""Forecast the error of given weights on a target without labels, from one posterior.

For weights w and a target of M rows with the second moment :math:`T = Z^\top Z / M`, a posterior with mean
:math:`\mu` and covariance :math:`\Sigma` expects the mean squared error

.. math:: (w - \mu)^\top T (w - \mu) + \mathrm{tr}(\Sigma T) + \sigma^2

The terms are bias, variance and noise. With a flat prior the first two terms for least squares are ``thm:ols_loss``.
For one row z the same sum, :math:`(z^\top (w - \mu))^2 + z^\top \Sigma z + \sigma^2`, is the squared scale of its label
about the prediction (:func:`row_scale`). Its mean over the target rows is the expected mean squared error, so an
interval of a row cannot contradict the forecast.

The sum assumes labels that are linear in the features, in source and target. Real targets violate that, so
:mod:`pyspar.estimators.calibration` multiplies it by what real shifts showed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from pyspar.core.moments import Matrix, Moments, Vector
from pyspar.core.regression import Fit, RidgePosterior, left_out_rmse

LEVELS = (0.8, 0.95)  # the levels of the intervals of a forecast: ``interval80`` and ``interval95``
BLOCK_ROWS = 8192  # the variances of rows need several numbers per row and direction, so they are computed in blocks

Interval = tuple[float, float]


@dataclass(frozen=True, repr=False)
class Forecast:
    """The error that one model is expected to have on one target, for one output.

    The median and the intervals are those of comparable real shifts: half of them had a larger error than ``rmse``, and
    the intervals were fitted to contain the error in 80 % and 95 % of them.
    """

    name: str
    rmse: float  # as a scorer measures it; ``float(forecast)`` returns it
    interval80: Interval
    interval95: Interval
    source_rmse: float = nan  # the expected error on new rows like those of the source (in-distribution)
    model_rmse: float = nan  # the expected error if labels are linear in the features, also in the target; else NaN

    def __repr__(self) -> str:
        numbers = (f"{float(f'{number:.4g}'):,g}" for number in (self.rmse, *self.interval80, *self.interval95))
        return "{}({}: RMSE {}; 80 %: {} to {}; 95 %: {} to {})".format(type(self).__name__, self.name, *numbers)

    def __float__(self) -> float:
        return self.rmse


def expected_square(posterior: RidgePosterior, coef: Matrix, intercept: Vector, target: Moments) -> Vector:
    """Return the expected squared error of weights (D, K) with intercepts (K,) on a target, per output."""
    return np.asarray(
        posterior.sigma2 + posterior.mean_variance(target) + posterior.mean_square_change(coef, intercept, target)
    )


def source_square(fit: Fit, posterior: RidgePosterior, coef: Matrix, intercept: Vector, source: Moments) -> Vector:
    """Return the expected squared error of fitted weights on new rows like those of the source, per output.

    With no more rows than directions, the expectation on the source's own rows is close to zero, because the weights
    fit them exactly. The error of generalised cross-validation of the fit replaces it.
    """
    if source.rows - fit.centred <= fit.x.rank > 0:
        errors = left_out_rmse(fit)
        if np.isfinite(errors).all():
            return np.square(errors)
    return expected_square(posterior, coef, intercept, source.without_outputs())


def row_scale(posterior: RidgePosterior, rows: Matrix, prediction: Matrix) -> Matrix:
    """Return the root of the expected squared difference between label and prediction, rows x outputs."""
    coef, intercept = posterior.weights()
    squares = np.square(prediction - (rows @ coef + intercept)) + posterior.sigma2
    for start in range(0, len(rows), BLOCK_ROWS):
        at = slice(start, start + BLOCK_ROWS)
        squares[at] += posterior.row_variance(rows[at])
    return np.asarray(np.sqrt(squares))
