r"""The drift of a model: what a few labels of the target say about its errors, and how to correct them.

The residuals of a fitted model f at rows z of a target are modelled as

.. math:: y - f(z) = \text{offset} + \text{slope} \cdot q(z) + g(z) + \text{noise}

where q is the prediction, standardised by the target, and g is a function of the features. All are unknown, normal and
independent, so the residuals r of n labelled rows have the covariance

.. math:: s^2 C, \qquad C = \alpha\, 1 1^\top + \beta\, q q^\top + \delta\, G + W^{-1}.

With x, the features standardised by the target and divided by the root of their number, G is :math:`x^\top x'` if g is
linear, and :math:`(x^\top x' + \exp(-|x - x'|^2 / 2)) / 2` if g is any smooth function. W are counts and weights of the
labels (``weigh_labels``). The mean variance of each component is 1, so alpha, beta and delta are the sizes of offset,
slope and function relative to the noise s^2. Each takes all values in ``RATIOS``, which gives 343 models. With the
prior 1 / s^2 for the noise, a model has the evidence

.. math:: p(r) \propto |C|^{-1/2} (r^\top C^{-1} r)^{-n/2}.

The correction is the posterior mean of the drift, averaged over all models by prior times evidence, with limits for
rows unlike the labelled ones (``Drift.correct``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import t as student

Array: TypeAlias = NDArray[np.float64]

# The variances of a component relative to the noise. Large drifts are rarer: a size has the weight 1 / sqrt(1 + size).
RATIOS = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
NO_DRIFT = 1.0 / 3.0  # the prior probability that nothing has changed
MIN_LABELS = 3  # with fewer, offset, slope and noise cannot be distinguished
FAR_LEVEL = 1e-3  # of the test, for all labels together, that gives less weight to a label far from the others
MIN_KURTOSIS = 6.0  # forecasts assume that residuals have at least the tails of a Laplace distribution
MAX_CENTRES, SOME_CENTRES = 600, 300  # of more than 600 labelled rows, 300 are centres of the smooth function
_NO_SPREAD = 1e-9  # relative to the largest value: a smaller spread of a column is rounding error
_ROUNDING = 1e-12  # relative to the largest label, by weight: a smaller residual is zero up to rounding
_MIN_VARIANCE = 1e-150  # relative to the square of the largest residual: the weight of a label is never zero
_DEPENDENT = 1e-10  # smooth features along which the centres vary less, relative to the largest, are dropped
_BLOCK_ROWS, _DRAWS = 4096, 2000


@dataclass(frozen=True, eq=False)
class DriftCoordinates:
    """The coordinates of a drift: (1, q, features), standardised by the target."""

    mean: Array  # of the prediction and the features, of shape (1 + D,)
    scale: Array  # the factors that standardise them; 0 for a constant
    centres: Array  # standardised rows, of shape (c, D); none for a linear drift
    root: Array  # (c, k): the smooth features of x are exp(-|x - centres|^2 / 2) @ root
    exact: bool  # whether all labelled rows are centres

    @classmethod
    def of(cls, features: Array, prediction: Array, counts: Array, labelled: Array | None) -> DriftCoordinates:
        """Return the coordinates for target rows. ``labelled`` rows are the centres of a smooth drift."""
        columns = np.column_stack([prediction, features])
        mean = np.average(columns, axis=0, weights=counts)
        spread = np.sqrt(np.average(np.square(columns - mean), axis=0, weights=counts))
        varies = spread > _NO_SPREAD * np.abs(columns).max(axis=0)
        scale = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
        scale[1:] /= np.sqrt(max(int(varies[1:].sum()), 1))
        if labelled is None or not varies[1:].any():
            return cls(mean, scale, np.empty((0, len(mean) - 1)), np.empty((0, 0)), True)
        centres = np.unique((labelled - mean[1:]) * scale[1:], axis=0)
        centres = centres[np.argsort(np.square(centres).sum(axis=1), kind="stable")]
        if not (exact := len(centres) <= MAX_CENTRES):  # equal steps by length, whatever the order of rows and columns
            centres = centres[np.linspace(0, len(centres) - 1, SOME_CENTRES).round().astype(int)]
        values, vectors = np.linalg.eigh(np.exp(-0.5 * cdist(centres, centres, "sqeuclidean")))
        kept = values > _DEPENDENT * values[-1]
        return cls(mean, scale, centres, vectors[:, kept] / np.sqrt(values[kept]), exact)

    def transform(self, features: Array, prediction: Array) -> tuple[Array, Array, Array]:
        """Return the columns (1, q), the features (m, F), and the variance of g at each row, relative to its size."""
        x = (features - self.mean[1:]) * self.scale[1:]
        line = np.column_stack([np.ones(len(x)), (prediction - self.mean[0]) * self.scale[0]])
        variance = np.square(x).sum(axis=1)
        if not len(self.centres):
            return line, x, variance
        smooth = np.exp(-0.5 * cdist(x, self.centres, "sqeuclidean")) @ self.root
        # With fewer centres than rows, what the centres do not describe is a part of the noise.
        variance = 0.5 * (variance + (1.0 if self.exact else np.square(smooth).sum(axis=1)))
        return line, np.hstack([x, smooth]) * np.sqrt(0.5), variance


@dataclass(frozen=True, eq=False)
class Drift:
    """The posterior of the drift of one output: a Student t distribution of offset, slope and weights of features."""

    coordinates: DriftCoordinates
    directions: Array  # orthonormal directions in which the labelled rows vary, of shape (F, r)
    mean: Array  # offset, slope, and the weights along the directions, of shape (2 + r,)
    covariance: Array  # of the mean
    outside_variance: float  # of a weight outside the directions
    noise2: float  # the variance of the labels about the corrected model
    n_labels: float  # by their counts
    degrees: float  # of freedom: the number of labels, by their counts and weights
    probability: Array  # that there is a drift, and that offset, slope and function are not zero
    label_weights: Array  # of the labelled rows, 1 unless a label is too far from the others
    log_evidence: float  # the logarithm of the robust evidence of all models; infinite if all residuals are zero
    kurtosis: float  # of the labels about the corrected model, at least ``MIN_KURTOSIS``
    moment: Array  # the mean over the target of h h', for h = (1, q, features along the directions)
    outside_moment: float  # the mean over the target of the variance outside the directions
    rows: float  # the number of target rows, by their counts
    supported: tuple[float, float]  # the range of corrections that need no extrapolation; infinite for a linear drift
    labels: tuple[float, float]  # the range of the labels; infinite for a linear drift

    def correct(self, features: Array, prediction: Array) -> tuple[Array, Array]:
        """Return the corrected predictions of rows, and the scale of the Student t distribution of their labels.

        A smooth drift is extrapolated with caution: the part of a correction outside the supported range, and then the
        part that moves a prediction outside the range of the labels, is shrunk to what its standard deviation permits.
        """
        moves, error2 = np.empty(len(prediction)), np.empty(len(prediction))
        for at, basis, outside in self._blocks(features, prediction):
            moves[at] = basis @ self.mean
            error2[at] = np.einsum("ij,ij->i", basis @ self.covariance, basis) + self.outside_variance * outside
        std, (low, high) = np.sqrt(np.maximum(error2, 0.0)), self.labels
        corrected = prediction + _reduce_outside(moves, *self.supported, std)
        corrected = _reduce_outside(corrected, np.minimum(prediction, low), np.maximum(prediction, high), std)
        return corrected, np.sqrt(np.square(std) + self.noise2)

    def quantile(self, level: float) -> float:
        """Return the half width of a central interval with this probability, in units of the scale."""
        return float(student.ppf(0.5 + level / 2.0, self.degrees))

    def linear_weights(self, coef: Array, intercept: float) -> tuple[Array, float]:
        """Return the corrected weights and intercept of a linear model of the same features, after a linear drift."""
        at = self.coordinates
        slope = float(self.mean[1] * at.scale[0])
        weights = (self.directions @ self.mean[2:]) * at.scale[1:]
        offset = float(self.mean[0] - slope * at.mean[0] - weights @ at.mean[1:])
        return coef * (1.0 + slope) + weights, intercept * (1.0 + slope) + offset

    def on(self, features: Array, prediction: Array, counts: Array) -> Drift:
        """Return the same posterior with other target rows, for the expected error."""
        total, size = float(counts.sum()), len(self.mean)
        moment, outside_moment = np.zeros((size, size)), 0.0
        for at, basis, outside in self._blocks(features, prediction):
            share = counts[at] / total
            moment += (basis * share[:, None]).T @ basis
            outside_moment += float(share @ outside)
        return replace(self, moment=moment, outside_moment=outside_moment, rows=total)

    def expected_variance(self) -> float:
        """Return the mean over the target of the squared uncertainty of the correction, without noise."""
        return max(float((self.covariance * self.moment).sum()), 0.0) + self.outside_variance * self.outside_moment

    def draw_mse(self) -> Array:
        """Draw the mean squared error of the corrected model on the target."""
        rng = np.random.default_rng(0)
        share = 2.0 / (self.kurtosis - 1.0)  # n squares vary like a chi-squared variable with n * share degrees
        factor = self.degrees * share / rng.chisquare(self.degrees * share, _DRAWS)
        # A quadratic form in normal variables depends on its eigenvalues only, so the draws have no order or unit.
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        sizes = np.maximum(np.linalg.eigvalsh(root.T @ self.moment @ root)[::-1], 0.0)
        error2 = rng.chisquare(1.0, (_DRAWS, len(sizes))) @ sizes + self.outside_variance * self.outside_moment
        noise = rng.chisquare(self.rows * share, _DRAWS) / (self.rows * share)
        return np.asarray(factor * (error2 + self.noise2 * noise))

    def _blocks(self, features: Array, prediction: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield blocks of rows: their positions, (1, q, features along the directions), and the variance outside."""
        for start in range(0, len(prediction), _BLOCK_ROWS):
            at = slice(start, start + _BLOCK_ROWS)
            line, rows, variance = self.coordinates.transform(features[at], prediction[at])
            along = rows @ self.directions
            yield at, np.hstack([line, along]), np.maximum(variance - np.square(along).sum(axis=1), 0.0)


def fit_drift(
    features: Array, prediction: Array, labels: Array, *, target_features: Array, target_prediction: Array,
    counts: Array | None = None, target_counts: Array | None = None, smooth: bool = False, label_weights: Any = None,
) -> Drift:  # fmt: skip
    """Return the posterior of the drift, given features, predictions and labels of the labelled rows.

    A count of 2 stands for two equal rows. With ``smooth`` the drift may be any smooth function of the features; by
    default it is linear. Labels far from the others have less weight.

    The evidence of different predictions of the same labels can be compared. It counts every label: one of weight w is
    moved to the critical distance c of ``weigh_labels``, and beyond it the density falls as (c / t)^2 = sqrt(w).
    """
    counts = np.ones(len(labels)) if counts is None else counts
    target_counts = np.ones(len(target_prediction)) if target_counts is None else target_counts
    at = DriftCoordinates.of(target_features, target_prediction, target_counts, features if smooth else None)
    line, rows, _ = at.transform(features, prediction)
    residual = labels - prediction
    label_weights = weigh_labels(residual, counts) if label_weights is None else label_weights
    residual = np.where(np.abs(residual) > _ROUNDING * np.abs(label_weights * labels).max(), residual, 0.0)
    unit = float(np.abs(label_weights**0.25 * residual).max()) or 1.0  # the largest residual that counts
    residual = residual / unit
    directions, average = _posterior(rows, line, residual, counts * label_weights)
    if (label_weights < 1.0).any():
        centre = np.average(residual, weights=counts * label_weights)
        nearer = centre + (residual - centre) * label_weights**0.25
        average["log_evidence"] = _posterior(rows, line, nearer, counts)[1]["log_evidence"]
    average["log_evidence"] += 0.5 * float(counts @ np.log(label_weights)) - float(counts.sum() * np.log(unit))
    moves = np.hstack([line, rows @ directions]) @ average["mean"]
    left = np.sqrt(label_weights) * (residual - moves)
    left2 = np.where(np.abs(left) > _NO_SPREAD, np.square(left), 0.0)
    kurtosis = max(MIN_KURTOSIS, counts.sum() * (counts @ left2**2) / ((counts @ left2) ** 2 or 1.0))
    average["mean"] *= unit
    for square in ("covariance", "outside_variance", "noise2"):
        average[square] *= unit**2
    drift = Drift(
        at, directions, **average, n_labels=float(counts.sum()), degrees=float(counts @ label_weights),
        label_weights=label_weights, kurtosis=kurtosis, moment=np.empty(0), outside_moment=0.0, rows=0.0,
        supported=_support(moves * unit, residual * unit, counts) if smooth else (-np.inf, np.inf),
        labels=(float(labels.min()), float(labels.max())) if smooth else (-np.inf, np.inf),
    )  # fmt: skip
    return drift.on(target_features, target_prediction, target_counts)


def _posterior(rows: Array, line: Array, residual: Array, counts: Array) -> tuple[Array, dict[str, Any]]:
    """Return the directions in which the labelled rows vary, and the fields of ``Drift`` that ``_average`` returns."""
    root = np.sqrt(counts)[:, None]
    # Outside the directions in which the labelled rows vary, the drift keeps its prior: mean zero, variance delta s^2.
    _, lam, transposed = np.linalg.svd(rows * root, full_matrices=False)
    directions = transposed[lam > 1e-7 * lam.max(initial=0.0)].T
    return directions, _average(rows @ directions * root, line * root, residual * root[:, 0], float(counts.sum()))


def _support(moves: Array, residual: Array, counts: Array) -> tuple[float, float]:
    """Return the range of the corrections of labelled rows, up to the second largest residual: one may be wrong."""
    order = np.argsort(-np.abs(residual), kind="stable")
    second = abs(residual[order][np.searchsorted(np.cumsum(counts[order[:-1]]), 2.0)])
    low, high = np.clip([moves.min(), moves.max()], -second, second).tolist()
    return low, high


def _reduce_outside(values: Array, low: Any, high: Any, std: Array) -> Array:
    """Return values whose distance e from the interval [low, high] becomes e max(0, 1 - std^2 / e^2)."""
    inside = np.clip(values, low, high)
    outside = values - inside
    return inside + outside * np.maximum(1.0 - np.square(std / np.where(outside == 0.0, 1.0, outside)), 0.0)


def weigh_labels(residual: Array, counts: Array) -> Array:
    """Return the weights of labels: 1, or (c / t)^4 for a label that is too far from the others.

    t is the t statistic of one residual against all others, and c its critical value at ``FAR_LEVEL`` for all labels
    together: 7 for ten labels. The farthest label is tested first, and the next one only if it was too far. Several
    labels that agree are a drift and keep their weights. Equal residuals have equal weights: counts equal copies.

    >>> weigh_labels(np.array([0.1, -0.2, 0.3, -0.1, 10.0]), np.ones(5)).round(2)
    array([1.  , 1.  , 1.  , 1.  , 0.09])
    """
    value, at = np.unique(residual / (np.abs(residual).max() or 1.0), return_inverse=True)
    counts = np.bincount(at, counts).astype(np.float64)
    weights, total = np.ones(len(value)), float(counts.sum())
    for _ in value:
        others = counts * weights
        row = int(np.argmax(np.where(weights == 1.0, np.abs(value - others @ value / others.sum()), -1.0)))
        n = total - min(float(counts[row]), 1.0)
        others[row] = max(float(counts[row]) - 1.0, 0.0)  # one of the copies is compared with all other labels
        if others.sum() < 1.5:  # one other label has no spread
            break
        mean = others @ value / others.sum()
        variance = max(others @ np.square(value - mean) / (n - 1.0), (_NO_SPREAD * mean) ** 2, _MIN_VARIANCE)
        t2 = (value[row] - mean) ** 2 / (variance * (1.0 + 1.0 / n))
        critical2 = float(student.isf(FAR_LEVEL / (2.0 * total), n - 1.0)) ** 2
        if t2 <= critical2:
            break
        weights[row] = (critical2 / t2) ** 2
    return np.asarray(weights[at])


def _average(along: Array, line: Array, residual: Array, n: float) -> dict[str, Any]:
    """Average the posterior over all models; return fields of ``Drift``. The columns of ``along`` are orthogonal.

    Offset and slope theta are integrated out for each size of the function, so that only 2 x 2 matrices are inverted.
    Arrays have an axis j for the size of the function, and an axis m for the pair of sizes of offset and slope.
    """
    ratios, lam2 = np.array(RATIOS), np.square(along).sum(axis=0)
    pairs = np.column_stack([values.ravel() for values in np.meshgrid(ratios, ratios, indexing="ij")])
    root, length2 = np.sqrt(pairs), float(residual @ residual)
    overlap, target = along.T @ line, along.T @ residual
    gain = ratios[:, None] / (1.0 + ratios[:, None] * lam2)
    gram = line.T @ line - np.einsum("ra,jr,rb->jab", overlap, gain, overlap)
    product = line.T @ residual - (gain * target) @ overlap
    inner = np.eye(2) + root[:, :, None] * gram[:, None] * root[:, None, :]
    covariance = root[:, :, None] * np.linalg.inv(inner) * root[:, None, :]
    theta = np.einsum("jmab,jb->jma", covariance, product)
    misfit = length2 - (gain @ np.square(target))[:, None] - np.einsum("jma,ja->jm", theta, product)
    misfit = np.maximum(misfit, np.finfo(float).eps * length2)
    volume = np.log1p(ratios[:, None] * lam2).sum(axis=1)[:, None] + np.linalg.slogdet(inner)[1]
    log_prior = -0.5 * (np.log1p(ratios)[:, None] + np.log1p(pairs).sum(axis=1))
    log_prior[0, 0] = logsumexp(log_prior.ravel()[1:]) + np.log(NO_DRIFT / (1.0 - NO_DRIFT))
    if length2 > 0.0:
        log_posterior = log_prior - logsumexp(log_prior) - 0.5 * (volume + n * np.log(misfit))
        log_evidence = float(logsumexp(log_posterior))
        probability = np.exp(log_posterior - log_evidence)
    else:  # the model without drift predicts all labels
        probability, log_evidence = np.zeros_like(misfit), np.inf
        probability[0, 0] = 1.0

    # Given theta, the weights of the features have the mean gain * (target - overlap theta).
    share = probability * misfit / n
    maps = np.concatenate([np.broadcast_to(np.eye(2), gram.shape), -gain[:, :, None] * overlap], axis=1)
    means = np.einsum("jma,jra->jmr", theta, maps)
    means[..., 2:] += (gain * target)[:, None]
    means, weights = means.reshape(probability.size, -1), probability.reshape(-1, 1)
    mean = (means * weights).sum(axis=0)
    second = (means * weights).T @ means
    second += sum(m @ s @ m.T for m, s in zip(maps, np.einsum("jm,jmab->jab", share, covariance)))
    second[2:, 2:] += np.diag(share.sum(axis=1) @ gain)
    zero = [probability[0, 0], *(probability[:, pairs[:, k] == 0.0].sum() for k in (0, 1)), probability[0].sum()]
    outside, noise2 = float(share.sum(axis=1) @ ratios), float(share.sum())
    return {
        "mean": mean, "covariance": second - np.outer(mean, mean), "outside_variance": outside, "noise2": noise2,
        "probability": np.clip(1.0 - np.array(zero), 0.0, 1.0), "log_evidence": log_evidence,
    }  # fmt: skip
