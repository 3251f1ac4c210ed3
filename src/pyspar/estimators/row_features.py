"""Numeric features of target rows: those of the model's pipeline, of a transformer, or the columns of the rows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Matrix

MAX_CATEGORIES = 50
"""Per column of a data frame. The rarest other categories share one feature."""


def check_model(model: Any) -> None:
    """Raise an error for a model that has no ``predict`` or is not fitted."""
    if not hasattr(model, "predict"):
        raise TypeError(f"model must be a fitted regressor with predict, got {type(model).__name__}")
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)


def fit_features(features: Any, model: Any, blocks: list[Any]) -> Any:
    """Return the fitted transformer of the features; ``features`` is the parameter of ``TargetCorrection``."""
    if features is None and isinstance(model, Pipeline) and len(model.steps) > 1:
        return model[:-1]
    if features is not None and _is_fitted(features):
        return features
    return clone(_encode_columns(blocks[0]) if features is None else features).fit(_stack(blocks))


def compute_features(transformer: Any, Z: Any) -> Matrix:
    """Return the features of rows as finite numbers."""
    features = transformer.transform(Z)
    features = np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)
    if features.ndim != 2 or len(features) != len(Z):
        raise ValueError(f"features must be numbers of shape ({len(Z)}, D), got shape {features.shape}")
    if not np.isfinite(features).all():
        raise ValueError("features must be finite, got NaN or infinity; impute them with the parameter features")
    return features


def _is_fitted(transformer: Any) -> bool:
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return False
    return True


def _encode_columns(Z: Any) -> Any:
    """Return the unfitted encoding of the rows' own columns."""
    numbers = SimpleImputer(keep_empty_features=True)
    if not is_frame(Z):
        return numbers
    if hasattr(Z, "select_dtypes"):
        numeric = list(Z.select_dtypes(include=["number", "bool"]).columns)
        dates = list(Z.select_dtypes(include=["datetime", "datetimetz", "timedelta"]).columns)
    else:
        select = import_module("polars.selectors")
        numeric, dates = Z.select(select.numeric() | select.boolean()).columns, Z.select(select.temporal()).columns
    words = [name for name in Z.columns if name not in numeric and name not in dates]
    encode = OneHotEncoder(handle_unknown="ignore", max_categories=MAX_CATEGORIES, sparse_output=False)
    return ColumnTransformer([("numbers", numbers, numeric), ("words", encode, words)], sparse_threshold=0.0)


def is_frame(Z: Any) -> bool:
    """Return whether rows are a data frame of pandas or polars."""
    return hasattr(Z, "columns") and hasattr(Z, "dtypes")


def _stack(blocks: list[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    if hasattr(blocks[0], "select_dtypes"):
        return import_module("pandas").concat(blocks, ignore_index=True)
    if is_frame(blocks[0]):
        return import_module("polars").concat(blocks)
    return np.vstack(blocks)
