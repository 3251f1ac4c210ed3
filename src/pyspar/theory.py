"""The theorems and rules of the paper as functions.

Start from the spectra of source and target, ``Spectrum.of(X)`` and ``Spectrum.of(Z)``.

>>> import numpy as np
>>> from pyspar.theory import Spectrum, ols_risk
>>> source, target = np.diag([5.0, 0.01]), np.diag([1.0, 6.0])
>>> ols_risk(Spectrum.of(source), Spectrum.of(target), sigma2=1.0).round(2)    # 6^2 / 0.01^2 + 1^2 / 5^2
array([360000.04])

Functions of two spectra take them about the same origin, weights of shape (D, K) and noise variances of shape (K,), and
return one column per output.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import f as f_distribution
from scipy.stats import nct, norm

from pyspar.core.adapt import Adaptation, Terms, adapt, chi2_rule, chi2_threshold, keep_rule, terms_of, top_k_rule
from pyspar.core.moments import Mask, Matrix, Moments, Vector
from pyspar.core.regression import OLSFit, RidgePosterior, fit_ols, fit_ridge, noise_gain
from pyspar.core.spectrum import Spectrum, outside_share

__all__ = [
    "Adaptation", "Moments", "OLSFit", "RidgePosterior", "Spectrum", "Terms", "adapt", "bias_terms", "chi2_rule",
    "fit_ols", "fit_ridge", "inclusion_probability", "keep_rule", "level_with_mle", "ols_risk", "oracle_rule",
    "outside_share", "projected_risk", "spectral_inflation", "terms_of", "top_k_rule", "variance_terms",
]  # fmt: skip


def variance_terms(x: Spectrum, z: Spectrum, sigma2: Vector) -> Matrix:
    r"""Return the variance that keeping each target direction adds.

    .. math::
        \mathrm{Var}_{z,j}
        = \sigma^2 \sum_i \frac{\lambda_{z,j}^2}{\lambda_{x,i}^2} \langle e_{x,i}, e_{z,j}\rangle^2

    Paper: ``eq:individual_loss_contributions``, first sum of ``thm:bias_variance_decomp``.

    >>> x, z = Spectrum.of(np.diag([2.0, 1.0])), Spectrum.of(np.diag([1.0, 3.0]))
    >>> variance_terms(x, z, np.array([1.0])).ravel()    # 3^2 / 1^2 and 1^2 / 2^2
    array([9.  , 0.25])
    """
    sigma2 = np.atleast_1d(np.asarray(sigma2, dtype=np.float64))
    if not (sigma2 >= 0.0).all():
        raise ValueError(f"sigma2 is a variance and must be at least 0, got {sigma2}")
    return np.outer(np.square(z.lam * noise_gain(x, z.V)), sigma2)


def bias_terms(z: Spectrum, w: Matrix) -> Matrix:
    r"""Return the squared bias that removing each target direction adds.

    .. math:: \mathrm{Bias}_{z,j} = \langle w, e_{z,j}\rangle^2 \lambda_{z,j}^2

    With the true weights this is ``Bias``; with ``w_hat`` it is the estimate of ``eq:bias_hat``.

    >>> bias_terms(Spectrum.of(np.diag([1.0, 3.0])), np.array([[2.0], [1.0]])).ravel()
    array([9., 4.])
    """
    w = np.asarray(w, dtype=np.float64)
    return np.asarray((z.lam[:, None] * (z.V.T @ (w if w.ndim == 2 else w[:, None]))) ** 2)


def ols_risk(x: Spectrum, z: Spectrum, sigma2: Vector) -> Vector:
    r"""Return the expected squared error of least squares on the target, summed over its rows.

    .. math:: \mathbb E \|Z w^* - Z \hat w\|^2 = \sum_j \mathrm{Var}_{z,j}

    Paper: ``thm:ols_loss``, which assumes that the rows of Z lie in the span of the rows of X.

    >>> x, z = Spectrum.of(np.diag([2.0, 1.0])), Spectrum.of(np.diag([1.0, 3.0]))
    >>> ols_risk(x, z, np.array([1.0]))
    array([9.25])
    """
    return np.asarray(variance_terms(x, z, sigma2).sum(axis=0))


def projected_risk(x: Spectrum, z: Spectrum, sigma2: Vector, w_star: Matrix, removed: Mask) -> Vector:
    r"""Return the expected squared error on the target after removing the directions of a mask.

    .. math:: \sum_{j \notin S} \mathrm{Var}_{z,j} + \sum_{j \in S} \mathrm{Bias}_{z,j}

    Paper: ``thm:bias_variance_decomp``. ``removed`` has shape (directions,) or (directions, outputs).

    >>> x, z = Spectrum.of(np.diag([2.0, 1.0])), Spectrum.of(np.diag([1.0, 3.0]))
    >>> projected_risk(x, z, np.array([1.0]), np.array([2.0, 1.0]), np.array([False, True]))    # 9 + 4
    array([13.])
    """
    removed = np.asarray(removed, dtype=bool)
    S = removed if removed.ndim == 2 else removed[:, None]
    if len(S) != z.rank:
        raise ValueError(f"removed must have one entry for each of the {z.rank} target directions, got {len(S)}")
    return np.asarray(np.where(S, bias_terms(z, w_star), variance_terms(x, z, sigma2)).sum(axis=0))


def oracle_rule(x: Spectrum, z: Spectrum, sigma2: Vector, w_star: Matrix) -> Mask:
    r"""Remove the optimal set given the true weights: ``S* = {Var >= Bias}``.

    Paper: ``eq:best_eigenvector_set``; by ``thm:best_projection_loss`` no other set has a lower expected error.
    """
    return np.asarray(variance_terms(x, z, sigma2) >= bias_terms(z, w_star))


def spectral_inflation(x: Spectrum, z: Spectrum, sigma2: Vector, n_target: float) -> Matrix:
    """Return ``Var_{z,j} / M`` per target direction, comparable between targets of different size.

    Paper: the quantity of ``fig:spectral_inflation``.
    """
    return variance_terms(x, z, sigma2) / n_target


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
    if not ((bias >= 0.0) & (var >= 0.0)).all():
        raise ValueError("bias and var are squares and must be at least 0 and not NaN.")
    if not degrees > 0.0:
        raise ValueError(f"degrees must be above 0, got {degrees!r}; use N minus the rank.")
    if alpha == 1.0:
        return np.ones(bias.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(bias > 0.0, np.sqrt(bias) / np.sqrt(var), 0.0)
    threshold = chi2_threshold(alpha, degrees)
    if np.isinf(degrees):
        return np.asarray(norm.cdf(threshold - distance) - norm.cdf(-threshold - distance))
    finite = np.where(np.isinf(distance), 0.0, distance)
    # scipy returns NaN for some negligible lower tails, below 1e-7.
    inside = nct.cdf(threshold, degrees, finite) - np.nan_to_num(nct.cdf(-threshold, degrees, finite))
    return np.where(np.isinf(distance), 0.0, inside)


def level_with_mle(alpha: float, n: float, rank: int) -> float:
    r"""Return the probability that the rule with ``noise="mle"`` removes a direction whose true weight is zero.

    .. math:: \Pr\Big(F_{1, N - r} \le \frac{N - r}{N}\, \mathrm{CDF}^{-1}_{\chi^2_1}(\alpha)\Big)

    The estimate RSS / N is too small by the share r / N, so the probability is below alpha. It tends to alpha for large
    N. ``rank`` includes the intercept, if there is one.

    >>> [round(level_with_mle(0.999, n, r), 3) for n, r in ((100, 20), (40, 20), (40, 30), (40, 35))]
    [0.996, 0.969, 0.869, 0.703]
    """
    spare = n - rank
    if not spare > 0.0:
        raise ValueError(f"n must exceed rank, got n={n!r} and rank={rank!r}; otherwise the noise cannot be estimated.")
    return 1.0 if alpha == 1.0 else float(f_distribution.cdf(chi2_threshold(alpha) ** 2 * spare / n, 1, spare))
