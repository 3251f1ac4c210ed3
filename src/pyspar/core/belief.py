"""Belief: an estimate of the weights from the labelled source, with its uncertainty along any direction.

A belief gives for any direction e an estimate of ``<w, e>`` and the standard deviation of that estimate. The flat
belief is ordinary least squares, the paper's setting. ``pyspar.core.ridge`` has the posterior under a normal prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.linalg import algebra, root_sum_squares
from pyspar.core.moments import Moments
from pyspar.core.spectrum import ROUNDING_SLACK, Spectrum, decompose

Noise = Literal["mle", "unbiased", "exact"]
"""How the noise is estimated: RSS / N, RSS / (N - rank), or the latter with the F quantile in the rule."""


@dataclass(frozen=True, eq=False)
class FlatBelief:
    r"""Ordinary least squares: ``w_hat = X^+ Y``, ``cov(w_hat) = sigma^2 (X'X)^+`` (``eq:pseudoinv_soln``).

    Attributes
    ----------
    w_hat : array of shape (D, K)
        The estimate of the weights.
    sigma : array of shape (K,)
        The standard deviation of the label noise.
    x : Spectrum
        The spectrum of the source about ``x_mean``.
    x_mean, y_mean : arrays of shape (D,) and (K,)
        The source means, or zero without an intercept.
    weight : float
        N: the sum of the source's row weights.
    centred : bool
        Whether the source was fitted with an intercept.
    noise : {"mle", "unbiased", "exact"}
        How ``sigma`` was estimated.
    posterior : bool
        Whether ``std_along`` is for the weights given the data, rather than for ``w_hat`` given the weights.
    """

    w_hat: Matrix
    sigma: Vector
    x: Spectrum
    x_mean: Vector
    y_mean: Vector
    weight: float
    centred: bool
    noise: Noise = "mle"
    posterior: ClassVar[bool] = False

    @property
    def relative_mean_variance(self) -> float:
        """The variance of the fitted mean in units of sigma squared: 1 / N, or zero without an intercept."""
        return 1.0 / self.weight if self.centred else 0.0

    @property
    def degrees_of_freedom(self) -> float:
        """N minus the rank, where the intercept counts as one direction."""
        return self.weight - self.x.rank - self.centred

    @property
    def degrees(self) -> float:
        """The degrees of freedom that the rule accounts for: infinite unless ``noise`` is "exact"."""
        return self.degrees_of_freedom if self.noise == "exact" and self.degrees_of_freedom > 0 else np.inf

    def std_along(self, directions: Matrix) -> Matrix:
        """Return the standard deviation of ``<w_hat, e>`` for each column e, per output."""
        return np.outer(noise_gain(self.x, directions), self.sigma)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Least squares in the span of the source, from which every belief is computed.

    ``features`` and ``outputs`` are roots about the source mean (or zero). ``residual`` is the length of the residual;
    it is zero if it does not exceed the rounding error.
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
    # A residual within the rounding error of its two terms is an exact fit, not noise.
    eps = ROUNDING_SLACK * EPS64
    rounding = eps * lengths[d:] + root_sum_squares((np.maximum(eps, source.eps / 2) * lengths[:d])[:, None] * w_hat)
    centred = root_sum_squares(root)
    blur = source.blur * (centred[d:] + root_sum_squares(centred[:d, None] * w_hat))
    residual[residual <= np.maximum(rounding, blur)] = 0.0
    return LeastSquares(root[:, :d], root[:, d:], x, w_hat, residual, mean[:d], mean[d:])


def flat_belief(source: Moments, *, fit_intercept: bool, noise: Noise = "mle") -> FlatBelief:
    r"""Fit least squares from the moments of a labelled source.

    .. math:: \hat w = V_x \Lambda_x^{-1} U_x^\top Y, \qquad \hat\sigma^2 = \mathrm{RSS} / N

    Paper: ``eq:pseudoinv_soln`` and the MLE of ``algo:main_algo``. "unbiased" and "exact" divide by N - rank instead.
    With an intercept, source (and later target) are centred at the source mean.
    """
    fit = least_squares(source, fit_intercept=fit_intercept)
    no_noise = np.zeros(source.n_outputs)
    belief = FlatBelief(fit.w_hat, no_noise, fit.x, fit.x_mean, fit.y_mean, source.weight, fit_intercept, noise)
    divisor = source.weight if noise == "mle" else belief.degrees_of_freedom
    # A source with no more rows than directions is fitted exactly, so no degree of freedom is left for the noise.
    exact = source.rows <= fit.x.rank + fit_intercept or divisor <= 0.0
    return belief if exact else replace(belief, sigma=fit.residual / np.sqrt(divisor))


def noise_gain(x: Spectrum, directions: Matrix) -> Vector:
    r"""Return the gain from label noise to ``<w_hat, e>``: the root of ``sum_i <e_xi, e>^2 / lambda_xi^2``.

    It is a root because its square would underflow for features beyond 1e150. The gain is zero for a direction along
    which the source varies by no more than rounding. The source does not span such a direction: its overlap with the
    source's directions is rounding, which a small ``lambda`` would magnify.
    """
    if x.rank == 0:
        return np.zeros(directions.shape[1])
    lam = x.lam / x.lam[0]  # relative, so that no square of it overflows
    gain, length = np.sqrt(algebra().overlap_sums(x.V, directions, np.vstack([lam**-2, lam**2])))
    # Per column, like the rank: a small column next to a huge one is not rounding of the huge one.
    rounding = np.abs(directions).T @ (x.rounding / x.lam[0])
    return np.where(length <= np.maximum(rounding, 4.0 * EPS64), 0.0, gain / x.lam[0])
