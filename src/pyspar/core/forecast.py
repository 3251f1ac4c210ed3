r"""Forecast the error of given weights on a target without labels.

For weights w and a target of M rows with the second moment :math:`T = Z^\top Z / M`, a belief with mean
:math:`\mu` and covariance :math:`\Sigma` expects the mean squared error

.. math:: (w - \mu)^\top T (w - \mu) + \mathrm{tr}(\Sigma T) + \sigma^2

The terms are bias, variance and noise. No weights have a smaller expected error than the belief's mean. With a flat
belief the first two terms for least squares are ``thm:ols_loss``.

Intervals are quantiles of draws (:mod:`pyspar.core.posterior`). They also account for the uncertainty of both variances
and of the units of the prior, which the belief treats as known. Draws come from the posterior under the belief's prior
and under priors in other units, each in proportion to its evidence.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.core.posterior import posteriors_of, prior_probabilities
from pyspar.core.prior import Prior, inverse
from pyspar.core.ridge import belief_of_fit

DRAWS = 2000
LEVELS = (0.8, 0.95)

Interval = tuple[float, float]


@dataclass(frozen=True)
class Forecast:
    """The expected error of one set of weights on one target, for one output.

    Attributes
    ----------
    name : str
        The name of the weights.
    rmse : float
        Expected root mean squared error on labels with noise, as a scorer measures it. ``float(forecast)`` returns it.
    interval80, interval95 : pairs of float
        Intervals that contain the error with probability 80 % and 95 %, if the labels are linear in the features.
    rmse_noiseless, interval80_noiseless, interval95_noiseless
        The same for labels without noise.
    variance, bias, noise : float
        The parts of the expected squared error: the uncertainty of the true weights, the distance of these weights
        from the belief's mean, and the noise of the labels. They sum to ``rmse**2``.
    """

    name: str
    rmse: float
    interval80: Interval
    interval95: Interval
    rmse_noiseless: float
    interval80_noiseless: Interval
    interval95_noiseless: Interval
    variance: float
    bias: float
    noise: float

    def __float__(self) -> float:
        return self.rmse


class Forecaster:
    """Forecasts for one target. Quantities that do not depend on the weights are computed once.

    Parameters
    ----------
    source : Moments
        Moments of the labelled source.
    target : Moments
        Moments of the target's features.
    prior : Prior
        The prior of the regressor. Expectations use the belief under this prior.
    fit_intercept : bool
    other_priors : Priors, optional
        Priors with the same centre in other units, for the intervals.
    seed : int
        The seed of the draws for the intervals. The same seed gives the same numbers.
    """

    def __init__(
        self,
        source: Moments,
        target: Moments,
        prior: Prior,
        *,
        fit_intercept: bool,
        other_priors: Sequence[Prior] = (),
        seed: int = 0,
    ) -> None:
        self._prior, self._seed = prior, seed
        self._priors = (prior, *other_priors)
        fits, self._posteriors = posteriors_of(source, self._priors, fit_intercept=fit_intercept)
        self._belief = belief_of_fit(fits[0], source.weight, fit_intercept)
        self._true_weights: dict[int, tuple[Matrix, Vector]] = {}
        self._set_target(target)

    def on(self, target: Moments) -> Forecaster:
        """Return a forecaster for other rows with the same belief and draws."""
        other = copy.copy(self)
        other._set_target(target)
        return other

    def _set_target(self, target: Moments) -> None:
        self._rows = target.weight
        root = self._prior.transform_target(target).root.copy()
        root[:, 1:] -= np.outer(root[:, 0], self._belief.x_mean)
        self._root = root  # of [1 | Z] about the source mean
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.square(self._belief.std_along(root[:, 1:].T)).sum(axis=0) / target.weight
        # The uncertainty of the mean of the labels is the same in every row.
        self._variance = spread + self._belief.relative_mean_variance * self._belief.evidence.sigma2
        self._predictions: tuple[int, Matrix] = (-1, root)

    def best(self) -> tuple[Matrix, Vector]:
        """Return the weights (D, K) and intercepts (K,) with the smallest expected error: the belief's mean."""
        return self._prior.weights(self._belief, self._belief.w_hat)

    def forecast(self, name: str, coef: Matrix, intercept: Vector, output: int = 0) -> Forecast:
        """Forecast the error of weights (D, K) with intercepts (K,), for one output."""
        belief = self._belief
        with np.errstate(over="ignore", invalid="ignore"):  # a target may be too large for float64
            # Offset and weights as corrections to the prior's centre, about the source mean.
            correction = self._prior.correction(coef)
            offset = intercept - self._prior.intercept + belief.x_mean @ correction - belief.y_mean
            weights = np.vstack([offset, correction])[:, output]
            difference = weights - np.concatenate([[0.0], belief.w_hat[:, output]])
            bias = float(np.square(self._root @ difference).sum()) / self._rows
            noiseless_draws, draws = self._draw_errors(weights, output)
        variance, noise = float(self._variance[output]), float(belief.evidence.sigma2[output])
        rmse, rmse_noiseless = np.sqrt(bias + variance + noise), np.sqrt(bias + variance)
        interval80, interval95 = (_interval(draws, level, rmse) for level in LEVELS)
        noiseless80, noiseless95 = (_interval(noiseless_draws, level, rmse_noiseless) for level in LEVELS)
        return Forecast(
            name=name,
            rmse=_number(rmse),
            interval80=interval80,
            interval95=interval95,
            rmse_noiseless=_number(rmse_noiseless),
            interval80_noiseless=noiseless80,
            interval95_noiseless=noiseless95,
            variance=_number(variance),
            bias=_number(bias),
            noise=_number(noise),
        )

    def _draw_errors(self, weights: Vector, output: int) -> tuple[Vector, Vector]:
        """Draw the root mean squared error on labels without noise, and on labels with noise."""
        if output not in self._true_weights:
            self._true_weights[output] = self._draw_true_weights(output)
        true_weights, sigma = self._true_weights[output]
        if self._predictions[0] != output:  # cached for the last output only: all outputs may need gigabytes
            self._predictions = output, self._root @ true_weights
        error2 = np.square((self._root @ weights)[:, None] - self._predictions[1]).sum(axis=0) / self._rows
        rng = np.random.default_rng(self._seed + 1)  # the same noise for all weights, for comparisons
        # ||error + noise||^2: the noise component along the error is added before squaring; the other M - 1 components
        # contribute a chi-squared term.
        parallel2 = np.square(np.sqrt(error2) + sigma * rng.standard_normal(DRAWS) / np.sqrt(self._rows))
        others = rng.chisquare(self._rows - 1.0, DRAWS) if self._rows > 1.0 else np.zeros(DRAWS)
        return np.sqrt(error2), np.sqrt(parallel2 + sigma**2 * others / self._rows)

    def _draw_true_weights(self, output: int) -> tuple[Matrix, Vector]:
        """Draw true offsets and weights (1 + D, draws), in the units of the first prior, and noise levels."""
        rng = np.random.default_rng([self._seed, output])
        counts = rng.multinomial(DRAWS, prior_probabilities(self._posteriors, output))
        weights, noise = [], []
        for count, prior, p in zip(counts, self._priors, self._posteriors, strict=True):
            drawn, sigma = p.draw(output, int(count), rng)
            offset = np.sqrt(p.relative_mean_variance) * sigma * rng.standard_normal(int(count))
            ratio = self._prior.units * inverse(prior.units) / p.lam_max
            weights.append(np.vstack([offset, drawn * ratio[:, None]]) * p.label_length[output])
            noise.append(sigma * p.label_length[output])
        return np.hstack(weights), np.concatenate(noise)


def _interval(draws: Vector, level: float, expected: float) -> Interval:
    """Return the central interval of draws, widened if needed to contain the expectation."""
    with np.errstate(invalid="ignore"):  # interpolation between two infinities
        low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return _number(np.fmin(low, expected)), _number(np.fmax(high, expected))


def _number(value: float) -> float:
    """Return a float; NaN, which results from overflow, becomes infinity."""
    return float("inf") if np.isnan(value) else float(value)
