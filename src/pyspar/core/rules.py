r"""Rules: what goes of each target direction.

A rule looks at the belief along each direction (``Terms``) and returns what is taken away of it, directions x outputs:
the mask of the set S, or fractions between 0 and 1.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import norm

from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.risk import Terms, bias_terms, variance_terms
from pyspar.core.spectrum import Spectrum


def chi2_rule(terms: Terms, *, alpha: float) -> Mask:
    r"""Remove what noise alone could explain at confidence alpha.

    .. math::
        S = \{ e_{z,j} : \widehat{\mathrm{Bias}}_{z,j}
        \le \mathrm{CDF}^{-1}_{\chi^2_1}(\alpha)\, \mathrm{Var}_{z,j} \}

    Paper: ``eq:spar_set``. Compared unsquared and without ``lambda_z``, which cancels.

    >>> terms = Terms(np.ones(2), np.array([[3.0], [4.0]]), np.ones((2, 1)))
    >>> chi2_rule(terms, alpha=0.999).ravel()    # the threshold on |mean| / std is 3.29
    array([ True, False])
    """
    _check_confidence(alpha)
    if alpha == 1.0:  # chi2.ppf(1) is infinite, and infinity times a standard deviation of zero is not a number
        return np.ones(terms.mean.shape, dtype=bool)
    threshold = _threshold(alpha)
    # A standard deviation of zero means a perfect fit or a direction outside the source: there is nothing to gain.
    return np.asarray((np.abs(terms.mean) <= threshold * terms.std) & (terms.std > 0.0))


def positive_part_rule(terms: Terms, *, c: float) -> Matrix:
    r"""Shrink each direction by its own uncertainty: take away the fraction ``min(1, c v / m^2)``.

    .. math:: g_j = \Big(1 - c \frac{v_j}{m_j^2}\Big)_+

    is what stays of ``m_j``, as in the estimator of James and Stein; ``c = 0`` keeps everything.

    >>> terms = Terms(np.ones(3), np.array([[2.0], [0.5], [1.0]]), np.array([[1.0], [1.0], [0.0]]))
    >>> positive_part_rule(terms, c=1.0).ravel()
    array([0.25, 1.  , 0.  ])
    """
    if not c >= 0.0:
        raise ValueError(f"c is a strength and must not be negative. Got {c!r} instead.")
    if c == 0.0:
        return np.zeros(terms.mean.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.sqrt(c) * (terms.std / np.abs(terms.mean))
    # As in the chi-squared rule: where the belief is certain there is nothing to gain.
    return np.where(terms.std > 0.0, np.fmin(ratio, 1.0) ** 2, 0.0)


def oracle_rule(x: Spectrum, z: Spectrum, sigma2: Vector, w_star: Matrix) -> Mask:
    r"""Remove what the truth says is better removed: ``S* = {Var >= Bias}``.

    Paper: ``eq:best_eigenvector_set``; by ``thm:best_projection_loss`` no other set has a lower expected error.
    """
    return np.asarray(variance_terms(x, z, sigma2) >= bias_terms(z, w_star))


def top_k_rule(terms: Terms, *, k: int) -> Mask:
    """Remove the k directions with the most variance, per output; of equal ones the earlier.

    >>> terms = Terms(np.array([1.0, 2.0, 3.0]), np.zeros((3, 1)), np.array([[1.0], [5.0], [1.0]]))
    >>> top_k_rule(terms, k=2).ravel()
    array([False,  True,  True])
    """
    if k < 0:
        raise ValueError(f"k is a number of directions and must not be negative. Got {k} instead.")
    order = np.argsort(-(terms.lam[:, None] * terms.std), axis=0, kind="stable")
    removed = np.zeros(terms.mean.shape, dtype=bool)
    np.put_along_axis(removed, order[:k], True, axis=0)
    return removed


def inclusion_probability(bias: Matrix, var: Matrix, alpha: float) -> Matrix:
    r"""Return the probability that the chi-squared rule removes a direction of given Bias and Var.

    .. math::
        \Pr(e_{z,j} \in S)
        = 1 - Q_{1/2}\Big(\sqrt{\mathrm{Bias}/\mathrm{Var}}, \sqrt{\mathrm{CDF}^{-1}_{\chi^2_1}(\alpha)}\Big)

    Paper: ``prop:probability``. The Marcum Q-function of order one half is the tail of a noncentral chi-squared
    variable with one degree of freedom, that is of a squared normal one, and so two normal tails. Its limits
    (``lem:tail_behaviour``) are alpha where Bias / Var vanishes and 0 where it grows without bound.

    >>> inclusion_probability(np.array([0.0, np.inf]), np.array([1.0, 1.0]), 0.9).round(12)
    array([0.9, 0. ])
    """
    bias, var = np.broadcast_arrays(np.asarray(bias, dtype=np.float64), np.asarray(var, dtype=np.float64))
    _check_confidence(alpha)
    if not ((bias >= 0.0) & (var >= 0.0)).all():
        raise ValueError("bias and var are squares and must not be negative or NaN.")
    if alpha == 1.0:
        return np.ones(bias.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(bias > 0.0, np.sqrt(bias) / np.sqrt(var), 0.0)
    threshold = _threshold(alpha)
    return np.asarray(norm.cdf(threshold - distance) - norm.cdf(-threshold - distance))


def _threshold(alpha: float) -> float:
    """Return the root of the quantile of a chi-squared variable with one degree of freedom, as ``chi2.ppf`` has it."""
    return float(np.sqrt(2.0 * gammaincinv(0.5, alpha)))


def _check_confidence(alpha: float) -> None:
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha is a confidence level and must lie in [0, 1]. Got {alpha!r} instead.")
