r"""Linear regression from moments: least squares, and the ridge posterior with both variances by maximum evidence.

Every fit gives for a direction e an estimate of ``<w, e>`` and its standard deviation. ``OLSFit`` is the paper's
setting. ``RidgePosterior`` has the prior

.. math:: w \sim N(c, \tau^2 U^{-2}), \qquad U = \mathrm{diag}(u)

If the predictions of the centre c are subtracted from the labels and each feature is divided by its scale u, the prior
is ``N(0, tau^2 I)``. In these coordinates, with ``X = U_x diag(lambda) V'``, ``c = U_x'Y`` and ``k = sigma^2 / tau^2``,

.. math::
    \mu = V \,\mathrm{diag}\Big(\frac{\lambda_i}{\lambda_i^2 + k}\Big) c, \qquad
    \Sigma = V \,\mathrm{diag}\Big(\frac{\sigma^2}{\lambda_i^2 + k}\Big) V^\top + \tau^2 (I - V V^\top)

Directions outside the span of the source keep the prior's variance. The likelihood of the labels with the weights
integrated out is maximised over ``sigma^2`` in closed form. One dimension is left, ``log kappa`` with
``kappa = k / lambda_1^2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, pi, sqrt
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import brentq

from pyspar.core.moments import EPS64, ROUNDING_SLACK, Matrix, Moments, Vector, column_norms
from pyspar.core.spectrum import Eigen, Spectrum, decompose

PriorScale = Literal["max", "source", "equal"]
"""The scale of each feature: the larger of its spreads over source and target, that over the source, or one for all."""
Noise = Literal["mle", "unbiased", "exact"]
"""How the noise is estimated: RSS / N, RSS / (N - rank), or the latter with the F quantile in the rule."""
Limit = Literal["interior", "no-signal", "no-noise", "exact-fit", "repeated-rows"]
"""The location of the maximum; see :class:`RidgePosterior`."""

FAINT_SHARE = 1e3 * EPS64  # singular values below this share of the largest have less than three correct digits
_CHANGE_ROUNDING = 1e-12  # a change of the predictions below this share of them is rounding error


# The prior ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prior:
    """The centre of a prior, and the scale of each feature.

    ``units`` of shape (D,) are the scales; zero for a feature that keeps the centre's weight. ``coef`` (D, K) and
    ``intercept`` (K,) are the centre: weights, and the prediction at the origin.
    """

    units: Vector
    coef: Matrix
    intercept: Vector

    def transform(self, moments: Moments) -> Moments:
        """Return moments in the prior's coordinates: features divided by their scales, outputs minus the centre's."""
        if moments.n_outputs and (self.coef.any() or self.intercept.any()):
            moments = moments.subtract_prediction(self.coef, self.intercept)
        root = moments.root.copy()
        root[:, 1 : len(self.units) + 1] *= inverse(self.units)
        return moments.with_root(root)

    def weights(self, fit: LinearFit, correction: Matrix) -> tuple[Matrix, Vector]:
        """Return coefficients (D, K) and intercepts (K,) for a correction to the centre."""
        coef = self.coef + correction * inverse(self.units)[:, None]
        return np.asarray(coef), np.asarray(self.intercept + fit.y_mean - fit.x_mean @ correction)


def make_prior(
    source: Moments, target_spread: Vector | None, scale: PriorScale, *, fit_intercept: bool, unseen: bool = False
) -> Prior:
    """Return the prior about zero with the scale of each feature.

    ``target_spread`` is the root mean square of each target feature about the source mean, or about zero without an
    intercept. Without it, "max" equals "source". A feature that is constant in the source gets zero and is dropped when
    fitting. With ``unseen=True`` (forecasts) it gets its spread over the target, or one with "equal".

    >>> X = np.array([[-1.0, -1.0], [1.0, 1.0]])
    >>> make_prior(Moments.of(X), np.array([5.0, 0.1]), "max", fit_intercept=True).units
    array([5., 1.])
    """
    origin = None if fit_intercept else np.zeros_like(source.mean)
    length = column_norms(source.root_about(origin)[:, : source.n_features])
    spread = np.where(length > source.rounding(), length / np.sqrt(source.weight), 0.0)
    target_spread = np.zeros_like(spread) if target_spread is None else target_spread
    if scale == "equal":
        unit = other = np.ones_like(spread)
    else:
        unit, other = np.maximum(spread, target_spread) if scale == "max" else spread, target_spread
    units = np.where(spread > 0.0, unit, other if unseen else 0.0)
    return Prior(units, np.zeros((source.n_features, source.n_outputs)), np.zeros(source.n_outputs))


def spread_about_source(source: Moments, target: Moments, centred: bool) -> Vector:
    """Return the root mean square of each target feature about the source mean, or about zero if not centred."""
    features = target.without_outputs().root_about(source.mean[: target.n_features] * centred)
    return np.asarray(column_norms(features) / np.sqrt(target.weight))


def inverse(units: Vector) -> Vector:
    """Return the factor by which each feature is multiplied; zero for a feature without a unit, which drops it."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(units > 0.0, 1.0 / units, 0.0))


# Fits -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Weights that were fitted to a labelled source, and its spectrum about ``x_mean``."""

    w_hat: Matrix
    x: Spectrum
    x_mean: Vector  # the means of the source, zero without an intercept
    y_mean: Vector
    weight: float  # N: the sum of the row weights
    centred: bool  # whether there is an intercept

    @property
    def relative_mean_variance(self) -> float:
        """The variance of the fitted mean in units of sigma squared: 1 / N, or zero without an intercept."""
        return 1.0 / self.weight if self.centred else 0.0

    @property
    def degrees_of_freedom(self) -> float:
        """N minus the rank, where the intercept counts as one direction."""
        return self.weight - self.x.rank - self.centred


@dataclass(frozen=True, eq=False)
class LeastSquares(LinearFit):
    """Least squares in the span of the source, from which every fit is computed.

    ``c`` are the labels ``U'Y`` in the source's coordinates. ``length`` and ``residual`` are the lengths of the labels
    about their mean (or zero) and of the residual; both are zero if they do not exceed the rounding error.
    """

    c: Matrix
    length: Vector
    residual: Vector
    is_square: bool  # no more rows than directions: the residual is zero whatever the noise


@dataclass(frozen=True, eq=False)
class OLSFit(LinearFit):
    r"""Ordinary least squares: ``w_hat = X^+ Y``, ``cov(w_hat) = sigma^2 (X'X)^+`` (``eq:pseudoinv_soln``).

    ``sigma`` is the standard deviation of the label noise, of shape (K,), and ``noise`` is the name of its estimator.
    ``posterior`` is True if ``std_along`` is the standard deviation of the weights given the data, and False if it is
    that of ``w_hat`` given the weights.
    """

    sigma: Vector
    noise: Noise = "mle"
    posterior: ClassVar[bool] = False

    @property
    def sigma2(self) -> Vector:
        """The variance of the label noise."""
        return np.square(self.sigma)

    @property
    def degrees(self) -> float:
        """The degrees of freedom that the rule accounts for: infinite unless ``noise`` is "exact"."""
        return self.degrees_of_freedom if self.noise == "exact" and self.degrees_of_freedom > 0 else np.inf

    def std_along(self, directions: Matrix) -> Matrix:
        """Return the standard deviation of ``<w_hat, e>`` for each column e, per output."""
        return np.outer(noise_gain(self.x, directions), self.sigma)


def least_squares(source: Moments, *, fit_intercept: bool, eigen: Eigen | None = None) -> LeastSquares:
    """Fit least squares from the moments of a labelled source (``eq:pseudoinv_soln``)."""
    d, eps = source.n_features, ROUNDING_SLACK * EPS64
    mean = source.mean if fit_intercept else np.zeros_like(source.mean)
    root = source.root_about(None if fit_intercept else mean)
    lengths, varying = source.column_lengths(), column_norms(root)
    is_constant = varying[d:] <= eps * lengths[d:]  # labels that vary by rounding are constant
    outputs = np.where(is_constant, 0.0, root[:, d:])
    x, c, w_hat = decompose(root[:, :d], source.rounding(), outputs, eigen)
    residual = column_norms(outputs - root[:, :d] @ w_hat)
    # A residual within the rounding error of its two terms is an exact fit, not noise.
    rounding = eps * lengths[d:] + column_norms((np.maximum(eps, source.eps / 2) * lengths[:d])[:, None] * w_hat)
    residual[residual <= rounding] = 0.0
    return LeastSquares(
        w_hat, x, mean[:d], mean[d:], source.weight, fit_intercept,
        c, np.where(is_constant, 0.0, varying[d:]), residual, x.rank == len(root),
    )  # fmt: skip


def fit_ols(source: Moments, *, fit_intercept: bool, noise: Noise = "mle", eigen: Eigen | None = None) -> OLSFit:
    r"""Fit least squares from the moments of a labelled source.

    .. math:: \hat w = V_x \Lambda_x^{-1} U_x^\top Y, \qquad \hat\sigma^2 = \mathrm{RSS} / N

    Paper: ``eq:pseudoinv_soln`` and the MLE of ``algo:main_algo``. "unbiased" and "exact" divide by N - rank instead.
    With an intercept, source (and later target) are centred at the source mean.
    """
    fit = least_squares(source, fit_intercept=fit_intercept, eigen=eigen)
    divisor = source.weight if noise == "mle" else fit.degrees_of_freedom
    # A source with no more rows than directions is fitted exactly, so no degree of freedom is left for the noise.
    exact = source.rows <= fit.x.rank + fit_intercept or divisor <= 0.0
    sigma = np.zeros(source.n_outputs) if exact else fit.residual / np.sqrt(divisor)
    return OLSFit(fit.w_hat, fit.x, fit.x_mean, fit.y_mean, fit.weight, fit.centred, sigma, noise)


def noise_gain(x: Spectrum, directions: Matrix) -> Vector:
    r"""Return the gain from label noise to ``<w_hat, e>``: the root of ``sum_i <e_xi, e>^2 / lambda_xi^2``.

    The gain is zero for a direction along which the source varies by no more than rounding, because a small ``lambda``
    would magnify that rounding.
    """
    if x.rank == 0:
        return np.zeros(directions.shape[1])
    overlap, scales = x.V.T @ directions, np.square([x.lam[-1] / x.lam, x.lam / x.lam[0]])
    gain, length = np.sqrt(scales @ np.square(overlap, out=overlap))
    # Per column, like the rank: a small column next to a huge one is not rounding of the huge one.
    rounding = np.abs(directions).T @ np.broadcast_to(x.rounding / x.lam[0], len(directions))
    return np.where(length <= np.maximum(rounding, 4.0 * EPS64), 0.0, gain / x.lam[-1])


@dataclass(frozen=True, eq=False)
class RidgePosterior(LinearFit):
    """A normal posterior of the weights; the variances of noise and prior count as known.

    ``w_hat``, ``x``, ``x_mean``, ``y_mean`` and ``std_along`` are in the prior's coordinates. The methods that take
    rows, moments or weights take them in the units of the features.

    Attributes
    ----------
    sigma, tau : arrays of shape (K,)
        Standard deviations of the label noise and of a weight.
    kappa : array of shape (K,)
        ``sigma^2 / (tau^2 lambda_1^2)``: the ridge penalty in units of the largest squared singular value.
    log_evidence : array of shape (K,)
        The logarithm of the density of the labels. It is infinite if all labels are equal, or if more rows than
        directions are fitted exactly.
    limit : tuple of str
        "interior", or the limit at which the maximum lies: "no-signal" (tau = 0), "no-noise" (sigma = 0). With
        "exact-fit", as many weights as rows fit the labels exactly, and the noise is its posterior mean. With
        "repeated-rows", the fit is exact because rows are repeated; each is counted once.
    """

    sigma: Vector
    tau: Vector
    kappa: Vector
    log_evidence: Vector
    limit: tuple[Limit, ...]
    prior: Prior
    posterior: ClassVar[bool] = True
    degrees: ClassVar[float] = np.inf

    @property
    def sigma2(self) -> Vector:
        return np.square(self.sigma)

    @property
    def tau2(self) -> Vector:
        """The prior variance of each weight."""
        return np.square(self.tau)

    def weights(self) -> tuple[Matrix, Vector]:
        """Return the posterior mean: coefficients (D, K) and intercepts (K,)."""
        return self.prior.weights(self, self.w_hat)

    def std_along(self, directions: Matrix) -> Matrix:
        """Return the standard deviation of ``<w, e>`` for each column e, per output."""
        kappa, largest = self.kappa[:, None], self.x.largest
        inside = (self.x.lam / largest) ** 2 + np.where(np.isinf(kappa), 0.0, kappa)
        # 1 / (lambda^2 + kappa) along the source's directions, with lambda relative to lambda_1. The standard deviation
        # of a unit entry is sigma / lambda_1.
        overlap = np.square(self.x.V.T @ directions)
        std = np.sqrt(np.where(np.isinf(kappa), 0.0, 1.0 / inside) @ overlap).T * (self.sigma / largest)
        if self.x.rank == self.x.n_features:
            return np.asarray(std)
        length = np.einsum("ij,ij->j", directions, directions)
        outside = length - overlap.sum(axis=0)
        outside = np.where(outside > 64.0 * EPS64 * length, outside, 0.0)
        return np.asarray(np.hypot(std, np.sqrt(outside)[:, None] * self.tau))

    def row_variance(self, rows: Matrix) -> Matrix:
        """Return the variance of the prediction of each row, from uncertain weights and intercept, rows x outputs."""
        centred = rows * inverse(self.prior.units) - self.x_mean
        return np.square(self.std_along(centred.T)) + self.relative_mean_variance * self.sigma2

    def mean_variance(self, target: Moments) -> Vector:
        """Return the mean of ``row_variance`` over a target: the trace of Sigma times its second moment."""
        stds = self.std_along(self.prior.transform(target.without_outputs()).root_about(self.x_mean).T)
        return np.asarray(np.square(stds).sum(axis=0) / target.weight + self.relative_mean_variance * self.sigma2)

    def mean_square_change(self, coef: Matrix, intercept: Vector, target: Moments) -> Vector:
        """Return the mean squared difference, over a target, between given weights and the posterior mean."""
        weights, mean = np.vstack([intercept, coef]), np.vstack(self.weights()[::-1])
        root = target.without_outputs().root
        size, length = (column_norms(root @ part) / np.sqrt(target.weight) for part in (weights - mean, weights))
        return np.square(np.where(size < _CHANGE_ROUNDING * np.maximum(length, np.abs(self.y_mean)), 0.0, size))


Fit: TypeAlias = OLSFit | RidgePosterior


def fit_ridge(
    source: Moments, prior: Prior | None = None, *, fit_intercept: bool, eigen: Eigen | None = None
) -> RidgePosterior:
    """Return the posterior given a labelled source, with the variances of maximum evidence.

    With an intercept the data are centred at the source mean, which costs one row. The default prior has the centre
    zero and the scale one.
    """
    if prior is None:
        d, k = source.n_features, source.n_outputs
        prior = Prior(np.ones(d), np.zeros((d, k)), np.zeros(k))
    source = prior.transform(source)
    fit = least_squares(source, fit_intercept=fit_intercept, eigen=eigen)
    data = label_coordinates(fit)
    sigma, tau, kappa, log_evidence, limit = map(np.array, zip(*maximum_evidence(data), strict=True))
    w_hat = fit.w_hat
    if fit.x.rank and kappa.any():
        lam = data.lam[:, None]
        shrunk = fit.x.V @ (data.c * (lam / (lam**2 + kappa)) / fit.x.largest)
        w_hat = np.where(kappa == 0.0, w_hat, shrunk)
    return RidgePosterior(
        w_hat, fit.x, fit.x_mean, fit.y_mean, fit.weight, fit.centred,
        sigma, tau / fit.x.largest, kappa, log_evidence, tuple(limit.tolist()), prior,
    )  # fmt: skip


def left_out_rmse(fit: Fit) -> Vector:
    r"""Return the error of generalised cross-validation, per output, of weights that could fit all rows exactly.

    .. math:: \frac{n \sum_i (\langle w, e_i\rangle / \lambda_i)^2}{(\sum_i 1 / (\lambda_i^2 + k))^2}, \qquad n = N - 1

    This is n RSS / tr(I - H)^2 after cancelling the factor k, which is zero for least squares. It is NaN if the weights
    are zero (k infinite).
    """
    lam = fit.x.lam
    scaled = lam / lam[0]
    kappa = fit.kappa if isinstance(fit, RidgePosterior) else np.zeros(fit.w_hat.shape[1])
    along = (fit.x.V.T @ fit.w_hat) * lam[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        length = column_norms(along / scaled[:, None])
        trace = (1.0 / (np.square(scaled)[:, None] + kappa)).sum(axis=0)
        return np.asarray(np.sqrt(fit.weight - fit.centred) * length / trace)


# Maximum evidence -----------------------------------------------------------------------------------------------------

_GRID_STEP = 0.25  # in the logarithm of kappa; the evidence varies on the scale of one
_GRID_FACTOR = 1e6  # the grid extends beyond the singular values by this factor on either side
_MIN_SQUARE = 1e-280  # a squared singular value below this may have underflowed, so its logarithm is unreliable
_EVIDENCE_ROUNDING = 1e-11  # a bound on the rounding error of the evidence per row, for a few thousand logarithms
_RESIDUAL_ROUNDING = 256.0  # of a residual, in machine epsilons of the labels and of ``lambda_1 |w|``
_MIN_NOISE = 1e-9  # a residual above this share of the labels is noise, even if some weights are large
_MAX_REPEATED = 0.5  # an exact fit is not attributed to a larger share of repeated rows
_STRONG_EVIDENCE = 10.0  # twice the log of an evidence ratio that is very strong evidence (Kass and Raftery, 1995)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The labels in the source's coordinates, with ``lambda`` in units of ``lambda_1``.

    ``dependent`` is whether varying features are linear combinations of others, maybe due to too few distinct rows.
    """

    lam: Vector
    c: Matrix  # U'Y, of shape (r, K)
    rest: Vector  # the length of the residual
    n: float  # the number of rows, minus one for an intercept
    dependent: bool = False


def label_coordinates(fit: LeastSquares) -> Coordinates:
    """Return the labels in the source's coordinates.

    Faint directions, whose singular values have fewer than three correct digits, carry no information about the
    weights. The part of the labels along them is added to the residual.
    """
    lam, c = fit.x.lam / fit.x.largest, fit.c.copy()
    rest = np.zeros_like(fit.residual) if fit.is_square else fit.residual
    faint = lam <= FAINT_SHARE
    c[faint] = 0.0
    # The length of w is that of c / lambda, unless a column is smaller than others by more decades than the singular
    # values resolve. Its weight is then larger, and its part of the labels is missing in c.
    if faint.any() or (column_norms(c / fit.x.lam[:, None]) < 0.5 * column_norms(fit.w_hat)).any():
        rest = np.sqrt(np.maximum(np.square(rest), np.square(fit.length) - np.square(c).sum(axis=0)))
    dependent = fit.x.rank < fit.x.n_features and fit.x.rank < int(fit.x.V.any(axis=1).sum())
    return Coordinates(lam, c, rest, fit.weight - fit.centred, dependent)


class _Maximum(NamedTuple):
    """The maximum of the evidence for one output."""

    sigma: float
    tau: float
    kappa: float
    log_evidence: float
    limit: Limit


class _Output(NamedTuple):
    """One output: ``lambda^2``, ``(U'y)^2``, and the squared lengths of labels, residual and least-squares weights."""

    n: float
    lam2: Vector
    c2: Vector
    labels: float
    residual: float
    weights: float


def maximum_evidence(data: Coordinates) -> list[_Maximum]:
    """Return the maximum of the evidence of each output, with ``tau`` in units of ``lambda_1``.

    Constant labels, pure noise, an exact fit and fewer rows than features do not fail but end at a limit. Outputs whose
    maximum is not at a known limit are searched on one grid of log kappa.
    """
    n, lam2, outputs = data.n, data.lam**2, []
    for c, length in zip(data.c.T, data.rest.tolist(), strict=True):
        weights = float(np.square(c / data.lam).sum())
        # The residual of an exact fit is rounding, which is proportional to labels and weights.
        signal = float(c @ c)
        labels = sqrt(signal + length**2)
        is_noise = length > min(_RESIDUAL_ROUNDING * EPS64 * (labels + sqrt(weights)), _MIN_NOISE * labels)
        residual = length**2 if is_noise else 0.0
        outputs.append(_Output(n, lam2, c**2, signal + residual, residual, weights))
    maxima = [_known_limit(data, one, j) for j, one in enumerate(outputs)]
    searched = [one for one, maximum in zip(outputs, maxima, strict=True) if maximum is None]
    if not searched:
        return [maximum for maximum in maxima if maximum]
    # With many rows the noise of an estimate is small, so the best penalty is smaller by the number of rows.
    ratios = [one.residual / one.weights / max(n, 1.0) for one in searched if one.residual > 0.0]
    low = max(min([float(lam2[-1]), *ratios]), _MIN_SQUARE)
    grid = np.arange(log(low / _GRID_FACTOR), log(_GRID_FACTOR * max(n, 1.0)) + _GRID_STEP, _GRID_STEP)
    kappa = np.exp(grid)[:, None]
    kept = kappa / (kappa + lam2)
    volume = -np.log(kept).sum(axis=1)
    return [maximum or _search(one, grid, kept, volume) for one, maximum in zip(outputs, maxima, strict=True)]


def _known_limit(data: Coordinates, one: _Output, output: int) -> _Maximum | None:
    """Return the maximum if it lies at a limit that needs no search."""
    if one.labels == 0.0 or one.n <= ROUNDING_SLACK * EPS64:  # weights that sum to one row, with an intercept
        return _Maximum(0.0, 0.0, np.inf, np.inf, "no-signal")
    if not one.c2.any():
        return _pure_noise(one)
    if one.residual == 0.0 and one.n > data.lam.size:  # unbounded: the evidence grows as the noise decreases
        exact = _Maximum(0.0, sqrt(one.weights / data.lam.size), 0.0, np.inf, "no-noise")
        return _without_repeats(data, one, output) or exact
    return None


def _search(one: _Output, grid: Vector, kept: Matrix, volume: Vector) -> _Maximum:
    """Return the maximum of one output: at one of the two limits, or else near the best grid point.

    ``values`` are minus twice the log evidence on the grid, without the terms that do not depend on kappa. The best
    grid point is compared with the same expression at the limits: ``n log(labels)`` for kappa = infinity (no signal),
    and ``n log(weights) + sum(log lambda^2)`` for kappa = 0 (no noise), which is finite only for an exact fit.
    """
    n, lam2, c2 = one.n, one.lam2, one.c2
    misfit = kept @ c2 + one.residual
    values = n * np.log(misfit) + volume
    best = int(values.argmin())
    # The evidence is flat near a limit, so the limit is chosen unless the grid point is better by more than rounding.
    value_at_best = float(values[best]) + _EVIDENCE_ROUNDING * n
    if best == len(grid) - 1 or value_at_best >= n * log(one.labels):
        return _pure_noise(one)
    if one.residual == 0.0 and value_at_best >= n * log(one.weights) + float(np.log(lam2).sum()):
        return _at_kappa(_noise_of_exact_fit(one, grid, misfit, values), one)._replace(limit="exact-fit")

    def slope(t: float) -> float:
        """Return the derivative of the values in t = log kappa."""
        kept, fitted = exp(t) / (lam2 + exp(t)), lam2 / (lam2 + exp(t))
        return n * float(c2 @ (kept * fitted)) / (float(c2 @ kept) + one.residual) - float(fitted.sum())

    low, high = float(grid[max(best - 1, 0)]), float(grid[best + 1])
    bracketed = slope(low) < 0.0 < slope(high)  # otherwise rounding hides the change of sign
    return _at_kappa(exp(brentq(slope, low, high, xtol=1e-13, rtol=1e-14) if bracketed else float(grid[best])), one)


def _at_kappa(kappa: float, one: _Output) -> _Maximum:
    """Return the best variances for a given kappa."""
    misfit = float(one.c2 @ (kappa / (one.lam2 + kappa))) + one.residual
    sigma, volume = sqrt(misfit / one.n), float(np.log1p(one.lam2 / kappa).sum())
    return _Maximum(sigma, sigma / sqrt(kappa), kappa, _log_evidence(one.n, misfit, volume), "interior")


def _noise_of_exact_fit(one: _Output, grid: Vector, misfit: Vector, values: Vector) -> float:
    """Return kappa for labels that as many weights fit exactly, if the evidence is largest without noise.

    No residual is left to measure the noise, so a maximum at zero is no evidence of zero noise. Instead of the
    maximum, kappa is chosen such that the noise variance is its posterior mean, for a uniform prior of the share of the
    labels' variance that the features explain.
    """
    odds = np.exp(grid) / (float(one.lam2.sum()) / one.n)  # of noise to signal
    probability = np.exp(-0.5 * (values - values.min())) * odds / (1.0 + odds) ** 2
    mean = float(probability @ misfit) / float(probability.sum())
    return exp(float(np.interp(log(mean), np.log(misfit), grid)))


def _pure_noise(one: _Output) -> _Maximum:
    """Return the limit at which the labels are pure noise."""
    return _Maximum(sqrt(one.labels / one.n), 0.0, np.inf, _log_evidence(one.n, one.labels, 0.0), "no-signal")


def _without_repeats(data: Coordinates, one: _Output, output: int) -> _Maximum | None:
    """Return the maximum without copies of rows, if an exact fit is likely to be due to copies; otherwise None.

    With at most as many distinct rows as directions every fit is exact, and the labels look noiseless although they are
    not. Moments do not show copies, but they are possible only if some features depend on others. The number of
    distinct rows is then the rank. Copies are assumed if its evidence strongly favours noise over an exact fit.
    """
    rank = data.lam.size
    if not data.dependent or rank < (1.0 - _MAX_REPEATED) * data.n:
        return None
    distinct = Coordinates(data.lam, data.c[:, [output]], np.zeros(1), float(rank))
    with_noise = maximum_evidence(distinct)[0]
    exact = _log_evidence(distinct.n, one.weights, float(2.0 * np.log(data.lam).sum()))
    if with_noise.limit not in ("interior", "exact-fit") or 2.0 * (with_noise.log_evidence - exact) < _STRONG_EVIDENCE:
        return None
    return with_noise._replace(limit="repeated-rows")


def _log_evidence(n: float, misfit: float, volume: float) -> float:
    """Return the log evidence at the best noise variance, ``misfit / n``."""
    return -0.5 * (n * (log(2.0 * pi * misfit / n) + 1.0) + volume)
