"""Adaptation and forecasts through pipelines, transformed labels and fitted searches, and categories they never saw.

These functions accept a fitted :class:`BayesSpARRegressor` or :class:`SpARRegressor`, and a fitted scikit-learn
``Pipeline``, ``TransformedTargetRegressor``, ``GridSearchCV`` or other search that contains one, in any combination.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast
from pyspar.core.moments import Matrix, Moments
from pyspar.errors import warn
from pyspar.estimators.base import AdaptableRegressor
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.validation import is_missing
from pyspar.sources import refuse_unread_tables
from pyspar.text import list_some

MAX_TRANSFORMED_ROWS = 2000
"""The expected error of transformed labels is computed from at most this many evenly spaced rows."""
_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(7)
"""Gauss quadrature for a normal variable."""
_CONTAINERS = (Pipeline, TransformedTargetRegressor, BaseSearchCV)
_CORRECT_INSTEAD = "correct any fitted regressor by a few target labels with TargetCorrection(model).fit(Z, y)"
_EQUAL_BEFORE_ADAPTING = {"alpha": None, "prior_scale": {"max", "source"}}
"""Parameters of our regressors that have no effect before ``adapt``, and the values for which this holds."""


def adapt_pipeline(pipe: Any, Z: Any) -> Any:
    """Return a copy of a fitted pipeline whose regressor is adapted to the target Z.

    Z passes through the earlier steps, which were fitted on the source and are shared by the copy. The original
    pipeline is unchanged. With target labels, correct the adapted pipeline with :class:`TargetCorrection`.

    ``pipe`` is a Pipeline, TransformedTargetRegressor or fitted search, or any nesting of these, around a
    :class:`BayesSpARRegressor` or :class:`SpARRegressor`. A search is replaced by its best estimator. If it compared
    values of a parameter that has no effect before adapting, such as ``alpha``, a SparWarning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pyspar import BayesSpARRegressor, adapt_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    >>> pipe = make_pipeline(StandardScaler(), BayesSpARRegressor()).fit(X, X[:, 0] + rng.normal(size=50))
    >>> adapt_pipeline(pipe, Z).predict(Z).shape
    (20,)
    """
    if not isinstance(pipe, _CONTAINERS):
        fix = "; use copy.copy(model).adapt(Z)" if hasattr(pipe, "adapt") else ""
        if not fix and hasattr(pipe, "predict"):
            fix = f", which cannot be adapted; {_CORRECT_INSTEAD}"
        raise TypeError(f"pipe must be a scikit-learn Pipeline, got {type(pipe).__name__}{fix}")
    layers = list_layers(pipe)
    if not hasattr(layers[-1], "adapt"):
        step = f"{layers[-2].steps[-1][0]!r} " if isinstance(layers[-2], Pipeline) else ""
        raise TypeError(
            f"the last step of the pipeline must be a regressor that can be adapted, got {step}"
            f"({type(layers[-1]).__name__}); end the pipeline with BayesSpARRegressor(), or "
            f"{_CORRECT_INSTEAD}"
        )
    part = find_regressor(pipe, Z)
    _warn_of_searches(layers)
    return replace_regressor(pipe, copy.copy(part.regressor).adapt(part.Z))


def expected_rmse(model: Any, Z: Any) -> Forecast | list[Forecast]:
    """Forecast the RMSE on a target without labels, of a regressor inside a pipeline.

    ``model`` is a fitted BayesSpARRegressor, SpARRegressor or TargetCorrection, or a Pipeline,
    TransformedTargetRegressor or search with one. For other regressors use :func:`pyspar.inspect` with
    ``source=(X, y)``. Z are target rows, as for the model's ``predict``.

    The forecast is in the units of the labels that the model was fitted to. If y had two dimensions, it is a list with
    one per output. For transformed labels the expected squared error is integrated over the distribution of each label.
    A regressor that was corrected by target labels returns a ``LabelForecast``. A SparWarning names categories that a
    one-hot encoder of the pipeline has not seen, which the forecast does not cover.

    Examples
    --------
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from pyspar import BayesSpARRegressor, expected_rmse
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 3)), rng.normal(size=(100, 3))
    >>> y = np.exp(0.5 * X[:, 0] + 0.1 * rng.normal(size=200))
    >>> model = TransformedTargetRegressor(BayesSpARRegressor(), func=np.log, inverse_func=np.exp).fit(X, y)
    >>> 0.05 < float(expected_rmse(model, Z)) < 0.2
    True
    """
    part = find_regressor(model, Z)
    _warn_of_unseen(part.preprocessing, Z)
    forecasts: Forecast | list[Forecast] = part.regressor.expected_rmse(part.Z)
    if not part.transformers:
        return forecasts
    if isinstance(forecasts, list):
        raise TypeError("expected_rmse supports transformed labels with one dimension of y only, got two")
    return _in_units_of_labels(forecasts, part)


@dataclass(frozen=True)
class InnerRegressor:
    """The regressor inside a model, the rows that it receives, what computes them, and the transformers of its labels.

    ``preprocessing`` is a fitted Pipeline of all steps before the regressor, or None if there are none.
    """

    regressor: Any
    Z: Any
    preprocessing: Pipeline | None = None
    transformers: tuple[Any, ...] = ()

    def to_labels(self, values: Any) -> Any:
        """Return values of the regressor in the units of the model's labels."""
        for transformer in reversed(self.transformers):
            values = np.asarray(values, dtype=np.float64)
            columns = values if values.ndim > 1 else values[:, None]
            values = np.asarray(transformer.inverse_transform(columns)).reshape(values.shape)
        return values

    def from_labels(self, labels: Matrix) -> Matrix:
        """Return labels (m, 1) of the model in the units of the regressor, with NaN where unknown."""
        known = np.isfinite(labels[:, 0])
        values = labels[known]
        for transformer in self.transformers if known.any() else ():
            values = np.asarray(transformer.transform(values), dtype=np.float64)
        transformed = np.full_like(labels, np.nan)
        transformed[known] = values
        return transformed


def find_regressor(model: Any, Z: Any) -> InnerRegressor:
    """Return the regressor inside a fitted model, with the target as it receives it."""
    layers = list_layers(model)
    regressor = layers[-1]
    if not isinstance(regressor, (AdaptableRegressor, TargetCorrection)):
        raise TypeError(
            f"model must be or contain a SpARRegressor or a BayesSpARRegressor, got {type(regressor).__name__}; for "
            "other regressors use pyspar.inspect(model, Z, source=(X, y))"
        )
    check_is_fitted(regressor)
    _warn_of_lost_groups(layers)
    refuse_unread_tables(Z)
    transformers = tuple(layer.transformer_ for layer in layers if isinstance(layer, TransformedTargetRegressor))
    pipes = [layer for layer in layers if isinstance(layer, Pipeline)]
    steps = [(f"{depth}.{name}", step) for depth, pipe in enumerate(pipes) for name, step in pipe.steps[:-1]]
    if not steps:
        return InnerRegressor(regressor, Z, None, transformers)
    if isinstance(Z, Moments):
        raise TypeError("Moments cannot be transformed by the earlier steps; pass the rows, or adapt the last step")
    preprocessing = Pipeline(steps)
    return InnerRegressor(regressor, preprocessing.transform(Z), preprocessing, transformers)


def replace_regressor(model: Any, regressor: Any) -> Any:
    """Return a copy of a fitted model with another innermost regressor. A search becomes its best estimator."""
    if not isinstance(model, _CONTAINERS):
        return regressor
    inner = replace_regressor(_inner_model(model), regressor)
    if isinstance(model, BaseSearchCV):
        return inner
    new = copy.copy(model)
    if isinstance(model, TransformedTargetRegressor):
        new.regressor_ = inner
    else:
        new.steps = [*model.steps[:-1], (model.steps[-1][0], inner)]
    return new


def output_names(preprocessing: Pipeline | None) -> tuple[str, ...] | None:
    """Return the names of the features after fitted preprocessing; None if a step does not provide names."""
    if preprocessing is None:
        return None
    try:
        names = preprocessing.get_feature_names_out()
    except (AttributeError, ValueError):  # a step without feature names
        return None
    return None if names is None else tuple(map(str, names))


def list_layers(model: Any) -> list[Any]:
    """Return a fitted model and the models inside it, from the outermost to the regressor."""
    layers = [model]
    while isinstance(layers[-1], _CONTAINERS):
        layers.append(_inner_model(layers[-1]))
    return layers


def _inner_model(model: Any) -> Any:
    """Return the model inside a fitted Pipeline, TransformedTargetRegressor or search."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    check_is_fitted(model)
    if isinstance(model, TransformedTargetRegressor):
        return model.regressor_
    if not hasattr(model, "best_estimator_"):
        raise ValueError(f"{type(model).__name__} has no best estimator; fit it with refit=True")
    return model.best_estimator_


def _warn_of_lost_groups(layers: list[Any]) -> None:
    """Warn if a search split its rows by groups, but the regressor inside was fitted without these groups."""
    splitters = [layer.cv for layer in layers if isinstance(layer, BaseSearchCV)]
    routings = [splitter.get_metadata_routing() for splitter in splitters if hasattr(splitter, "get_metadata_routing")]
    needed = any(routing.split.requests.get("groups") for routing in routings)
    if needed and getattr(layers[-1], "_group_rmse", None) is None:
        warn(
            "the search split the source rows by groups, but scikit-learn did not pass the groups to the regressor, so "
            "the error at home and the forecasts are not those of new groups; pass the groups to "
            "pyspar.inspect(search, Z, source=(X, y), groups=groups), or fit the search with metadata routing and "
            "set_fit_request(groups=True) on the regressor",
        )


def _warn_of_searches(layers: list[Any]) -> None:
    """Warn if a search compared values of a parameter of its regressor that has no effect before adapting."""
    parameters = set(layers[-1].get_params(deep=False))
    for search in (layer for layer in layers if isinstance(layer, BaseSearchCV)):
        settings = search.cv_results_["params"]
        useless = []
        for full_name in dict.fromkeys(name for setting in settings for name in setting):
            name = full_name.rpartition("__")[2]
            values = {str(setting[full_name]) for setting in settings if full_name in setting}
            equal = _EQUAL_BEFORE_ADAPTING.get(name, set())
            if name in parameters and len(values if equal is None else values & equal) > 1:
                useless.append(full_name)
        if useless:
            warn(
                f"the search over {list_some(useless)} compared fits before adapting, where all values have the same "
                "score, so the chosen value is arbitrary; set it before the search, or compare adapted regressors on "
                "labelled target rows",
            )


def _in_units_of_labels(forecast: Forecast, part: InnerRegressor) -> Forecast:
    """Return a forecast for transformed labels in the units of the original labels.

    All errors are multiplied by the ratio of the expected root mean squared errors in both units, given the
    distribution of each row's label. For a linear transformation this is exact.
    """
    before, after = _expected_squares(part)
    ratio = float(np.sqrt(after / before)) if before > 0.0 else 1.0
    powers = {"rmse": 1, "source_rmse": 1, "model_rmse": 1, "rmse_uncorrected": 1, "variance": 2, "noise": 2}
    changed: dict[str, Any] = {
        name: getattr(forecast, name) * ratio**power for name, power in powers.items() if hasattr(forecast, name)
    }
    for name in ("interval80", "interval95"):
        changed[name] = tuple(end * ratio for end in getattr(forecast, name))
    return replace(forecast, **changed)


def _expected_squares(part: InnerRegressor) -> tuple[float, float]:
    """Return the expected squared errors in the units of the regressor and in those of the labels.

    The label of each row is a normal variable about its prediction. Rows whose prediction lies outside the domain of
    the transformation do not count.
    """
    n = int(np.shape(part.Z)[0])
    rows = _safe_indexing(part.Z, np.unique(np.linspace(0, n - 1, min(n, MAX_TRANSFORMED_ROWS)).round().astype(int)))
    prediction, scale = (np.asarray(of, dtype=np.float64) for of in part.regressor.predict(rows, return_std=True))
    original, squares = part.to_labels(prediction), np.zeros((2, len(prediction)))
    for side in (_NODES < 0.0, _NODES >= 0.0):
        last = original
        order = np.argsort(np.abs(_NODES[side]))
        for node, share in zip(_NODES[side][order], (_SHARES / _SHARES.sum())[side][order], strict=True):
            back = part.to_labels(prediction + node * scale)
            last = np.where(np.isfinite(back), back, last)  # outside the domain, the nearest node inside it counts
            squares += share * np.square([node * scale, last - original])
    before, after = squares[:, np.isfinite(original)].mean(axis=1).tolist()  # other rows have no prediction
    return before, after


# Unseen categories ----------------------------------------------------------------------------------------------------


def find_unseen(preprocessing: Any, Z: Any, sample_weight: Any = None) -> dict[str, Any] | None:
    """Return the rows whose categories the one-hot encoders in fitted preprocessing did not see and yet accept.

    They are encoded as zeros or as a rare category, so such a row looks like any other. The result has the number of
    these ``rows``, the ``total`` number of rows, and in ``columns`` the unseen categories of each column, the most
    frequent first. It is None if there are none. Rows with weight zero are ignored.
    """
    has_weight = np.ones(1, dtype=bool) if sample_weight is None else np.asarray(sample_weight) != 0.0
    columns, is_unseen = dict[str, list[str]](), np.zeros(1, dtype=bool)
    for name, values, is_new in _find_new_values(preprocessing, Z, None):
        counted = is_new & has_weight
        if counted.any():
            is_unseen = is_unseen | counted
            counts = Counter(map(str, values[counted]))
            columns[name] = sorted(counts, key=lambda category: (-counts[category], category))
    if not columns:
        return None
    total = np.broadcast_to(has_weight, is_unseen.shape).sum()
    return {"rows": int(is_unseen.sum()), "total": int(total), "columns": columns}


def _warn_of_unseen(preprocessing: Any, Z: Any) -> None:
    if (unseen := find_unseen(preprocessing, Z)) is not None:
        listed = "; ".join(f"{column} {list_some(names, 3)}" for column, names in list(unseen["columns"].items())[:3])
        more = "; ..." if len(unseen["columns"]) > 3 else ""
        warn(
            f"{unseen['rows']:,} of {unseen['total']:,} rows have categories that do not occur in the source "
            f"({listed}{more}); forecasts and intervals do not cover these rows"
        )


def _find_new_values(step: Any, Z: Any, names: Sequence[str] | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield for each column with unseen categories its name, its values, and which of the values are unseen."""
    if isinstance(step, Pipeline):
        steps = [inner for inner in _inner_steps(step) if inner is not None and not isinstance(inner, str)]
        while any(map(_has_encoder, steps)):  # steps after the last encoder are not computed
            first, *steps = steps
            yield from _find_new_values(first, Z, names)
            if any(map(_has_encoder, steps)):
                Z = first.transform(Z)
    elif isinstance(step, FeatureUnion):
        for inner in _inner_steps(step):
            yield from _find_new_values(inner, Z, names)
    elif isinstance(step, ColumnTransformer):
        for _, inner, columns in step.transformers_:
            if _has_encoder(inner):
                yield from _find_new_values(inner, *_select_columns(step, Z, columns))
    elif _has_encoder(step):
        rows = np.asarray(Z, dtype=object)
        names = getattr(step, "feature_names_in_", None) if names is None else names
        if names is None or len(names) != len(step.categories_):
            names = [f"x{j}" for j in range(len(step.categories_))]
        for name, values, categories in zip(names, rows.T, step.categories_):
            known = set(categories.tolist())
            has_missing = any(map(is_missing, known))  # all kinds of missing values are one category
            is_new = [value not in known and not (has_missing and is_missing(value)) for value in values]
            yield str(name), values, np.array(is_new, dtype=bool)


def _inner_steps(step: Any) -> list[Any]:
    """Return the steps inside a Pipeline, FeatureUnion or fitted ColumnTransformer."""
    return [part[1] for name in ("steps", "transformer_list", "transformers_") for part in getattr(step, name, ())]


def _has_encoder(step: Any) -> bool:
    """Return whether a step contains a fitted one-hot encoder that accepts unknown categories."""
    if isinstance(step, OneHotEncoder):  # a column transformer does not fit an encoder that gets no columns
        return step.handle_unknown != "error" and hasattr(step, "categories_")
    return any(map(_has_encoder, _inner_steps(step)))


def _select_columns(step: ColumnTransformer, Z: Any, columns: Any) -> tuple[Any, Sequence[str] | None]:
    """Return the columns that one part of a column transformer receives, and their names if they have any."""
    if isinstance(columns, str) or np.isscalar(columns):
        columns = [columns]
    if isinstance(columns, (list, np.ndarray)) and len(columns) and isinstance(columns[0], str):
        return Z[list(columns)], list(columns)
    names = getattr(step, "feature_names_in_", None)
    selected = Z.iloc[:, columns] if hasattr(Z, "iloc") else np.asarray(Z, dtype=object)[:, columns]
    return selected, None if names is None else [str(name) for name in np.asarray(names, dtype=object)[columns]]
