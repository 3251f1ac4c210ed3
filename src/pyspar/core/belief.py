"""The names of :mod:`pyspar.core.regression` under their old module. Temporary."""  # temporary

from __future__ import annotations

import numpy as np

from pyspar.core.moments import Moments
from pyspar.core.regression import Fit as Belief
from pyspar.core.regression import (
    LeastSquares,
    Noise,
    Prior,
    RidgePosterior,
    fit_ridge,
    in_units_of,
    inverse,
    label_coordinates,
    least_squares,
    left_out_rmse,
    posterior_of_fit,
    spread_about_source,
    spread_of_features,
    units_of_features,
)
from pyspar.core.regression import PriorScale as Units
from pyspar.core.regression import RidgePosterior as RidgeBelief

__all__ = [
    "Belief", "LeastSquares", "Noise", "Prior", "RidgeBelief", "Units", "belief_of_fit", "in_units_of", "inverse",
    "label_coordinates", "least_squares", "left_out_rmse", "ridge_belief", "spread_about_source", "spread_of_features",
    "units_of_features",
]  # fmt: skip


def ridge_belief(source: Moments, *, fit_intercept: bool) -> RidgePosterior:
    """Return the posterior for a source in the prior's coordinates."""
    return fit_ridge(source, fit_intercept=fit_intercept)


def belief_of_fit(fit: LeastSquares) -> RidgePosterior:
    """Return the posterior for a fit in the prior's coordinates."""
    d, k = fit.w_hat.shape
    return posterior_of_fit(fit, Prior(np.ones(d), np.zeros((d, k)), np.zeros(k)))
