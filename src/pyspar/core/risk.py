r"""The expected error of keeping or removing each target direction, and its sum.

Keeping direction j of the target adds its variance, removing it adds its bias (``eq:individual_loss_contributions``).
The paper's method compares these two numbers. All functions take spectra about the same origin, weights of
shape (D, K) and noise variances of shape (K,), and return one column per output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Mask, Matrix, Vector, squared
from pyspar.core.belief import Belief, noise_gain
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


def terms_of(belief: Belief, z: Spectrum) -> Terms:
    """Evaluate the belief along the target's directions."""
    return Terms(z.lam, z.V.T @ belief.w_hat, belief.std_along(z.V), belief.degrees)


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
        raise ValueError(f"sigma2 is a variance and must be at least 0. Got {sigma2} instead.")
    return np.outer(squared(z.lam * noise_gain(x, z.V)), sigma2)


def bias_terms(z: Spectrum, w: Matrix) -> Matrix:
    r"""Return the squared bias that removing each target direction adds.

    .. math:: \mathrm{Bias}_{z,j} = \langle w, e_{z,j}\rangle^2 \lambda_{z,j}^2

    With the true weights this is ``Bias``; with ``w_hat`` it is the estimate of ``eq:bias_hat``.

    >>> bias_terms(Spectrum.of(np.diag([1.0, 3.0])), np.array([[2.0], [1.0]])).ravel()
    array([9., 4.])
    """
    return np.asarray((z.lam[:, None] * (z.V.T @ as_columns(w))) ** 2)


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
        raise ValueError(f"removed must have one entry for each of the {z.rank} target directions. Got {len(S)}.")
    return np.asarray(np.where(S, bias_terms(z, w_star), variance_terms(x, z, sigma2)).sum(axis=0))


def spectral_inflation(x: Spectrum, z: Spectrum, sigma2: Vector, n_target: float) -> Matrix:
    """Return ``Var_{z,j} / M`` per target direction, comparable between targets of different size.

    Paper: the quantity of ``fig:spectral_inflation``.
    """
    return variance_terms(x, z, sigma2) / n_target


def outside_share(x: Spectrum, z: Spectrum) -> Vector:
    """Return the share of each target direction that lies outside the span of the source.

    ``thm:ols_loss`` does not cover this part: its least-squares weight is zero, and the labels carry no information
    about it.
    """
    return np.asarray(np.clip(1.0 - ((x.V.T @ z.V) ** 2).sum(axis=0), 0.0, 1.0))


def as_columns(w: Matrix) -> Matrix:
    """Return weights as a (features, outputs) matrix; a vector is one output."""
    w = np.asarray(w, dtype=np.float64)
    return w[:, None] if w.ndim == 1 else w
