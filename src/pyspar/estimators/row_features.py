"""The numeric features of target rows, for corrections of any fitted model and the choice of rows to label."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Matrix
from pyspar.estimators.validation import is_missing
from pyspar.sources import refuse_large

MAX_CATEGORIES = 50
"""The maximum number of features of a text column. The rarest categories share one of them."""

MISSING_CATEGORY = "(missing)"


class TextColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Convert the columns of a data frame to text. Missing values of all kinds are one category."""

    def fit(self, X: Any, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.asarray([str(name) for name in X.columns], dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        text = np.empty(X.shape, dtype=object)
        for j, name in enumerate(X.columns):
            for i, value in enumerate(X[name]):
                if isinstance(value, (list, dict, set, np.ndarray)):
                    raise TypeError(
                        f"column {name!r} must contain numbers or categories, got {type(value).__name__} in row {i}; "
                        "drop the column, or encode it with the parameter features"
                    )
                text[i, j] = MISSING_CATEGORY if is_missing(value) else str(value)
        return text


def check_model(model: Any) -> None:
    """Raise an error for a model that has no ``predict``, is a classifier or is not fitted."""
    if isinstance(model, type) or not hasattr(model, "predict"):
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        is_network = not isinstance(model, type) and hasattr(model, "state_dict")
        fix = "for a torch module use pyspar.nn.adapt_head(..., target_labels=)" if is_network else "fit one first"
        raise TypeError(f"model must be a fitted regressor with predict, got {got}; {fix}")
    refuse_classifier(model)
    if isinstance(model, BaseEstimator) and hasattr(model, "fit"):
        check_is_fitted(model)


def refuse_classifier(model: Any) -> None:
    """Raise TypeError for a classifier, also in a pipeline or a search."""
    if isinstance(model, BaseEstimator) and is_classifier(model):
        raise TypeError(
            f"model must be a regressor, got the classifier {name_regressor(model)}; labels must be numbers"
        )


def split_model(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the preprocessing of a fitted model as one Pipeline (None if it has no steps), and its regressor.

    The steps of nested pipelines are joined, and a search is replaced by its best estimator.
    """
    steps: list[tuple[str, Any]] = []
    while isinstance(model, (Pipeline, BaseSearchCV)):
        if isinstance(model, BaseSearchCV):
            model = model.best_estimator_
        else:
            steps += [(f"{len(steps)}.{name}", step) for name, step in model.steps[:-1]]
            model = model.steps[-1][1]
    return Pipeline(steps) if steps else None, model


def name_regressor(model: Any) -> str:
    """Return the class name of a model, or that of the regressor in a pipeline or a search."""
    return type(split_model(model)[1]).__name__


def count_rows(Z: Any) -> int:
    """Return the number of rows of an array, a data frame, a sparse matrix or a list."""
    if not hasattr(Z, "shape") and not isinstance(Z, (list, tuple)):
        raise TypeError(f"Z must contain target rows, as for the model's predict, got {type(Z).__name__}")
    return int(Z.shape[0]) if len(getattr(Z, "shape", ())) > 1 else len(Z)


def fit_features(features: Any, model: Any, blocks: list[Any]) -> Any:
    """Return the fitted transformer of the features; ``features`` is the parameter of ``TargetCorrection``."""
    steps, _ = split_model(model)
    if features is None and steps is not None:
        impute = SimpleImputer(keep_empty_features=True).fit(steps.transform(_stack(blocks)))
        return Pipeline([("steps", steps), ("impute", impute)])  # the regressor may accept NaN, for example boosting
    if features is not None and _is_fitted(features):
        return features
    return clone(_encode_columns(blocks[0]) if features is None else features).fit(_stack(blocks))


def compute_features(transformer: Any, Z: Any) -> Matrix:
    """Return the features of rows as finite numbers."""
    features = transformer.transform(Z)
    features = np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)
    if features.ndim != 2 or len(features) != count_rows(Z):
        raise ValueError(f"features must be numbers of shape ({count_rows(Z)}, D), got shape {features.shape}")
    if not np.isfinite(features).all():
        raise ValueError("features must be finite, got NaN or infinity; impute them with the parameter features")
    refuse_large("the features", features)
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
        dates = list(Z.select_dtypes(include=["datetime", "datetimetz", "timedelta"]).columns)
        numeric = list(Z.select_dtypes(include=["number", "bool"], exclude=["timedelta"]).columns)
    else:
        select = import_module("polars.selectors")
        numeric, dates = Z.select(select.numeric() | select.boolean()).columns, Z.select(select.temporal()).columns
    words = [name for name in Z.columns if name not in numeric and name not in dates]
    encode = OneHotEncoder(handle_unknown="ignore", max_categories=MAX_CATEGORIES, sparse_output=False)
    text = Pipeline([("text", TextColumns()), ("encode", encode)])
    return ColumnTransformer([("numbers", numbers, numeric), ("words", text, words)], sparse_threshold=0.0)


def is_frame(Z: Any) -> bool:
    """Return whether rows are a pandas or polars data frame."""
    return hasattr(Z, "columns") and hasattr(Z, "dtypes")


def _stack(blocks: list[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    if hasattr(blocks[0], "select_dtypes"):
        return import_module("pandas").concat(blocks, ignore_index=True)
    if is_frame(blocks[0]):
        return import_module("polars").concat(blocks)
    return np.vstack(blocks)
