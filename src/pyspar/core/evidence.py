r"""Estimate the variances of noise and weights by maximum marginal likelihood, from the moments alone.

With ``Y = X w + noise``, noise of variance ``sigma^2`` and ``w ~ N(0, tau^2 I)``, the likelihood of the labels with the
weights integrated out depends on the source through its singular values, the coordinates ``c = U'Y`` of the labels and
the length of the residual. It is maximised over ``sigma^2`` in closed form. One dimension is left, the logarithm of
``kappa = sigma^2 / (tau^2 lambda_1^2)``. All quantities are dimensionless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, pi, sqrt
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq

from pyspar.core.arrays import EPS64, Matrix, Vector

Limit = Literal["interior", "no-signal", "no-noise", "repeated-rows"]
"""The location of the maximum; see :class:`Evidence`."""

_GRID_STEP = 0.25  # in the logarithm of kappa; the evidence varies on the scale of one
_GRID_FACTOR = 1e6  # the grid extends beyond the singular values by this factor on either side
_MIN_SQUARE = 1e-280  # a squared singular value below this may have underflowed, so its logarithm is unreliable
_EVIDENCE_ROUNDING = 1e-11  # a bound on the rounding error of the evidence per row, for a few thousand logarithms
_RESIDUAL_ROUNDING = 64.0  # of a residual, in machine epsilons of the labels and of ``lambda_1 |w|``
_MIN_NOISE = 1e-9  # a residual above this share of the labels is noise, even if some weights are large
_MAX_REPEATED = 0.5  # an exact fit is not attributed to a larger share of repeated rows
_STRONG_EVIDENCE = 10.0  # twice the log of an evidence ratio that is very strong evidence (Kass and Raftery, 1995)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The result of maximum evidence, per output.

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
        "interior", or the limit at which the maximum lies: "no-signal" (tau = 0), "no-noise" (sigma = 0).
        "repeated-rows" means that the fit is exact because there are no more distinct rows than directions; repeated
        rows are not counted.
    """

    sigma: Vector
    tau: Vector
    kappa: Vector
    log_evidence: Vector
    limit: tuple[Limit, ...]

    @property
    def sigma2(self) -> Vector:
        """The variance of the label noise."""
        return np.square(self.sigma)

    @property
    def tau2(self) -> Vector:
        """The prior variance of each weight."""
        return np.square(self.tau)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The labels in the source's coordinates, in units of their length and of ``lambda_1``.

    ``dependent`` is whether varying features are linear combinations of others, maybe due to too few distinct rows.
    """

    lam: Vector
    c: Matrix  # U'Y, of shape (r, K)
    rest: Vector  # the length of the residual
    n: float  # the number of rows, minus one for an intercept
    dependent: bool = False

    def misfit(self, kappa: Vector) -> Matrix:
        """Return ``Y' (I + XX' / k)^-1 Y`` per kappa and output, the part that is attributed to noise."""
        kept = kappa[:, None] / (kappa[:, None] + self.lam**2)
        return np.asarray(kept @ self.c**2 + self.rest**2)

    def volume(self, kappa: Vector) -> Vector:
        """Return ``log det (I + XX' / k)`` per kappa."""
        return np.asarray(np.log1p(self.lam**2 / kappa[:, None]).sum(axis=1))


class _Maximum(NamedTuple):
    """The maximum of the evidence for one output."""

    sigma: float
    tau: float
    kappa: float
    log_evidence: float
    limit: Limit


class _SquaredLengths(NamedTuple):
    """Squared lengths for one output: of the explained labels, of the residual, and of the least-squares weights."""

    signal: float
    residual: float
    weights: float


def maximum_evidence(data: Coordinates) -> Evidence:
    """Return the maximum of the evidence, in units of the labels' length and ``lambda_1``.

    Constant labels, pure noise, an exact fit and fewer rows than features do not fail but end at a limit.
    """
    sigma, tau, kappa, log_evidence, limit = zip(*_maximise(data), strict=True)
    return Evidence(np.array(sigma), np.array(tau), np.array(kappa), np.array(log_evidence), limit)


def _maximise(data: Coordinates) -> list[_Maximum]:
    """Return the maximum of each output. Outputs whose maximum is not at a known limit share one grid."""
    weights = ((data.c / data.lam[:, None]) ** 2).sum(axis=0).tolist()
    lengths = []
    for signal, residual, size2 in zip((data.c**2).sum(axis=0).tolist(), data.rest.tolist(), weights, strict=True):
        # The residual of an exact fit is rounding, which is proportional to labels and weights.
        is_noise = residual > min(_RESIDUAL_ROUNDING * EPS64 * (1.0 + sqrt(size2)), _MIN_NOISE)
        lengths.append(_SquaredLengths(signal, residual**2 if is_noise else 0.0, size2))
    limits = [_known_limit(data, one, j) for j, one in enumerate(lengths)]
    unknown = [j for j, limit in enumerate(limits) if limit is None]
    searched = iter(_search(data, unknown, [lengths[j] for j in unknown]) if unknown else ())
    return [limit or next(searched) for limit in limits]


def _known_limit(data: Coordinates, lengths: _SquaredLengths, output: int) -> _Maximum | None:
    """Return the maximum if it lies at a limit that needs no search."""
    rank, labels = data.lam.size, lengths.signal + lengths.residual
    if labels == 0.0 or data.n <= 0.0:
        return _Maximum(0.0, 0.0, np.inf, np.inf, "no-signal")
    if rank == 0 or lengths.signal == 0.0:
        return _pure_noise(data.n, labels)
    if lengths.residual == 0.0 and data.n > rank:  # unbounded: the evidence grows as the noise decreases
        exact = _Maximum(0.0, sqrt(lengths.weights / rank), 0.0, np.inf, "no-noise")
        return _without_repeats(data, output) or exact
    return None


def _search(data: Coordinates, outputs: list[int], lengths: Sequence[_SquaredLengths]) -> list[_Maximum]:
    """Search the maximum of several outputs on one grid of log kappa, and refine it."""
    n, lam2, c2 = data.n, data.lam**2, data.c[:, outputs] ** 2
    # With many rows the noise of an estimate is small, so the best penalty is smaller by the number of rows.
    ratios = [one.residual / one.weights / max(n, 1.0) for one in lengths if one.residual > 0.0]
    low = max(min([float(lam2[-1]), *ratios]), _MIN_SQUARE)
    grid = np.arange(log(low / _GRID_FACTOR), log(_GRID_FACTOR * max(n, 1.0)) + _GRID_STEP, _GRID_STEP)
    kappa = np.exp(grid)[:, None]
    kept = kappa / (kappa + lam2)
    misfit = kept @ c2 + np.array([one.residual for one in lengths])
    values = n * np.log(misfit) - np.log(kept).sum(axis=1)[:, None]
    return [_refine_maximum(n, lam2, c2[:, j], one, grid, values[:, j]) for j, one in enumerate(lengths)]


def _refine_maximum(
    n: float, lam2: Vector, c2: Vector, lengths: _SquaredLengths, grid: Vector, values: Vector
) -> _Maximum:
    """Return the maximum of one output: at one of the two limits, or else near the best grid point.

    ``values`` are minus twice the log evidence on the grid, without the terms that do not depend on kappa. The best
    grid point is compared with the same expression at the limits: ``n log(labels)`` for kappa = infinity (no signal),
    and ``n log(weights) + sum(log lambda^2)`` for kappa = 0 (no noise), which is finite only for an exact fit.
    """
    labels, best = lengths.signal + lengths.residual, int(values.argmin())
    # The evidence is flat near a limit, so the limit is chosen unless the grid point is better by more than rounding.
    value_at_best = float(values[best]) + _EVIDENCE_ROUNDING * n
    if best == len(grid) - 1 or value_at_best >= n * log(labels):
        return _pure_noise(n, labels)
    if lengths.residual == 0.0:
        volume = float(np.log(lam2).sum())
        if value_at_best >= n * log(lengths.weights) + volume:
            log_evidence = _log_evidence(n, lengths.weights, volume)
            return _Maximum(0.0, sqrt(lengths.weights / n), 0.0, log_evidence, "no-noise")

    def slope(t: float) -> float:
        """Return the derivative of the values in t = log kappa."""
        kept, fitted = exp(t) / (lam2 + exp(t)), lam2 / (lam2 + exp(t))
        return n * float(c2 @ (kept * fitted)) / (float(c2 @ kept) + lengths.residual) - float(fitted.sum())

    low, high = float(grid[max(best - 1, 0)]), float(grid[best + 1])
    bracketed = slope(low) < 0.0 < slope(high)  # otherwise rounding hides the change of sign
    kappa = exp(brentq(slope, low, high, xtol=1e-13, rtol=1e-14) if bracketed else float(grid[best]))
    misfit, volume = float(c2 @ (kappa / (lam2 + kappa))) + lengths.residual, float(np.log1p(lam2 / kappa).sum())
    sigma = sqrt(misfit / n)
    return _Maximum(sigma, sigma / sqrt(kappa), kappa, _log_evidence(n, misfit, volume), "interior")


def _pure_noise(n: float, labels: float) -> _Maximum:
    """Return the limit at which the labels, of a given squared length, are pure noise."""
    return _Maximum(sqrt(labels / n), 0.0, np.inf, _log_evidence(n, labels, 0.0), "no-signal")


def _without_repeats(data: Coordinates, output: int) -> _Maximum | None:
    """Return the maximum without copies of rows, if an exact fit is likely to be due to copies; otherwise None.

    With at most as many distinct rows as directions every fit is exact, and the labels look noiseless although they are
    not. Moments do not show copies, but they are possible only if some features depend on others. The number of
    distinct rows is then the rank. Copies are assumed if its evidence strongly favours noise over an exact fit.
    """
    rank = data.lam.size
    if not data.dependent or rank < (1.0 - _MAX_REPEATED) * data.n:
        return None
    distinct = Coordinates(data.lam, data.c[:, [output]], np.zeros(1), float(rank))
    with_noise = _maximise(distinct)[0]
    weights = float(((distinct.c[:, 0] / data.lam) ** 2).sum())
    exact = _log_evidence(distinct.n, weights, float(2.0 * np.log(data.lam).sum()))
    if with_noise.limit != "interior" or 2.0 * (with_noise.log_evidence - exact) < _STRONG_EVIDENCE:
        return None
    return with_noise._replace(limit="repeated-rows")


def _log_evidence(n: float, misfit: float, volume: float) -> float:
    """Return the log evidence at the best noise variance, ``misfit / n``."""
    return -0.5 * (n * (log(2.0 * pi * misfit / n) + 1.0) + volume)
