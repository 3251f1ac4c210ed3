r"""Forecast: the error of any weights on a target, before a label of it has been seen.

For weights :math:`w_a` and a target Z of M rows, the mean squared error is :math:`\|Z(w_a - w)\|^2 / M` on noiseless
labels and :math:`\|Z(w_a - w) + \varepsilon\|^2 / M` on noisy ones. Everything in it that is unknown has a posterior
(:mod:`pyspar.core.posterior`), so its expectation is a sum and its quantiles come from draws. With a flat belief the
expectation of least squares is ``thm:ols_loss``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.core.posterior import Posterior
from pyspar.core.scaling import inverse

DRAWS = 2000
LEVELS = (0.8, 0.95)

Interval = tuple[float, float]


@dataclass(frozen=True)
class Forecast:
    """The expected error of one set of weights on one target, for one output.

    Attributes
    ----------
    name : str
        Whose weights these are.
    rmse : float
        Expected root mean squared error on labels with noise, what a scorer will see; ``float(forecast)`` is this.
    interval80, interval95 : pairs of float
        Where that error will lie with probability 80 and 95 per cent.
    rmse_noiseless, interval80_noiseless, interval95_noiseless
        The same on the labels' noiseless means.
    variance, bias, noise : float
        How the expected squared error divides: what nobody can know from this source, what these weights give away
        against the best guess, and the noise of the labels. They sum to ``rmse**2``.
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
    """Forecasts for one target; what does not depend on the weights is computed once.

    Parameters
    ----------
    posterior : Posterior
    target : Moments
        Of the target's features.
    seed : int
        Of the draws behind the intervals; the same seed gives the same digits.
    """

    def __init__(self, posterior: Posterior, target: Moments, *, seed: int = 0) -> None:
        self.posterior = posterior
        self.rows = target.weight
        self._factor = _factor(posterior, target)
        self._rng = np.random.default_rng(seed)
        self._noise_seed = seed + 1
        self._drawn: dict[int, tuple[Matrix, Vector]] = {}

    def of(self, name: str, coef: Matrix, intercept: Vector, output: int = 0) -> Forecast:
        """Forecast the error of weights (D, K) with intercepts (K,), for one output."""
        M, unit = self.rows, float(self.posterior.unit[output])
        given = self._given(coef[:, output], float(intercept[output]), output)
        bias, variance, noise = (value / scale for value, scale in zip(self._split(given, output), (M, M, 1.0)))
        error2, sigma = self._errors(given, output)
        rng = np.random.default_rng(self._noise_seed)  # the same noise for every set of weights: they are compared
        shared = 2.0 * sigma * np.sqrt(error2) * rng.standard_normal(DRAWS)
        noisy2 = np.maximum(error2 + shared + sigma**2 * rng.chisquare(max(M, 1.0), DRAWS), 0.0)
        quiet, loud = (np.sqrt(each / M) * unit for each in (error2, noisy2))
        low, high = (_interval(loud, level) for level in LEVELS)
        low_quiet, high_quiet = (_interval(quiet, level) for level in LEVELS)
        return Forecast(
            name=name,
            rmse=float(np.sqrt(bias + variance + noise)) * unit,
            interval80=low,
            interval95=high,
            rmse_noiseless=float(np.sqrt(bias + variance)) * unit,
            interval80_noiseless=low_quiet,
            interval95_noiseless=high_quiet,
            variance=variance * unit * unit,
            bias=bias * unit * unit,
            noise=noise * unit * unit,
        )

    def guess(self) -> tuple[Matrix, Vector]:
        """Return the weights (D, K) and intercepts (K,) with the least expected error: the posterior mean."""
        p = self.posterior
        columns = [p.V @ (p.shrunk(k) @ p.weight[:, k]) * p.unit[k] for k in range(len(p.unit))]
        w = np.column_stack(columns) * (inverse(p.spread) / p.reach)[:, None]
        return w, np.asarray(p.y_mean - p.x_mean @ w)

    def _given(self, coef: Vector, intercept: float, output: int) -> Vector:
        """Return (offset, weights) about the source mean, in the posterior's units."""
        p = self.posterior
        offset = intercept + p.x_mean @ coef - p.y_mean[output]
        return np.asarray(np.concatenate([[offset], coef * p.units * p.reach]) / p.unit[output])

    def _split(self, given: Vector, output: int) -> tuple[float, float, float]:
        """Return what the expected squared error consists of: bias and variance summed over rows, noise of one row."""
        p, T = self.posterior, self._factor
        weight, noise2 = p.weight[:, output], p.noise2(output)
        along = T[:, 1:] @ p.V
        means = along @ p.shrunk(output)  # one column for every kappa
        away = (T @ given)[:, None] - means
        overall = float(((away**2).sum(axis=0)) @ weight)  # the expectation over kappa of the squared distance
        bias = float(((away @ weight) ** 2).sum())
        energy = (along**2).sum(axis=0)
        spread = (energy[:, None] / (p.data.lam[:, None] ** 2 + p.kappa)).sum(axis=0)
        if p.unseen:
            seen = T[:, 1:] * (p.spread > 0.0)
            spread = spread + max(float((seen**2).sum() - energy.sum()), 0.0) / p.kappa
        spread = spread + p.mean_share * float((T[:, 0] ** 2).sum())
        variance = float((noise2 * spread) @ weight) + max(overall - bias, 0.0)
        return bias, variance, float(noise2 @ weight)

    def _errors(self, given: Vector, output: int) -> tuple[Vector, Vector]:
        """Draw the squared error on the noiseless labels, summed over rows, and the noise level that goes with it."""
        if output not in self._drawn:
            p, T = self.posterior, self._factor
            weights, sigma = p.draw(output, DRAWS, self._rng)
            truth = T[:, 1:] @ weights
            truth += np.outer(T[:, 0], np.sqrt(p.mean_share) * sigma * self._rng.standard_normal(DRAWS))
            self._drawn[output] = truth, sigma
        truth, sigma = self._drawn[output]
        return np.square((self._factor @ given)[:, None] - truth).sum(axis=0), sigma


def _factor(posterior: Posterior, target: Moments) -> Matrix:
    """Return a root of the target ``[1 | Z]`` about the source mean, in the posterior's units."""
    root = target.without_outputs().root.copy()
    root[:, 1:] -= np.outer(root[:, 0], posterior.x_mean)
    root[:, 1:] /= posterior.units * posterior.reach
    return root


def _interval(draws: Vector, level: float) -> Interval:
    low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)
