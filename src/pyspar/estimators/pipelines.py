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
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast
from pyspar.core.moments import Matrix, Moments
from pyspar.errors import warn
from pyspar.estimators.base import AdaptableRegressor
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.unseen_categories import warn_of_unseen
from pyspar.estimators.validation import check_level
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
    pipeline is unchanged.

    Parameters
    ----------
    pipe : Pipeline, TransformedTargetRegressor or fitted search, or any nesting of these
        The innermost regressor is a :class:`BayesSpARRegressor` or :class:`SpARRegressor`. A search is replaced by its
        best estimator. If it compared values of a parameter that has no effect before adapting, such as ``alpha``, a
        SparWarning says so.
    Z : array or data frame
        Target rows, as for the pipeline's ``predict``. With target labels, correct the adapted pipeline with
        :class:`TargetCorrection`.

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

    Parameters
    ----------
    model : fitted BayesSpARRegressor, SpARRegressor or TargetCorrection
        Or a Pipeline, TransformedTargetRegressor or search with one. For other regressors use :func:`pyspar.inspect`
        with ``source=(X, y)``.
    Z : array or data frame
        Target rows, as for the ``predict`` of the model.

    Returns
    -------
    Forecast
        In the units of the labels that the model was fitted to. If y had two dimensions, a list with one forecast per
        output. For transformed labels the expected squared error is integrated over the distribution of each label. A
        regressor that was corrected by target labels returns a ``LabelForecast``.

    Warns
    -----
    SparWarning
        If target rows have categories that a one-hot encoder of the pipeline has not seen. It encodes them as zeros or
        as a rare category, and the forecast does not cover them.

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
    warn_of_unseen(part.preprocessing, Z)
    forecasts: Forecast | list[Forecast] = part.regressor.expected_rmse(part.Z)
    if not part.transformers:
        return forecasts
    if isinstance(forecasts, list):
        raise TypeError("expected_rmse supports transformed labels with one dimension of y only, got two")
    return _in_units_of_labels(forecasts, part)


def predict_interval(model: Any, Z: Any, level: float = 0.9) -> tuple[Any, Any]:
    """Return an interval for each row's label, from a regressor inside a pipeline.

    The parameters are those of :func:`expected_rmse` and of :meth:`BayesSpARRegressor.predict_interval`. The ends for
    transformed labels are transformed back, which keeps the probability of a monotone transformation.
    A SparWarning reports rows with categories that an encoder has not seen, which the intervals do not cover.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pyspar import BayesSpARRegressor
    >>> from pyspar.estimators.pipelines import predict_interval
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> pipe = make_pipeline(StandardScaler(), BayesSpARRegressor()).fit(X, X[:, 0] + rng.normal(size=50))
    >>> low, high = predict_interval(pipe, X, level=0.8)
    >>> low.shape, bool((low < high).all())
    ((50,), True)
    """
    check_level(level)
    part = find_regressor(model, Z)
    warn_of_unseen(part.preprocessing, Z)
    ends: tuple[Any, Any] = part.regressor.predict_interval(part.Z, level)
    if not part.transformers:
        return ends
    low, high = (_transform_back(part, (ends[0] + ends[1]) / 2.0, end) for end in ends)
    return np.minimum(low, high), np.maximum(low, high)


def _transform_back(part: InnerRegressor, prediction: Any, end: Any) -> Any:
    """Return an end of intervals in the units of the labels.

    It is infinite if the transformation is not monotone, or not defined, between prediction and end: an interval of
    1 / y that contains zero has no end on that side.
    """
    path = np.array([part.to_labels(prediction + share * (end - prediction)) for share in np.linspace(0.0, 1.0, 17)])
    with np.errstate(invalid="ignore"):
        steps = np.diff(path, axis=0)
        first = np.where(np.isfinite(steps[0]), np.sign(steps[0]), np.sign(end - prediction))
        is_monotone = np.isfinite(path).all(axis=0) & (steps * first >= 0.0).all(axis=0)
    return np.where(is_monotone, path[-1], first * np.inf)


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
    layers = check_layers(model)
    regressor = layers[-1]
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


def check_layers(model: Any) -> list[Any]:
    """Return the layers of a fitted model; raise TypeError unless its regressor is one of ours."""
    layers = list_layers(model)
    if not isinstance(layers[-1], (AdaptableRegressor, TargetCorrection)):
        raise TypeError(
            f"model must be or contain a SpARRegressor or a BayesSpARRegressor, got {type(layers[-1]).__name__}; for "
            "other regressors use pyspar.inspect(model, Z, source=(X, y))"
        )
    check_is_fitted(layers[-1])
    warn_of_lost_groups(layers)
    return layers


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


def warn_of_lost_groups(layers: list[Any]) -> None:
    """Warn if a search split its rows by groups, but the regressor inside was fitted without these groups."""
    splitters = [layer.cv for layer in layers if isinstance(layer, BaseSearchCV)]
    if any(map(_needs_groups, splitters)) and getattr(layers[-1], "_folds", None) is None:
        warn(
            "the search split the source rows by groups, but scikit-learn did not pass the groups to the regressor, so "
            "the error at home and the forecasts are not those of new groups; pass the groups to "
            "pyspar.inspect(search, Z, source=(X, y), groups=groups), or fit the search with metadata routing and "
            "set_fit_request(groups=True) on the regressor",
        )


def _needs_groups(splitter: Any) -> bool:
    """Return whether a splitter of scikit-learn, such as GroupKFold, requires groups."""
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return bool(splitter.get_metadata_routing().split.requests.get("groups"))


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
    powers = dict.fromkeys(("rmse", "source_rmse", "model_rmse", "rmse_noiseless", "rmse_uncorrected"), 1)
    powers |= dict.fromkeys(("variance", "noise"), 2)
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
    rows = _sample_rows(part.Z)
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


def _sample_rows(rows: Any) -> Any:
    """Return at most ``MAX_TRANSFORMED_ROWS`` evenly spaced rows."""
    n = int(np.shape(rows)[0])
    return _safe_indexing(rows, np.unique(np.linspace(0, n - 1, min(n, MAX_TRANSFORMED_ROWS)).round().astype(int)))
