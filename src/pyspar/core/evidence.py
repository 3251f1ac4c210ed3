r"""Evidence: how large the noise and the weights are, by maximum marginal likelihood, from the moments alone.

With ``Y = X w + noise``, noise of variance ``sigma^2`` and ``w ~ N(0, tau^2 I)``, the likelihood of the labels with the
weights integrated out depends on the source through its singular values, the coordinates ``c = U'Y`` of the labels and
the rest of their length. Over ``sigma^2`` it is maximised in closed form, which leaves one dimension, the logarithm of
``kappa = sigma^2 / (tau^2 lambda_1^2)``. All of it is free of units, so no scale overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, pi, sqrt
from typing import Literal

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from pyspar.core.arrays import EPS64, Matrix, Vector, squared

Limit = Literal["interior", "no-signal", "no-noise", "repeated-rows", "flat", "fixed"]
"""Where the maximum lies: inside, at ``tau -> 0``, at ``sigma -> 0``, inside once rows that repeat others are left out;
or ``kappa`` was given, and zero is a flat prior."""

_STEP = 0.25
"""Spacing of the first look, in the logarithm of kappa; the evidence varies on the scale of one."""

_SMALLEST = 1e-280
"""Below this a squared singular value may have underflowed, and its logarithm is of no use."""

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

_MOST_STEPS = 8
"""Of Newton's method, which takes two."""

_NEAR = 1e-7
"""A step of Newton's method shorter than this ends within rounding of the root: its error is the square."""

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


Found = tuple[float, float, float, float, Limit]
"""Sigma, tau, kappa, the log evidence and the limit of one output."""


def maximum_evidence(data: Coordinates) -> tuple[Vector, Vector, Vector, Vector, tuple[Limit, ...]]:
    """Return sigma, tau, kappa, the log evidence and the limit, in units of the labels' length and ``lambda_1``.

    It never fails: labels that do not vary, noise alone, a perfect fit and fewer rows than features end in a limit.
    """
    found = _maxima(data)
    sigma, tau, kappa, log_evidence = (np.array([one[i] for one in found]) for i in range(4))
    return sigma, tau, kappa, log_evidence, tuple(one[4] for one in found)


def _maxima(data: Coordinates) -> list[Found]:
    """Return the maximum of each output."""
    n, rank = data.n, data.lam.size
    with np.errstate(over="ignore"):
        size2 = ((data.c / data.lam[:, None]) ** 2).sum(axis=0).tolist()  # of the least-squares weights
    signal = (data.c**2).sum(axis=0).tolist()
    rest2 = []
    for rest, size in zip(data.rest.tolist(), size2, strict=True):
        # Of an exact fit nothing is left but rounding, which is in proportion to labels and weights.
        noisy = rest > min(_SLACK * EPS64 * (1.0 + sqrt(size)), _AUDIBLE)
        rest2.append(rest**2 if noisy else 0.0)
    found: dict[int, Found] = {}
    for j, (inside, rest) in enumerate(zip(signal, rest2, strict=True)):
        if inside + rest == 0.0 or n <= 0.0:
            found[j] = 0.0, 0.0, np.inf, np.inf, "no-signal"
        elif rank == 0 or inside == 0.0:
            found[j] = _silent(n, inside + rest)
        elif rest == 0.0 and n > rank:  # without a bound: the more so, the smaller the noise
            found[j] = _without_repeats(data, j) or (0.0, sqrt(size2[j] / rank), 0.0, np.inf, "no-noise")
    wanted = [j for j in range(len(signal)) if j not in found]
    if wanted:
        given = [(signal[j], rest2[j], size2[j]) for j in wanted]
        found.update(zip(wanted, _searched(n, data.lam**2, data.c[:, wanted] ** 2, given), strict=True))
    return [found[j] for j in range(len(signal))]


def _searched(n: float, lam2: Vector, c2: Matrix, given: Sequence[tuple[float, float, float]]) -> list[Found]:
    """Look for the maximum of every output on one grid, and refine it; towards a limit it may be that limit.

    Given are, per output, the squared lengths of what weights explain, of what they do not, and of the weights.
    """
    smallest = float(lam2[-1])
    # Of many rows the noise of the mean is small: then the best penalty is, too, by as many times as there are rows.
    low = min(min(smallest, rest2 / size2 / max(n, 1.0)) if rest2 > 0.0 else smallest for _, rest2, size2 in given)
    low = max(low, _SMALLEST)
    grid = np.arange(log(low / _FAR), log(_FAR * max(n, 1.0)) + _STEP, _STEP)
    kappa = np.exp(grid)[:, None]
    kept = kappa / (kappa + lam2)
    values = n * np.log(kept @ c2 + np.array([rest2 for _, rest2, _ in given])) - np.log(kept).sum(axis=1)[:, None]
    found: list[Found] = []
    for j, (signal, rest2, size2) in enumerate(given):
        best = int(values[:, j].argmin())
        # Towards a limit the evidence is flat; what is better than the limit by rounding alone is the limit.
        better = float(values[best, j]) + _ROUNDING * n
        if best == len(grid) - 1 or better >= n * log(signal + rest2):
            found.append(_silent(n, signal + rest2))
            continue
        if rest2 == 0.0 and better >= n * log(size2) + (volume := float(np.log(lam2).sum())):
            found.append((0.0, sqrt(size2 / n), 0.0, _log_evidence(n, size2, volume), "no-noise"))  # all is explained
            continue
        one = _Slope(n, lam2, np.ascontiguousarray(c2[:, j]), rest2)
        k = exp(_refined(one, grid, values[:, j], best))
        misfit, volume = one.misfit(k), float(np.log1p(lam2 / k).sum())
        sigma = sqrt(misfit / n)
        found.append((sigma, sigma / sqrt(k), k, _log_evidence(n, misfit, volume), "interior"))
    return found


def _silent(n: float, length2: float) -> Found:
    """Return the limit in which the labels are noise alone."""
    return sqrt(length2 / n), 0.0, np.inf, _log_evidence(n, length2, 0.0), "no-signal"


def _without_repeats(data: Coordinates, output: int) -> Found | None:
    """Return the maximum had the exact fit but as many rows as directions, where that many rows speak for noise.

    A row that occurs twice, label and all, adds to the rows and to no direction. With no more different rows than
    directions every fit is exact, and the copies make that look like labels without noise. The moments do not tell
    copies from rows; but without copies there would be either more directions or as many as there are features.
    """
    rank = data.lam.size
    if not data.dependent or rank < (1.0 - _MOST_REPEATED) * data.n:
        return None
    alone = Coordinates(data.lam, data.c[:, [output]], np.zeros(1), float(rank))
    sigma, tau, kappa, value, limit = _maxima(alone)[0]
    exact = _log_evidence(alone.n, float(((alone.c[:, 0] / data.lam) ** 2).sum()), float(2.0 * np.log(data.lam).sum()))
    if limit != "interior" or 2.0 * (value - exact) < _STRONG:
        return None
    return sigma, tau, kappa, value, "repeated-rows"


@dataclass(frozen=True, eq=False)
class _Slope:
    """The slope, in ``t = log kappa``, of minus twice the log evidence of one output at the best noise.

    It is ``n B / A - sum q`` with ``q = lambda^2 / (lambda^2 + kappa)``, A the misfit and ``B = sum c^2 q (1 - q)``.
    """

    n: float
    lam2: Vector
    c2: Vector
    rest2: float

    def misfit(self, kappa: float) -> float:
        return float(self.c2 @ (kappa / (self.lam2 + kappa))) + self.rest2

    def __call__(self, t: float) -> float:
        return self.and_growth(t)[0]

    def and_growth(self, t: float) -> tuple[float, float]:
        """Return the slope and how fast it grows."""
        kappa = exp(t)
        inside = self.lam2 + kappa
        p, q = kappa / inside, self.lam2 / inside
        pq = p * q
        misfit, change = float(self.c2 @ p) + self.rest2, float(self.c2 @ pq)
        faster = float((self.c2 * pq) @ (q - p)) / misfit - (change / misfit) ** 2
        return self.n * change / misfit - float(np.add.reduce(q)), self.n * faster + float(np.add.reduce(pq))


def _refined(slope: _Slope, grid: Vector, values: Vector, best: int) -> float:
    """Return the minimum near the best grid point: the root of the slope, which is sharper than the value itself.

    By Newton's method from where five points of the grid say; where that leads out of the interval, by Brent's.
    """
    low, high = float(grid[max(best - 1, 0)]), float(grid[best + 1])
    t = min(max(float(grid[best]) + _STEP * _vertex(values[max(best - 2, 0) : best + 3].tolist()), low), high)
    for _ in range(_MOST_STEPS):
        value, growth = slope.and_growth(t)
        if not growth > 0.0 or not low <= t - value / growth <= high:
            break
        t -= value / growth
        if abs(value / growth) < _NEAR:
            return t
    if slope(low) < 0.0 < slope(high):
        return float(brentq(slope, low, high, xtol=1e-13, rtol=1e-14))

    def objective(t: float) -> float:
        return slope.n * log(slope.misfit(exp(t))) + float(np.log1p(slope.lam2 / exp(t)).sum())

    return float(minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-10}).x)


def _vertex(five: Sequence[float]) -> float:
    """Return where five equally spaced values have their minimum, in steps from the middle; zero if there are fewer.

    >>> round(_vertex([(x - 0.3) ** 2 for x in (-2, -1, 0, 1, 2)]), 12)
    0.3
    """
    if len(five) < 5:
        return 0.0
    a, b, middle, d, e = five
    first, second = (8.0 * (d - b) - (e - a)) / 12.0, (16.0 * (d + b) - (e + a) - 30.0 * middle) / 12.0
    if not second > 0.0:
        return 0.0
    step = -first / second
    return step - 0.5 * (0.5 * (e - a) - (d - b)) * step**2 / second


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
    return -0.5 * (n * (log(2.0 * pi * misfit / n) + 1.0) + volume)
