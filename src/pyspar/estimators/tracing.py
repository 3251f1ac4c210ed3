"""The alpha path of what a user has in hand: an adapted regressor, or its adaptation."""

from __future__ import annotations

from typing import Any

from pyspar.core.adapt import Adaptation
from pyspar.core.path import AlphaPath
from pyspar.core.path import alpha_path as path_of


def alpha_path(adapted: Any) -> AlphaPath:
    """Return for each target direction the alpha at which the paper's rule removes it.

    Parameters
    ----------
    adapted : an adapted SpARRegressor or BayesSpARRegressor, or an Adaptation

    Returns
    -------
    AlphaPath
        ``alpha`` (directions x outputs), ``removed_at(alpha)``, ``weights_at(alpha)`` and ``steps()``.

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import SpARRegressor, alpha_path
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 2)) * [1, 0.01], rng.normal(size=(200, 2))
    >>> est = SpARRegressor(fit_intercept=False).fit(X, X[:, 0] + rng.normal(size=200)).adapt(Z)
    >>> alpha_path(est).removed_at(0.0).any(), alpha_path(est).removed_at(1.0).all()
    (np.False_, np.True_)
    """
    found = adapted if isinstance(adapted, Adaptation) else getattr(adapted, "adaptation_", None)
    if not isinstance(found, Adaptation):
        raise TypeError(
            f"alpha_path takes an adapted regressor or an Adaptation. Got {type(adapted).__name__} instead; call "
            "fit(X, y) and adapt(Z) first."
        )
    return path_of(found)
