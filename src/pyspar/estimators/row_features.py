"""Temporary: import from :mod:`pyspar.estimators.labels` instead."""

from pyspar.estimators.labels import (  # temporary
    MAX_CATEGORIES,
    MISSING_CATEGORY,
    TextColumns,
    check_model,
    compute_features,
    count_rows,
    fit_features,
    is_frame,
    name_regressor,
    refuse_classifier,
    split_model,
)

__all__ = [
    "MAX_CATEGORIES", "MISSING_CATEGORY", "TextColumns", "check_model", "compute_features", "count_rows",
    "fit_features", "is_frame", "name_regressor", "refuse_classifier", "split_model",
]  # fmt: skip
