r"""Separation: whether source and target rows can be distinguished, and how well, from their Moments alone.

**Means.** Regress the indicator of the target on the principal components of all rows, standardised, at most a quarter
as many as rows. With :math:`c = NM / (N + M)`, component scatters :math:`\Lambda` and the difference of means d,

.. math:: R^2 = c \, d^\top \Lambda^{-1} d, \qquad
   F = \frac{\nu - k + 1}{k} \frac{R^2}{1 - R^2} \sim F(k, \nu - k + 1), \qquad \nu = N + M - 2

which is Hotelling's two-sample :math:`T^2` test. With many features it has little power if few columns differ, so the
largest difference of a single column is tested as well: the same formula with k = 1 and Bonferroni's correction.

**Spreads.** The difference of the target's and the source's variance of a column, divided by its standard error, has
approximately a t distribution with min(N, M) - 1 degrees of freedom. The standard error is the larger one of two: from
the squared deviations of both samples together, and from each sample by itself,

.. math:: s^2 = \max\Big( v \big(\tfrac{1}{N} + \tfrac{1}{M}\big),\; \frac{v_S}{N} + \frac{v_T}{M} \Big), \qquad
   v_S = (\kappa_S - 1)\, \sigma_S^4

with the kurtosis :math:`\kappa` of the column (``Moments.tails``), plus terms of the order 1 / N² and 1 / M² that are
left if the kurtosis is 1, as of balanced categories. The first one is too small if an outlier is in the
smaller sample, and the second one if a sample happens to have no outlier. The kurtosis along a component is unknown and
assumed to be large (``KURTOSIS_GROWTH``). There the difference divided by the pooled variance has the standard error
:math:`\sqrt{(\kappa - 1) (1/N + 1/M)}`. It cannot exceed (N + M) / M, so half the logarithm of the ratio of the
variances is used where it is larger. The smallest p-value is used, with Bonferroni's correction.

A shift is found if one of the three tests rejects at a third of the level.

**Matched rows.** If :math:`R^2` is smaller than chance permits, the target was not drawn like the source: its features
were set or copied, as in a balanced experiment, in repeated measurements of the same units, or in a target that
contains the source rows. Equal features then say nothing about the relation between features and label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, ndtr, stdtr, stdtrit

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import ROUNDING_SLACK, Moments
from pyspar.core.roots import root_sum_squares
from pyspar.core.spectrum import gram_eigen

LEVEL = 0.05
"""The probability of finding a shift between two samples of the same distribution."""
KURTOSIS_GROWTH = 3.0
"""The kurtosis along a component is assumed to be this number times the root of the smaller number of rows, or the
largest kurtosis of a column if that is larger."""
MATCHED_LEVEL = 0.001
"""The probability that two samples of the same distribution are called matched. Means of a balanced experiment agree up
to rounding, so a small level is sufficient."""
ROWS_PER_COMPONENT = 4
_SMALLEST_COMPONENT = 1e-9
"""Components below this share of the largest one are rounding."""


@dataclass(frozen=True)
class Separation:
    """How well source and target rows can be distinguished.

    Attributes
    ----------
    auc : float
        The expected area under the ROC curve, on new rows, of the linear discriminant between source and target rows;
        0.5 if they cannot be distinguished. It assumes normal features with equal covariances.
    p_value : float
        Of the test that source and target have the same means and spreads.
    found : bool
        Whether the test rejects at the level of 5 %.
    matched : bool
        Whether no shift is found and the means are more alike than those of two random samples.
    spread_limit : float
        If the spread of one normal column grows by this factor from source to target, the test of this column finds a
        shift in about half of all cases. Infinity if no growth is large enough.
    """

    auc: float
    p_value: float
    found: bool
    matched: bool = False
    spread_limit: float = np.inf


def measure_separation(source: Moments, target: Moments) -> Separation:
    """Compare the features of source and target rows. Outputs are ignored. The weights are numbers of rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    >>> measure_separation(Moments.of(X), Moments.of(Z)).found
    False
    >>> measure_separation(Moments.of(X), Moments.of(Z + 1.0)).found
    True
    >>> measure_separation(Moments.of(X), Moments.of(X)).matched
    True
    """
    n, m, d = source.weight, target.weight, source.n_features
    ratio = n * m / (n + m)
    roots = [moments.root[1:, 1 : d + 1] for moments in (source, target)]
    difference = (target.mean[:d] - source.mean[:d]) * np.sqrt(ratio)
    rounding = (
        ROUNDING_SLACK
        * np.maximum(source.eps, target.eps)
        * np.hypot(source.column_lengths()[:d], target.column_lengths()[:d])
    )
    total = np.vstack([*roots, difference])
    length = root_sum_squares(total)
    varies = length > rounding
    scale = length[varies]
    columns = [root[:, varies] / scale for root in roots]
    difference = difference[varies] / scale
    freedom = n + m - 2.0
    scatter, V = _principal_components(np.vstack([*columns, difference]), int(freedom // ROWS_PER_COMPONENT))
    k = scatter.size
    if k == 0:
        return Separation(auc=0.5, p_value=1.0, found=False)
    r2 = min(float(np.square(difference @ V) @ (1.0 / scatter)), 1.0)
    p_means = float(betainc((freedom - k + 1.0) / 2.0, k / 2.0, 1.0 - r2))
    p_column = _compare_columns(difference, freedom)
    tails: Kurtosis | None = None
    if source.tails is not None and target.tails is not None:
        # The kurtosis of a constant column is 0, and is then assumed.
        assumed = KURTOSIS_GROWTH * np.sqrt(min(n, m))
        first, second = (np.where(known > 0.0, known, assumed)[varies] for known in (source.tails[1], target.tails[1]))
        tails = first, second
    p_spreads = _compare_spreads(columns, V, n, m, tails)
    p_value = min(1.0, 3.0 * min(p_means, p_column, p_spreads))
    found = p_value <= LEVEL
    p_matched = float(betainc(k / 2.0, (freedom - k + 1.0) / 2.0, r2))
    matched = not found and p_matched <= MATCHED_LEVEL
    limit = np.inf if tails is None else _spread_limit(n, m, len(scale) + k)
    return Separation(_held_out_auc(r2, k, n, m), p_value, found, matched, limit)


def _principal_components(rows: Matrix, limit: int) -> tuple[Vector, Matrix]:
    """Return the squared lengths and the directions of the leading components of rows, at most ``limit`` of them."""
    if limit < 1 or rows.shape[1] == 0:
        return np.zeros(0), np.zeros((rows.shape[1], 0))
    if len(rows) >= rows.shape[1]:
        scatter, V = gram_eigen(rows)
    else:
        scatter, U = gram_eigen(rows.T)
        V = rows.T @ (U / np.sqrt(np.maximum(scatter, np.finfo(np.float64).tiny)))
    kept = min(limit, int((scatter > _SMALLEST_COMPONENT * scatter[0]).sum()))
    return scatter[:kept], V[:, :kept]


def _held_out_auc(r2: float, k: int, n: float, m: float) -> float:
    """Return the AUC of the linear discriminant on new rows, from the share of variance that it explains."""
    if r2 >= 1.0:
        return 1.0
    noise, freedom = k / n + k / m, n + m - 2.0
    # Unbiased for normal rows: E[D^2] = freedom / (freedom - k - 1) (distance^2 + noise).
    distance2 = max(max(freedom - k - 1.0, 0.0) * r2 / (1.0 - r2) * (1.0 / n + 1.0 / m) - noise, 0.0)
    return float(ndtr(distance2 / np.sqrt(2.0 * (distance2 + noise))))


def _compare_columns(difference: Vector, freedom: float) -> float:
    """Return the p-value for equal means of all columns, from the one that explains most of the indicator."""
    r2 = min(float(np.square(difference).max()), 1.0)
    return float(min(1.0, difference.size * betainc(freedom / 2.0, 0.5, 1.0 - r2)))


Kurtosis = tuple[Vector, Vector]


def _compare_spreads(columns: list[Matrix], V: Matrix, n: float, m: float, kurtosis: Kurtosis | None) -> float:
    """Return the p-value for equal spreads along all columns and components."""
    if min(n, m) < 2.0:
        return 1.0
    d, k = V.shape
    source, target = (
        np.concatenate([root_sum_squares(root), root_sum_squares(root @ V)]) ** 2 / (count - 1.0)
        for root, count in zip(columns, (n, m), strict=True)
    )
    pooled = (n * source + m * target) / (n + m)
    vary = (source > 0.0) & (target > 0.0)
    source_log, target_log = (np.log(np.where(vary, variance, 1.0)) for variance in (source, target))
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.where(pooled > 0.0, np.abs(target - source) / pooled, 0.0)
    changes = np.maximum(differences, np.abs(target_log - source_log) / 2.0)
    tails = ndtr(-changes / _assumed_error(n, m, kurtosis))
    if kurtosis is not None:
        tails[:d] = stdtr(min(n, m) - 1.0, -_spread_ratios(source[:d], target[:d], *kurtosis, n, m))
    return min(1.0, float(2.0 * (d + k) * tails.min()))


def _assumed_error(n: float, m: float, kurtosis: Kurtosis | None) -> float:
    """Return the standard error of the difference of variances relative to the pooled one, for heavy tails."""
    assumed = KURTOSIS_GROWTH * np.sqrt(min(n, m))
    if kurtosis is not None:
        assumed = max(assumed, kurtosis[0].max(), kurtosis[1].max())
    return float(np.sqrt((assumed - 1.0) * (1.0 / n + 1.0 / m)))


def _spread_ratios(source: Any, target: Any, source_kurtosis: Any, target_kurtosis: Any, n: float, m: float) -> Vector:
    """Return the difference of two variances divided by its standard error, given the kurtosis of both samples."""
    source_squares, target_squares = source_kurtosis * source**2, target_kurtosis * target**2
    # The exact variance of a sample variance; for kurtosis 1, as of balanced categories, only the last terms are left.
    separate = (source_squares - 3.0 * source**2) / n + (target_squares - 3.0 * target**2) / m
    separate = separate + 2.0 * source**2 / (n - 1.0) + 2.0 * target**2 / (m - 1.0)
    mean = (n * source + m * target) / (n + m)
    pooled = (n * source_squares + m * target_squares) / (n + m) - mean**2
    pooled = pooled * (1.0 / n + 1.0 / m) + 2.0 * mean**2 * (1.0 / n**2 + 1.0 / m**2)
    error2 = np.maximum(separate, pooled)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(target == source, 0.0, np.abs(target - source) / np.sqrt(np.maximum(error2, 0.0)))


def _spread_limit(n: float, m: float, tests: int) -> float:
    """Return the ratio of the spreads of a normal column whose p-value is a third of the level."""
    if min(n, m) < 2.0:
        return np.inf
    needed, largest = -float(stdtrit(min(n, m) - 1.0, LEVEL / 3.0 / (2.0 * tests))), 50.0

    def excess(log_ratio: float) -> float:
        return float(_spread_ratios(1.0, np.exp(log_ratio), 3.0, 3.0, n, m)) - needed

    return float(np.exp(brentq(excess, 0.0, largest) / 2.0)) if excess(largest) > 0.0 else np.inf
