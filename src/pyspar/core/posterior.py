r"""Posterior: everything the labelled source leaves possible, weighed by how plausible it is.

The model is that of :mod:`pyspar.core.evidence`, on features of unit spread. A forecast of an error must not pretend to
know :math:`\kappa`: a source that shows one direction well says little about how large weights are. So it is not fixed
at its most likely value but averaged over, on a grid, with

.. math:: p(Y \mid \kappa) \propto \prod_i (1 + \lambda_i^2 / \kappa)^{-1/2} \; q_\kappa^{-n/2},
   \qquad q_\kappa = \mathrm{RSS} + \sum_i \frac{\kappa}{\lambda_i^2 + \kappa} c_i^2

after integrating over :math:`\sigma^2` (Jeffreys). A prior that is uniform in :math:`\log\kappa` would make intervals
cover what they promise, but leaves "no signal at all" and "no noise at all" with infinite weight. So it falls off as
the root of the share of the labels' variance that the features explain, which is nearly uniform where there is a
signal, and slowly, as the tenth power, where next to nothing is left for the noise.

Rows that repeat others, label and all, count for nothing where the evidence finds that they must be copies: an exact
fit of as many different rows as directions would else be a proof that there is no noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector, root_sum_squares
from pyspar.core.belief import counted_rows, least_squares
from pyspar.core.evidence import Coordinates, maximum_evidence
from pyspar.core.moments import Moments
from pyspar.core.ridge import label_coordinates
from pyspar.core.scaling import in_units_of, spread_of_features

_GRID = 321
_DECADES = 30.0
"""The ratios of signal to noise that are considered reach this many decades to both sides of one."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the source leaves possible. Labels are in units of ``unit``, features of ``spread * reach``.

    Attributes
    ----------
    spread : array of shape (D,)
        Standard deviation of each feature on the source; zero for one that does not vary, of which nothing is known.
    reach : float
        The largest singular value of the source in those units.
    unit : array of shape (K,)
        Length of the labels.
    V : array of shape (D, r)
        The source's directions.
    data : Coordinates
        The labels along them.
    labels : array of shape (K,)
        How many labels those count for, without the one spent on the mean: the rows, or those that repeat no other.
    kappa : array of shape (grid,)
        Candidate ratios of noise to signal.
    weight : array of shape (grid, K)
        How plausible each is; sums to one.
    log_evidence : array of shape (K,)
        How plausible the labels are in these units, up to a constant that does not depend on the units.
    x_mean, y_mean, mean_share
        As for a belief; ``x_mean`` in the features' own units.
    """

    spread: Vector
    reach: float
    unit: Vector
    V: Matrix
    data: Coordinates
    labels: Vector
    kappa: Vector
    weight: Matrix
    log_evidence: Vector
    x_mean: Vector
    y_mean: Vector
    mean_share: float

    @property
    def units(self) -> Vector:
        """What a feature is divided by: its spread, or one for a feature that does not vary and keeps its own unit."""
        return np.where(self.spread > 0.0, self.spread, 1.0)

    @property
    def unseen(self) -> bool:
        """Whether there are directions that the source does not have, where only the prior speaks."""
        return bool(self.V.shape[1] < (self.spread > 0.0).sum())

    def degrees(self, output: int) -> float:
        """Return the degrees of freedom of the noise, given kappa."""
        return max(float(self.labels[output]), 1.0)

    def shrunk(self, output: int) -> Matrix:
        """Return the posterior mean of the weight along each source direction for every kappa, directions x grid."""
        lam = self.data.lam[:, None]
        return np.asarray(lam / (lam**2 + self.kappa) * self.data.c[:, output, None])

    def residual(self, output: int) -> Vector:
        """Return ``q`` for every kappa: what of the labels' squared length is left to the noise."""
        return self.data.misfit(self.kappa)[:, output]

    def noise2(self, output: int) -> Vector:
        """Return the expected variance of the noise for every kappa."""
        return self.residual(output) / max(float(self.labels[output]) - 2.0, 1.0)

    def draw(self, output: int, size: int, rng: np.random.Generator) -> tuple[Matrix, Vector]:
        """Draw weights (features x draws) and noise levels."""
        which = rng.choice(self.kappa.size, size=size, p=self.weight[:, output])
        # Given kappa, q / sigma^2 is chi-squared with as many degrees of freedom as there are labels.
        sigma = np.sqrt(self.residual(output)[which] / rng.chisquare(self.degrees(output), size=size))
        kappa, lam = self.kappa[which], self.data.lam[:, None]
        along = self.shrunk(output)[:, which]
        along += sigma / np.sqrt(lam**2 + kappa) * rng.standard_normal((lam.size, size))
        weights = self.V @ along
        if self.unseen:
            free = rng.standard_normal((len(self.spread), size)) * (sigma / np.sqrt(kappa))
            free *= (self.spread > 0.0)[:, None]
            weights += free - self.V @ (self.V.T @ free)
        return weights, sigma


def posteriors_for(source: Moments, target: Moments, *, fit_intercept: bool) -> tuple[Posterior, ...]:
    """Weigh what a source leaves possible, in three kinds of units: of source and target, of the source, and as given.

    Beforehand no feature is taken to contribute more than another, which depends on units. First the larger of a
    feature's spreads over the two: what hardly varied in the source would else be free to contribute without bound
    where it does vary. On real shifts this belief forecasts best; the others are for those where it is wrong.
    """
    d = source.n_features
    spread = spread_of_features(source, fit_intercept=fit_intercept)
    origin = source.mean[:d] if fit_intercept else np.zeros(d)
    there = root_sum_squares(target.without_outputs().root_about(origin)) / np.sqrt(target.weight)
    own = posterior_of(source, fit_intercept=fit_intercept, spread=spread)
    # How many labels there are does not depend on units; beliefs that differ in it could not be compared.
    first, raw = (
        posterior_of(source, fit_intercept=fit_intercept, spread=kind, labels=own.labels)
        for kind in (np.maximum(spread, there), np.ones(d))
    )
    return first, own, raw


def posterior_of(
    source: Moments, *, fit_intercept: bool, spread: Vector | None = None, labels: Vector | None = None
) -> Posterior:
    """Weigh what the moments of a labelled source leave possible, features in units of their spread unless given.

    ``labels`` says how many labels there are for each output, where that is known.
    """
    d = source.n_features
    if spread is None:
        spread = spread_of_features(source, fit_intercept=fit_intercept)
    fit = least_squares(in_units_of(source, spread), fit_intercept=fit_intercept)
    weight = counted_rows(source, fit.x.rank + fit_intercept)
    stretch = np.sqrt(weight / source.weight)
    data, unit, _ = label_coordinates(fit, weight - fit_intercept)
    # The share of the labels' variance that the features explain has these odds, as logarithms.
    odds = np.linspace(-_DECADES, _DECADES, _GRID) * np.log(10.0)
    energy = float((data.lam**2).sum()) / weight if fit.x.rank else 1.0
    kappa = energy * np.exp(-odds)
    labels = _different_labels(data) if labels is None else labels
    plausibility, log_evidence = _plausibility(data, labels, kappa, odds)
    return Posterior(
        spread=spread,
        reach=float(fit.x.lam[0] * stretch) if fit.x.rank else 1.0,
        unit=unit * stretch,
        V=fit.x.V,
        data=data,
        labels=labels,
        kappa=kappa,
        weight=plausibility,
        log_evidence=log_evidence,
        x_mean=source.mean[:d] if fit_intercept else np.zeros(d),
        y_mean=fit.y_mean,
        mean_share=1.0 / weight if fit_intercept else 0.0,
    )


def _different_labels(data: Coordinates) -> Vector:
    """Return how many labels there are for each output: as many as directions where the evidence sees copies."""
    if data.n <= data.lam.size or not data.dependent:  # no row can be a copy, or none has to be
        return np.full(data.c.shape[1], data.n)
    limit = np.array(maximum_evidence(data)[4])
    return np.where(limit == "repeated-rows", float(data.lam.size), data.n)


def _plausibility(data: Coordinates, labels: Vector, kappa: Vector, odds: Vector) -> tuple[Matrix, Vector]:
    """Return how plausible each kappa is, per output, and the logarithm of the sum before it was made one."""
    prior = -0.5 * np.logaddexp(0.0, -odds) - 0.1 * np.logaddexp(0.0, odds)  # of the share, and of the rest
    with np.errstate(divide="ignore"):
        fit = -0.5 * labels * np.log(data.misfit(kappa))
    # Labels that do not vary leave no misfit at any kappa, and tell nothing.
    fit = np.where(np.isfinite(fit).any(axis=0), fit, 0.0)
    log = (prior - 0.5 * data.volume(kappa))[:, None] + fit
    top = log.max(axis=0)
    weight = np.exp(log - top)
    total = weight.sum(axis=0)
    return np.asarray(weight / total), np.asarray(top + np.log(total))
