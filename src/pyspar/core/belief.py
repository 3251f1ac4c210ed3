"""Belief: what the labelled source says about the weights, and how surely.

A belief answers two questions about any direction e: its best guess of ``<w, e>`` and the standard deviation of that
guess. The flat belief is ordinary least squares, the paper's setting; any other belief with ``w_hat``, ``sigma`` and
``std_along`` takes its place in ``adapt`` without a change there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol

import numpy as np

from pyspar.core.arrays import EPS64, Matrix, Vector, root_sum_squares
from pyspar.core.eigen import algebra
from pyspar.core.moments import Moments
from pyspar.core.spectrum import ROUNDING_SLACK, Spectrum, decompose

Noise = Literal["mle", "unbiased"]


class Belief(Protocol):
    """What ``adapt`` needs to know of the source."""

    @property
    def w_hat(self) -> Matrix:
        """The best guess of the weights, features x outputs."""

    @property
    def sigma(self) -> Vector:
        """The standard deviation of the label noise, per output."""

    @property
    def x(self) -> Spectrum:
        """The directions that the source has, about ``x_mean``."""

    @property
    def x_mean(self) -> Vector:
        """Where the features are centred: the source mean, or zero without an intercept."""

    @property
    def y_mean(self) -> Vector:
        """Where the outputs are centred: the source mean, or zero without an intercept."""

    @property
    def weight(self) -> float:
        """N: the sum of the source's row weights."""

    @property
    def centred(self) -> bool:
        """Whether the source was fitted with an intercept."""

    @property
    def mean_share(self) -> float:
        """Variance of the fitted mean in units of sigma squared: 1 / N, or zero without an intercept."""

    @property
    def posterior(self) -> bool:
        """Whether the spread is that of the weights given the data, and not that of ``w_hat`` given the weights."""

    def std_along(self, directions: Matrix) -> Matrix:
        """The standard deviation of ``<w_hat, e>`` for each column e, per output."""

    def covariance_along(self, directions: Matrix) -> Matrix:
        """The covariance of ``E' w_hat`` for the columns E, outputs x columns x columns."""


@dataclass(frozen=True, eq=False)
class FlatBelief:
    r"""Ordinary least squares: ``w_hat = X^+ Y``, ``cov(w_hat) = sigma^2 (X'X)^+`` (``eq:pseudoinv_soln``)."""

    w_hat: Matrix
    sigma: Vector
    x: Spectrum
    x_mean: Vector
    y_mean: Vector
    weight: float
    centred: bool
    rows: int = 0
    posterior: ClassVar[bool] = False

    @property
    def mean_share(self) -> float:
        return 1.0 / self.weight if self.centred else 0.0

    @property
    def degrees_of_freedom(self) -> float:
        """What is left over for the noise: N minus the rank, the intercept counted as one.

        Weights that sum to no more than that are no counts of rows; then the share of the rows left over counts.
        """
        spare = self.weight - self.x.rank - self.centred
        left = self.rows - self.x.rank - self.centred
        return spare if spare > 0 or left <= 0 else self.weight * left / self.rows

    def std_along(self, directions: Matrix) -> Matrix:
        return np.outer(noise_gain(self.x, directions), self.sigma)

    def covariance_along(self, directions: Matrix) -> Matrix:
        return flat_covariance(self.x, self.sigma, directions)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Least squares on the directions that the source has: what every belief starts from.

    ``features`` and ``outputs`` are roots about the source mean (or zero), ``residual`` the length of what is not
    explained, zero where rounding alone could be as long.
    """

    features: Matrix
    outputs: Matrix
    x: Spectrum
    w_hat: Matrix
    residual: Vector
    x_mean: Vector
    y_mean: Vector


def least_squares(source: Moments, *, fit_intercept: bool) -> LeastSquares:
    """Fit least squares from the moments of a labelled source (``eq:pseudoinv_soln``)."""
    d = source.n_features
    mean = source.mean if fit_intercept else np.zeros_like(source.mean)
    root = source.root_about(None if fit_intercept else mean)
    lengths = source.column_lengths()
    x, solve = decompose(root[:, :d], lengths[:d], source.eps, source.blur)
    w_hat = solve(root[:, d:])
    residual = root_sum_squares(root[:, d:] - root[:, :d] @ w_hat)
    # A residual no longer than the rounding of what it is the difference of is a perfect fit, and not noise.
    own, fine = root_sum_squares(root), ROUNDING_SLACK * EPS64
    rounded = fine * lengths[d:] + root_sum_squares((np.maximum(fine, source.eps / 2) * lengths[:d])[:, None] * w_hat)
    blurred = source.blur * (own[d:] + root_sum_squares(own[:d, None] * w_hat))
    residual[residual <= np.maximum(rounded, blurred)] = 0.0
    return LeastSquares(root[:, :d], root[:, d:], x, w_hat, residual, mean[:d], mean[d:])


def flat_belief(source: Moments, *, fit_intercept: bool, noise: Noise = "mle") -> FlatBelief:
    r"""Fit least squares from the moments of a labelled source.

    .. math:: \hat w = V_x \Lambda_x^{-1} U_x^\top Y, \qquad \hat\sigma^2 = \mathrm{RSS} / N

    Paper: ``eq:pseudoinv_soln`` and the MLE of ``algo:main_algo``; ``noise="unbiased"`` divides by N - rank instead.
    With an intercept, source (and later target) are centred at the source mean.
    """
    fit = least_squares(source, fit_intercept=fit_intercept)
    weight = counted_rows(source, fit.x.rank + fit_intercept)
    stretch = np.sqrt(weight / source.weight)  # weights that are shares of rows stand for all of them
    x = fit.x if weight == source.weight else Spectrum(fit.x.lam * stretch, fit.x.V, fit.x.floor * stretch)
    belief = FlatBelief(
        fit.w_hat, np.zeros(source.n_outputs), x, fit.x_mean, fit.y_mean, weight, fit_intercept, source.rows
    )
    spare = belief.degrees_of_freedom
    if spare <= 0:
        return belief
    return replace(belief, sigma=fit.residual * stretch / np.sqrt(spare if noise == "unbiased" else weight))


def counted_rows(source: Moments, directions: int) -> float:
    """Return N: the sum of the weights, or, where that is less than the directions and so no count, the rows.

    >>> counted_rows(Moments.of(np.eye(4), sample_weight=np.full(4, 0.25)), 2)
    4.0
    """
    counts = source.weight > directions or source.rows <= directions
    return source.weight if counts else float(source.rows)


def noise_gain(x: Spectrum, directions: Matrix) -> Vector:
    r"""Return how much label noise reaches ``<w_hat, e>``: the root of ``sum_i <e_xi, e>^2 / lambda_xi^2``.

    Kept as a root because its square would underflow for features beyond 1e150.
    """
    if x.rank == 0:
        return np.zeros(directions.shape[1])
    return gain_of(x, algebra().overlap_sums(x.V, directions, gain_weights(x)))


def gain_weights(x: Spectrum) -> Matrix:
    """Return what ``noise_gain`` weighs squared overlaps by, the first by ``1 / lambda^2``, relative to the largest."""
    lam = x.lam / x.lam[0]  # relative, so that no square of it overflows
    return np.vstack([lam**-2, lam**2])


def gain_of(x: Spectrum, sums: Matrix) -> Vector:
    """Return the noise gain from the two sums of squared overlaps."""
    gain, reach = np.sqrt(sums)
    gain = gain / x.lam[0]
    # Orthogonal directions overlap by rounding; divided by a small lambda that would look like a noisy direction.
    return np.where(reach <= max(x.floor / x.lam[0], 4.0 * EPS64), 0.0, gain)


def flat_covariance(x: Spectrum, sigma: Vector, directions: Matrix) -> Matrix:
    """Return ``sigma^2 E' (X'X)^+ E`` for the columns E, outputs x columns x columns."""
    if x.rank == 0:
        return np.zeros((len(sigma), directions.shape[1], directions.shape[1]))
    overlap = (x.V.T @ directions) / (x.lam / x.lam[0])[:, None]
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.multiply.outer((sigma / x.lam[0]) ** 2, overlap.T @ overlap))
