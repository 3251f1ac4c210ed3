r"""The posterior of the weights under a normal prior, with both variances by maximum evidence.

The prior is ``w ~ N(0, tau^2 I)``. A prior with another centre and other units is the same prior after a change of
coordinates: subtract the centre's predictions from the labels (``Moments.subtract_prediction``) and divide each feature
by its unit (``pyspar.core.prior``).

.. math::
    \mu = V \,\mathrm{diag}\Big(\frac{\lambda_i}{\lambda_i^2 + k}\Big) c, \qquad
    \Sigma = V \,\mathrm{diag}\Big(\frac{\sigma^2}{\lambda_i^2 + k}\Big) V^\top + \tau^2 (I - V V^\top)

with ``k = sigma^2 / tau^2``. Directions outside the span of the source keep the prior's variance. ``k = 0`` is the
flat belief, where ``Sigma = sigma^2 (X'X)^+`` as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.belief import FlatBelief, LeastSquares, least_squares, noise_gain
from pyspar.core.evidence import Coordinates, Evidence, maximum_evidence
from pyspar.core.linalg import algebra, power_of_two, root_sum_squares
from pyspar.core.moments import Moments
from pyspar.core.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class RidgeBelief:
    """A normal posterior with mean ``w_hat`` and the covariance above; each output has its own variances.

    The attributes are those of :class:`FlatBelief`. ``sigma`` is treated as known, as is usual with maximum evidence.
    """

    w_hat: Matrix
    evidence: Evidence
    x: Spectrum
    x_mean: Vector
    y_mean: Vector
    weight: float
    centred: bool
    posterior: ClassVar[bool] = True
    degrees: ClassVar[float] = np.inf

    @property
    def sigma(self) -> Vector:
        return self.evidence.sigma

    @property
    def tau(self) -> Vector:
        """The prior standard deviation of a weight, per output."""
        return self.evidence.tau

    @property
    def relative_mean_variance(self) -> float:
        return 1.0 / self.weight if self.centred else 0.0

    def std_along(self, directions: Matrix) -> Matrix:
        if np.isinf(self.tau).any():  # a flat prior
            return np.outer(noise_gain(self.x, directions), self.sigma)
        kappa, largest = self.evidence.kappa[:, None], self.x.lam[0] if self.x.rank else 1.0
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
        return np.asarray(np.hypot(std, np.sqrt(outside)[:, None] * self.tau))


Belief: TypeAlias = FlatBelief | RidgeBelief


def ridge_belief(source: Moments, *, fit_intercept: bool, k: float | None = None) -> RidgeBelief:
    """Return the posterior given a labelled source, with the variances of maximum evidence.

    ``k`` fixes the ridge penalty ``sigma^2 / tau^2`` for all outputs instead. The noise variance is then the misfit
    divided by N, which for ``k = 0`` is the paper's estimate. With an intercept the data are centred at the source
    mean, which costs one row.
    """
    return belief_of_fit(least_squares(source, fit_intercept=fit_intercept), source.weight, fit_intercept, k)


def belief_of_fit(fit: LeastSquares, weight: float, fit_intercept: bool, k: float | None = None) -> RidgeBelief:
    """Return the posterior given an existing least-squares fit."""
    data, unit, along = label_coordinates(fit, weight - fit_intercept)
    largest = float(fit.x.lam[0]) if fit.x.rank else 1.0
    if k is None:
        scaled = maximum_evidence(data)
    else:
        scaled = _evidence_at(data, (np.sqrt(k) / largest) ** 2 if fit.x.rank else 0.0, weight)
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
    return RidgeBelief(w_hat, evidence, fit.x, fit.x_mean, fit.y_mean, weight, fit_intercept)


def label_coordinates(fit: LeastSquares, n: float) -> tuple[Coordinates, Vector, Matrix]:
    r"""Return the labels in the source's coordinates, their lengths, and ``V' w_hat``.

    Along direction i the weight is :math:`v_i^\top \hat w`, and also :math:`v_i^\top X^\top Y / \lambda_i^2`. The
    first has an absolute error of about :math:`\epsilon |\hat w|`, which is large relative to the small weights along
    strong directions. The second has an absolute error of about :math:`\epsilon \lambda_1 |Y| / \lambda_i^2`, which is
    large along weak directions. For each direction the one with the smaller error is used.
    """
    length = root_sum_squares(fit.outputs)
    unit = np.where(length > 0.0, length, 1.0)
    if fit.x.rank == 0:
        empty = np.zeros((0, len(unit)))
        return Coordinates(fit.x.lam, empty, length / unit, n), unit, empty
    size = power_of_two(float(fit.x.lam[0]))  # dividing by a power of two is exact
    lam = (fit.x.lam / size)[:, None]
    from_weights = fit.x.V.T @ (fit.w_hat / unit * size)
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):  # squares may underflow
        from_labels = (fit.x.V.T @ ((fit.features / size).T @ (fit.outputs / unit))) / lam**2
    # Both errors in units of epsilon, multiplied by lambda^2.
    labels_are_better = lam[0] < lam**2 * root_sum_squares(from_weights)
    along = np.where(labels_are_better, from_labels, from_weights)
    dependent = fit.x.rank < fit.x.n_features and fit.x.rank < int(fit.x.V.any(axis=1).sum())
    data = Coordinates(fit.x.lam / fit.x.lam[0], lam * along, fit.residual / unit, n, dependent)
    return data, unit, along * (unit / size)


def _evidence_at(data: Coordinates, kappa: float, weight: float) -> Evidence:
    r"""Return the evidence at a fixed kappa, with the misfit divided by N as the noise variance.

    .. math::
        -2 \log p = n \log 2\pi\sigma^2 + \sum_i \log(1 + \lambda_i^2 / \kappa)
        + \frac{1}{\sigma^2} \Big( \sum_i \frac{\kappa c_i^2}{\kappa + \lambda_i^2} + \mathrm{RSS} \Big)
    """
    outputs = data.c.shape[1]
    kappas = np.full(outputs, kappa)
    if kappa == 0.0:
        # With no more rows than directions the noise cannot be estimated, as for the flat belief.
        sigma = data.rest / np.sqrt(weight) if data.n > data.lam.size else np.zeros(outputs)
        return Evidence(sigma, np.full(outputs, np.inf), kappas, np.full(outputs, -np.inf), ("flat",) * outputs)
    misfit, volume = data.misfit(kappas[:1])[0], data.volume(kappas[:1])[0]
    sigma = np.sqrt(misfit / weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = -0.5 * (data.n * np.log(2.0 * np.pi * sigma**2) + volume + misfit / sigma**2)
    values[sigma == 0.0] = np.inf
    return Evidence(sigma, sigma / np.sqrt(kappa), kappas, values, ("fixed",) * outputs)


def left_out_rmse(belief: Belief) -> Vector:
    r"""Return the error of generalised cross-validation, per output, of weights that could fit all rows exactly.

    With singular values lambda_i of all N - 1 (centred) rows, and k of the ridge (zero for least squares),

    .. math:: \frac{n \sum_i (\langle w, e_i\rangle / \lambda_i)^2}{(\sum_i 1 / (\lambda_i^2 + k))^2}, \qquad n = N - 1

    which is n RSS / tr(I - H)^2 after cancelling the factor k, so it stays finite if k is zero. It is NaN if the
    weights are zero (k infinite).
    """
    lam = belief.x.lam
    scaled = lam / lam[0]
    kappa = np.asarray(belief.evidence.kappa if isinstance(belief, RidgeBelief) else np.zeros(belief.w_hat.shape[1]))
    n = belief.weight - belief.centred
    along = (belief.x.V.T @ belief.w_hat) * lam[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.square(along / scaled[:, None]).sum(axis=0)
        trace = (1.0 / (np.square(scaled)[:, None] + kappa)).sum(axis=0)
        return np.asarray(np.sqrt(n * squares) / trace)
