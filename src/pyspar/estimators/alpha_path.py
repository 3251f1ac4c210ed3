r"""The path over alpha: for each target direction, the confidence at which the paper's rule removes it.

The rule removes direction j where :math:`m_j^2 \le \mathrm{CDF}^{-1}_{\chi^2_1}(\alpha)\, v_j` (``eq:spar_set``), so
each direction has one alpha at which it is removed. Computing these values replaces a sweep over alpha.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.adapt import Adaptation, Terms, removal_alpha
from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.estimators.validation import check_alpha


@dataclass(frozen=True, eq=False)
class AlphaPath:
    """The alpha at which each target direction is removed as alpha rises from 0 to 1.

    Attributes
    ----------
    alpha : array of shape (directions, K)
        The rule removes a direction at this alpha and above.
    doubt : array of shape (directions, K)
        ``1 - alpha`` without cancellation, so directions far beyond 0.999 remain distinguishable.
    terms : Terms
        The belief along each direction.
    directions : array of shape (D, directions)
    w_hat : array of shape (D, K)
    """

    alpha: Matrix
    doubt: Matrix
    terms: Terms
    directions: Matrix
    w_hat: Matrix

    def removed_at(self, alpha: float) -> Mask:
        """Return the set S at an alpha, directions x outputs."""
        check_alpha(alpha)
        if alpha == 1.0:
            return np.ones(self.alpha.shape, dtype=bool)
        return np.asarray((self.alpha <= alpha) & (self.terms.std > 0.0))

    def weights_at(self, alpha: float) -> Matrix:
        """Return the weights after removing the set S at an alpha, features x outputs.

        For a BayesSpARRegressor these are corrections to the centre, for features divided by ``units_``.
        """
        return np.asarray(self.w_hat - self.directions @ (self.removed_at(alpha) * self.terms.mean))

    def steps(self, output: int = 0) -> Vector:
        """Return the alphas at which the set S changes for an output, in ascending order."""
        return np.unique(self.alpha[self.terms.std[:, output] > 0.0, output])


def alpha_path(adapted: Any) -> AlphaPath:
    """Return for each target direction the alpha at which the paper's rule removes it.

    Parameters
    ----------
    adapted : an adapted SpARRegressor or BayesSpARRegressor, or an Adaptation

    Returns
    -------
    AlphaPath

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import SpARRegressor, alpha_path
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 2)) * [1, 0.01], rng.normal(size=(200, 2))
    >>> est = SpARRegressor(fit_intercept=False).fit(X, X[:, 0] + rng.normal(size=200)).adapt(Z)
    >>> path = alpha_path(est)
    >>> bool((path.removed_at(0.999) == est.adaptation_.removed).all())
    True
    >>> path.removed_at(0.0).any(), path.removed_at(1.0).all()
    (np.False_, np.True_)
    """
    adaptation = adapted if isinstance(adapted, Adaptation) else getattr(adapted, "adaptation_", None)
    if not isinstance(adaptation, Adaptation):
        raise TypeError(
            f"alpha_path requires an adapted regressor or an Adaptation, got {type(adapted).__name__}; call fit(X, y) "
            "and adapt(Z) first."
        )
    alpha, doubt = removal_alpha(adaptation.terms)
    return AlphaPath(alpha, doubt, adaptation.terms, adaptation.z.V, adaptation.w_hat)
