r"""Forecast: the error of any weights on a target, before a label of it has been seen.

For weights :math:`w_a` and a target Z of M rows, the mean squared error is :math:`\|Z(w_a - w)\|^2 / M` on noiseless
labels and :math:`\|Z(w_a - w) + \varepsilon\|^2 / M` on noisy ones. Everything in it that is unknown has a posterior
(:mod:`pyspar.core.posterior`), so its expectation is a sum and its quantiles come from draws. With a flat belief the
expectation of least squares is ``thm:ols_loss``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.core.posterior import Posterior, posteriors_for
from pyspar.core.scaling import inverse

_SHARES = 1.0 + 1e-9
"""Weights whose sum is no larger are shares, rounding included."""

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
        self._draws = _Draws((posterior, *beside), seed)
        self._noise_seed = seed + 1
        self._look_at(target)

    @property
    def posterior(self) -> Posterior:
        """What expectations are taken over."""
        return self._draws.posteriors[0]

    def on(self, target: Moments) -> Forecaster:
        """Return forecasts for other rows by the same beliefs and draws; what does not depend on the rows is kept."""
        found = copy.copy(self)
        found._look_at(target)
        return found

    def _look_at(self, target: Moments) -> None:
        self._weight = target.weight
        self.rows = target.weight if target.weight > _SHARES else float(target.rows)  # shares of one are no counts
        self._views = [_View(each, _factor(each, target)) for each in self._draws.posteriors]

    def of(self, name: str, coef: Matrix, intercept: Vector, output: int = 0) -> Forecast:
        """Forecast the error of weights (D, K) with intercepts (K,), for one output."""
        with np.errstate(over="ignore", invalid="ignore"):  # a target may be too far for numbers
            return self._of(name, coef[:, output], float(intercept[output]), output)

    def _of(self, name: str, coef: Vector, intercept: float, output: int) -> Forecast:
        unit = float(self.posterior.unit[output])
        pair = coef, intercept
        mean2, sigma = self._errors(*pair, output)
        rng = np.random.default_rng(self._noise_seed)  # the same noise for every set of weights: they are compared
        # The noise along the error adds to it before it is squared; that in the other M - 1 directions comes on top.
        along = np.square(np.sqrt(mean2) + sigma * rng.standard_normal(DRAWS) / np.sqrt(self.rows))
        noisy2 = along + sigma**2 * _chi2(rng, self.rows - 1.0) / self.rows
        quiet, loud = (np.sqrt(each) * unit for each in (mean2, noisy2))
        low, high = (_interval(loud, level) for level in LEVELS)
        low_quiet, high_quiet = (_interval(quiet, level) for level in LEVELS)
        bias, variance, noise = self._split(*pair, output, np.eye(len(self._views))[0])
        if not high[0] <= np.sqrt(bias + variance + noise) * unit <= high[1]:
            parts = np.array(self._split(*pair, output, self._draws.shares(output)))
            bias, variance, noise = _within(parts, high[0] / unit, high[1] / unit).tolist()
        return Forecast(
            name=name,
            rmse=_sized(np.sqrt(bias + variance + noise) * unit),
            interval80=low,
            interval95=high,
            rmse_noiseless=_sized(np.sqrt(bias + variance) * unit),
            interval80_noiseless=low_quiet,
            interval95_noiseless=high_quiet,
            variance=_sized(variance * unit * unit),
            bias=_sized(bias * unit * unit),
            noise=_sized(noise * unit * unit),
        )

    def guess(self) -> tuple[Matrix, Vector]:
        """Return the weights (D, K) and intercepts (K,) with the least expected error: the posterior mean."""
        p = self.posterior
        columns = [p.V @ (p.shrunk(k) @ p.weight[:, k]) * p.unit[k] for k in range(len(p.unit))]
        w = np.column_stack(columns) * (inverse(p.spread) / p.reach)[:, None]
        return w, np.asarray(p.y_mean - p.x_mean @ w)

    def _split(self, coef: Vector, intercept: float, output: int, shares: Vector) -> tuple[float, float, float]:
        """Return what the expected squared error of a row consists of, beliefs by shares: bias, variance, noise."""
        asked = [(share, view) for share, view in zip(shares, self._views, strict=True) if share > 0.0]
        found = [(share, view.error(coef, intercept, output)) for share, view in asked]
        away, square, unknown, noise = (sum(share * each[part] for share, each in found) for part in range(4))
        bias = float(np.sum(away**2))
        # Apart from what is unknown under each belief, they differ about the mean: that is unknown, too.
        return bias / self._weight, float(unknown + max(square - bias, 0.0)) / self._weight, float(noise)

    def _errors(self, coef: Vector, intercept: float, output: int) -> tuple[Vector, Vector]:
        """Draw the mean squared error on the noiseless labels, and the noise level that goes with it."""
        drawn = self._draws.of(output)
        squares = [view.squares(coef, intercept, output, each) for view, each in zip(self._views, drawn, strict=True)]
        return np.concatenate(squares) / self._weight, np.concatenate([each.sigma for each in drawn])


def forecaster_for(source: Moments, target: Moments, *, fit_intercept: bool) -> Forecaster:
    """Return what forecasts errors on a target, given the moments of a labelled source."""
    first, *others = posteriors_for(source, target, fit_intercept=fit_intercept)
    return Forecaster(first, target, beside=others)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Draws from one belief: weights (features x draws), what is added to the mean label, and noise levels."""

    weights: Matrix
    offset: Vector
    sigma: Vector


class _Draws:
    """What the source leaves possible, from each belief as often as the labels speak for it; drawn once an output."""

    def __init__(self, posteriors: Sequence[Posterior], seed: int) -> None:
        self.posteriors = tuple(posteriors)
        self._rng = np.random.default_rng(seed)
        self._found: dict[int, list[_Drawn]] = {}

    def shares(self, output: int) -> Vector:
        """Return how much the source's labels speak for each belief."""
        evidence = np.array([p.log_evidence[output] for p in self.posteriors])
        share = np.exp(evidence - evidence.max())
        return np.asarray(share / share.sum())

    def of(self, output: int) -> list[_Drawn]:
        """Return the draws from each belief."""
        if output not in self._found:
            counts = self._rng.multinomial(DRAWS, self.shares(output))
            self._found[output] = [self._draw(p, output, int(n)) for p, n in zip(self.posteriors, counts, strict=True)]
        return self._found[output]

    def _draw(self, p: Posterior, output: int, count: int) -> _Drawn:
        weights, sigma = p.draw(output, count, self._rng)
        return _Drawn(weights, np.sqrt(p.mean_share) * sigma * self._rng.standard_normal(count), sigma)


class _View:
    """One belief as a target sees it. What does not depend on the weights in question is computed once.

    Of what depends on the output only the last is kept: for many targets and outputs all of it may be gigabytes.
    """

    def __init__(self, posterior: Posterior, T: Matrix) -> None:
        self._posterior, self._T = posterior, T
        self._truth: tuple[int, Matrix] = (-1, T)
        self._means: tuple[int, Matrix, Vector] = (-1, T, T[0])

    def squares(self, coef: Vector, intercept: float, output: int, drawn: _Drawn) -> Vector:
        """Return the squared error of weights on the target's root, for each draw of what the labels may be."""
        if self._truth[0] != output:
            truth = self._T[:, 1:] @ drawn.weights
            truth += np.outer(self._T[:, 0], drawn.offset)
            self._truth = output, truth
        labels = self._T @ _given(self._posterior, coef, intercept, output)
        return np.asarray(np.square(labels[:, None] - self._truth[1]).sum(axis=0))

    def error(self, coef: Vector, intercept: float, output: int) -> tuple[Vector, float, float, float]:
        """Return the expected error on the target's root and its square, the unknown, the noise."""
        p = self._posterior
        if self._means[0] != output:
            self._means = output, self._along @ p.shrunk(output), p.noise2(output)  # for every kappa
        (_, means, noise2), weight = self._means, p.weight[:, output]
        away = (self._T @ _given(p, coef, intercept, output))[:, None] - means
        square = float((away**2).sum(axis=0) @ weight)  # over kappa
        return away @ weight, square, float((noise2 * self._spread) @ weight), float(noise2 @ weight)

    @cached_property
    def _along(self) -> Matrix:
        """The target's root along the source's directions."""
        return np.asarray(self._T[:, 1:] @ self._posterior.V)

    @cached_property
    def _spread(self) -> Vector:
        """What the weights leave open on the target's root for every kappa, in units of the noise."""
        p, energy = self._posterior, (self._along**2).sum(axis=0)
        spread = (energy[:, None] / (p.data.lam[:, None] ** 2 + p.kappa)).sum(axis=0)
        if p.unseen:
            seen = self._T[:, 1:] * (p.spread > 0.0)
            spread = spread + max(float((seen**2).sum() - energy.sum()), 0.0) / p.kappa
        return np.asarray(spread + p.mean_share * float((self._T[:, 0] ** 2).sum()))


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
    with np.errstate(invalid="ignore"):  # between two that are infinite there is nothing
        low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return _sized(low), _sized(high)


def _within(parts: Vector, low: float, high: float) -> Vector:
    """Return the parts of a mean square, shrunk or stretched so that its root lies in an interval.

    A source of next to no rows leaves draws possible that are so large that they alone make the mean.
    """
    root = np.sqrt(parts.sum())
    return np.asarray(parts * (np.clip(root, low, high) / root) ** 2) if 0.0 < root < np.inf else parts


def _sized(value: float) -> float:
    """Return a number; what is too large to be one, or the difference of two such, is infinite."""
    return float("inf") if np.isnan(value) else float(value)
