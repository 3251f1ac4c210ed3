r"""Test whether the relation between features and label differs between a model and its target.

The null hypothesis is that the labels are the predictions plus independent normal noise of one unknown variance,

.. math:: r \sim N(0, \sigma^2 (I + L L^\top)),

where L is the uncertainty of the model's weights relative to the noise. It is estimated on the source for our
estimators, and is zero for other models. All statistics depend on the direction of r alone, so the noise level cancels.
With L = 0 the tests are exact for every number of labels if the noise is normal, up to the simulated draws. Otherwise
their level is approximate, because L is estimated. The p-values are NaN if L is unknown, which is the case if the
source has fewer rows than directions plus two. The test for any change compares the evidence of a drift
(:mod:`pyspar.core.drift`) with that of residuals drawn without drift. Offset and slope have t-tests. The statistic of
the weights is a ratio of quadratic forms, whose distribution ``ratio_tail`` computes by the inversion formula of Imhof
(1961), "Computing the distribution of quadratic forms in normal variables".

``log_bayes_factor`` is the evidence of a drift relative to none. Both have the prior 1 / sigma for the standard
deviation of the noise. If L is known, this makes the factor a test martingale under the null, for any number of looks:
it exceeds 20 at any time with probability at most 5 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.drift_models import log_bayes_factors

DRAWS = 4999
"""Residuals without drift for the p-value of any change, which is at least 1 / (DRAWS + 1)."""

_LOG_RANGE, _LOG_STEP = 30.0, 0.0125  # of the integral over log u; the integrand falls below 1e-12 at both ends


@dataclass(frozen=True)
class ShiftTest:
    """p-values of the test for a changed relation.

    Each is exact, up to the draws, if the noise is normal with one variance and L is known. Those of one component are
    NaN with too few labels.
    """

    p_value: float  # of any change: offset, slope and weights together
    offset: float  # given the slope
    slope: float  # given the offset
    weights: float  # given both


def run_shift_test(
    rows: Matrix, q: Vector, residual: Vector, counts: Vector | None = None, error_root: Matrix | None = None
) -> ShiftTest:
    """Test residuals for a drift, given the standardised features and predictions (``TargetUnits.standardise``).

    A count of 2 stands for two labelled rows. ``error_root`` is the matrix L, of shape (n, r). If it is NaN, the
    p-values are NaN too.
    """
    if error_root is not None and np.isnan(error_root).any():
        return ShiftTest(np.nan, np.nan, np.nan, np.nan)
    line, features, r, n = _whiten(rows, q, residual, counts, error_root)
    if not r.any():
        return ShiftTest(1.0, 1.0, 1.0, 1.0)
    p_value = float(evidence_p_values(line, features, r[:, None], n)[0])
    basis, _ = np.linalg.qr(line if line[:, 1].any() else line[:, :1])
    offset, slope = _t_tests(line, r, n)
    features = features - basis @ (basis.T @ features)
    left = r - basis @ (basis.T @ r)
    degrees = n - basis.shape[1]
    weights = _quadratic_test(features, left, degrees) if degrees > 1.0 else np.nan
    return ShiftTest(p_value, offset, slope, weights)


def log_bayes_factor(rows: Matrix, q: Vector, residual: Vector, error_root: Matrix | None = None) -> float:
    """Return the logarithm of the evidence of a drift relative to none; the arguments are those of the test.

    It is zero, which is no evidence, if ``error_root`` is NaN.
    """
    if error_root is not None and np.isnan(error_root).any():
        return 0.0
    line, features, r, n = _whiten(rows, q, residual, None, error_root)
    return float(log_bayes_factors(features, line, r[:, None], n, np.array([r @ r]))[0]) if r.any() else 0.0


def ratio_tail(values: Vector, degrees: float, ratio: float) -> float:
    r"""Return the probability that a ratio of quadratic forms exceeds a value.

    .. math:: P\Big( \frac{\sum_i \mu_i \chi^2_{1,i}}{\sum_i \chi^2_{1,i} + \chi^2_{\nu - k}} > \rho \Big)

    for the k values mu and nu degrees of freedom. ``degrees`` need not be an integer.

    >>> round(ratio_tail(np.array([1.0]), 2.0, 0.5), 6)  # cos^2 of a uniform angle exceeds 1/2
    0.5
    """
    weights = np.append(values - ratio, -ratio)
    copies = np.append(np.ones(len(values)), max(degrees - len(values), 0.0))
    weights, copies = weights[copies > 0.0], copies[copies > 0.0]
    largest = float(np.abs(weights).max())
    if largest == 0.0 or weights.min() >= -1e-12 * largest:
        return 1.0
    if weights.max() <= 1e-12 * largest:
        return 0.0
    weights = weights / np.sqrt(copies @ np.square(weights))
    total, steps = 0.0, np.arange(-_LOG_RANGE, _LOG_RANGE, _LOG_STEP)
    for u in np.exp(steps.reshape(-1, 100)):
        products = np.multiply.outer(u, weights)
        angle = 0.5 * (np.arctan(products) @ copies)
        log_size = 0.25 * (np.log1p(np.square(products)) @ copies)
        total += float((np.sin(angle) * np.exp(-log_size)).sum())
    return float(np.clip(0.5 + total * _LOG_STEP / np.pi, 0.0, 1.0))


def _whiten(
    rows: Matrix, q: Vector, residual: Vector, counts: Vector | None, error_root: Matrix | None
) -> tuple[Matrix, Matrix, Vector, float]:
    """Return [1 q], the features and the residuals with unit covariance under the null, and the number of labels."""
    counts = np.ones(len(q)) if counts is None else counts
    weight = np.sqrt(counts)[:, None]
    unit = float(np.abs(residual).max()) or 1.0
    columns = np.column_stack([np.ones_like(q), q, residual / unit, rows]) * weight
    if error_root is not None and error_root.size:
        U, size, _ = np.linalg.svd(error_root * weight, full_matrices=False)
        columns = columns - U @ ((1.0 - 1.0 / np.hypot(1.0, size))[:, None] * (U.T @ columns))
    return columns[:, :2], columns[:, 3:], columns[:, 2], float(counts.sum())


def evidence_p_values(line: Matrix, features: Matrix, residuals: Matrix, n: float) -> Vector:
    """Return the p-value of the evidence of a drift for each column of residuals (rows, B).

    It is the rank of the evidence among residuals that are drawn without drift. The evidence depends on the direction
    of the residuals alone, so draws in the span of the columns (1, q) and features, and one chi-squared variable for
    the rest, suffice. All columns are whitened, and ``n`` is the number of labels.
    """
    basis, size, _ = np.linalg.svd(np.column_stack([line, features]), full_matrices=False)
    basis = basis[:, size > 1e-9 * size[0]]
    # The signs of a basis are arbitrary. Signs given by the residuals make the draws independent of the order of rows.
    basis = basis * np.where(basis.T @ residuals[:, 0] < 0.0, -1.0, 1.0)
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((basis.shape[1], DRAWS))
    rest = n - basis.shape[1]
    length2 = np.square(drawn).sum(axis=0) + (rng.chisquare(rest, DRAWS) if rest > 0.0 else 0.0)
    drawn, length2 = np.hstack([drawn, basis.T @ residuals]), np.append(length2, np.square(residuals).sum(axis=0))
    factors = log_bayes_factors(basis.T @ features, basis.T @ line, drawn, n, length2)
    below = np.searchsorted(np.sort(factors[:DRAWS]), factors[DRAWS:], side="left")
    return np.asarray((1.0 + DRAWS - below) / (DRAWS + 1.0))


def _quadratic_test(columns: Matrix, r: Vector, degrees: float) -> float:
    """Return the p-value of r' H H' r / r'r, for columns H and whitened residuals r."""
    wide = len(columns) < columns.shape[1]
    spectrum = np.linalg.eigvalsh(columns @ columns.T if wide else columns.T @ columns)
    values = np.array(spectrum[spectrum > 1e-12 * max(spectrum, default=0.0)], dtype=np.float64)
    length = float(r @ r)
    if not values.size or length == 0.0:
        return 1.0
    return ratio_tail(values, degrees, float(np.square(columns.T @ r).sum()) / length)


def _t_tests(line: Matrix, r: Vector, n: float) -> tuple[float, float]:
    """Return the p-values of offset and slope in the least-squares line of r on (1, q)."""
    has_slope = bool(line[:, 1].any())
    columns = line if has_slope else line[:, :1]
    degrees = n - columns.shape[1]
    gram = columns.T @ columns
    if degrees <= 0.0 or np.linalg.cond(gram) > 1e12:
        return np.nan, np.nan
    inverse = np.linalg.inv(gram)
    theta = inverse @ (columns.T @ r)
    s2 = float(np.square(r - columns @ theta).sum()) / degrees
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(theta) / np.sqrt(np.diag(inverse) * s2)
    p_values = [float(2.0 * student.sf(ratio, degrees)) for ratio in np.nan_to_num(ratios, nan=0.0, posinf=np.inf)]
    return p_values[0], p_values[1] if has_slope else 1.0
