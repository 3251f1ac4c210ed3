r"""Belief: a prior of the weights, and their estimate from the labelled source with its uncertainty.

.. math:: w \sim N(c, \tau^2 U^{-2}), \qquad U = \mathrm{diag}(u)

``Prior`` has the centre c and the units u. If the centre's predictions are subtracted from the labels and each feature
is divided by its unit, the prior is ``N(0, tau^2 I)``. Every belief is computed in these coordinates.

A belief gives for any direction e an estimate of ``<w, e>`` and its standard deviation. The flat belief is ordinary
least squares, the paper's setting. The ridge belief is the posterior with both variances by maximum evidence:

.. math::
    \mu = V \,\mathrm{diag}\Big(\frac{\lambda_i}{\lambda_i^2 + k}\Big) c, \qquad
    \Sigma = V \,\mathrm{diag}\Big(\frac{\sigma^2}{\lambda_i^2 + k}\Big) V^\top + \tau^2 (I - V V^\top)

with ``k = sigma^2 / tau^2``. Directions outside the span of the source keep the prior's variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.evidence import Coordinates, Evidence, maximum_evidence
from pyspar.core.moments import ROUNDING_SLACK, Moments
from pyspar.core.roots import root_sum_squares
from pyspar.core.spectrum import Spectrum, algebra, decompose

Units = Literal["target", "source", "common"]
"""The unit of each feature: the larger of its spreads over source and target, that over the source, or one for all."""
Noise = Literal["mle", "unbiased", "exact"]
"""How the noise is estimated: RSS / N, RSS / (N - rank), or the latter with the F quantile in the rule."""
FAINT_SHARE = 1e3 * EPS64
"""Singular values below this share of the largest have less than three correct digits."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The centre and the units of a prior.

    Attributes
    ----------
    units : array of shape (D,)
        The unit of each feature; zero for a feature that keeps the centre's weight.
    coef, intercept : arrays of shape (D, K) and (K,)
        The centre: weights, and the prediction at the origin.
    """

    units: Vector
    coef: Matrix
    intercept: Vector

    def transform_source(self, source: Moments) -> Moments:
        """Return a labelled source in the prior's coordinates."""
        if self.coef.any() or self.intercept.any():
            source = source.subtract_prediction(self.coef, self.intercept)
        return in_units_of(source, self.units)

    def transform_target(self, target: Moments) -> Moments:
        """Return a target in the prior's coordinates. Outputs are dropped."""
        return in_units_of(target.without_outputs(), self.units)

    def transform_rows(self, rows: Matrix) -> Matrix:
        """Return rows of features in the prior's coordinates."""
        return np.asarray(rows * inverse(self.units))

    def change_units(self, root: Matrix, other: Prior) -> Matrix:
        """Return a root of ``[1 | Z]`` with Z in the units of another prior instead of this one."""
        return np.hstack([root[:, :1], root[:, 1:] * (self.units * inverse(other.units))])

    def predict(self, rows: Matrix) -> Matrix:
        """Return the predictions of the centre, rows x outputs."""
        return np.asarray(rows @ self.coef + self.intercept)

    def correction(self, coef: Matrix) -> Matrix:
        """Return the difference of weights from the centre, in the prior's coordinates."""
        return np.asarray((coef - self.coef) * self.units[:, None])

    def correction_about(self, belief: Belief, coef: Matrix, intercept: Vector) -> Matrix:
        """Return offset and weights (1 + D, K) as corrections to the centre, about the belief's source mean."""
        correction = self.correction(coef)
        return np.vstack([intercept - self.intercept + belief.x_mean @ correction - belief.y_mean, correction])

    def weights(self, belief: Belief, correction: Matrix) -> tuple[Matrix, Vector]:
        """Return coefficients (D, K) and intercepts (K,) for a correction to the centre."""
        coef = self.coef + correction * inverse(self.units)[:, None]
        return np.asarray(coef), np.asarray(self.intercept + belief.y_mean - belief.x_mean @ correction)


def units_of_features(
    source: Moments, target_spread: Vector | None, units: Units, *, fit_intercept: bool, include_unseen: bool = False
) -> Vector:
    """Return the unit of each feature.

    ``target_spread`` is the root mean square of each target feature about the source mean, or about zero without an
    intercept. Without it, "target" equals "source". A feature that is constant in the source gets unit 0 and is dropped
    when fitting. With ``include_unseen=True`` (forecasts) it gets its spread over the target, or the common unit.

    >>> X = np.array([[-1.0, -1.0], [1.0, 1.0]])
    >>> units_of_features(Moments.of(X), np.array([5.0, 0.1]), "target", fit_intercept=True)
    array([5., 1.])
    """
    spread = spread_of_features(source, fit_intercept=fit_intercept)
    if target_spread is None:
        target_spread = np.zeros_like(spread)
    if units == "common":
        unit = unit_if_constant = np.ones_like(spread)
    else:
        unit, unit_if_constant = np.maximum(spread, target_spread) if units == "target" else spread, target_spread
    return np.where(spread > 0.0, unit, unit_if_constant if include_unseen else 0.0)


def spread_about_source(source: Moments, target: Moments, centred: bool) -> Vector:
    """Return the root mean square of each target feature about the source mean, or about zero if not centred."""
    mean = source.mean[: target.n_features]
    return target.spread_about(mean if centred else np.zeros_like(mean))


def spread_of_features(source: Moments, *, fit_intercept: bool) -> Vector:
    """Return the standard deviation of each feature; zero if it does not exceed the rounding error.

    Without an intercept, return the root mean square about the origin.

    >>> spread_of_features(Moments.of(np.array([[1.0, 7.0], [3.0, 7.0]])), fit_intercept=True)
    array([1., 0.])
    """
    origin = None if fit_intercept else np.zeros_like(source.mean)
    length = root_sum_squares(source.root_about(origin)[:, : source.n_features])
    return np.asarray(np.where(length > source.rounding(), length / np.sqrt(source.weight), 0.0))


def inverse(units: Vector) -> Vector:
    """Return the factor by which each feature is multiplied; zero for a feature without a unit, which drops it."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(units > 0.0, 1.0 / units, 0.0))


def in_units_of(moments: Moments, units: Vector) -> Moments:
    """Return the moments of the rows with each feature divided by its unit."""
    root = moments.root.copy()
    root[:, 1 : len(units) + 1] *= inverse(units)
    return moments.with_root(root)


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
    """Least squares in the span of the source, from which every belief is computed.

    ``features`` and ``outputs`` are roots about the source mean (or zero). ``residual`` is the length of the residual;
    it is zero if it does not exceed the rounding error.
    """

    features: Matrix
    outputs: Matrix
    residual: Vector


@dataclass(frozen=True, eq=False)
class FlatBelief(LinearFit):
    r"""Ordinary least squares: ``w_hat = X^+ Y``, ``cov(w_hat) = sigma^2 (X'X)^+`` (``eq:pseudoinv_soln``).

    ``sigma`` is the standard deviation of the label noise, of shape (K,), and ``noise`` is the name of its estimator.
    ``posterior`` is True if ``std_along`` is the standard deviation of the weights given the data, and False if it is
    that of ``w_hat`` given the weights.
    """

    sigma: Vector
    noise: Noise = "mle"
    posterior: ClassVar[bool] = False

    @property
    def degrees(self) -> float:
        """The degrees of freedom that the rule accounts for: infinite unless ``noise`` is "exact"."""
        return self.degrees_of_freedom if self.noise == "exact" and self.degrees_of_freedom > 0 else np.inf

    def std_along(self, directions: Matrix) -> Matrix:
        """Return the standard deviation of ``<w_hat, e>`` for each column e, per output."""
        return np.outer(noise_gain(self.x, directions), self.sigma)


def least_squares(source: Moments, *, fit_intercept: bool) -> LeastSquares:
    """Fit least squares from the moments of a labelled source (``eq:pseudoinv_soln``)."""
    d, eps = source.n_features, ROUNDING_SLACK * EPS64
    mean = source.mean if fit_intercept else np.zeros_like(source.mean)
    root = source.root_about(None if fit_intercept else mean)
    lengths, centred = source.column_lengths(), root_sum_squares(root)
    x, solve = decompose(root[:, :d], lengths[:d], source.eps, source.blur)
    outputs = np.where(centred[d:] > eps * lengths[d:], root[:, d:], 0.0)  # labels that vary by rounding are constant
    w_hat = solve(outputs)
    residual = root_sum_squares(outputs - root[:, :d] @ w_hat)
    # A residual within the rounding error of its two terms is an exact fit, not noise.
    rounding = eps * lengths[d:] + root_sum_squares((np.maximum(eps, source.eps / 2) * lengths[:d])[:, None] * w_hat)
    blur = source.blur * (centred[d:] + root_sum_squares(centred[:d, None] * w_hat))
    residual[residual <= np.maximum(rounding, blur)] = 0.0
    fit = w_hat, x, mean[:d], mean[d:], source.weight, fit_intercept
    return LeastSquares(*fit, root[:, :d], outputs, residual)


def flat_belief(source: Moments, *, fit_intercept: bool, noise: Noise = "mle") -> FlatBelief:
    r"""Fit least squares from the moments of a labelled source.

    .. math:: \hat w = V_x \Lambda_x^{-1} U_x^\top Y, \qquad \hat\sigma^2 = \mathrm{RSS} / N

    Paper: ``eq:pseudoinv_soln`` and the MLE of ``algo:main_algo``. "unbiased" and "exact" divide by N - rank instead.
    With an intercept, source (and later target) are centred at the source mean.
    """
    fit = least_squares(source, fit_intercept=fit_intercept)
    divisor = source.weight if noise == "mle" else fit.degrees_of_freedom
    # A source with no more rows than directions is fitted exactly, so no degree of freedom is left for the noise.
    exact = source.rows <= fit.x.rank + fit_intercept or divisor <= 0.0
    sigma = np.zeros(source.n_outputs) if exact else fit.residual / np.sqrt(divisor)
    return FlatBelief(fit.w_hat, fit.x, fit.x_mean, fit.y_mean, fit.weight, fit.centred, sigma, noise)


def noise_gain(x: Spectrum, directions: Matrix) -> Vector:
    r"""Return the gain from label noise to ``<w_hat, e>``: the root of ``sum_i <e_xi, e>^2 / lambda_xi^2``.

    The gain is zero for a direction along which the source varies by no more than rounding, because a small ``lambda``
    would magnify that rounding.
    """
    if x.rank == 0:
        return np.zeros(directions.shape[1])
    squares = np.vstack([np.square(x.lam[-1] / x.lam), np.square(x.lam / x.lam[0])])
    gain, length = np.sqrt(algebra().overlap_sums(x.V, directions, squares))
    # Per column, like the rank: a small column next to a huge one is not rounding of the huge one.
    rounding = np.abs(directions).T @ (x.rounding / x.lam[0])
    return np.where(length <= np.maximum(rounding, 4.0 * EPS64), 0.0, gain / x.lam[-1])


@dataclass(frozen=True, eq=False)
class RidgeBelief(LinearFit):
    """A normal posterior with mean ``w_hat`` and the covariance Sigma of this module; the variances count as known."""

    evidence: Evidence
    error_roots: tuple[Matrix, ...] = ()  # per output, of sum_i r_i^2 x_i x_i' / mean(r^2) for errors r of the centre
    posterior: ClassVar[bool] = True
    degrees: ClassVar[float] = np.inf

    @property
    def sigma(self) -> Vector:
        return self.evidence.sigma

    def std_along(self, directions: Matrix) -> Matrix:
        kappa, largest = self.evidence.kappa[:, None], self.x.largest
        inside = (self.x.lam / largest) ** 2 + np.where(np.isinf(kappa), 0.0, kappa)
        # 1 / (lambda^2 + kappa) along the source's directions, with lambda relative to lambda_1. The standard deviation
        # of a unit entry is sigma / lambda_1.
        variances = np.where(np.isinf(kappa), 0.0, 1.0 / inside)
        sums = algebra().overlap_sums(self.x.V, directions, np.concatenate([variances, np.ones((1, self.x.rank))]))
        std = np.sqrt(sums[:-1]).T * (self.sigma / largest)
        if self.x.rank == self.x.n_features:
            return np.asarray(std)
        length = np.einsum("ij,ij->j", directions, directions)
        outside = np.where(length - sums[-1] > 64.0 * EPS64 * length, length - sums[-1], 0.0)
        return np.asarray(np.hypot(std, np.sqrt(outside)[:, None] * self.evidence.tau))

    def robust_std_along(self, directions: Matrix) -> Matrix | float:
        """Return the sandwich estimate of the standard deviation of ``<w_hat, e>``; zero without ``error_roots``."""
        # The noise of a row is proportional to the centre's error in this row.
        if not self.error_roots:
            return 0.0
        lam2, overlap = (self.x.lam / self.x.largest) ** 2, self.x.V.T @ directions
        gains = (self.x.V @ (overlap / (lam2 + kappa)[:, None]) / self.x.largest for kappa in self.evidence.kappa)
        lengths = [root_sum_squares(root @ gain) for root, gain in zip(self.error_roots, gains)]
        return np.column_stack(lengths) * (self.sigma / self.x.largest)

    def error_root(self, rows: Matrix, output: int) -> Matrix:
        """Return L with ``sigma^2 L L'`` the posterior covariance of the predictions of rows about the source mean."""
        kappa, lam, largest = float(self.evidence.kappa[output]), self.x.lam, self.x.largest
        along = rows @ self.x.V
        parts = [np.full((len(rows), 1), np.sqrt(self.relative_mean_variance))]
        if np.isfinite(kappa):
            parts.append(along / np.sqrt(np.square(lam) + kappa * largest**2))
            if kappa > 0.0 and self.x.rank < rows.shape[1]:
                parts.append((rows - along @ self.x.V.T) / (np.sqrt(kappa) * largest))
        return np.hstack(parts)


Belief: TypeAlias = FlatBelief | RidgeBelief


def ridge_belief(source: Moments, *, fit_intercept: bool) -> RidgeBelief:
    """Return the posterior given a labelled source, with the variances of maximum evidence.

    With an intercept the data are centred at the source mean, which costs one row.
    """
    return belief_of_fit(least_squares(source, fit_intercept=fit_intercept))


def belief_of_fit(fit: LeastSquares) -> RidgeBelief:
    """Return the posterior given an existing least-squares fit."""
    data, unit, along = label_coordinates(fit)
    largest, scaled = fit.x.largest, maximum_evidence(data)
    # From units of the labels' length and lambda_1 to the units of the data.
    labels = np.array([data.lam.size if limit == "repeated-rows" else data.n for limit in scaled.limit])
    with np.errstate(invalid="ignore", divide="ignore"):
        log_evidence = scaled.log_evidence - labels * np.log(unit)
    sigma, tau = scaled.sigma * unit, scaled.tau * (unit / largest)
    evidence = replace(scaled, sigma=sigma, tau=tau, log_evidence=log_evidence)
    w_hat = fit.w_hat
    if fit.x.rank and evidence.kappa.any():
        lam2 = ((fit.x.lam / largest) ** 2)[:, None]
        shrunk = fit.x.V @ (along * (lam2 / (lam2 + evidence.kappa)))  # by lambda^2 / (lambda^2 + k)
        w_hat = np.where(evidence.kappa == 0.0, w_hat, shrunk)
    return RidgeBelief(w_hat, fit.x, fit.x_mean, fit.y_mean, fit.weight, fit.centred, evidence)


def label_coordinates(fit: LeastSquares) -> tuple[Coordinates, Vector, Matrix]:
    r"""Return the labels in the source's coordinates, their lengths, and ``V' w_hat``.

    Along direction i the weight is :math:`v_i^\top \hat w`, with an error of about :math:`\epsilon |\hat w|`, and also
    :math:`v_i^\top X^\top Y / \lambda_i^2`, with an error of about :math:`\epsilon \lambda_1 |Y| / \lambda_i^2`.
    The one with the smaller error is used for each direction. Faint directions, whose singular values have fewer than
    three correct digits, carry no information about the weights. The part of the labels along them is added to the
    residual.
    """
    n, length = fit.weight - fit.centred, root_sum_squares(fit.outputs)
    unit = np.where(length > 0.0, length, 1.0)
    if fit.x.rank == 0:
        empty = np.zeros((0, len(unit)))
        return Coordinates(fit.x.lam, empty, length / unit, n), unit, empty
    lam = fit.x.lam[:, None]
    from_weights = fit.x.V.T @ (fit.w_hat / unit)
    from_labels = (fit.x.V.T @ (fit.features.T @ (fit.outputs / unit))) / lam**2
    # Both errors in units of epsilon, multiplied by lambda^2.
    size_of_weights = root_sum_squares(fit.w_hat / unit)
    labels_are_better = lam[0] < lam**2 * size_of_weights
    along, rest = np.where(labels_are_better, from_labels, from_weights), fit.residual / unit
    if fit.x.rank == len(fit.features):  # no more rows than directions: the fit is exact, and the residual is rounding
        rest = np.zeros_like(rest)
    faint = lam[:, 0] <= FAINT_SHARE * lam[0]
    along[faint] = 0.0
    # V'w and w have the same length, up to rounding, unless a column is smaller than others by more decades than the
    # singular values resolve. Its weight is then larger, so V'w is much shorter than w.
    if faint.any() or (root_sum_squares(from_weights) < 0.5 * size_of_weights).any():
        explained = np.square(lam * along).sum(axis=0) + np.square(rest)
        rest = np.sqrt(np.square(rest) + np.maximum(np.square(length / unit) - explained, 0.0))
    dependent = fit.x.rank < fit.x.n_features and fit.x.rank < int(fit.x.V.any(axis=1).sum())
    data = Coordinates(fit.x.lam / fit.x.lam[0], lam * along, rest, n, dependent)
    return data, unit, along * unit


def left_out_rmse(belief: Belief) -> Vector:
    r"""Return the error of generalised cross-validation, per output, of weights that could fit all rows exactly.

    .. math:: \frac{n \sum_i (\langle w, e_i\rangle / \lambda_i)^2}{(\sum_i 1 / (\lambda_i^2 + k))^2}, \qquad n = N - 1

    This is n RSS / tr(I - H)^2 after cancelling the factor k, which is zero for least squares. It is NaN if the weights
    are zero (k infinite).
    """
    lam = belief.x.lam
    scaled = lam / lam[0]
    kappa = np.asarray(belief.evidence.kappa if isinstance(belief, RidgeBelief) else np.zeros(belief.w_hat.shape[1]))
    n = belief.weight - belief.centred
    along = (belief.x.V.T @ belief.w_hat) * lam[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        length = root_sum_squares(along / scaled[:, None])
        trace = (1.0 / (np.square(scaled)[:, None] + kappa)).sum(axis=0)
        return np.asarray(np.sqrt(n) * length / trace)
