"""The distribution of target labels that a fitted estimator implies, as the null hypothesis of a test."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from pyspar.core.arrays import Matrix
from pyspar.core.belief import RidgeBelief, ridge_belief


def predict_from_source(estimator: Any, rows: Matrix) -> tuple[Matrix, list[Matrix]]:
    """Return the posterior mean of the labels of rows, and the root of its covariance relative to the noise.

    They are of shapes (m, K) and, for each output, (m, r). ``estimator`` is a fitted AdaptableRegressor.
    """
    prior = estimator._prior_for_rows()
    belief = ridge_belief(prior.transform_source(estimator._source), fit_intercept=estimator._belief.centred)
    coef, intercept = prior.weights(belief, belief.w_hat)
    centred = prior.transform_rows(rows) - belief.x_mean
    return rows @ coef + intercept, [_error_root(belief, centred, k) for k in range(coef.shape[1])]


def predict_if_known(model: Any, blocks: list[Any]) -> tuple[Matrix | None, list[Matrix] | None]:
    """Return what ``predict_from_source`` returns for the rows of any model.

    For a model other than our estimators, alone or as the last step of a Pipeline, nothing is known: both are None.
    """
    transform = None
    if isinstance(model, Pipeline):
        transform, model = model[:-1] if len(model.steps) > 1 else None, model.steps[-1][1]
    if not hasattr(model, "_prior_for_rows"):  # base.py imports this module, so its class cannot be imported here
        return None, None
    rows = [model._rows(Z if transform is None else transform.transform(Z)) for Z in blocks]
    return predict_from_source(model, np.vstack(rows))


def _error_root(belief: RidgeBelief, rows: Matrix, output: int) -> Matrix:
    """Return L with ``sigma^2 L L'`` the posterior covariance of the predictions of rows about the source mean."""
    along = rows @ belief.x.V
    largest = float(belief.x.lam[0]) if belief.x.rank else 1.0
    kappa = float(belief.evidence.kappa[output])
    parts = [np.full((len(rows), 1), np.sqrt(belief.relative_mean_variance))]
    if np.isfinite(kappa):
        parts.append(along / np.sqrt(np.square(belief.x.lam) + kappa * largest**2))
        if kappa > 0.0 and belief.x.rank < rows.shape[1]:
            parts.append((rows - along @ belief.x.V.T) / (np.sqrt(kappa) * largest))
    return np.hstack(parts)
