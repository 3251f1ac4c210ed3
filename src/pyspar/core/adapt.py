"""Algorithm 1: evaluate a fit along the target's directions, choose the set S by a rule, and project it out.

A rule maps the fit along each direction (``Terms``) to the mask of the set S, directions x outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import gammaincinv, stdtrit

from pyspar.core.moments import Mask, Matrix, Moments, Vector
from pyspar.core.regression import Fit
from pyspar.core.spectrum import Eigen, Spectrum, complete_spectrum, outside_share


def adapt(
    fit: Fit, target: Moments, rule: Rule, *, include_source_directions: bool = False, eigen: Eigen | None = None
) -> Adaptation:
    r"""Remove the target directions that the rule selects from the weights.

    .. math:: w_\mathrm{proj} = \hat w - \sum_{e \in S} \langle \hat w, e \rangle e

    Paper: ``algo:main_algo``, ``eq:projected_regressor``. Directions in which the target does not vary keep
    ``w_hat``. With ``include_source_directions`` the rule is also applied to those of them in which the source varies.
    """
    z = Spectrum.about(target, fit.x_mean, eigen)  # lambda_z and the directions e_z, about the source mean
    if include_source_directions:
        z = complete_spectrum(z, fit.x)
    terms = terms_of(fit, z)  # <w_hat, e_z> and its standard deviation: the roots of Bias and Var without lambda_z
    removed = rule(terms)
    # With the source directions they span all weights, and the sum of what is kept has exact zeros.
    w_proj = z.V @ (~removed * terms.mean) if include_source_directions else fit.w_hat - z.V @ (removed * terms.mean)
    mean_risk = target.weight * fit.relative_mean_variance * fit.sigma2
    sizes = fit.sigma2, fit.weight, target.weight, mean_risk
    return Adaptation(fit.w_hat, w_proj, removed, terms, fit.x, z, *sizes, fit.posterior)


@dataclass(frozen=True, eq=False)
class Terms:
    """A fit along each target direction: ``<w_hat, e_j>`` and its standard deviation.

    Both are stored unsquared and without ``lambda_z``, which scales both alike. ``degrees`` are the degrees of freedom
    of the noise estimate in ``std``; infinite if a rule treats the noise as known.
    """

    lam: Vector
    mean: Matrix
    std: Matrix
    degrees: float = np.inf

    @property
    def var(self) -> Matrix:
        """``Var_{z,j}``: the expected squared error if direction j is kept."""
        return np.square(self.lam[:, None] * self.std)

    @property
    def bias_hat(self) -> Matrix:
        """``Bias_{z,j}`` at ``w_hat``: the squared error if direction j is removed and ``w_hat`` is true."""
        return np.square(self.lam[:, None] * self.mean)


Rule = Callable[[Terms], Mask]  # a function that maps the terms to the set S, directions x outputs


def terms_of(fit: Fit, z: Spectrum) -> Terms:
    """Evaluate a fit along the target's directions."""
    return Terms(z.lam, z.V.T @ fit.w_hat, fit.std_along(z.V), fit.degrees)


def keep_rule(terms: Terms) -> Mask:
    """Remove no direction: the weights are those of the fit.

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


def top_k_rule(terms: Terms, *, k: int) -> Mask:
    """Remove the k directions with the largest variance, per output. Among equal ones the earlier are removed.

    >>> terms = Terms(np.array([1.0, 2.0, 3.0]), np.zeros((3, 1)), np.array([[1.0], [5.0], [1.0]]))
    >>> top_k_rule(terms, k=2).ravel()
    array([False,  True,  True])
    """
    if k < 0:
        raise ValueError(f"k must be at least 0, got {k}")
    order = np.argsort(-(terms.lam[:, None] * terms.std), axis=0, kind="stable")
    removed = np.zeros(terms.mean.shape, dtype=bool)
    np.put_along_axis(removed, order[:k], True, axis=0)
    return removed


def rule_at(alpha: float | None) -> Rule:
    """Return the chi-squared rule at a confidence; None keeps every direction."""
    return keep_rule if alpha is None else partial(chi2_rule, alpha=float(alpha))


def chi2_threshold(alpha: float, degrees: float = np.inf) -> float:
    """Return the root of the alpha quantile of chi-squared with one degree of freedom, or of F(1, degrees)."""
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be in [0, 1], got {alpha!r}; the paper uses 0.999")
    if np.isinf(degrees):
        return float(np.sqrt(2.0 * gammaincinv(0.5, alpha)))
    return float(stdtrit(degrees, (1.0 + alpha) / 2.0))


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Every number of one adaptation.

    Risks are expected squared errors summed over the target. If ``posterior``, the terms are a posterior of the
    weights, a risk is an expectation given the data, and removing a direction keeps its ``Var``. Otherwise the risks
    are the paper's, and it removes its ``Var``.
    """

    w_hat: Matrix  # the weights (D, K); a correction to the centre, for scaled features, for BayesSpARRegressor
    w_proj: Matrix  # the same after the removal of S; for a head, the refitted change of the trained weights
    removed: Mask  # the set S, directions x outputs
    terms: Terms
    x: Spectrum  # source and target about the same origin
    z: Spectrum
    sigma2: Vector  # the estimated variance of the label noise
    n_source: float  # N
    n_target: float  # M
    mean_risk: Vector  # the part of every risk due to the intercept: M sigma^2 / N, zero without an intercept
    posterior: bool = False
    scale: Vector | float = 1.0  # by which the refit of a head scaled its change

    @property
    def n_directions(self) -> int:
        """The number of directions in which the target varies; a rule may have terms of further directions."""
        return int((self.z.lam > 0.0).sum())

    @property
    def n_kept(self) -> Vector:
        """The number of directions that keep a nonzero weight, per output."""
        return np.asarray((~self.removed & (self.terms.mean != 0.0)).sum(axis=0))

    @property
    def risk_before(self) -> Vector:
        """The expected squared error of ``w_hat`` summed over the target (``thm:ols_loss``), per output."""
        return np.asarray(self.terms.var.sum(axis=0) + self.mean_risk)

    @property
    def variance_kept(self) -> Vector:
        """The part of the risk due to the uncertainty of the weights; removed directions count for a posterior only."""
        kept = self.terms.var if self.posterior else np.where(self.removed, 0.0, self.terms.var)
        return np.asarray(kept.sum(axis=0) + self.mean_risk)

    @property
    def bias_taken(self) -> Vector:
        """An estimate of the bias of the removed directions: the sum of ``bias_hat - var`` over S, at least zero.

        ``bias_hat`` exceeds ``Bias`` by ``Var`` on average (``eq:distribution_bias_hat``), so for a given set S the sum
        is unbiased. For a posterior it is the squared distance from the posterior mean.
        """
        change = self.z.lam[:, None] * (self.z.V.T @ (self.w_proj - self.w_hat))
        bias = np.where(self.removed, self.terms.bias_hat - self.terms.var, 0.0)
        excess = change**2 if self.posterior else bias
        return np.asarray(np.maximum(excess.sum(axis=0), 0.0))

    @property
    def risk_after(self) -> Vector:
        """The expected squared error of ``w_proj`` (``thm:bias_variance_decomp``), with ``bias_taken`` as its Bias."""
        return self.variance_kept + self.bias_taken

    @property
    def outside(self) -> Vector:
        """The share of each target direction outside the span of the source."""
        return outside_share(self.x, self.z)

    @property
    def outside_energy(self) -> float:
        """The share of the target's squared length outside the span of the source."""
        energy = np.square(self.z.lam / self.z.lam.max(initial=1e-300))
        return float(energy @ self.outside / energy.sum()) if energy.any() else 0.0

    def __repr__(self) -> str:
        removed = " and ".join(f"{count}" for count in self.removed.sum(axis=0))
        before, after = (np.sqrt(risk.mean() / self.n_target) for risk in (self.risk_before, self.risk_after))
        return (
            f"Adaptation({removed} of {self.n_directions} target directions removed; expected RMSE on noiseless labels "
            f"{before:.4g} before and {after:.4g} after adapting)"
        )
