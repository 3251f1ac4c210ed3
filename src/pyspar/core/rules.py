r"""Rules that select the target directions to remove.

A rule maps the belief along each direction (``Terms``) to the mask of the set S, directions x outputs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv, stdtrit
from scipy.stats import f as f_distribution
from scipy.stats import nct, norm

from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.risk import Terms, bias_terms, variance_terms
from pyspar.core.spectrum import Spectrum


def keep_rule(terms: Terms) -> Mask:
    """Remove no direction: the estimate is the belief's mean.

    >>> keep_rule(Terms(np.ones(2), np.array([[3.0], [4.0]]), np.ones((2, 1)))).ravel()
    array([False, False])
    """
    return np.zeros(terms.mean.shape, dtype=bool)


def chi2_rule(terms: Terms, *, alpha: float) -> Mask:
    r"""Remove the directions that noise alone could explain at confidence alpha.

    .. math::
        S = \{ e_{z,j} : \widehat{\mathrm{Bias}}_{z,j}
        \le \mathrm{CDF}^{-1}_{\chi^2_1}(\alpha)\, \mathrm{Var}_{z,j} \}

    Paper: ``eq:spar_set``. The code compares square roots without ``lambda_z``, which cancels. If ``terms.degrees`` is
    finite, the quantile is that of F with 1 and ``terms.degrees`` degrees of freedom, which accounts for the estimated
    noise.

    >>> terms = Terms(np.ones(2), np.array([[3.0], [4.0]]), np.ones((2, 1)))
    >>> chi2_rule(terms, alpha=0.999).ravel()    # the threshold on |mean| / std is 3.29
    array([ True, False])
    """
    _check_confidence(alpha)
    if alpha == 1.0:  # chi2.ppf(1) is infinite, and infinity times zero is NaN
        return np.ones(terms.mean.shape, dtype=bool)
    threshold = _threshold(alpha, terms.degrees)
    # A standard deviation of zero means an exact fit or a direction outside the source: removing it has no benefit.
    return np.asarray((np.abs(terms.mean) <= threshold * terms.std) & (terms.std > 0.0))


def oracle_rule(x: Spectrum, z: Spectrum, sigma2: Vector, w_star: Matrix) -> Mask:
    r"""Remove the optimal set given the true weights: ``S* = {Var >= Bias}``.

    Paper: ``eq:best_eigenvector_set``; by ``thm:best_projection_loss`` no other set has a lower expected error.
    """
    return np.asarray(variance_terms(x, z, sigma2) >= bias_terms(z, w_star))


def top_k_rule(terms: Terms, *, k: int) -> Mask:
    """Remove the k directions with the largest variance, per output. Among equal ones the earlier are removed.

    >>> terms = Terms(np.array([1.0, 2.0, 3.0]), np.zeros((3, 1)), np.array([[1.0], [5.0], [1.0]]))
    >>> top_k_rule(terms, k=2).ravel()
    array([False,  True,  True])
    """
    if k < 0:
        raise ValueError(f"k must be a number of directions of at least 0. Got {k} instead.")
    order = np.argsort(-(terms.lam[:, None] * terms.std), axis=0, kind="stable")
    removed = np.zeros(terms.mean.shape, dtype=bool)
    np.put_along_axis(removed, order[:k], True, axis=0)
    return removed


def inclusion_probability(bias: Matrix, var: Matrix, alpha: float, *, degrees: float = np.inf) -> Matrix:
    r"""Return the probability that the chi-squared rule removes a direction with given Bias and Var.

    .. math::
        \Pr(e_{z,j} \in S)
        = 1 - Q_{1/2}\Big(\sqrt{\mathrm{Bias}/\mathrm{Var}}, \sqrt{\mathrm{CDF}^{-1}_{\chi^2_1}(\alpha)}\Big)

    Paper: ``prop:probability``, for known noise. The Marcum Q-function of order one half is the tail probability of a
    noncentral chi-squared variable with one degree of freedom. This is a squared normal variable, so the tail is the
    sum of two normal tails. The limits (``lem:tail_behaviour``) are alpha as Bias / Var tends to 0, and 0 as it tends
    to infinity.

    With ``degrees`` the noise is estimated by RSS / degrees and the rule uses the F quantile (``noise="exact"``). The
    statistic is then a squared noncentral t variable, with the same limits.

    >>> inclusion_probability(np.array([0.0, np.inf]), np.array([1.0, 1.0]), 0.9).round(12)
    array([0.9, 0. ])
    >>> inclusion_probability(np.array([0.0]), np.array([1.0]), 0.9, degrees=5).round(12)
    array([0.9])
    """
    bias, var = np.broadcast_arrays(np.asarray(bias, dtype=np.float64), np.asarray(var, dtype=np.float64))
    _check_confidence(alpha)
    if not ((bias >= 0.0) & (var >= 0.0)).all():
        raise ValueError("bias and var are squares and must be at least 0 and not NaN.")
    if not degrees > 0.0:
        raise ValueError(f"degrees must be above 0, got {degrees!r}; use N minus the rank.")
    if alpha == 1.0:
        return np.ones(bias.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(bias > 0.0, np.sqrt(bias) / np.sqrt(var), 0.0)
    threshold = _threshold(alpha, degrees)
    if np.isinf(degrees):
        return np.asarray(norm.cdf(threshold - distance) - norm.cdf(-threshold - distance))
    finite = np.where(np.isinf(distance), 0.0, distance)
    inside = nct.cdf(threshold, degrees, finite) - nct.cdf(-threshold, degrees, finite)
    return np.where(np.isinf(distance), 0.0, inside)


def level_with_mle(alpha: float, n: float, rank: int) -> float:
    r"""Return the probability that the rule with ``noise="mle"`` removes a direction whose true weight is zero.

    .. math:: \Pr\Big(F_{1, N - r} \le \frac{N - r}{N}\, \mathrm{CDF}^{-1}_{\chi^2_1}(\alpha)\Big)

    The estimate RSS / N is too small by the share r / N, so the probability is below alpha. It tends to alpha for large
    N. ``rank`` includes the intercept, if there is one.

    >>> [round(level_with_mle(0.999, n, r), 3) for n, r in ((100, 20), (40, 20), (40, 30), (40, 35))]
    [0.996, 0.969, 0.869, 0.703]
    """
    _check_confidence(alpha)
    spare = n - rank
    if not spare > 0.0:
        raise ValueError(f"n must exceed rank, got n={n!r} and rank={rank!r}; otherwise the noise cannot be estimated.")
    return float(f_distribution.cdf(_threshold(alpha) ** 2 * spare / n, 1, spare)) if alpha < 1.0 else 1.0


def _threshold(alpha: float, degrees: float = np.inf) -> float:
    """Return the root of the alpha quantile of chi-squared with one degree of freedom, or of F(1, degrees)."""
    if np.isinf(degrees):
        return float(np.sqrt(2.0 * gammaincinv(0.5, alpha)))
    return float(stdtrit(degrees, (1.0 + alpha) / 2.0))


def _check_confidence(alpha: float) -> None:
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha is a confidence level and must lie in [0, 1]. Got {alpha!r} instead.")
