"""Check the centre of a prior that the caller passes, and convert it to weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments


def centre_of(centre: Any, source: Moments, names: Any) -> tuple[Matrix, Vector]:
    """Return the weights (D, K) and intercepts (K,) of a centre; zeros for None.

    ``names`` are the source's feature names, if any. A model fitted to other names raises an error.
    """
    d, k = source.n_features, source.n_outputs
    if centre is None:
        return np.zeros((d, k)), np.zeros(k)
    weights, offset = centre, 0.0
    if hasattr(centre, "predict"):
        if not hasattr(centre, "coef_"):
            raise ValueError(
                f"centre must be a fitted linear model, got {type(centre).__name__} without coef_. Fit it first, or "
                "pass an array of weights. In a parameter grid, wrap it in sklearn.frozen.FrozenEstimator, because "
                "scikit-learn clones the grid's values."
            )
        theirs = getattr(centre, "feature_names_in_", None)
        if theirs is not None and names is not None and list(theirs) != list(names):
            raise ValueError(
                f"centre must be fitted to the source's columns in the same order, got {list(theirs)[:8]} for "
                f"{list(names)[:8]}; refit it on the source's columns."
            )
        weights, offset = centre.coef_, getattr(centre, "intercept_", 0.0)
    elif names is not None and hasattr(centre, "reindex") and list(centre.index) != list(names):
        raise ValueError(
            f"centre must be indexed by the source's columns in the same order, got {list(centre.index)[:8]} for "
            f"{list(names)[:8]}; pass centre[list(columns)]."
        )
    coef, intercept = _numbers("centre", weights), _numbers("centre.intercept_", offset)
    columns = coef[:, None] if coef.ndim == 1 else coef.T
    if columns.shape != (d, k):
        raise ValueError(
            f"centre must have one weight for each of {d} features and one row for each of {k} outputs, got shape "
            f"{coef.shape}."
        )
    if intercept.size not in (1, k):
        raise ValueError(f"centre must have one intercept, or one per output ({k}), got {intercept.size}.")
    return np.array(columns), np.array(np.broadcast_to(intercept.reshape(-1), (k,)))


def _numbers(what: str, values: Any) -> Matrix:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must contain numbers, got {type(values).__name__}: {error}.") from None
    if found.ndim > 2 or not np.isfinite(found).all():
        raise ValueError(f"{what} must be finite and have at most two dimensions, got an array of shape {found.shape}.")
    return found
