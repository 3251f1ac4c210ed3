r"""Correct a model with a few labels of the target: a drift of three components, averaged over their sizes.

The residuals r = y - f(z) of n labelled target rows follow

.. math:: r \sim N\Big(0,\; s^2 \big( \alpha\, 1 1^\top + \beta\, q q^\top + \delta\, \Phi \Phi^\top + I \big)\Big)

with the offset 1, the predictions q and the features :math:`\Phi`, both standardised by the target; :math:`\Phi` is
divided by the root of the number of features, so that each component has the mean variance 1. Each of alpha, beta and
delta takes the values ``RATIOS`` with the prior weights ``1 / (1 + ratio)``: a drift that is larger than the noise is
less probable in proportion to its variance. The noise variance has the prior 1 / s^2 and is integrated out. The
posterior is averaged over all models, each weighted by its evidence

.. math:: p(r) \propto |K|^{-1/2} (r^\top K^{-1} r)^{-n/2}, \qquad K = \alpha 1 1^\top + \dots + I

One singular value decomposition of the features serves all models. The posterior mean is linear in (1, q, features).
``docs/derivations/labels.md`` derives the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import t as student

from pyspar.core.arrays import Matrix, Vector

RATIOS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""The variances of a component relative to the noise: half decades, from none to a hundred times the noise."""

MIN_LABELS = 3
"""With fewer labels offset, slope and noise cannot be distinguished."""

DRAWS = 2000
_NO_SPREAD = 1e-9  # relative to the largest value: a column with a smaller spread is constant up to rounding


@dataclass(frozen=True, eq=False)
class TargetUnits:
    """Standardisation of features and predictions by the target, so that each drift component has mean variance 1.

    Attributes
    ----------
    feature_mean : array of shape (D,)
    feature_scale : array of shape (D,)
        The factor of each centred feature: 1 / (spread * sqrt(features that vary)), 0 for a constant feature.
    prediction_mean, prediction_scale : float
    """

    feature_mean: Vector
    feature_scale: Vector
    prediction_mean: float
    prediction_scale: float

    @classmethod
    def of(cls, features: Matrix, prediction: Vector, counts: Vector | None = None) -> TargetUnits:
        """Return the coordinates of target rows; a count of 2 stands for two equal rows."""
        columns = np.column_stack([prediction, features])
        mean = np.average(columns, axis=0, weights=counts)
        size = np.abs(columns).max(axis=0)
        unit = np.where(size > 0.0, size, 1.0)
        spread = np.sqrt(np.average(np.square((columns - mean) / unit), axis=0, weights=counts)) * unit
        varies = spread > _NO_SPREAD * size
        scale = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
        scale[1:] /= np.sqrt(max(int(varies[1:].sum()), 1))
        return cls(mean[1:], scale[1:], float(mean[0]), float(scale[0]))

    def standardise(self, features: Matrix, prediction: Vector) -> tuple[Matrix, Vector]:
        """Return features and predictions in these coordinates."""
        rows = (features - self.feature_mean) * self.feature_scale
        return rows, (prediction - self.prediction_mean) * self.prediction_scale


@dataclass(frozen=True, eq=False)
class Drift:
    """The posterior of the drift of one output: a Student t distribution of offset, slope and weights.

    The weights are described in the ``r`` directions in which the labelled rows vary. Outside of them the mean is
    zero and the variance is that of the prior.

    Attributes
    ----------
    units : TargetUnits
    directions : array of shape (D, r)
    mean : array of shape (2 + r,)
        Offset, slope, and the weights along the directions.
    covariance : array of shape (2 + r, 2 + r)
    outside_variance : float
        Variance of a weight outside the directions.
    noise2 : float
        Variance of the labels about the corrected model.
    degrees : float
        Degrees of freedom: the number of labels, by their counts.
    moment : array of shape (2 + r, 2 + r)
        Mean of h h' over the target, for h = (1, q, features along the directions).
    outside_moment : float
        Mean squared length of the target's features outside the directions.
    shares : array of shape (3, ratios)
        Posterior probabilities of ``RATIOS`` for offset, slope and weights.
    """

    units: TargetUnits
    directions: Matrix
    mean: Vector
    covariance: Matrix
    outside_variance: float
    noise2: float
    degrees: float
    moment: Matrix
    outside_moment: float
    shares: Matrix

    def correct(self, features: Matrix, prediction: Vector) -> Vector:
        """Return the corrected predictions of rows."""
        return np.asarray(prediction + self._basis(features, prediction)[0] @ self.mean)

    def predictive_scale(self, features: Matrix, prediction: Vector) -> Vector:
        """Return the scale of the Student t distribution of the labels of rows about their corrected predictions."""
        basis, outside = self._basis(features, prediction)
        error2 = np.einsum("ij,ij->i", basis @ self.covariance, basis) + self.outside_variance * outside
        return np.asarray(np.sqrt(np.maximum(error2, 0.0) + self.noise2))

    def quantile(self, level: float) -> float:
        """Return the half width of a central interval with this probability, in units of the predictive scale."""
        return float(student.ppf(0.5 + level / 2.0, self.degrees))

    def linear_correction(self) -> tuple[float, float, Vector]:
        """Return offset, slope and weights of the correction, in the units of the data.

        The correction is ``offset + slope * prediction + features @ weights``.
        """
        at = self.units
        slope = float(self.mean[1]) * at.prediction_scale
        weights = (self.directions @ self.mean[2:]) * at.feature_scale
        offset = float(self.mean[0]) - slope * at.prediction_mean - float(weights @ at.feature_mean)
        return offset, slope, weights

    def linear_weights(self, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Return weights and intercept of the corrected model, if the model is linear in the same features."""
        offset, slope, weights = self.linear_correction()
        return coef * (1.0 + slope) + weights, intercept * (1.0 + slope) + offset

    def expected_mse(self) -> float:
        """Return the expected mean squared error of the corrected model on the target."""
        error2 = float(np.einsum("ij,ij->", self.covariance, self.moment))
        return max(error2, 0.0) + self.outside_variance * self.outside_moment + self.noise2

    def draw(self, draws: int = DRAWS, seed: int = 0) -> tuple[Matrix, Vector]:
        """Draw (offset, slope, weights along the directions) and factors of all variances from the posterior."""
        rng = np.random.default_rng(seed)
        factor = self.degrees / rng.chisquare(self.degrees, draws)
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normal = rng.standard_normal((draws, len(values))) @ root.T
        return self.mean + normal * np.sqrt(factor)[:, None], factor

    def draw_mse(self, draws: int = DRAWS, seed: int = 0) -> Vector:
        """Draw the mean squared error of the corrected model on the target from its posterior."""
        true, factor = self.draw(draws, seed)
        error = true - self.mean
        error2 = np.einsum("ij,ij->i", error @ self.moment, error)
        return np.asarray(error2 + factor * (self.outside_variance * self.outside_moment + self.noise2))

    def _basis(self, features: Matrix, prediction: Vector) -> tuple[Matrix, Vector]:
        """Return the rows (1, q, features along the directions), and the squared lengths outside the directions."""
        rows, q = self.units.standardise(features, prediction)
        along = rows @ self.directions
        outside = np.maximum(np.square(rows).sum(axis=1) - np.square(along).sum(axis=1), 0.0)
        return np.column_stack([np.ones(len(q)), q, along]), outside


def fit_drift(
    features: Matrix,
    prediction: Vector,
    labels: Vector,
    *,
    target_features: Matrix,
    target_prediction: Vector,
    counts: Vector | None = None,
    target_counts: Vector | None = None,
) -> Drift:
    """Return the posterior of the drift, given labelled rows.

    Parameters
    ----------
    features, prediction, labels : arrays of shape (n, D), (n,) and (n,)
        The labelled rows: their features, the model's predictions, and their labels.
    target_features, target_prediction : arrays of shape (m, D) and (m,)
        All rows of the target, usually including the labelled rows.
    counts, target_counts : arrays of shape (n,) and (m,), optional
        A count of 2 stands for two equal rows.
    """
    at = TargetUnits.of(target_features, target_prediction, target_counts)
    rows, q = at.standardise(features, prediction)
    residual = labels - prediction
    counts = np.ones(len(residual)) if counts is None else counts
    n, unit = float(counts.sum()), float(np.abs(residual).max())
    average = _average_models(rows, q, residual / (unit or 1.0), counts)
    everything, q_target = at.standardise(target_features, target_prediction)
    along = everything @ average.directions
    basis = np.column_stack([np.ones(len(q_target)), q_target, along])
    weights = np.ones(len(basis)) if target_counts is None else target_counts
    weights = weights / weights.sum()
    outside = np.maximum(np.square(everything).sum(axis=1) - np.square(along).sum(axis=1), 0.0)
    return Drift(
        units=at,
        directions=average.directions,
        mean=average.mean * unit,
        covariance=average.covariance * unit**2,
        outside_variance=average.outside_variance * unit**2,
        noise2=average.noise2 * unit**2,
        degrees=n,
        moment=(basis * weights[:, None]).T @ basis,
        outside_moment=float(weights @ outside),
        shares=average.shares,
    )


@dataclass(frozen=True, eq=False)
class _Average:
    """The average over all models; the fields are those of ``Drift``."""

    directions: Matrix
    mean: Vector
    covariance: Matrix
    outside_variance: float
    noise2: float
    shares: Matrix


def _average_models(rows: Matrix, q: Vector, residual: Vector, counts: Vector) -> _Average:
    """Average the posterior over all models by their evidence."""
    n, weight = float(counts.sum()), np.sqrt(counts)[:, None]
    grid = _Grid(rows * weight, np.column_stack([np.ones_like(q), q]) * weight, residual * weight[:, 0], n)
    probability = grid.probability()
    r = len(grid.lam2)
    mean, second = np.zeros(2 + r), np.zeros((2 + r, 2 + r))
    outside = noise = 0.0
    for j, delta in enumerate(RATIOS):
        p, s2 = probability[j], grid.noise2[j]
        gain = delta / (1.0 + delta * grid.lam2)
        # Given offset and slope theta, the weights have the mean gain * overlap_r - (gain * overlap_line) theta.
        map_theta = np.vstack([np.eye(2), -gain[:, None] * grid.overlap[:, :2]])
        means = grid.theta[j] @ map_theta.T + np.concatenate([[0.0, 0.0], gain * grid.overlap[:, 2]])
        within = np.einsum("m,mij->ij", p * s2, grid.spread[j])
        mean += p @ means
        second += map_theta @ within @ map_theta.T + (means * p[:, None]).T @ means
        second[2:, 2:][np.diag_indices(r)] += float(p @ s2) * gain
        outside += float(p @ s2) * delta
        noise += float(p @ s2)
    cube = probability.reshape((len(RATIOS),) * 3)  # delta, alpha, beta
    shares = np.array([cube.sum(axis=(0, 2)), cube.sum(axis=(0, 1)), cube.sum(axis=(1, 2))])
    return _Average(grid.directions, mean, second - np.outer(mean, mean), outside, noise, shares)


def log_bayes_factors(features: Matrix, line: Matrix, residuals: Matrix, n: float, length2: Vector) -> Vector:
    """Return the logarithm of the evidence of a drift relative to none, for many residuals (n, B) at once.

    The evidence of a drift is the average over all models by their prior. ``line`` has the columns (1, q), ``n`` is the
    number of labels and ``length2`` are the squared lengths of the residuals.
    """
    directions = _directions(features)
    along = features @ directions
    lam2 = np.square(along).sum(axis=0)
    overlap, residual_overlap = along.T @ line, along.T @ residuals
    pairs, pair_prior = _line_ratios()
    root = np.sqrt(pairs)
    total = np.full(len(length2), -np.inf)
    for delta in RATIOS:
        gain = (delta / (1.0 + delta * lam2))[:, None]
        A = line.T @ line - overlap.T @ (gain * overlap)
        x, y = line.T @ residuals - overlap.T @ (gain * residual_overlap)
        rest = length2 - (gain * np.square(residual_overlap)).sum(axis=0)
        inner = np.eye(2) + root[:, :, None] * A * root[:, None, :]
        covariance = root[:, :, None] * np.linalg.inv(inner) * root[:, None, :]
        explained = (
            np.outer(covariance[:, 0, 0], x * x)
            + np.outer(2.0 * covariance[:, 0, 1], x * y)
            + np.outer(covariance[:, 1, 1], y * y)
        )
        misfit = np.maximum((rest - explained) / length2, np.finfo(float).eps)
        log_size = pair_prior - np.log1p(delta) - 0.5 * (np.log1p(delta * lam2).sum() + np.linalg.slogdet(inner)[1])
        total = np.logaddexp(total, logsumexp(log_size[:, None] - 0.5 * n * np.log(misfit), axis=0))
    return np.asarray(total - logsumexp(pair_prior) - logsumexp(-np.log1p(RATIOS)))


def _line_ratios() -> tuple[Matrix, Vector]:
    """Return all pairs (alpha, beta), and the logarithms of their prior weights."""
    ratios = np.array(RATIOS)
    pairs = np.column_stack([values.ravel() for values in np.meshgrid(ratios, ratios, indexing="ij")])
    return pairs, -np.log1p(pairs).sum(axis=1)


class _Grid:
    """Evidence and posterior of offset and slope for all models; one decomposition of the features serves all."""

    def __init__(self, features: Matrix, line: Matrix, residual: Vector, n: float) -> None:
        self.directions = _directions(features)
        along = features @ self.directions
        self.lam2 = np.square(along).sum(axis=0)
        columns = np.column_stack([line, residual])
        gram = columns.T @ columns
        self.overlap = along.T @ columns  # (r, 3)
        self.exact = gram[2, 2] == 0.0
        pairs, pair_prior = _line_ratios()
        root = np.sqrt(pairs)
        self.log_prior = pair_prior - np.log1p(RATIOS)[:, None]
        self.log_evidence, self.noise2 = np.empty((2, *self.log_prior.shape))
        self.theta, self.spread = [], []
        for j, delta in enumerate(RATIOS):
            # [1 q r]' (I + delta Phi Phi')^-1 [1 q r]
            A = gram - self.overlap.T @ ((delta / (1.0 + delta * self.lam2))[:, None] * self.overlap)
            inner = np.eye(2) + root[:, :, None] * A[:2, :2] * root[:, None, :]
            covariance = root[:, :, None] * np.linalg.inv(inner) * root[:, None, :]
            mean = covariance @ A[:2, 2]
            misfit = np.maximum(A[2, 2] - mean @ A[:2, 2], np.finfo(float).eps * gram[2, 2])
            volume = np.log1p(delta * self.lam2).sum() + np.linalg.slogdet(inner)[1]
            with np.errstate(divide="ignore"):
                self.log_evidence[j] = -0.5 * (volume + n * np.log(misfit))
            self.noise2[j] = misfit / n
            self.theta.append(mean)
            self.spread.append(covariance)

    def probability(self) -> Matrix:
        """Return the posterior probability of each model."""
        if self.exact:  # the model predicts all labels: no drift
            probability = np.zeros_like(self.log_prior)
            probability[0, 0] = 1.0
            return probability
        log_posterior = self.log_evidence + self.log_prior
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
    return np.asarray(directions[:, lam > 1e-7 * max(lam, default=0.0)])
