"""A network's linear head: from the moments of its features to new weights. ``pyspar.nn`` reads the features.

The three methods are those of :func:`pyspar.nn.adapt_head`, and of the tables that ``spar reproduce`` makes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.linear_model import LinearRegression

from pyspar.bayes import BayesSpARRegressor
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Noise
from pyspar.core.faint import along, customary_cutoff, loud_directions
from pyspar.core.moments import Moments
from pyspar.estimators import SpARRegressor

HeadMethod = Literal["bayes", "spar", "ols"]


def fit_head(
    source: Moments,
    target: Moments | None,
    method: HeadMethod,
    *,
    coef: Matrix,
    intercept: Vector | None = None,
    alpha: float = 0.999,
    noise: Noise = "mle",
    cutoff: float | None = None,
) -> BayesSpARRegressor | SpARRegressor:
    """Return a regressor on the features whose weights are the new head.

    Parameters
    ----------
    source, target : Moments
        Of the features that enter the head; the source with its labels.
    method : {"bayes", "spar", "ols"}
        "bayes" corrects the trained head where the labels prove it wrong. "spar" and "ols" forget it, and fit SpAR or
        least squares, with an intercept if the head has a bias.
    coef, intercept : arrays of shape (K, D) and (K,)
        The trained head; without a bias, None.
    alpha, noise
        As for :class:`pyspar.SpARRegressor`.
    cutoff : float, optional
        No weight is fitted along directions of the features that are shorter than this share of the longest. By
        default ``max(N, D)`` machine epsilons, at most 0.001.
    """
    loud = loud_directions(source, customary_cutoff(source) if cutoff is None else cutoff)
    estimator: BayesSpARRegressor | SpARRegressor
    if method == "bayes":
        bias = np.zeros(len(coef)) if intercept is None else np.asarray(intercept, dtype=np.float64)
        estimator = _around(np.asarray(coef, dtype=np.float64), bias, alpha, along(loud, source), source)
    else:
        estimator = SpARRegressor(alpha, fit_intercept=intercept is not None, noise=noise)
        estimator.fit_moments(along(loud, source))
    return estimator if target is None or method == "ols" else estimator.adapt(target)


def _around(coef: Matrix, bias: Vector, alpha: float, kept: Moments, source: Moments) -> BayesSpARRegressor:
    """Return the belief centred on a trained head, fitted along the directions of the features that are kept."""
    # The residuals are those of the head on the features as they are. Only the correction is confined.
    d = source.n_features
    root = kept.root.copy()
    root[:, d + 1 :] = (source.root - kept.root)[:, 1 : d + 1] @ -coef.T + source.root[:, d + 1 :]
    head = LinearRegression()
    head.coef_, head.intercept_, head.n_features_in_ = coef, bias, d
    estimator = BayesSpARRegressor(units="common", centre=head, rule="chi2", alpha=alpha, fit_intercept=False)
    return estimator.fit_moments(kept.with_root(root))
