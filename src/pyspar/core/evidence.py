r"""Evidence: how large the noise and the weights are, by maximum marginal likelihood, from the moments alone.

With ``Y = X w + noise``, noise of variance ``sigma^2`` and ``w ~ N(0, tau^2 I)``, the likelihood of the labels with the
weights integrated out depends on the source through its singular values, the coordinates ``c = U'Y`` of the labels and
the rest of their length. Over ``sigma^2`` it is maximised in closed form, which leaves one dimension, the logarithm of
``kappa = sigma^2 / (tau^2 lambda_1^2)``. All of it is free of units, so no scale overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from pyspar.core.arrays import EPS64, Matrix, Vector, squared

Limit = Literal["interior", "no-signal", "no-noise", "repeated-rows", "flat", "fixed"]
"""Where the maximum lies: inside, at ``tau -> 0``, at ``sigma -> 0``, inside once rows that repeat others are left out;
or ``kappa`` was given, and zero is a flat prior."""

_STEP = 0.25
"""Spacing of the first look, in the logarithm of kappa; the evidence varies on the scale of one."""

_FAR = 1e6
"""How far beyond the last singular value, on either side, the first look goes."""

_ROUNDING = 1e-11
"""How much the evidence of a row may differ by rounding; the sum of a few thousand logarithms does by less."""

_SLACK = 64.0
"""How many machine epsilons of the labels and of ``lambda_1 |w|`` a residual may be by rounding alone."""

_AUDIBLE = 1e-9
"""A residual beyond this share of the labels is noise, however long the weights along faint directions are."""

_MOST_REPEATED = 0.5
"""The share of rows that may repeat others; of a source with more of them it is not believed."""

_STRONG = 10.0
"""Twice the logarithm of an evidence ratio beyond which it counts as very strong (Kass and Raftery, 1995)."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What maximum evidence found, per output.

    Attributes
    ----------
    sigma, tau : arrays of shape (K,)
        Standard deviations of the label noise and of a weight. ``tau`` is infinite for a flat prior.
    kappa : array of shape (K,)
        ``sigma^2 / (tau^2 lambda_1^2)``: the ridge penalty in units of the largest squared singular value.
    log_evidence : array of shape (K,)
        The logarithm of the density of the labels; infinite at "no-noise", minus infinity for a flat prior.
    limit : tuple of str
        "interior", or the limit the maximum lies at: "no-signal" (tau = 0), "no-noise" (sigma = 0). "repeated-rows"
        says that the fit is exact because there are no more different rows than directions, and that the rest counts
        for nothing. "fixed" and "flat" say that kappa was given.
    """

    sigma: Vector
    tau: Vector
    kappa: Vector
    log_evidence: Vector
    limit: tuple[Limit, ...]

    @property
    def sigma2(self) -> Vector:
        """The variance of the label noise."""
        return squared(self.sigma)

    @property
    def tau2(self) -> Vector:
        """The prior variance of each weight."""
        return squared(self.tau)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The labels in the source's own coordinates, all in units of their length and of ``lambda_1``.

    Attributes
    ----------
    lam : array of shape (r,)
        Singular values over the largest.
    c : array of shape (r, K)
        ``U'Y``, over the length of Y.
    rest : array of shape (K,)
        The length of what no weights explain, over the length of Y.
    n : float
        How many rows the labels count for, without the one spent on the mean.
    dependent : bool
        Whether features that vary are combinations of others: then the different rows may be too few to tell apart.
    """

    lam: Vector
    c: Matrix
    rest: Vector
    n: float
    dependent: bool = False

    def misfit(self, kappa: Vector) -> Matrix:
        """Return ``Y' (I + XX' / k)^-1 Y`` per kappa and output: what the noise has to explain."""
        kept = kappa[:, None] / (kappa[:, None] + self.lam**2)
        return np.asarray(kept @ self.c**2 + self.rest**2)

    def volume(self, kappa: Vector) -> Vector:
        """Return ``log det (I + XX' / k)`` per kappa."""
        return np.asarray(np.log1p(self.lam**2 / kappa[:, None]).sum(axis=1))


def maximum_evidence(data: Coordinates) -> tuple[Vector, Vector, Vector, Vector, tuple[Limit, ...]]:
    """Return sigma, tau, kappa, the log evidence and the limit, in units of the labels' length and ``lambda_1``.

    It never fails: labels that do not vary, noise alone, a perfect fit and fewer rows than features end in a limit.
    """
    found = [_maximum(data, output) for output in range(data.c.shape[1])]
    sigma, tau, kappa, log_evidence = (np.array([one[i] for one in found]) for i in range(4))
    return sigma, tau, kappa, log_evidence, tuple(one[4] for one in found)


def _maximum(data: Coordinates, output: int) -> tuple[float, float, float, float, Limit]:
    rank = data.lam.size
    size2 = float(((data.c[:, output] / data.lam) ** 2).sum())  # of the least-squares weights
    # With as many directions as rows nothing is left over but rounding, which is in proportion to labels and weights.
    noisy = data.n > rank and data.rest[output] > min(_SLACK * EPS64 * (1.0 + np.sqrt(size2)), _AUDIBLE)
    rest = data.rest[[output]] if noisy else np.zeros(1)
    one = Coordinates(data.lam, data.c[:, [output]], rest, data.n)
    rest2 = float(rest[0] ** 2)
    signal = float((one.c**2).sum())
    if signal + rest2 == 0.0 or data.n <= 0.0:
        return 0.0, 0.0, np.inf, np.inf, "no-signal"
    silent = (np.sqrt((signal + rest2) / data.n), 0.0, np.inf, _log_evidence(data.n, signal + rest2, 0.0))
    if rank == 0 or signal == 0.0:
        return *silent, "no-signal"
    if rest2 == 0.0 and data.n > rank:  # without a bound: the more so, the smaller the noise
        return _without_repeats(data, output) or (0.0, np.sqrt(size2 / rank), 0.0, np.inf, "no-noise")

    def objective(t: float) -> float:
        kappa = np.exp([t])
        return float(data.n * np.log(one.misfit(kappa)[0, 0]) + one.volume(kappa)[0])

    smallest = float(data.lam[-1] ** 2)
    low = np.log(min(smallest, rest2 / size2 if rest2 > 0.0 else smallest) / _FAR)
    grid = np.arange(low, np.log(_FAR * max(data.n, 1.0)) + _STEP, _STEP)
    kappa = np.exp(grid)
    values = data.n * np.log(one.misfit(kappa)[:, 0]) + one.volume(kappa)
    best = int(np.argmin(values))
    # Towards a limit the evidence is flat; what is better than the limit by rounding alone is the limit.
    better = values[best] + _ROUNDING * data.n
    at_silence, at_rest = data.n * np.log(signal + rest2), data.n * np.log(size2) + 2.0 * np.log(data.lam).sum()
    if best == len(grid) - 1 or better >= at_silence:
        return *silent, "no-signal"
    if rest2 == 0.0 and better >= at_rest:  # as many rows as directions: the weights explain them all
        value = _log_evidence(data.n, size2, float(2.0 * np.log(data.lam).sum()))
        return 0.0, np.sqrt(size2 / data.n), 0.0, value, "no-noise"
    t = _refined(one, objective, grid[max(best - 1, 0)], grid[best + 1])
    kappa = np.exp([t])
    misfit, volume = float(one.misfit(kappa)[0, 0]), float(one.volume(kappa)[0])
    sigma = np.sqrt(misfit / data.n)
    return sigma, sigma / np.sqrt(kappa[0]), float(kappa[0]), _log_evidence(data.n, misfit, volume), "interior"


def _without_repeats(data: Coordinates, output: int) -> tuple[float, float, float, float, Limit] | None:
    """Return the maximum had the exact fit but as many rows as directions, where that many rows speak for noise.

    A row that occurs twice, label and all, adds to the rows and to no direction. With no more different rows than
    directions every fit is exact, and the copies make that look like labels without noise. The moments do not tell
    copies from rows; but without copies there would be either more directions or as many as there are features.
    """
    rank = data.lam.size
    if not data.dependent or rank < (1.0 - _MOST_REPEATED) * data.n:
        return None
    alone = Coordinates(data.lam, data.c[:, [output]], np.zeros(1), float(rank))
    sigma, tau, kappa, value, limit = _maximum(alone, 0)
    exact = _log_evidence(alone.n, float(((alone.c[:, 0] / data.lam) ** 2).sum()), float(2.0 * np.log(data.lam).sum()))
    if limit != "interior" or 2.0 * (value - exact) < _STRONG:
        return None
    return sigma, tau, kappa, value, "repeated-rows"


def _refined(one: Coordinates, objective: object, low: float, high: float) -> float:
    """Return the minimum between two grid points: the root of the slope, which is sharper than the value itself."""
    c2, lam2 = one.c[:, 0] ** 2, one.lam**2

    def slope(t: float) -> float:
        kappa = np.exp(t)
        inside = lam2 + kappa
        misfit = kappa * (c2 / inside).sum() + float(one.rest[0] ** 2)
        return float(one.n * (kappa * (c2 * lam2 / inside**2).sum()) / misfit - (lam2 / inside).sum())

    if slope(low) < 0.0 < slope(high):
        return float(brentq(slope, low, high, xtol=1e-13, rtol=1e-14))
    return float(minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-10}).x)


def log_evidence_at(data: Coordinates, sigma: float, kappa: float, output: int = 0) -> float:
    r"""Return the log density of one output's labels, in units of their length.

    .. math::
        -2 \log p = n \log 2\pi\sigma^2 + \sum_i \log(1 + \lambda_i^2 / \kappa)
        + \frac{1}{\sigma^2} \Big( \sum_i \frac{\kappa c_i^2}{\kappa + \lambda_i^2} + \mathrm{RSS} \Big)
    """
    at = np.array([kappa])
    misfit, volume = float(data.misfit(at)[0, output]), float(data.volume(at)[0])
    return -0.5 * float(data.n * np.log(2.0 * np.pi * sigma**2) + volume + misfit / sigma**2)


def _log_evidence(n: float, misfit: float, volume: float) -> float:
    """Return the log evidence at the best noise, ``misfit / n``."""
    return -0.5 * float(n * (np.log(2.0 * np.pi * misfit / n) + 1.0) + volume)
