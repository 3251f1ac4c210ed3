"""Algorithm 1: read the belief along the target's directions, choose S, project it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pyspar.core.arrays import Mask, Matrix, Vector, root_sum_squares, squared
from pyspar.core.belief import Belief
from pyspar.core.moments import Moments
from pyspar.core.risk import Terms, outside_share, terms_of
from pyspar.core.spectrum import Spectrum, decompose

Rule = Callable[[Terms], Mask | Matrix]

_NOTHING = 1e-9
"""A share of a weight that is a rounding error."""

_FARTHEST = 1e6
"""How many times its own length a weight is said to have moved at most."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Every number of one adaptation.

    Attributes
    ----------
    w_hat, w_proj : arrays of shape (D, K)
        The weights before and after.
    removed : array of shape (directions, K)
        What was taken away of each direction, one column per output: the mask of the set S, or fractions. Nothing was
        taken of a weight that grew.
    terms : Terms
        ``<w_hat, e_j>``, its standard deviation and ``lambda_z``, from which ``var`` and ``bias_hat`` follow.
    x, z : Spectrum
        Source and target about the same origin.
    sigma2 : array of shape (K,)
        The estimated variance of the label noise.
    n_source, n_target : float
        N and M (sums of weights).
    mean_risk : array of shape (K,)
        What the uncertainty of the intercept adds to any risk below: ``M sigma^2 / N``, zero without an intercept.
    posterior : bool
        Whether the terms are a posterior of the weights. Then every risk below is an expectation given the data, and
        ``Var`` stays whatever is removed; else they are the paper's, in which removing a direction removes its ``Var``.
    moved : array of shape (directions, K) or None
        How far the weight along each direction went, as a share of itself: positive towards zero and beyond, negative
        where it grew. None where all that happened is that ``removed`` was taken away.
    """

    w_hat: Matrix
    w_proj: Matrix
    removed: Mask | Matrix
    terms: Terms
    x: Spectrum
    z: Spectrum
    sigma2: Vector
    n_source: float
    n_target: float
    mean_risk: Vector
    posterior: bool = False
    moved: Matrix | None = None

    @property
    def var(self) -> Matrix:
        """``Var_{z,j}`` of the paper, directions x outputs."""
        return self.terms.var

    @property
    def bias_hat(self) -> Matrix:
        """The plug-in estimate of ``Bias_{z,j}``, directions x outputs."""
        return self.terms.bias_hat

    @property
    def inflation(self) -> Matrix:
        """Spectral inflation, ``Var_{z,j} / M``: comparable between targets of different size."""
        return self.var / self.n_target

    @property
    def risk_before(self) -> Vector:
        """The expected squared error of ``w_hat`` summed over the target (``thm:ols_loss``), per output."""
        return np.asarray(self.var.sum(axis=0) + self.mean_risk)

    @property
    def taken(self) -> Matrix:
        """The fraction that was taken away of each direction, directions x outputs; 0 or 1 for a set S."""
        return np.asarray(self.removed, dtype=np.float64)

    @property
    def change(self) -> Matrix:
        """The fraction by which the weight along each direction changed, on which every risk depends: signed."""
        return self.taken if self.moved is None else self.moved

    @property
    def variance_kept(self) -> Vector:
        """What the uncertainty of the weights still costs, per output.

        A direction of which the fraction g stays costs ``g^2 Var``. A posterior's variance is that of the truth, which
        no choice of weights takes away.
        """
        kept = self.var if self.posterior else np.where(self.change != 1.0, self.var, 0.0) * (1.0 - self.change) ** 2
        return np.asarray(kept.sum(axis=0) + self.mean_risk)

    @property
    def bias_taken(self) -> Vector:
        """An estimate of what the removed directions cost: ``(1 - g)^2 (bias_hat - var)`` summed, at least zero.

        ``bias_hat`` exceeds ``Bias`` by ``Var`` on average (``eq:distribution_bias_hat``), so for a given set S the sum
        is unbiased. Clipping each term instead would add half a variance for every direction that truly has no bias.
        For a posterior it is ``(1 - g)^2 bias_hat``, the distance from the posterior mean, and no estimate.
        """
        with np.errstate(invalid="ignore"):
            own = np.zeros_like(self.var) if self.posterior else self.var
            excess = np.nan_to_num(self.bias_hat - own, nan=np.inf, posinf=np.inf)  # beyond float64: unknown
        return np.asarray(np.maximum((np.where(self.change != 0.0, excess, 0.0) * self.change**2).sum(axis=0), 0.0))

    @property
    def bias_std(self) -> Vector:
        """The standard error of ``bias_taken``: with one large direction in S it is as large as the estimate itself.

        ``bias_hat`` is Var times a noncentral chi-squared variable with one degree of freedom (``prop:probability``).
        For a posterior: the standard deviation of what the change of weights adds to the squared error.
        """
        if self.posterior:
            each = 2.0 * np.sqrt(self.var) * np.sqrt(self.bias_hat)
            return root_sum_squares(np.where(self.change != 0.0, each, 0.0) * self.change)
        bias = np.maximum(self.bias_hat - self.var, 0.0)
        each = np.hypot(np.sqrt(2.0) * self.var, 2.0 * np.sqrt(self.var) * np.sqrt(bias))
        return root_sum_squares(np.where(self.change != 0.0, each, 0.0) * self.change**2)

    @property
    def risk_after(self) -> Vector:
        """The expected squared error afterwards (``thm:bias_variance_decomp``), with ``bias_taken`` for its Bias."""
        return self.variance_kept + self.bias_taken

    @property
    def outside(self) -> Vector:
        """The share of each target direction that the source does not span."""
        return outside_share(self.x, self.z)

    @property
    def outside_energy(self) -> float:
        """The share of the target's squared length that lies outside the span of the source."""
        energy = (self.z.lam / self.z.lam.max(initial=1e-300)) ** 2
        return float(energy @ self.outside / energy.sum()) if energy.size else 0.0

    def at_noise(self, sigma2: Vector) -> Adaptation:
        """Return the same adaptation with its expectations computed for another variance of the label noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.sigma2 > 0.0, np.asarray(sigma2) / self.sigma2, 0.0)
        terms = Terms(self.terms.lam, self.terms.mean, self.terms.std * np.sqrt(share))
        return replace(self, terms=terms, sigma2=self.sigma2 * share, mean_risk=self.mean_risk * share)

    def __repr__(self) -> str:
        removed = " and ".join(f"{count}" for count in (self.taken == 1.0).sum(axis=0))
        shrunk = int(((self.taken > 0.0) & (self.taken < 1.0)).sum())
        grown = int(((self.taken == 0.0) & (self.change != 0.0)).sum())
        parts = [f"{count} {what}" for count, what in ((shrunk, "shrunk"), (grown, "grown")) if count]
        removed += f" (and {', '.join(parts)})" if parts else ""
        risks = self.risk_before, self.variance_kept, self.bias_taken + 2.0 * self.bias_std
        before, kept, most = (np.sqrt(risk.mean() / self.n_target) for risk in risks)
        return (
            f"Adaptation({removed} of {self.z.rank} target directions removed; expected RMSE on noiseless labels "
            f"{before:.4g} before; after, {kept:.4g} from noise and between 0 and {most:.4g} for what was removed, "
            "squares add)"
        )


def adapt(belief: Belief, target: Moments, rule: Rule) -> Adaptation:
    r"""Project out of the weights the target directions that the rule chooses.

    .. math:: w_\mathrm{proj} = \hat w - \sum_{e \in S} \langle \hat w, e \rangle e

    Paper: ``algo:main_algo``, ``eq:projected_regressor``. Directions that the target does not have keep ``w_hat``, and
    of a direction that goes in part only that part is subtracted.
    """
    z = spectrum_about(target, belief.x_mean)
    terms = terms_of(belief, z)
    removed = rule(terms)
    return Adaptation(
        w_hat=belief.w_hat,
        w_proj=belief.w_hat - z.V @ (removed * terms.mean),
        removed=removed,
        terms=terms,
        x=belief.x,
        z=z,
        sigma2=squared(belief.sigma),
        n_source=belief.weight,
        n_target=target.weight,
        mean_risk=target.weight * belief.mean_share * squared(belief.sigma),
        posterior=belief.posterior,
    )


def share_moved(before: Matrix, after: Matrix) -> Matrix:
    """Return how far each weight went, as a share of itself: positive towards zero and beyond, negative where it grew.

    >>> share_moved(np.array([2.0, 2.0, 2.0, 2.0, 0.0]), np.array([0.0, 1.0, 3.0, -1.0, 1.0]))
    array([ 1. ,  0.5, -0.5,  1.5,  0. ])
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        moved = 1.0 - after / before
    # A weight that was zero before has no share; one that was nearly zero must not overflow when squared.
    moved = np.where(before == 0.0, 0.0, np.clip(np.nan_to_num(moved), -_FARTHEST, _FARTHEST))
    # What was subtracted whole leaves, and what was not touched loses, a rounding error.
    return np.asarray(np.where(np.abs(moved - np.round(moved)) < _NOTHING, np.round(moved), moved))


def share_taken(moved: Matrix) -> Matrix:
    """Return what was taken of weights that moved so far, 0 to 1: how much shorter they are, on either side of zero.

    >>> share_taken(np.array([1.0, 0.5, -0.5, 1.5, 0.0, 3.0]))
    array([1. , 0.5, 0. , 0.5, 0. , 0. ])
    """
    return np.asarray(np.maximum(1.0 - np.abs(1.0 - moved), 0.0))


def spectrum_about(data: Moments, origin: Vector) -> Spectrum:
    """Return the spectrum of the features of a data set about an origin of another's."""
    features = data.without_outputs()
    # What was rounded is the data as measured, so a large common offset counts; so does the origin taken from it.
    lengths = np.hypot(features.column_lengths(), np.abs(origin) * np.sqrt(data.weight))
    return decompose(features.root_about(origin), lengths, features.eps, features.blur)[0]
