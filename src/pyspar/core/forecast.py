r"""Forecast the error of given weights on a target without labels.

For weights w and a target of M rows with the second moment :math:`T = Z^\top Z / M`, a belief with mean
:math:`\mu` and covariance :math:`\Sigma` expects the mean squared error

.. math:: (w - \mu)^\top T (w - \mu) + \mathrm{tr}(\Sigma T) + \sigma^2

The terms are bias, variance and noise. With a flat belief the first two terms for least squares are ``thm:ols_loss``.

The intervals that hold for a linear relation are quantiles of draws (:mod:`pyspar.core.posterior`), which also account
for the uncertainty of both variances and of the units of the prior. Real targets violate the model, so the caller
passes a function that returns the interval for real data, given the interval of the model and the separation of source
and target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Prior, RidgeBelief, belief_of_fit
from pyspar.core.moments import Moments
from pyspar.core.posterior import Posterior, posteriors_of, prior_probabilities
from pyspar.core.separation import Separation, measure_separation

DRAWS, SEED = 2000, 0
LEVELS = (0.8, 0.95)
"""The levels of the intervals of a forecast: ``interval80`` and ``interval95``."""

_ROUNDING = 1e-12
"""A bias below this share of the predictions is rounding error: the weights equal the mean of the belief."""

Interval = tuple[float, float]
Calibrate: TypeAlias = Callable[[float, float, Interval, Separation, int, float], Interval]
"""Maps (level, expected RMSE, interval of the linear model, separation, output, rows) to an interval for real data."""


@dataclass(frozen=True, repr=False)
class Forecast:
    """The expected error of one set of weights on one target, for one output.

    Attributes
    ----------
    name : str
        The name of the weights.
    rmse : float
        Expected root mean squared error on labels with noise, as a scorer measures it. ``float(forecast)`` returns it.
    interval80, interval95 : pairs of float
        Intervals that contained the error in at least 80 % and 95 % of real shifts with a similar separation of source
        and target. If no shift is found and the rows are not matched, they are those of the model, widened by what
        real data need.
    rmse_noiseless : float
        The expected error on labels without noise.
    variance, bias, noise : float
        The parts of the expected squared error: the uncertainty of the true weights, the distance of these weights
        from the belief's mean, and the noise of the labels.
    between_groups : float
        The further squared error on rows of new groups, if the regressor was fitted with ``groups``. The four parts sum
        to ``rmse**2``.
    interval80_if_linear, interval95_if_linear : pairs of float or None
        Intervals that contain the error with probability 80 % and 95 %, if the labels are linear in the features with
        noise of constant variance, in source and target, and the rows have no groups. None for regressors that are not
        linear.
    """

    name: str
    rmse: float
    interval80: Interval
    interval95: Interval
    rmse_noiseless: float
    variance: float
    bias: float
    noise: float
    between_groups: float = 0.0
    interval80_if_linear: Interval | None = None
    interval95_if_linear: Interval | None = None

    def __repr__(self) -> str:
        numbers = (_text(number) for number in (self.rmse, *self.interval80, *self.interval95))
        return "{}({}: RMSE {}; 80 %: {} to {}; 95 %: {} to {})".format(type(self).__name__, self.name, *numbers)

    def __float__(self) -> float:
        return self.rmse


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Forecasts for one target, given by its moments, under the belief of a labelled source and the first prior.

    The other priors have the same centre in other units; only the intervals use them. ``between_groups`` is the squared
    error to add on new groups, per output. ``calibrate`` returns the intervals for real data; by default they are those
    of the linear model. If the target contains only some rows, ``whole`` is the forecaster for all of them.
    """

    source: Moments
    target: Moments
    priors: Sequence[Prior]
    _: KW_ONLY
    fit_intercept: bool
    between_groups: Vector | None = None
    calibrate: Calibrate | None = None
    whole: Forecaster | None = None

    def on(self, target: Moments) -> Forecaster:
        """Return a forecaster for some rows of the target, with the same belief and draws."""
        return replace(self, target=target, whole=self)

    @cached_property
    def separation(self) -> Separation:
        """How well the rows of source and target can be distinguished.

        If some rows alone show no shift, for example because they are few, the separation of all rows counts.
        """
        own = measure_separation(self.source, self.target)
        return own if own.found or self.whole is None else self.whole.separation

    @cached_property
    def _posteriors(self) -> list[Posterior]:
        if self.whole is not None:
            return self.whole._posteriors
        return posteriors_of(self.source, self.priors, fit_intercept=self.fit_intercept)

    @cached_property
    def _belief(self) -> RidgeBelief:
        return belief_of_fit(self._posteriors[0].fit) if self.whole is None else self.whole._belief

    @cached_property
    def _root(self) -> Matrix:
        """A root of ``[1 | Z]`` about the source mean."""
        root = self.priors[0].transform_target(self.target).root.copy()
        root[:, 1:] -= np.outer(root[:, 0], self._belief.x_mean)
        return root

    @cached_property
    def _variance(self) -> Vector:
        """The expected squared error due to uncertain weights and an uncertain mean of the labels, per output."""
        stds = self._belief.std_along(self._root[:, 1:].T) / np.sqrt(self.target.weight)
        return np.asarray(
            np.square(stds).sum(axis=0) + self._belief.relative_mean_variance * self._belief.evidence.sigma2
        )

    def best(self) -> tuple[Matrix, Vector]:
        """Return the weights (D, K) and intercepts (K,) with the smallest expected error: the belief's mean."""
        return self.priors[0].weights(self._belief, self._belief.w_hat)

    def expected_square(self, coef: Matrix, intercept: Vector, output: int = 0) -> float:
        """Return the expected squared error of weights (D, K) with intercepts (K,), for one output and no groups."""
        return sum(self._parts(coef, intercept, output)[1])

    def _parts(self, coef: Matrix, intercept: Vector, output: int) -> tuple[Vector, tuple[float, float, float]]:
        """Return the weights as corrections to the belief's coordinates, and the expected bias, variance and noise."""
        belief = self._belief
        weights = self.priors[0].correction_about(belief, coef, intercept)[:, output]
        difference = weights - np.concatenate([[0.0], belief.w_hat[:, output]])
        bias = self._mean_square(difference)
        size = max(np.sqrt(self._mean_square(weights)), abs(belief.y_mean[output]))
        if np.sqrt(bias) < _ROUNDING * size:
            bias = 0.0
        return weights, (bias, float(self._variance[output]), float(belief.evidence.sigma2[output]))

    def _mean_square(self, weights: Vector) -> float:
        """Return the mean squared prediction of weights and an intercept, in the belief's coordinates."""
        return float(np.square(self._root @ weights / np.sqrt(self.target.weight)).sum())

    def forecast(self, name: str, coef: Matrix, intercept: Vector, output: int = 0) -> Forecast:
        """Forecast the error of weights (D, K) with intercepts (K,), for one output."""
        weights, (bias, variance, noise) = self._parts(coef, intercept, output)
        draws = self._draw_errors(weights, output)
        between_groups = 0.0 if self.between_groups is None else float(self.between_groups[output])
        if_linear, rmse_noiseless = np.sqrt(bias + variance + noise), np.sqrt(bias + variance)
        rmse = float(np.sqrt(bias + variance + noise + between_groups))
        growth = rmse / float(if_linear) if if_linear > 0.0 else 1.0
        linear80, linear95 = (_interval(draws, level, if_linear) for level in LEVELS)
        interval80, interval95 = (
            self._calibrated(level, rmse, (low * growth, high * growth), output)
            for level, (low, high) in zip(LEVELS, (linear80, linear95), strict=True)
        )
        return Forecast(
            name=name,
            rmse=rmse,
            interval80=interval80,
            interval95=interval95,
            rmse_noiseless=float(rmse_noiseless),
            variance=variance,
            bias=bias,
            noise=noise,
            between_groups=between_groups,
            interval80_if_linear=linear80,
            interval95_if_linear=linear95,
        )

    def _calibrated(self, level: float, rmse: float, if_linear: Interval, output: int) -> Interval:
        if self.calibrate is None:
            return if_linear
        return self.calibrate(level, rmse, if_linear, self.separation, output, self.target.weight)

    def _draw_errors(self, weights: Vector, output: int) -> Vector:
        """Draw the root mean squared error on labels with noise."""
        (predictions, sigma), rows = self._draws(output), self.target.weight
        error2 = np.square((self._root @ weights)[:, None] - predictions).sum(axis=0) / rows
        rng = np.random.default_rng(SEED + 1)  # the same noise for all weights, for comparisons
        # ||error + noise||^2: the noise component along the error is added before squaring; the other M - 1 components
        # contribute a chi-squared term.
        parallel2 = np.square(np.sqrt(error2) + sigma * rng.standard_normal(DRAWS) / np.sqrt(rows))
        others = rng.chisquare(rows - 1.0, DRAWS) if rows > 1.0 else np.zeros(DRAWS)
        return np.asarray(np.sqrt(parallel2 + sigma**2 * others / rows))

    @cached_property
    def _draws(self) -> Callable[[int], tuple[Matrix, Vector]]:
        """``_draw_labels``, cached for the last output only: all outputs may need gigabytes."""
        return lru_cache(maxsize=1)(self._draw_labels)

    def _draw_labels(self, output: int) -> tuple[Matrix, Vector]:
        """Draw noiseless labels of the rows of the target's root (rows, draws), and noise levels."""
        rows, features = len(self._root), self._root.shape[1] - 1
        is_wide = features > DRAWS and 2 * rows < features  # draws of all weights need more memory than the rows
        rng = np.random.default_rng([SEED, output])
        counts = rng.multinomial(DRAWS, prior_probabilities(self._posteriors, output))
        drawn = []
        for i, (count, prior, posterior) in enumerate(zip(counts, self.priors, self._posteriors, strict=True)):
            # Draws outside the source's span depend on the target. The others are the same for every target.
            outside_rng = np.random.default_rng([SEED, output, i]) if is_wide else None
            root = self.priors[0].change_units(self._root, prior)
            drawn.append(posterior.draw_labels(root, output, int(count), rng, outside_rng))
        labels, noise = zip(*drawn, strict=True)
        return np.hstack(labels), np.concatenate(noise)


def _interval(draws: Vector, level: float, expected: float) -> Interval:
    """Return the central interval of draws, widened if needed to contain the expectation."""
    low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(min(low, expected)), float(max(high, expected))


def _text(number: float) -> str:
    """Return a number with four significant digits. Large numbers have no exponent below a million."""
    return f"{float(f'{number:.4g}'):,g}"
