r"""The belief along each target direction, and rules that select the directions to remove.

A rule maps the belief along each direction (``Terms``) to the mask of the set S, directions x outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature

import numpy as np
from scipy.special import erf, erfc, gammaincinv, stdtr, stdtrit

from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.linalg import squared
from pyspar.core.ridge import Belief
from pyspar.core.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class Terms:
    """The belief along each target direction: ``<w_hat, e_j>`` and its standard deviation.

    Both are stored unsquared and without ``lambda_z``, which scales both by the same factor. The set S therefore
    depends on the target only through its directions, and no scale of the data overflows.
    """

    lam: Vector
    mean: Matrix
    std: Matrix
    degrees: float = np.inf
    """Degrees of freedom of the noise estimate in ``std``; infinite if a rule treats the noise as known."""

    @property
    def var(self) -> Matrix:
        """``Var_{z,j}``: the expected squared error if direction j is kept."""
        return squared(self.lam[:, None] * self.std)

    @property
    def bias_hat(self) -> Matrix:
        """``Bias_{z,j}`` at ``w_hat``: the squared error if direction j is removed and ``w_hat`` is true."""
        return squared(self.lam[:, None] * self.mean)


Rule = Callable[[Terms], Mask]
"""A function that maps the terms to the set S, directions x outputs."""


def terms_of(belief: Belief, z: Spectrum) -> Terms:
    """Evaluate the belief along the target's directions."""
    return Terms(z.lam, z.V.T @ belief.w_hat, belief.std_along(z.V), belief.degrees)


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
    if alpha == 1.0:  # chi2.ppf(1) is infinite, and infinity times zero is NaN
        return np.ones(terms.mean.shape, dtype=bool)
    threshold = chi2_threshold(alpha, terms.degrees)
    # A standard deviation of zero means an exact fit or a direction outside the source: removing it has no benefit.
    return np.asarray((np.abs(terms.mean) <= threshold * terms.std) & (terms.std > 0.0))


RULES: dict[str, Callable[..., Mask]] = {"keep": keep_rule, "chi2": chi2_rule}
"""The rules that :class:`pyspar.BayesSpARRegressor` offers by name. To add one, write it above and list it here."""


def select_rule(name: str, alpha: float) -> Rule:
    """Return a rule as a function of the terms. Only the rules that use alpha receive it.

    >>> terms = Terms(np.ones(1), np.ones((1, 1)), np.ones((1, 1)))
    >>> bool(select_rule("keep", 0.999)(terms)[0, 0]), bool(select_rule("chi2", 0.999)(terms)[0, 0])
    (False, True)
    """
    rule = RULES[name]
    return partial(rule, alpha=float(alpha)) if "alpha" in signature(rule).parameters else rule


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


def removal_alpha(terms: Terms) -> tuple[Matrix, Matrix]:
    """Return the alpha at which the chi-squared rule removes each direction, and ``1 - alpha`` without cancellation.

    >>> alpha, doubt = removal_alpha(Terms(np.ones(1), np.array([[4.0]]), np.ones((1, 1))))
    >>> alpha.round(5).item(), doubt.round(8).item()
    (0.99994, 6.334e-05)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(terms.mean == 0.0, 0.0, np.abs(terms.mean) / terms.std)
    # Chi-squared with one degree of freedom is the distribution of a squared normal variable, F(1, nu) of a squared t.
    if np.isinf(terms.degrees):
        return erf(distance / np.sqrt(2.0)), erfc(distance / np.sqrt(2.0))
    doubt = 2.0 * stdtr(terms.degrees, -distance)
    return 1.0 - doubt, doubt


def chi2_threshold(alpha: float, degrees: float = np.inf) -> float:
    """Return the root of the alpha quantile of chi-squared with one degree of freedom, or of F(1, degrees)."""
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be in [0, 1], got {alpha!r}; the paper uses 0.999")
    if np.isinf(degrees):
        return float(np.sqrt(2.0 * gammaincinv(0.5, alpha)))
    return float(stdtrit(degrees, (1.0 + alpha) / 2.0))
