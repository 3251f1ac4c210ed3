r"""Correct a model with a few labels of the target: a drift of three components, averaged over their sizes.

The residuals r = y - f(z) of n labelled target rows follow

.. math:: r \sim N\Big(0,\; s^2 \big( \alpha\, 1 1^\top + \beta\, q q^\top + \delta\, \Phi \Phi^\top + I \big)\Big)

with the offset 1, the predictions q and the features :math:`\Phi`, both standardised by the target; :math:`\Phi` is
divided by the root of the number of features, so that each component has the mean variance 1. For a smooth drift,
:math:`\Phi\Phi^\top` is replaced by the mean of itself and of exp(-d^2 / 2), where d is the distance between two rows
of :math:`\Phi`; the columns of a root of this matrix serve as features. Each of alpha, beta and delta takes the values
``RATIOS`` (:mod:`pyspar.core.drift_models`) with the prior weights ``1 / (1 + ratio)``, except that no drift at all has
the prior probability 1/2. The noise variance has the prior 1 / s^2 and is integrated out. The
posterior is averaged over all models, each weighted by its prior and by its evidence

.. math:: p(r) \propto |K|^{-1/2} (r^\top K^{-1} r)^{-n/2}, \qquad K = \alpha 1 1^\top + \dots + I

to the power 2 / (k - 1), where k is the kurtosis of the residuals: labels with heavy tails carry less information.

All models share one singular value decomposition of the features. Unless the drift is smooth, the posterior mean is
linear in (1, q, features). ``docs/derivations/labels.md`` derives the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.drift_features import Basis, DriftFeatures, SmoothFeatures, TargetUnits
from pyspar.core.drift_models import ModelGrid, information_share

MIN_LABELS = 3
"""With fewer labels, offset, slope and noise cannot be distinguished."""

MIN_KURTOSIS = 6.0
"""Residuals are assumed to have at least the tails of a Laplace distribution when the error is forecast."""

OUTLIER_LEVEL = 1e-5
"""The p-value below which a label that dominates all others is an outlier."""

DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Drift:
    """The posterior of the drift of one output: a Student t distribution of offset, slope and weights.

    The weights are described in the ``r`` directions in which the labelled rows vary. Outside these directions, the
    mean is zero and the variance is that of the prior.
    """

    basis: Basis
    mean: Vector  # offset, slope, and the weights along the directions, of shape (2 + r,)
    covariance: Matrix  # of the mean
    outside_variance: float  # of a weight outside the directions
    noise2: float  # the variance of the labels about the corrected model
    degrees: float  # degrees of freedom: the number of labels, by their counts
    moment: Matrix  # the mean over the target of h h', for h = (1, q, features along the directions)
    outside_moment: float  # the mean squared length of the target's features outside the directions
    sizes: Matrix  # 5 %, 50 % and 95 % quantiles of offset, slope, and the root mean square of features @ weights
    rows: float  # the number of target rows, by their counts
    kurtosis: float  # of the labels about the corrected model, at least ``MIN_KURTOSIS``

    def on(self, features: Matrix, prediction: Vector, counts: Vector | None = None) -> Drift:
        """Return the same posterior with other target rows, for the expected error."""
        moment, outside_moment, rows = self.basis.moment(features, prediction, counts)
        return replace(self, moment=moment, outside_moment=outside_moment, rows=rows)

    def correct(self, features: Matrix, prediction: Vector) -> Vector:
        """Return the corrected predictions of rows."""
        corrected = np.empty(len(prediction))
        for at, basis, _ in self.basis.blocks(features, prediction):
            corrected[at] = prediction[at] + basis @ self.mean
        return corrected

    def predictive_scale(self, features: Matrix, prediction: Vector) -> Vector:
        """Return the scale of the Student t distribution of the labels of rows about their corrected predictions."""
        error2 = np.empty(len(prediction))
        for at, basis, outside in self.basis.blocks(features, prediction):
            known = np.einsum("ij,ij->i", basis @ self.covariance, basis)
            error2[at] = known + self.outside_variance * outside
        return np.asarray(np.sqrt(np.maximum(error2, 0.0) + self.noise2))

    def quantile(self, level: float) -> float:
        """Return the half width of a central interval with this probability, in units of the predictive scale."""
        return float(student.ppf(0.5 + level / 2.0, self.degrees))

    def correction(self) -> tuple[float, float, Vector, Vector | None]:
        """Return offset, slope and weights of the correction in the units of the data, and the weights of the centres.

        The correction is ``offset + slope * prediction + features @ weights``, plus a weighted sum of exp(-d^2 / 2)
        over the centres of smooth features if there are any.
        """
        at = self.basis.features.units
        slope = float(self.mean[1]) * at.prediction_scale
        weights, smooth = self.basis.features.split_weights(self.basis.directions @ self.mean[2:])
        offset = float(self.mean[0]) - slope * at.prediction_mean - float(weights @ at.feature_mean)
        return offset, slope, weights, smooth

    def linear_weights(self, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Return weights and intercept of the corrected model, if model and drift are linear in the same features."""
        offset, slope, weights, _ = self.correction()
        return coef * (1.0 + slope) + weights, intercept * (1.0 + slope) + offset

    def expected_variance(self) -> float:
        """Return the mean over the target of the squared uncertainty of the correction, without noise."""
        error2 = float(np.einsum("ij,ij->", self.covariance, self.moment))
        return max(error2, 0.0) + self.outside_variance * self.outside_moment

    def draw_mse(self, draws: int = DRAWS) -> Vector:
        """Draw the mean squared error of the corrected model on the target.

        The mean of n squares with kurtosis k varies like a chi-squared variable with 2 n / (k - 1) degrees of freedom.
        """
        rng = np.random.default_rng(0)
        share = information_share(self.kurtosis)
        factor = self.degrees * share / rng.chisquare(self.degrees * share, draws)
        # A quadratic form in normal variables depends on its eigenvalues only, so the draws have no order or unit.
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        sizes = np.maximum(np.linalg.eigvalsh(root.T @ self.moment @ root)[::-1], 0.0)
        error2 = rng.chisquare(1.0, (draws, len(sizes))) @ sizes + self.outside_variance * self.outside_moment
        noise = rng.chisquare(self.rows * share, draws) / (self.rows * share)
        return np.asarray(factor * (error2 + self.noise2 * noise))


def fit_drift(
    features: Matrix,
    prediction: Vector,
    labels: Vector,
    *,
    target_features: Matrix,
    target_prediction: Vector,
    counts: Vector | None = None,
    target_counts: Vector | None = None,
    smooth: bool = False,
) -> Drift:
    """Return the posterior of the drift, given features, predictions and labels of the labelled rows.

    The target rows usually include the labelled rows. A count of 2 stands for two equal rows. With ``smooth`` the drift
    may be any smooth function of the features; by default it is linear in them.
    """
    at = TargetUnits.of(target_features, target_prediction, target_counts)
    smooth = smooth and bool(at.feature_scale.any())  # without a feature that varies there is no function of it
    drift_features = DriftFeatures(at, SmoothFeatures.of(at.standardise(features, prediction)[0]) if smooth else None)
    rows, q, _ = drift_features.transform(features, prediction)
    residual = labels - prediction
    counts = np.ones(len(residual)) if counts is None else counts
    unit = float(np.abs(residual).max()) or 1.0
    weight = np.sqrt(counts)[:, None]
    line = np.column_stack([np.ones_like(q), q])
    total = float(counts.sum())
    scaled = residual / unit
    kurtosis = _kurtosis(scaled - counts @ scaled / total, counts)
    grid = ModelGrid(rows * weight, line * weight, scaled * weight[:, 0], total, kurtosis)
    mean, covariance, outside_variance, noise2 = grid.average()
    basis = Basis(drift_features, grid.directions)
    moment, outside_moment, target_total = basis.moment(target_features, target_prediction, target_counts)
    left = scaled - np.column_stack([line, rows @ grid.directions]) @ mean
    return Drift(
        basis=basis,
        mean=mean * unit,
        covariance=covariance * unit**2,
        outside_variance=outside_variance * unit**2,
        noise2=noise2 * unit**2,
        degrees=total,
        moment=moment,
        outside_moment=outside_moment,
        sizes=grid.draw_sizes(moment, outside_moment) * unit,
        rows=target_total,
        kurtosis=max(MIN_KURTOSIS, _kurtosis(left, counts)),
    )


_EQUAL_RESIDUALS = 1e-9
"""Residuals that differ by less than this share of the largest one differ by rounding only."""


def find_outlier(residual: Vector, counts: Vector | None = None) -> int | None:
    """Return the position of a residual that dominates all others and is incompatible with them, or None.

    It dominates if its squared distance from the mean of the others exceeds the sum of their squared distances, so that
    it alone would determine the noise. It is incompatible if the t-test of one row against the others has a p-value
    below ``OUTLIER_LEVEL``, which requires a distance of about 70 spreads with 5 labels and 10 spreads with 10.
    """
    counts = np.ones(len(residual)) if counts is None else counts
    if float(counts.sum()) <= 3.0:
        return None
    unit = float(np.abs(residual).max()) or 1.0
    row = int(np.argmax(np.abs(residual / unit - counts @ (residual / unit) / counts.sum())))
    left = counts.copy()
    left[row] = max(counts[row] - 1.0, 0.0)  # one of the copies; a row with a smaller weight is removed as a whole
    others = float(left.sum())
    mean = left @ (residual / unit) / others
    distance2 = float(residual[row] / unit - mean) ** 2
    squares = float(left @ np.square(residual / unit - mean))
    if distance2 <= max(squares, _EQUAL_RESIDUALS**2):
        return None
    ratio = np.sqrt(distance2 * (others - 1.0) / (1.0 + 1.0 / others) / squares) if squares > 0.0 else np.inf
    return row if 2.0 * student.sf(ratio, others - 1.0) < OUTLIER_LEVEL else None


def _kurtosis(residual: Vector, counts: Vector) -> float:
    """Return the kurtosis of residuals in units of the largest. Differences caused by rounding are treated as zero.

    With equal counts it is at most the number of residuals. With unequal ones it is limited to their sum.
    """
    residual = np.where(np.abs(residual) > _EQUAL_RESIDUALS, residual, 0.0)
    total = float(counts.sum())
    square = counts @ np.square(residual) / total
    return min(float(counts @ residual**4 / total / square**2), total) if square > 0.0 else 0.0
