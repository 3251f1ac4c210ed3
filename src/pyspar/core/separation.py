r"""Separation: whether source and target rows can be distinguished, and how well, from their Moments alone.

**Means.** Regress the indicator of the target on the principal components of all rows, standardised, at most a quarter
as many as rows. With :math:`c = NM / (N + M)`, component scatters :math:`\Lambda` and the difference of means d,

.. math:: R^2 = c \, d^\top \Lambda^{-1} d, \qquad
   F = \frac{\nu - k + 1}{k} \frac{R^2}{1 - R^2} \sim F(k, \nu - k + 1), \qquad \nu = N + M - 2

which is Hotelling's two-sample :math:`T^2` test. With many features it has little power if few columns differ, so the
largest difference of a single column is tested as well: the same formula with k = 1 and Bonferroni's correction.

**Spreads.** With rows, Mann and Whitney's test compares the distances from the median of all rows in each column and
component, with Bonferroni's correction; it is valid for any distribution. With Moments alone, the logarithm of the
ratio of the variances has about the standard error :math:`\sqrt{(\kappa - 1) (1/N + 1/M)}`. The kurtosis
:math:`\kappa` is unknown. It is assumed to be large, because one outlier must not be a shift, so only large changes are
found: with 1,000 rows each, a spread that grows by a factor of about six.

A shift is found if one of the three tests rejects at a third of the level.

**Matched rows.** If :math:`R^2` is smaller than chance permits, the target was not drawn like the source: its features
were set or copied, as in a balanced experiment, in repeated measurements of the same units, or in a target that
contains the source rows. Equal features then say nothing about the relation between features and label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtr
from scipy.stats import mannwhitneyu

from pyspar.core.moments import ROUNDING_SLACK, Matrix, Moments, Vector
from pyspar.core.spectrum import gram_eigen

LEVEL = 0.05  # the probability of finding a shift between two samples of the same distribution
KURTOSIS_GROWTH = 12.0  # the assumed kurtosis is this number times the root of the smaller number of rows
MATCHED_LEVEL = 0.001
"""The probability that two samples of the same distribution are called matched. Means of a balanced experiment agree up
to rounding, so a small level is sufficient."""
ROWS_PER_COMPONENT = 4
MAX_COMPARED_ROWS = 1_000
_SMALLEST_COMPONENT = 1e-9  # components below this share of the largest one are rounding


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
    """

    auc: float
    p_value: float
    found: bool
    matched: bool = False


def measure_separation(source: Moments, target: Moments, rows: tuple[Matrix, Matrix] | None = None) -> Separation:
    """Compare the features of source and target. Outputs are ignored. The weights are numbers of rows.

    ``rows`` are the features of both, if they are in memory. With them, smaller changes of the spreads are found.

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
    >>> measure_separation(Moments.of(X), Moments.of(2.0 * Z), (X, 2.0 * Z)).found
    True
    """
    n, m, d = source.weight, target.weight, source.n_features
    roots = [moments.root[1:, 1 : d + 1] for moments in (source, target)]
    difference = (target.mean[:d] - source.mean[:d]) * np.sqrt(n * m / (n + m))
    length = np.sqrt(sum(np.square(root).sum(axis=0) for root in roots) + np.square(difference))
    lengths = np.hypot(source.column_lengths()[:d], target.column_lengths()[:d])
    varies = length > ROUNDING_SLACK * np.maximum(source.eps, target.eps) * lengths
    columns = [root[:, varies] / length[varies] for root in roots]
    difference = difference[varies] / length[varies]
    freedom = n + m - 2.0
    scatter, V = _principal_components(np.vstack([*columns, difference]), int(freedom // ROWS_PER_COMPONENT))
    k = scatter.size
    if k == 0:
        return Separation(auc=0.5, p_value=1.0, found=False)
    r2 = min(float(np.square(difference @ V) @ (1.0 / scatter)), 1.0)
    p_means = betainc((freedom - k + 1.0) / 2.0, k / 2.0, 1.0 - r2)
    p_column = difference.size * betainc(freedom / 2.0, 0.5, 1.0 - min(np.square(difference).max(), 1.0))
    p_spreads = _compare_spreads(columns, V, n, m) if rows is None else _compare_distances(*rows)
    p_value = float(min(1.0, 3.0 * min(p_means, p_column, p_spreads)))
    found = p_value <= LEVEL
    p_matched = betainc(k / 2.0, (freedom - k + 1.0) / 2.0, r2)
    return Separation(_held_out_auc(r2, k, n, m), p_value, found, bool(not found and p_matched <= MATCHED_LEVEL))


def _compare_distances(X: Matrix, Z: Matrix) -> float:
    """Return the p-value for equal distances from the median of all rows, in at most 1,000 rows of each part.

    Columns in which most rows have the same value are rare categories, which the means compare.
    """
    rng = np.random.default_rng(0)
    rows = np.vstack([of[rng.permutation(len(of))[:MAX_COMPARED_ROWS]] for of in (X, Z)])
    rows -= rows.mean(axis=0)
    length = np.sqrt(np.square(rows).sum(axis=0))
    rows = rows[:, length > 0.0] / length[length > 0.0]
    rows = np.hstack([rows, rows @ _principal_components(rows, len(rows) // ROWS_PER_COMPONENT)[1]])
    distance = np.abs(rows - np.median(rows, axis=0))
    distance = distance[:, np.median(distance, axis=0) > 0.0]
    if distance.shape[1] == 0:
        return 1.0
    n = min(len(X), MAX_COMPARED_ROWS)
    p_values = mannwhitneyu(distance[:n], distance[n:], axis=0, method="asymptotic").pvalue
    return float(distance.shape[1] * p_values.min())


def _principal_components(rows: Matrix, limit: int) -> tuple[Vector, Matrix]:
    """Return the squared lengths and the directions of the leading components of rows, at most ``limit`` of them."""
    if limit < 1 or rows.shape[1] == 0:
        return np.zeros(0), np.zeros((rows.shape[1], 0))
    wide = len(rows) < rows.shape[1]
    scatter, V = gram_eigen(rows.T if wide else rows)
    kept = min(limit, int((scatter > _SMALLEST_COMPONENT * scatter[0]).sum()))
    scatter, V = scatter[:kept], V[:, :kept]
    return scatter, rows.T @ (V / np.sqrt(scatter)) if wide else V


def _held_out_auc(r2: float, k: int, n: float, m: float) -> float:
    """Return the AUC of the linear discriminant on new rows, from the share of variance that it explains."""
    if r2 >= 1.0:
        return 1.0
    noise, freedom = k / n + k / m, n + m - 2.0
    # Unbiased for normal rows: E[D^2] = freedom / (freedom - k - 1) (distance^2 + noise).
    distance2 = max(max(freedom - k - 1.0, 0.0) * r2 / (1.0 - r2) * (1.0 / n + 1.0 / m) - noise, 0.0)
    return float(ndtr(distance2 / np.sqrt(2.0 * (distance2 + noise))))


def _compare_spreads(columns: list[Matrix], V: Matrix, n: float, m: float) -> float:
    """Return the p-value for equal spreads along all columns and components, from the roots of both parts."""
    if min(n, m) < 2.0:
        return 1.0
    source, target = (
        np.concatenate([np.square(root).sum(axis=0), np.square(root @ V).sum(axis=0)]) / (count - 1.0)
        for root, count in zip(columns, (n, m), strict=True)
    )
    varies = (source > 0.0) & (target > 0.0)  # a column that is constant in one sample may be a rare category
    change = np.abs(np.log(np.where(varies, target, 1.0) / np.where(varies, source, 1.0))).max()
    error = np.sqrt((KURTOSIS_GROWTH * np.sqrt(min(n, m)) - 1.0) * (1.0 / n + 1.0 / m))
    return float(2.0 * source.size * ndtr(-change / error))
