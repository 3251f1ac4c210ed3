"""The models of a drift: all combinations of the sizes of offset, slope and weights, and their evidence.

``pyspar.core.drift`` states the model. One decomposition of the features serves all combinations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pyspar.core.arrays import Matrix, Vector

RATIOS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4)
"""The variances of a component relative to the noise, from none to so large that many labels are not shrunk."""

TEST_RATIOS = (0.0, 0.1, 1.0, 10.0, 100.0)
"""The variances for tests, which compute the evidence of thousands of residuals and need fewer of them."""

NO_DRIFT = 0.5
"""The prior probability that nothing has changed (``docs/design.md``)."""

NORMAL_KURTOSIS = 3.0

_DRAWS = 2000


def log_prior(ratio: Any) -> Any:
    """Return the logarithm of the prior weight of a ratio, 1 / (1 + ratio): the larger the drift, the rarer."""
    return -np.log1p(ratio)


def information_share(kurtosis: float) -> float:
    """Return the number of normal values whose mean square varies as that of one value with this kurtosis.

    The variance of a mean of n squares is (kurtosis - 1) / n times its squared expectation, 2 / n for normal values.
    Tails lighter than normal ones do not count as more.

    >>> information_share(3.0), information_share(5.0), information_share(1.0)
    (1.0, 0.5, 1.0)
    """
    return 2.0 / (max(kurtosis, NORMAL_KURTOSIS) - 1.0)


def log_bayes_factors(features: Matrix, line: Matrix, residuals: Matrix, n: float, length2: Vector) -> Vector:
    """Return the logarithm of the evidence of a drift relative to none, for many residuals (n, B) at once.

    The evidence of a drift is the average over the models with ``TEST_RATIOS`` by their prior. ``line`` has the columns
    (1, q), ``n`` is the number of labels and ``length2`` are the squared lengths of the residuals.
    """
    total = np.full(len(length2), -np.inf)
    norm = 3.0 * logsumexp(log_prior(np.array(TEST_RATIOS)))
    for fit in fit_lines(features @ _directions(features), line, residuals, length2, TEST_RATIOS):
        misfit = np.maximum(fit.misfit / length2, np.finfo(float).eps)
        terms = (fit.log_prior - 0.5 * fit.volume)[:, None] - 0.5 * n * np.log(misfit)
        largest = terms.max(axis=0)
        total = np.logaddexp(total, largest + np.log(np.exp(terms - largest).sum(axis=0)))
    return np.asarray(total - norm)


@dataclass(frozen=True, eq=False)
class LineFits:
    """The fits of offset and slope for one size ``delta`` of the weights and all M sizes of offset and slope."""

    delta: float
    log_prior: Vector  # the logarithm of the prior weight of each model, of shape (M,)
    volume: Vector  # the logarithm of the determinant of K, of shape (M,)
    covariance: NDArray[np.float64]  # of offset and slope, relative to the noise, of shape (M, 2, 2)
    product: Matrix  # (1, q)' C^-1 r for each residual r, where C is the covariance without offset and slope, (2, B)
    misfit: Matrix  # r' K^-1 r for each residual r, of shape (M, B)


def fit_lines(
    along: Matrix, line: Matrix, residuals: Matrix, length2: Vector, ratios: tuple[float, ...]
) -> Iterator[LineFits]:
    """Yield the fits for each size of the weights; the columns of ``along`` are orthogonal."""
    lam2 = np.square(along).sum(axis=0)
    overlap, residual_overlap = along.T @ line, along.T @ residuals
    pairs = np.column_stack([values.ravel() for values in np.meshgrid(ratios, ratios, indexing="ij")])
    root = np.sqrt(pairs)
    for delta in ratios:
        gain = (delta / (1.0 + delta * lam2))[:, None]
        A = line.T @ line - overlap.T @ (gain * overlap)
        x, y = product = line.T @ residuals - overlap.T @ (gain * residual_overlap)
        rest = length2 - (gain * np.square(residual_overlap)).sum(axis=0)
        inner = np.eye(2) + root[:, :, None] * A * root[:, None, :]
        covariance = root[:, :, None] * np.linalg.inv(inner) * root[:, None, :]
        explained = (
            np.outer(covariance[:, 0, 0], x * x)
            + np.outer(2.0 * covariance[:, 0, 1], x * y)
            + np.outer(covariance[:, 1, 1], y * y)
        )
        volume = np.log1p(delta * lam2).sum() + np.linalg.slogdet(inner)[1]
        prior = log_prior(pairs).sum(axis=1) + log_prior(delta)
        yield LineFits(delta, prior, volume, covariance, product, rest - explained)


class ModelGrid:
    """Evidence and posterior of offset and slope for all models; one decomposition of the features serves all.

    ``kurtosis`` is that of the residuals; heavy tails reduce the weight of the evidence.
    """

    def __init__(
        self, features: Matrix, line: Matrix, residual: Vector, n: float, kurtosis: float = NORMAL_KURTOSIS
    ) -> None:
        self.n = n
        self.information = information_share(kurtosis)
        self.directions = _directions(features)
        along = features @ self.directions
        self.lam2 = np.square(along).sum(axis=0)
        self.overlap = along.T @ np.column_stack([line, residual])  # (r, 3)
        length2 = float(residual @ residual)
        self.exact = length2 == 0.0
        fits = list(fit_lines(along, line, residual[:, None], np.array([length2]), RATIOS))
        self.log_prior: Matrix = np.array([fit.log_prior for fit in fits])
        self.log_prior[0, 0] = logsumexp(self.log_prior.ravel()[1:]) - np.log(1.0 / NO_DRIFT - 1.0)
        misfit = np.maximum([fit.misfit[:, 0] for fit in fits], np.finfo(float).eps * length2)
        with np.errstate(divide="ignore"):
            self.log_evidence = -0.5 * (np.array([fit.volume for fit in fits]) + n * np.log(misfit))
        self.noise2 = misfit / n
        self.theta = [fit.covariance @ fit.product[:, 0] for fit in fits]
        self.spread = [fit.covariance for fit in fits]
        self.probability = self._probability()

    def average(self) -> tuple[Vector, Matrix, float, float]:
        """Average the posterior over all models by their evidence.

        Return the mean, covariance, variance outside the directions and variance of the noise (see ``Drift``).
        """
        r = len(self.lam2)
        mean, second = np.zeros(2 + r), np.zeros((2 + r, 2 + r))
        outside = noise = 0.0
        for j, delta in enumerate(RATIOS):
            p, s2 = self.probability[j], self.noise2[j]
            gain = self._gain(delta)
            # Given offset and slope theta, the weights have the mean gain * (overlap_r - overlap_line theta).
            map_theta = np.vstack([np.eye(2), -gain[:, None] * self.overlap[:, :2]])
            means = self.theta[j] @ map_theta.T + np.concatenate([[0.0, 0.0], gain * self.overlap[:, 2]])
            within = np.einsum("m,mij->ij", p * s2, self.spread[j])
            mean += p @ means
            second += map_theta @ within @ map_theta.T + (means * p[:, None]).T @ means
            second[2:, 2:][np.diag_indices(r)] += float(p @ s2) * gain
            outside += float(p @ s2) * delta
            noise += float(p @ s2)
        return mean, second - np.outer(mean, mean), outside, noise

    def draw_sizes(self, moment: Matrix, outside_moment: float) -> Matrix:
        """Return the quantiles of the sizes of the components (``Drift.sizes``) by draws from the mixture of models."""
        rng = np.random.default_rng(0)
        models = rng.choice(self.probability.size, _DRAWS, p=self.probability.ravel())
        deltas, pairs = np.divmod(models, self.probability.shape[1])
        sizes = []
        for j in np.unique(deltas):
            chosen = pairs[deltas == j]
            std = np.sqrt(self.noise2[j][chosen] * self.n / rng.chisquare(self.n, len(chosen)))[:, None]
            values, vectors = np.linalg.eigh(self.spread[j][chosen])
            normal = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal((len(chosen), 2))
            theta = self.theta[j][chosen] + std * np.einsum("mij,mj->mi", vectors, normal)
            gain = self._gain(RATIOS[j])
            weights = gain * (self.overlap[:, 2] - theta @ self.overlap[:, :2].T)
            weights = weights + std * np.sqrt(gain) * rng.standard_normal(weights.shape)
            squares = np.einsum("ij,ij->i", weights @ moment[2:, 2:], weights)
            squares = squares + np.square(std[:, 0]) * RATIOS[j] * outside_moment
            sizes.append(np.column_stack([theta, np.sqrt(np.maximum(squares, 0.0))]))
        return np.asarray(np.quantile(np.vstack(sizes), [0.05, 0.5, 0.95], axis=0).T)

    def _gain(self, delta: float) -> Vector:
        return np.asarray(delta / (1.0 + delta * self.lam2))

    def _probability(self) -> Matrix:
        """Return the posterior probability of each model."""
        if self.exact:  # the model predicts all labels: no drift
            probability = np.zeros_like(self.log_prior)
            probability[0, 0] = 1.0
            return probability
        log_posterior = self.information * self.log_evidence + self.log_prior
        probability = np.exp(log_posterior - log_posterior.max())
        return np.asarray(probability / probability.sum())


def _directions(rows: Matrix) -> Matrix:
    """Return orthonormal directions (D, r) of rows, without those along which the rows are zero up to rounding."""
    if len(rows) < rows.shape[1]:
        _, lam, transposed = np.linalg.svd(rows, full_matrices=False)
        directions = transposed.T
    else:  # the square has no more columns, and is much faster for many rows
        lam2, directions = np.linalg.eigh(rows.T @ rows)
        lam = np.sqrt(np.maximum(lam2, 0.0))
    directions = directions[:, lam > 1e-7 * max(lam, default=0.0)]
    largest = np.abs(directions).argmax(axis=0)
    # The sign of a direction is arbitrary. With a fixed one, random draws along it do not depend on the order of rows.
    return np.asarray(directions * np.sign(directions[largest, np.arange(directions.shape[1])]))
