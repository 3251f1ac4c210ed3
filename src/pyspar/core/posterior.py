r"""The posterior of weights and noise given the source, with both variances unknown, and the labels that it predicts.

The model is that of :mod:`pyspar.core.evidence`. Intervals must account for the uncertainty of the ratio
:math:`\kappa` of noise to signal: a source with one strong direction carries little information about the size of the
weights. The belief uses the most likely :math:`\kappa`. Intervals average over a grid with

.. math:: p(Y \mid \kappa) \propto \prod_i (1 + \lambda_i^2 / \kappa)^{-1/2} \; q_\kappa^{-n/2},
   \qquad q_\kappa = \mathrm{RSS} + \sum_i \frac{\kappa}{\lambda_i^2 + \kappa} c_i^2

after integrating over :math:`\sigma^2` with the Jeffreys prior. The prior of :math:`\kappa` is a Beta distribution of
the share of the labels' variance that the features explain. It affects intervals only.

Given :math:`\kappa` the label of a row is a Student t variable about :math:`z^\top \mu_\kappa`. Averaged over
:math:`\kappa` and the units of the prior it is a mixture (``Predictive``), integrated with equal-probability nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, ndtr, stdtr, stdtrit

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.belief import LeastSquares, Prior, label_coordinates, least_squares
from pyspar.core.evidence import Coordinates, maximum_evidence
from pyspar.core.moments import Moments

_SHARE_POWERS = 0.5, 0.1
"""Parameters of the Beta prior of the explained share R2. A proper prior, nearly flat in log kappa. With it, intervals
had nominal coverage in simulations."""

_GRID = 321
_DECADES = 30.0
"""The grid of signal-to-noise ratios extends this many decades to both sides of one."""
_NODES = 30
_MAX_STEPS = 60
_TOLERANCE = 1e-7
"""A quantile is accurate to this share of the smallest scale of its components."""
_NORMAL_DEGREES = 300.0
"""Above this many degrees of freedom a t variable is approximated by a normal one, to three digits of a probability."""
BLOCK_ROWS = 4096
"""Rows are processed in blocks, because the mixture needs several numbers per row."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of weights and noise, for labels in units of their length and features in units of ``lambda_1``.

    ``labels`` is the effective number of labels per output, minus one for an intercept. Repeated rows are not counted
    if the fit is exact because of them. ``log_evidence`` has a constant that does not depend on the features' units.
    """

    fit: LeastSquares
    data: Coordinates
    label_length: Vector
    labels: Vector
    kappa: Vector  # candidate ratios of noise to signal
    probability: Matrix  # of each candidate, grid x outputs
    log_evidence: Vector

    @property
    def unseen(self) -> bool:
        """Whether there are directions outside the span of the source, where the posterior equals the prior."""
        return self.fit.x.rank < self.fit.x.n_features

    def degrees(self, output: int) -> float:
        """Return the degrees of freedom of the noise, given kappa."""
        return max(float(self.labels[output]), 1.0)

    def shrunk(self, output: int) -> Matrix:
        """Return the posterior mean of the weight along each source direction for every kappa, directions x grid."""
        lam = self.data.lam[:, None]
        return np.asarray(lam / (lam**2 + self.kappa) * self.data.c[:, output, None])

    def residual(self, output: int) -> Vector:
        """Return ``q`` for every kappa: the squared length of the labels that is attributed to noise."""
        return self.data.misfit(self.kappa)[:, output]

    def draw_labels(
        self, rows: Matrix, output: int, size: int, rng: np.random.Generator, outside_rng: np.random.Generator | None
    ) -> tuple[Matrix, Vector]:
        """Draw noiseless labels of rows ``[1 | Z]`` about the source mean (rows x draws), and noise levels.

        Weights outside the span of the source have the prior's distribution. With ``outside_rng`` only their part in
        the span of the rows is drawn, which needs less memory if the rows are fewer than the features.
        """
        which = rng.choice(self.kappa.size, size=size, p=self.probability[:, output])
        # Given kappa, q / sigma^2 is chi-squared with as many degrees of freedom as there are labels.
        sigma = np.sqrt(self.residual(output)[which] / rng.chisquare(self.degrees(output), size=size))
        kappa, lam, V = self.kappa[which], self.data.lam[:, None], self.fit.x.V
        along = self.shrunk(output)[:, which]
        along += sigma / np.sqrt(lam**2 + kappa) * rng.standard_normal((lam.size, size))
        features = rows[:, 1:] / self.fit.x.largest
        inside = features @ V
        labels = inside @ along
        if self.unseen:
            outside, tau = features - inside @ V.T, sigma / np.sqrt(kappa)
            if outside_rng is None:
                labels += outside @ (rng.standard_normal((len(V), size)) * tau)
            else:
                R = np.asarray(np.linalg.qr(outside.T, mode="r"))
                labels += R.T @ (outside_rng.standard_normal((len(R), size)) * tau)
        offset = np.sqrt(self.fit.relative_mean_variance) * sigma * rng.standard_normal(size)
        labels += np.outer(rows[:, 0], offset)
        return labels * self.label_length[output], sigma * self.label_length[output]


def posterior_of_fit(fit: LeastSquares, labels: Vector | None = None) -> Posterior:
    """Return the posterior given the least-squares fit of a source.

    ``labels`` is the effective number of labels per output, if it is known from the same source in other units.
    """
    data, label_length, _ = label_coordinates(fit)
    # Log odds of the share of the labels' variance that the features explain.
    odds = np.linspace(-_DECADES, _DECADES, _GRID) * np.log(10.0)
    energy = float((data.lam**2).sum()) / fit.weight if fit.x.rank else 1.0
    kappa = energy * np.exp(-odds)
    labels = _different_labels(data) if labels is None else labels
    return Posterior(fit, data, label_length, labels, kappa, *_compute_probability(data, labels, kappa, odds))


def prior_probabilities(posteriors: Sequence[Posterior], output: int) -> Vector:
    """Return the posterior probability of each prior, for equal prior probabilities."""
    evidence = np.array([posterior.log_evidence[output] for posterior in posteriors])
    share = np.exp(evidence - evidence.max())
    return np.asarray(share / share.sum())


def posteriors_of(source: Moments, priors: Sequence[Prior], *, fit_intercept: bool) -> list[Posterior]:
    """Return the posterior of one source under each of several priors."""
    fits = [least_squares(prior.transform_source(source), fit_intercept=fit_intercept) for prior in priors]
    first = posterior_of_fit(fits[0])
    # The number of labels does not depend on the units. Posteriors with different numbers could not be compared.
    return [first, *(posterior_of_fit(fit, first.labels) for fit in fits[1:])]


def _different_labels(data: Coordinates) -> Vector:
    """Return the effective number of labels per output: the rank if the evidence detects repeated rows, else n."""
    if data.n <= data.lam.size or not data.dependent:  # repeated rows are impossible, or not required
        return np.full(data.c.shape[1], data.n)
    limit = np.array(maximum_evidence(data).limit)
    return np.where(limit == "repeated-rows", float(data.lam.size), data.n)


def _compute_probability(data: Coordinates, labels: Vector, kappa: Vector, odds: Vector) -> tuple[Matrix, Vector]:
    """Return the probability of each kappa, per output, and the logarithm of the normalising constant."""
    low, high = _SHARE_POWERS
    prior = -low * np.logaddexp(0.0, -odds) - high * np.logaddexp(0.0, odds)
    with np.errstate(divide="ignore"):
        fit = -0.5 * labels * np.log(data.misfit(kappa))
    # Constant labels have zero misfit at every kappa and carry no information.
    fit = np.where(np.isfinite(fit).any(axis=0), fit, 0.0)
    log = (prior - 0.5 * data.volume(kappa))[:, None] + fit
    top = log.max(axis=0)
    weight = np.exp(log - top)
    total = weight.sum(axis=0)
    return np.asarray(weight / total), np.asarray(top + np.log(total))


@dataclass(frozen=True, eq=False)
class Predictive:
    """The distribution of each row's label, a mixture of Student t distributions."""

    centre: Matrix  # components x rows
    scale: Matrix
    degrees: float  # of freedom, of every component

    @property
    def widening(self) -> float:
        """The standard deviation of a component over its scale, if it exists."""
        return float(np.sqrt(self.degrees / (self.degrees - 2.0))) if self.degrees > 2.0 else 1.0

    def std_about(self, prediction: Vector) -> Vector:
        """Return the root of the expected squared difference between label and prediction."""
        return np.asarray(np.sqrt(((self.scale * self.widening) ** 2 + (self.centre - prediction) ** 2).mean(axis=0)))

    def quantile(self, level: float) -> Vector:
        """Return the quantile of each row's label at ``level``.

        It lies between the smallest and the largest quantile of the components. Newton steps that leave this bracket
        are replaced by a bisection.
        """
        scale = np.where(self.scale > 0.0, self.scale, np.finfo(np.float64).tiny)
        quantiles = self.centre + self.scale * stdtrit(self.degrees, level)
        low, high = quantiles.min(axis=0), quantiles.max(axis=0)
        value = (low + high) / 2.0
        for _ in range(_MAX_STEPS):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                probability, density = self._distribution(value, scale)
                new = value - (probability - level) / density
            low, high = np.where(probability < level, value, low), np.where(probability < level, high, value)
            new = np.where((new >= low) & (new <= high), new, (low + high) / 2.0)
            step, value = np.abs(new - value), new
            if (step <= _TOLERANCE * scale.min(axis=0)).all():
                break
        return np.asarray(value)

    def _distribution(self, value: Vector, scale: Matrix) -> tuple[Vector, Vector]:
        """Return the probability of a label below each row's value, and its density there."""
        t = (value - self.centre) / scale
        if self.degrees > _NORMAL_DEGREES:
            probability, density = ndtr(t), np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi)
        else:
            v = self.degrees
            peak = np.exp(gammaln((v + 1.0) / 2.0) - gammaln(v / 2.0)) / np.sqrt(v * np.pi)
            probability, density = stdtr(v, t), peak * (1.0 + t**2 / v) ** (-(v + 1.0) / 2.0)
        return probability.mean(axis=0), (density / scale).mean(axis=0)


def predictive(
    posteriors: Sequence[Posterior], rows: Sequence[Matrix], offset: Vector | float = 0.0, output: int = 0
) -> Predictive:
    """Return the distribution of the labels of rows under several priors, each weighted by its evidence.

    ``rows`` are the same rows in the coordinates of each prior. ``offset`` is the centre's prediction for each row.
    """
    # The nodes divide (0, 1) equally. Each prior has the interval of nodes whose length is its evidence share, and a
    # node's place in that interval is a quantile of kappa under the prior.
    nodes = (np.arange(_NODES) + 0.5) / _NODES
    shares = prior_probabilities(posteriors, output)
    ends = np.cumsum(shares)
    components = []
    for posterior, Z, share, end in zip(posteriors, rows, shares, ends, strict=True):
        start = end - share
        own = nodes[(start <= nodes) & (nodes < end)]
        if own.size:
            components.append(_components(posterior, Z, (own - start) / share, output))
    centres, scales = zip(*components, strict=True)
    return Predictive(np.concatenate(centres) + offset, np.concatenate(scales), posteriors[0].degrees(output))


def _components(p: Posterior, Z: Matrix, shares: Vector, output: int) -> tuple[Matrix, Matrix]:
    """Return centre and scale of the labels at given quantiles of kappa."""
    label_length = p.label_length[output]
    nodes = np.minimum(np.searchsorted(np.cumsum(p.probability[:, output]), shares), p.kappa.size - 1)
    kappa = p.kappa[nodes]
    rows = (Z - p.fit.x_mean) / p.fit.x.largest
    along = rows @ p.fit.x.V
    centre = (along @ p.shrunk(output)[:, nodes]).T
    variance = 1.0 + p.fit.relative_mean_variance + np.square(along) @ (1.0 / (p.data.lam[:, None] ** 2 + kappa))
    if p.unseen:
        length, seen = np.square(rows).sum(axis=1), np.square(along).sum(axis=1)
        outside = np.where(length - seen > 64.0 * EPS64 * length, length - seen, 0.0)
        variance = variance + outside[:, None] / kappa
    noise2 = p.residual(output)[nodes] / p.degrees(output)
    return centre * label_length + p.fit.y_mean[output], np.sqrt(variance * noise2).T * label_length
