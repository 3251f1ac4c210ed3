"""Adaptation, forecasts and intervals through pipelines, transformed labels and fitted searches.

These functions accept a fitted :class:`BayesSpARRegressor` or :class:`SpARRegressor`, and a fitted scikit-learn
``Pipeline``, ``TransformedTargetRegressor``, ``GridSearchCV`` or other search that contains one, in any combination.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.forecast import Forecast
from pyspar.core.moments import Moments
from pyspar.estimators.base import AdaptableRegressor
from pyspar.estimators.validation import check_level

MAX_TRANSFORMED_ROWS = 2000
"""The expected error of transformed labels is computed from at most this many evenly spaced rows."""
_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(7)
"""Gauss quadrature for a normal variable."""


def adapt_pipeline(pipe: Any, Z: Any) -> Any:
    """Return a copy of a fitted pipeline whose last step is adapted to the target Z.

    Z passes through the earlier steps, which were fitted on the source and are shared by the copy. The original
    pipeline is unchanged.

    Parameters
    ----------
    pipe : Pipeline, TransformedTargetRegressor or fitted search
        Its last step has a method ``adapted``, for example :class:`BayesSpARRegressor`. For a search the best
        estimator is adapted and returned.
    Z : array or data frame
        Target rows, as for the pipeline's ``predict``.

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
    if isinstance(pipe, BaseSearchCV):
        return _adapt(_best_of(pipe), Z)
    if not isinstance(pipe, (Pipeline, TransformedTargetRegressor)):
        raise TypeError(f"pipe must be a scikit-learn Pipeline, got {type(pipe).__name__}")
    return _adapt(pipe, Z)


def expected_rmse(model: Any, Z: Any) -> Forecast | list[Forecast]:
    """Forecast the RMSE on a target without labels, of a regressor inside a pipeline.

    Parameters
    ----------
    model : fitted BayesSpARRegressor or SpARRegressor, or a Pipeline, TransformedTargetRegressor or search with one
        For other regressors use :func:`pyspar.inspect` with ``source=(X, y)``.
    Z : array or data frame
        Target rows, as for the ``predict`` of the model.

    Returns
    -------
    Forecast
        In the units of the labels that the model was fitted to. If y had two dimensions, a list with one forecast per
        output. For transformed labels the expected squared error is integrated over the distribution of each label.

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
    forecasts = part.regressor.expected_rmse(part.Z)
    if not part.transformers:
        return forecasts
    if not isinstance(forecasts, Forecast):
        raise TypeError("expected_rmse supports transformed labels with one dimension of y only, got two")
    return _in_units_of_labels(forecasts, part)


def predict_interval(model: Any, Z: Any, level: float = 0.9) -> tuple[Any, Any]:
    """Return an interval for each row's label, from a regressor inside a pipeline.

    The parameters are those of :func:`expected_rmse` and of :meth:`BayesSpARRegressor.predict_interval`. The ends for
    transformed labels are transformed back, which keeps the probability of a monotone transformation.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pyspar import BayesSpARRegressor, predict_interval
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> pipe = make_pipeline(StandardScaler(), BayesSpARRegressor()).fit(X, X[:, 0] + rng.normal(size=50))
    >>> low, high = predict_interval(pipe, X, level=0.8)
    >>> low.shape, bool((low < high).all())
    ((50,), True)
    """
    check_level(level)
    part = find_regressor(model, Z)
    ends = [part.to_labels(end) for end in part.regressor.predict_interval(part.Z, level)]
    return np.minimum(*ends), np.maximum(*ends)


@dataclass(frozen=True)
class InnerRegressor:
    """The regressor inside a model, the target rows that it receives, and the transformers of its labels."""

    regressor: AdaptableRegressor
    Z: Any
    transformers: tuple[Any, ...] = ()

    def to_labels(self, values: Any) -> Any:
        """Return values of the regressor in the units of the model's labels."""
        for transformer in reversed(self.transformers):
            values = np.asarray(values, dtype=np.float64)
            flat = transformer.inverse_transform(
                values.reshape(len(values), -1) if values.ndim > 1 else values[:, None]
            )
            values = np.asarray(flat).reshape(values.shape)
        return values


def find_regressor(model: Any, Z: Any) -> InnerRegressor:
    """Return the regressor inside a fitted model, with the target as it receives it."""
    transformers: list[Any] = []
    while True:
        if isinstance(model, BaseSearchCV):
            model = _best_of(model)
        elif isinstance(model, TransformedTargetRegressor):
            check_is_fitted(model)
            transformers.append(model.transformer_)
            model = model.regressor_
        elif isinstance(model, Pipeline):
            model, Z = _split_pipeline(model, Z)
        elif isinstance(model, AdaptableRegressor):
            check_is_fitted(model)
            return InnerRegressor(model, Z, tuple(transformers))
        else:
            raise TypeError(
                f"model must be or contain a SpARRegressor or a BayesSpARRegressor, got {type(model).__name__}; for "
                "other regressors use pyspar.inspect(model, Z, source=(X, y))"
            )


def last_step(pipe: Pipeline, Z: Any) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline, and the target as the earlier steps transform it."""
    name, last = pipe.steps[-1]
    if not hasattr(last, "adapted"):
        raise TypeError(
            f"the last step of the pipeline must be a regressor that can be adapted, got {name!r} "
            f"({type(last).__name__}); end the pipeline with BayesSpARRegressor()"
        )
    check_is_fitted(last)
    return _split_pipeline(pipe, Z)


def output_names(pipe: Pipeline) -> tuple[str, ...] | None:
    """Return the names of the features after the earlier steps; None if a step does not provide names."""
    if len(pipe.steps) == 1:
        return None
    try:
        names = pipe[:-1].get_feature_names_out()
    except (AttributeError, ValueError):  # a step without feature names
        return None
    return None if names is None else tuple(map(str, names))


def _split_pipeline(pipe: Pipeline, Z: Any) -> tuple[Any, Any]:
    if isinstance(Z, Moments):
        raise TypeError("Moments cannot be transformed by the earlier steps; pass the rows, or adapt the last step")
    return pipe.steps[-1][1], pipe[:-1].transform(Z) if len(pipe.steps) > 1 else Z


def _best_of(search: BaseSearchCV) -> Any:
    check_is_fitted(search)
    if not hasattr(search, "best_estimator_"):
        raise ValueError(f"{type(search).__name__} has no best estimator; fit it with refit=True")
    return search.best_estimator_


def _adapt(model: Any, Z: Any) -> Any:
    """Return an adapted copy of a regressor, or of a pipeline or transformed regressor that contains one."""
    if isinstance(model, TransformedTargetRegressor):
        check_is_fitted(model)
        adapted = copy.copy(model)
        adapted.regressor_ = _adapt(model.regressor_, Z)
        return adapted
    if not isinstance(model, Pipeline):
        if not hasattr(model, "adapted"):
            raise TypeError(f"the regressor must be one that can be adapted, got {type(model).__name__}")
        return model.adapted(Z)
    nested = isinstance(model.steps[-1][1], (Pipeline, TransformedTargetRegressor))
    last, transformed = _split_pipeline(model, Z) if nested else last_step(model, Z)
    steps = [*model.steps[:-1], (model.steps[-1][0], _adapt(last, transformed))]
    return Pipeline(steps, memory=model.memory, verbose=model.verbose)


def _in_units_of_labels(forecast: Forecast, part: InnerRegressor) -> Forecast:
    """Return a forecast for transformed labels in the units of the original labels.

    All errors are multiplied by the ratio of the expected root mean squared errors in both units, given the
    distribution of each row's label. For a linear transformation this is exact.
    """
    rows = part.regressor._rows(part.Z)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MAX_TRANSFORMED_ROWS)).round().astype(int))]
    prediction = np.asarray(part.regressor.predict(rows))
    original = part.to_labels(prediction)

    def squares(labels: Any, at: slice, k: int) -> list[Vector]:
        wide = labels.scale * np.sqrt(labels.degrees / (labels.degrees - 2.0) if labels.degrees > 2.0 else 1.0)
        before, after = np.zeros(labels.centre.shape[1]), np.zeros(labels.centre.shape[1])
        for node, share in zip(_NODES, _SHARES / _SHARES.sum(), strict=True):
            values: Matrix = labels.centre + node * wide
            back = part.to_labels(values.ravel()).reshape(values.shape)
            before += share * np.square(values - prediction[at]).mean(axis=0)
            after += share * np.square(back - original[at]).mean(axis=0)
        return [before, after]

    before, after = (values.mean() for values in part.regressor._per_row(rows, squares, 2))
    ratio = float(np.sqrt(after / before)) if before > 0.0 else 1.0
    changed: dict[str, Any] = {
        name: getattr(forecast, name) * ratio**2 for name in ("variance", "bias", "noise", "between_groups")
    }
    changed |= {name: getattr(forecast, name) * ratio for name in ("rmse", "rmse_noiseless")}
    for level in ("interval80", "interval95"):
        for name in (level, f"{level}_noiseless", f"{level}_if_linear"):
            changed[name] = tuple(end * ratio for end in getattr(forecast, name))
    return replace(forecast, **changed)
