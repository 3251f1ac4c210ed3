"""Adaptation and forecasts through pipelines and fitted searches, and categories that their encoders never saw."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast
from pyspar.core.moments import Moments
from pyspar.errors import warn
from pyspar.estimators.validation import is_missing
from pyspar.sources import refuse_unread_tables
from pyspar.text import list_some


def adapt_pipeline(pipe: Any, Z: Any) -> Any:
    """Return a copy of a fitted pipeline whose regressor is adapted to the target Z.

    Z passes through the earlier steps, which were fitted on the source and are shared by the copy. ``pipe`` is a
    Pipeline, TransformedTargetRegressor or fitted search, or any nesting of these, around one of pyspar's regressors. A
    search is replaced by its best estimator. Do not search over ``alpha``: it has no effect before adapting. A step
    that is a ``ColumnAligner`` is not adapted: forecasts do not hold for aligned columns. Use :func:`pyspar.align`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pyspar import BayesSpARRegressor, adapt_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    >>> pipe = make_pipeline(StandardScaler(), BayesSpARRegressor()).fit(X, X[:, 0] + rng.normal(size=50))
    >>> adapt_pipeline(pipe, Z).predict(Z).shape
    (20,)
    """
    refuse_unread_tables(Z)
    if isinstance(pipe, BaseSearchCV):
        return adapt_pipeline(_best_estimator(pipe), Z)
    new = copy.copy(pipe)
    if isinstance(pipe, Pipeline):
        steps, (name, last) = pipe.steps[:-1], pipe.steps[-1]
        new.steps = [*steps, (name, adapt_pipeline(last, _transform(Pipeline(steps), Z) if steps else Z))]
    elif isinstance(pipe, TransformedTargetRegressor):
        check_is_fitted(pipe)
        new.regressor_ = adapt_pipeline(pipe.regressor_, Z)
    elif hasattr(pipe, "adapt"):
        new.adapt(Z)
    else:
        raise TypeError(
            f"the last step of the pipeline must be a regressor that can be adapted, got {type(pipe).__name__}; use "
            "BayesSpARRegressor(), or correct any regressor with a few target labels: TargetCorrection(model).fit(Z, y)"
        )
    return new


def expected_rmse(model: Any, Z: Any) -> Forecast | list[Forecast]:
    """Forecast the RMSE on a target without labels, of a regressor inside a pipeline.

    ``model`` is a fitted BayesSpARRegressor, SpARRegressor or TargetCorrection, or a Pipeline or search with one. For
    other regressors, and for transformed labels, use :func:`pyspar.inspect` with ``source=(X, y)``. If y had two
    dimensions, return a list. A SparWarning names categories that a one-hot encoder has not seen.

    >>> from sklearn.pipeline import make_pipeline
    >>> from pyspar import BayesSpARRegressor, expected_rmse
    >>> X, Z, noise = np.random.default_rng(0).normal(size=(3, 200, 1))
    >>> model = make_pipeline("passthrough", BayesSpARRegressor()).fit(X, (X + 0.1 * noise)[:, 0])
    >>> 0.08 < float(expected_rmse(model, Z)) < 0.12
    True
    """
    regressor, rows, preprocessing = find_regressor(model, Z)
    if (unseen := find_unseen(preprocessing, Z)) is not None:
        listed = "; ".join(f"{column} {list_some(names, 3)}" for column, names in list(unseen["columns"].items())[:3])
        warn(
            f"{unseen['rows']:,} of {unseen['total']:,} rows have categories that do not occur in the source "
            f"({listed}{'; ...' * (len(unseen['columns']) > 3)}); forecasts and intervals do not cover these rows"
        )
    return regressor.expected_rmse(rows)  # type: ignore[no-any-return]


def find_regressor(model: Any, Z: Any) -> tuple[Any, Any, Pipeline | None]:
    """Return the regressor inside a fitted model, the rows that it receives, and the steps that compute them."""
    steps, regressor = split_model(model)
    if not hasattr(regressor, "expected_rmse"):
        raise TypeError(
            "model must be or contain a SpARRegressor, a BayesSpARRegressor or a TargetCorrection, got "
            f"{type(regressor).__name__}; for others and transformed labels use pyspar.inspect(model, Z, source=(X, y))"
            ", for aligned models a TargetCorrection with target labels"
        )
    check_is_fitted(regressor)
    refuse_unread_tables(Z)
    return regressor, Z if steps is None else _transform(steps, Z), steps


def split_model(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the preprocessing of a fitted model as one Pipeline (None if it has no steps), and its regressor.

    The steps of nested pipelines are joined, and a search is replaced by its best estimator.
    """
    steps: list[tuple[str, Any]] = []
    while isinstance(model, (Pipeline, BaseSearchCV)):
        if isinstance(model, BaseSearchCV):
            model = _best_estimator(model)
        else:
            steps += [(f"{len(steps)}.{name}", step) for name, step in model.steps[:-1]]
            model = model.steps[-1][1]
    return Pipeline(steps) if steps else None, model


def name_regressor(model: Any) -> str:
    """Return the class name of a model, or that of the regressor in a pipeline or a search."""
    return type(split_model(model)[1]).__name__


def output_names(preprocessing: Pipeline | None) -> tuple[str, ...] | None:
    """Return the names of the features after fitted preprocessing; None if a step does not provide names."""
    try:
        names = None if preprocessing is None else preprocessing.get_feature_names_out()
    except (AttributeError, ValueError):  # a step without feature names
        return None
    return None if names is None else tuple(map(str, names))


def _best_estimator(search: Any) -> Any:
    check_is_fitted(search)
    if not hasattr(search, "best_estimator_"):
        raise ValueError(f"{type(search).__name__} has no best estimator; fit it with refit=True")
    return search.best_estimator_


def _transform(steps: Pipeline, Z: Any) -> Any:
    if isinstance(Z, Moments):
        raise TypeError("Moments cannot be transformed by the earlier steps; pass the rows, or adapt the last step")
    return steps.transform(Z)


def find_unseen(preprocessing: Any, Z: Any) -> dict[str, Any] | None:
    """Return the rows whose categories the one-hot encoders in fitted preprocessing did not see and yet accept.

    The result has the number of these ``rows``, the ``total`` number of rows, and in ``columns`` the unseen categories
    of each column, the most frequent first. It is None if there are none.
    """
    if not _has_encoder(preprocessing):
        return None
    columns, is_unseen = dict[str, list[str]](), np.zeros(int(np.shape(Z)[0]), dtype=bool)
    for encoder, rows, names in _find_encoders(preprocessing, Z, None):
        if names is None or len(names) != len(encoder.categories_):
            names = getattr(encoder, "feature_names_in_", [f"x{j}" for j in range(len(encoder.categories_))])
        for name, values, categories in zip(names, np.asarray(rows, dtype=object).T, encoder.categories_):
            known = set(categories.tolist())
            has_missing = any(map(is_missing, known))  # all kinds of missing values are one category
            is_new = np.array([v not in known and not (has_missing and is_missing(v)) for v in values])
            is_unseen |= is_new
            if is_new.any():
                columns[str(name)] = [category for category, _ in Counter(map(str, values[is_new])).most_common()]
    return {"rows": int(is_unseen.sum()), "total": len(is_unseen), "columns": columns} if columns else None


def _find_encoders(step: Any, Z: Any, names: Any) -> Iterator[tuple[OneHotEncoder, Any, Any]]:
    """Yield the fitted one-hot encoders that accept unknown categories, with the rows and names that they receive."""
    if isinstance(step, OneHotEncoder):
        if step.handle_unknown != "error":
            yield step, Z, names
    elif isinstance(step, Pipeline):
        for i, (_, inner) in enumerate(step.steps):
            if not _has_encoder(step[i:]):  # later rows are not needed
                break
            yield from _find_encoders(inner, Z, names)
            Z = inner.transform(Z) if hasattr(inner, "transform") else Z
    elif isinstance(step, ColumnTransformer):
        own = getattr(step, "feature_names_in_", None)
        for name, inner, _ in step.transformers_:
            positions = step._transformer_to_input_indices.get(name, [])
            used = None if own is None else [str(own[i]) for i in positions]
            if len(positions) and _has_encoder(inner):  # it is not fitted if it gets no columns
                by_name = used is not None and hasattr(Z, "columns")  # the rows may have further columns
                yield from _find_encoders(inner, _safe_indexing(Z, used if by_name else positions, axis=1), used)


def _has_encoder(step: Any) -> bool:
    return hasattr(step, "get_params") and any(
        isinstance(x, OneHotEncoder) for x in (step, *step.get_params().values())
    )
