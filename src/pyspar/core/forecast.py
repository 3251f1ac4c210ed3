r"""Forecast: the error of any weights on a target, before a label of it has been seen.

For weights :math:`w_a` and a target Z of M rows, the mean squared error is :math:`\|Z(w_a - w)\|^2 / M` on noiseless
labels and :math:`\|Z(w_a - w) + \varepsilon\|^2 / M` on noisy ones. Everything in it that is unknown has a posterior
(:mod:`pyspar.core.posterior`), so its expectation is a sum and its quantiles come from draws. With a flat belief the
expectation of least squares is ``thm:ols_loss``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.core.posterior import Posterior, posteriors_for
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
        What expectations are taken over.
    target : Moments
        Of the target's features.
    beside : Posteriors, optional
        The same source in other units. Which units make features alike is a guess; intervals are drawn from all of
        them, each as often as the source's labels speak for it, so that they hold where the first guess is wrong. Where
        it is so wrong that its expectation lies outside them, the expectation is taken over all of them, too.
    seed : int
        Of the draws behind the intervals; the same seed gives the same digits.
    """

    def __init__(
        self, posterior: Posterior, target: Moments, *, beside: Sequence[Posterior] = (), seed: int = 0
    ) -> None:
        self.posterior = posterior
        self._weight = target.weight
        self.rows = target.weight if target.weight >= 1.0 else float(target.rows)  # shares of one are no counts
        self._beliefs = [(each, _factor(each, target)) for each in (posterior, *beside)]
        self._first = np.eye(len(self._beliefs))[0]
        self._rng = np.random.default_rng(seed)
        self._noise_seed = seed + 1
        self._drawn: dict[int, list[tuple[Posterior, Matrix, Matrix, Vector]]] = {}

    def of(self, name: str, coef: Matrix, intercept: Vector, output: int = 0) -> Forecast:
        """Forecast the error of weights (D, K) with intercepts (K,), for one output."""
        unit = float(self.posterior.unit[output])
        pair = coef[:, output], float(intercept[output])
        mean2, sigma = self._errors(*pair, output)
        rng = np.random.default_rng(self._noise_seed)  # the same noise for every set of weights: they are compared
        # The noise along the error adds to it before it is squared; that in the other M - 1 directions comes on top.
        along = np.square(np.sqrt(mean2) + sigma * rng.standard_normal(DRAWS) / np.sqrt(self.rows))
        noisy2 = along + sigma**2 * _chi2(rng, self.rows - 1.0) / self.rows
        quiet, loud = (np.sqrt(each) * unit for each in (mean2, noisy2))
        low, high = (_interval(loud, level) for level in LEVELS)
        low_quiet, high_quiet = (_interval(quiet, level) for level in LEVELS)
        bias, variance, noise = self._split(*pair, output, self._first)
        if not high[0] <= np.sqrt(bias + variance + noise) * unit <= high[1]:
            bias, variance, noise = self._split(*pair, output, self._shares(output))
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

    def _split(self, coef: Vector, intercept: float, output: int, shares: Vector) -> tuple[float, float, float]:
        """Return what the expected squared error of a row consists of, beliefs by shares: bias, variance, noise."""
        asked = [(share, *belief) for share, belief in zip(shares, self._beliefs, strict=True) if share > 0.0]
        found = [_error(p, T, _given(p, coef, intercept, output), output) for _, p, T in asked]
        away, square, unknown, noise = (
            sum(share * each[part] for (share, *_), each in zip(asked, found, strict=True)) for part in range(4)
        )
        bias = float(np.sum(away**2))
        # Apart from what is unknown under each belief, they differ about the mean: that is unknown, too.
        return bias / self._weight, float(unknown + max(square - bias, 0.0)) / self._weight, float(noise)

    def _shares(self, output: int) -> Vector:
        """Return how much the source's labels speak for each belief."""
        evidence = np.array([p.log_evidence[output] for p, _ in self._beliefs])
        share = np.exp(evidence - evidence.max())
        return np.asarray(share / share.sum())

    def _errors(self, coef: Vector, intercept: float, output: int) -> tuple[Vector, Vector]:
        """Draw the mean squared error on the noiseless labels, and the noise level that goes with it."""
        if output not in self._drawn:
            self._drawn[output] = self._draw(output)
        found = [
            (np.square((T @ _given(p, coef, intercept, output))[:, None] - truth).sum(axis=0) / self._weight, sigma)
            for p, T, truth, sigma in self._drawn[output]
        ]
        return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])

    def _draw(self, output: int) -> list[tuple[Posterior, Matrix, Matrix, Vector]]:
        """Draw what the labels of the target may be, from each belief as often as the source speaks for it."""
        counts = self._rng.multinomial(DRAWS, self._shares(output))
        found = []
        for (p, T), count in zip(self._beliefs, counts, strict=True):
            weights, sigma = p.draw(output, int(count), self._rng)
            truth = T[:, 1:] @ weights
            truth += np.outer(T[:, 0], np.sqrt(p.mean_share) * sigma * self._rng.standard_normal(int(count)))
            found.append((p, T, truth, sigma))
        return found


def forecaster_for(source: Moments, target: Moments, *, fit_intercept: bool) -> Forecaster:
    """Return what forecasts errors on a target, given the moments of a labelled source."""
    first, *others = posteriors_for(source, target, fit_intercept=fit_intercept)
    return Forecaster(first, target, beside=others)


def _error(p: Posterior, T: Matrix, given: Vector, output: int) -> tuple[Vector, float, float, float]:
    """Return, under one belief: the expected error on the target's root and its square, the unknown, the noise."""
    weight, noise2 = p.weight[:, output], p.noise2(output)
    along = T[:, 1:] @ p.V
    away = (T @ given)[:, None] - along @ p.shrunk(output)  # one column for every kappa
    energy = (along**2).sum(axis=0)
    spread = (energy[:, None] / (p.data.lam[:, None] ** 2 + p.kappa)).sum(axis=0)
    if p.unseen:
        seen = T[:, 1:] * (p.spread > 0.0)
        spread = spread + max(float((seen**2).sum() - energy.sum()), 0.0) / p.kappa
    spread = spread + p.mean_share * float((T[:, 0] ** 2).sum())
    square = float((away**2).sum(axis=0) @ weight)  # over kappa
    return away @ weight, square, float((noise2 * spread) @ weight), float(noise2 @ weight)


def _given(p: Posterior, coef: Vector, intercept: float, output: int) -> Vector:
    """Return (offset, weights) about the source mean, in the posterior's units."""
    offset = intercept + p.x_mean @ coef - p.y_mean[output]
    return np.asarray(np.concatenate([[offset], coef * p.units * p.reach]) / p.unit[output])


def _factor(posterior: Posterior, target: Moments) -> Matrix:
    """Return a root of the target ``[1 | Z]`` about the source mean, in the posterior's units."""
    root = target.without_outputs().root.copy()
    root[:, 1:] -= np.outer(root[:, 0], posterior.x_mean)
    root[:, 1:] /= posterior.units * posterior.reach
    return root


def _chi2(rng: np.random.Generator, degrees: float) -> Vector:
    return rng.chisquare(degrees, DRAWS) if degrees > 0.0 else np.zeros(DRAWS)


def _interval(draws: Vector, level: float) -> Interval:
    low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)
