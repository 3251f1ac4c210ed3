"""Labels of some target rows: which rows to label, and labels, predictions and features of rows as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from pyspar.core.moments import column_names
from pyspar.estimators.pipelines import name_regressor, split_model
from pyspar.estimators.validation import has_numbers, is_frame, is_missing
from pyspar.sources import refuse_dates, refuse_large, refuse_unread_tables
from pyspar.text import format_number, list_some

Array = NDArray[np.float64]

MAX_CATEGORIES = 50  # the maximum number of features of a text column; the rarest categories share one of them
MISSING_CATEGORY = "(missing)"
READ_OPTIONS: dict[str, Any] = {"dtype": np.float64, "ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0}


@dataclass(frozen=True, eq=False)
class LabelChoice:
    """Rows to label, in an order whose first rows are also a choice of fewer rows."""

    rows: NDArray[np.intp]  # positions in the target
    reasons: tuple[str, ...]  # one for each row

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "\n".join(f"row {row}: {reason}" for row, reason in zip(self.rows, self.reasons))


def rows_to_label(model: Any, Z: Any, n: int = 10, *, exclude: Any = (), random_state: Any = 0) -> LabelChoice:
    """Choose target rows to label for :class:`pyspar.TargetCorrection`, spread over the range of the predictions.

    A random row of each of n intervals between quantiles of the prediction is chosen. Rows are about equally probable,
    so the error on these rows estimates the error on the target with little bias.

    Parameters
    ----------
    model : fitted regressor, torch module, or array of predictions of shape (m,) or (m, K)
        Rows are sorted by the sum of several outputs, each divided by its standard deviation.
    Z : array, sparse matrix or data frame of shape (m, D)
    n : int, default 10
    exclude : iterable of the positions of rows that are not chosen, optional
    random_state : int, RandomState or None, default 0

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from pyspar import rows_to_label
    >>> X = np.arange(11.0)[:, None]
    >>> model = LinearRegression().fit(X, X[:, 0])
    >>> rows_to_label(model, X, n=3).rows
    array([4, 0, 8])
    """
    refuse_unread_tables(Z)
    m = count_rows(Z)
    prediction = read_predictions(model, Z, m)
    spread = prediction.std(axis=0)
    value = (prediction / np.where(spread > 0.0, spread, 1.0)).sum(axis=1)
    excluded = np.array(list(exclude) if isinstance(exclude, Iterable) else exclude)
    if excluded.size and (excluded.ndim != 1 or excluded.dtype.kind not in "iu" or not set(excluded) <= set(range(m))):
        raise ValueError(f"exclude must contain row positions from 0 to {m - 1}, got {exclude!r}")
    free = np.isin(np.arange(m), excluded, invert=True)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= free.sum():
        raise ValueError(f"n must be an integer from 1 to the {free.sum()} rows that can be labelled, got {n!r}")
    rng = check_random_state(random_state)
    order = rng.permutation(m)  # equal predictions are in random order
    order = order[np.argsort(value[order], kind="stable")]
    rank = dict(zip(order.tolist(), (np.arange(m) + 0.5) / m))
    left, place, chosen = order[free[order]], (np.arange(free.sum()) + 0.5) / free.sum(), []
    for step in _spread_order(int(n)):
        nearest = int(np.argmin(np.abs(place - (step + rng.random_sample()) / n)))
        chosen.append(int(left[nearest]))
        left, place = np.delete(left, nearest), np.delete(place, nearest)
    values = (", ".join(map(format_number, prediction[i])) for i in chosen)
    reasons = tuple(f"prediction {of}, at the {rank[i]:.0%} quantile of the target" for i, of in zip(chosen, values))
    return LabelChoice(np.array(chosen), reasons)


def _spread_order(n: int) -> list[int]:
    """Return 0 to n - 1: the middle, then the middles of both halves, and so on."""
    order, parts = [], [(0, n)]
    for low, high in parts:  # which grows
        if low < high:
            order.append(middle := (low + high) // 2)
            parts += [(low, middle), (middle + 1, high)]
    return order


def read_labels(y: Any, rows: int, owner: str, name: str = "y", *, outputs: int | None = None) -> tuple[Array, int]:
    """Return labels of shape (rows, K), with NaN where unknown, and the dimension of y, called ``name`` in messages."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None; use NaN for unknown labels")
    y = _fill_unknown(y, rows, name) if isinstance(y, Mapping) else y
    refuse_dates(name, y)
    y = np.ma.filled(y.astype(np.float64), np.nan) if isinstance(y, np.ma.MaskedArray) else y
    if str(getattr(y, "dtype", "")) == "object":
        y = np.array([np.nan if is_missing(label) else label for label in np.ravel(y)]).reshape(y.shape)
    try:
        labels = np.atleast_1d(check_array(y, **READ_OPTIONS, ensure_all_finite="allow-nan", input_name=name))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain numbers, NaN where a label is unknown: {error}") from None
    if labels.ndim not in (1, 2) or len(labels) != rows:
        expected = f"{name} must have one entry for each of {rows} rows, NaN if unknown, or be {{row position: label}}"
        raise ValueError(f"{expected}, got {len(labels)} entries of shape {labels.shape[1:]}")
    refuse_large(name, labels)
    columns = labels.reshape(rows, -1)
    if outputs is not None and columns.shape[1] != outputs:
        raise ValueError(f"{name} must have one column for each of {outputs} output(s), got {columns.shape[1]}")
    return columns, labels.ndim


def _fill_unknown(y: Mapping[Any, Any], rows: int, name: str) -> Array:
    """Return labels by row position as an array of objects, with NaN for the other rows."""
    positions = {p for p in y if isinstance(p, (int, np.integer)) and not isinstance(p, bool) and 0 <= p < rows}
    if unknown := [p for p in y if p not in positions]:
        raise ValueError(f"{name} must map row positions from 0 to {rows - 1} to labels, got {list_some(unknown)}")
    if len(shapes := {np.shape(label) for label in y.values()}) > 1:
        raise ValueError(f"{name} must have labels of one shape, got the shapes {list_some(sorted(shapes))}")
    labels = np.full((rows, *next(iter(shapes), ())), np.nan, dtype=object)
    for position, label in y.items():
        labels[position] = label
    return labels


def check_index(Z: Any, y: Any) -> None:
    """Raise ValueError for different pandas indexes, unless one of them is 0, 1, ... and they have no common entry."""
    index: Any = getattr(Z, "index", None)
    own: Any = getattr(y, "index", None)
    if not (hasattr(index, "equals") and hasattr(own, "equals")) or index.equals(own):
        return
    if set(index).isdisjoint(own) and any(list(labels) == list(range(len(labels))) for labels in (index, own)):
        return
    difference = next((f"row {i}: {a!r} and {b!r}" for i, (a, b) in enumerate(zip(index, own)) if a != b), "lengths")
    raise ValueError(
        f"Z and y must have the same index, got different ones ({difference}); pass y.reindex(Z.index) to match them "
        "by index, or y.to_numpy() if they have the same order"
    )


def check_model(model: Any, owner: str = "model") -> None:
    """Raise an error for a model that has no ``predict``, is a classifier or is not fitted."""
    if isinstance(model, type) or not (hasattr(model, "predict") or _is_network(model)):
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        got += "; pass its .model" if _is_network(getattr(model, "model", None)) else "; fit one first"
        raise TypeError(f"{owner} must be a fitted regressor with predict, got {got}")
    if isinstance(model, BaseEstimator) and is_classifier(model):
        raise TypeError(f"{owner} must be a regressor, got the classifier {name_regressor(model)}")
    if isinstance(model, BaseEstimator) and hasattr(model, "fit"):
        check_is_fitted(model, msg=f"{owner} is not fitted, got a %(name)s; call its fit first")


def _is_network(model: Any) -> bool:
    """Return whether a model is a torch module, without importing torch."""
    return not hasattr(model, "predict") and hasattr(model, "state_dict") and callable(model)


def read_predictions(model: Any, Z: Any, rows: int, outputs: int | None = None, owner: str = "model") -> Array:
    """Return the predictions (rows, K) of a model, named ``owner`` in messages, or of an array of predictions."""
    if hasattr(model, "shape") and not hasattr(model, "predict"):
        name, values = "the predictions", model
    else:
        check_model(model, owner)
        try:
            name, values = f"{owner}.predict", _run_network(model, Z) if _is_network(model) else model.predict(Z)
        except Exception as error:
            error.add_note(f"raised by {owner}.predict")
            raise
    try:
        values = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
        prediction = np.atleast_1d(check_array(values, **READ_OPTIONS))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must return finite numbers, got from {type(model).__name__}: {error}") from None
    if prediction.ndim not in (1, 2) or len(prediction) != rows:
        raise ValueError(f"{name} must return one prediction for each of {rows} rows, got {prediction.shape}")
    refuse_large("the predictions", prediction)
    prediction = prediction.reshape(rows, -1)
    if outputs is not None and prediction.shape[1] != outputs:
        raise ValueError(f"y must have one column for each of {prediction.shape[1]} output(s), got {outputs}")
    return np.asarray(prediction)


def _run_network(model: Any, Z: Any) -> Array:
    """Return the outputs of a torch module, which is left as it was."""
    torch = import_module("torch")
    weight = next(iter(model.parameters()), torch.zeros(()))
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            rows = torch.as_tensor(np.asarray(Z))  # positions in an embedding remain integers
            is_cast = rows.is_floating_point() or not any(isinstance(part, torch.nn.Embedding) for part, _ in modes)
            blocks = (b.to(weight.device, weight.dtype if is_cast else None) for b in rows.split(256))
            outputs = [(model(block), len(block)) for block in blocks]
            if not isinstance(first := outputs[0][0], torch.Tensor):
                raise TypeError(f"a network must return a tensor, got a {type(first).__name__}; wrap it in another one")
            return np.concatenate([part.cpu().double().numpy().reshape(n, -1) for part, n in outputs])
    finally:
        for part, mode in modes:
            part.training = mode


def count_rows(Z: Any) -> int:
    """Return the number of rows of an array, a data frame, a sparse matrix or a list."""
    if not hasattr(Z, "shape") and not isinstance(Z, (list, tuple)):
        raise TypeError(f"Z must contain target rows, as for the model's predict, got {type(Z).__name__}")
    return int(Z.shape[0]) if len(getattr(Z, "shape", ())) > 1 else len(Z)


def fit_features(features: Any, model: Any, rows: Any, counts: Any = None) -> Any:
    """Return the fitted transformer of the features; ``features`` is the parameter of ``TargetCorrection``."""
    steps: Any = split_model(model)[0]
    if features is None and steps is None:
        return _encode_columns(rows).fit(rows, counts)
    if features is None:  # the regressor may accept NaN, for example boosting
        impute = MeanImputer(keep_empty_features=True).fit(steps.transform(rows), counts)
        return Pipeline([("steps", steps), ("impute", impute)])
    try:
        check_is_fitted(features)
        return features
    except NotFittedError:
        return clone(features).fit(rows)


def compute_features(transformer: Any, Z: Any) -> Array:
    """Return the features of rows as finite numbers."""
    features = transformer.transform(Z)
    features = np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)
    if features.ndim != 2 or len(features) != count_rows(Z):
        raise ValueError(f"features must be numbers of shape ({count_rows(Z)}, D), got shape {features.shape}")
    if not np.isfinite(features).all():
        raise ValueError("features must be finite, got NaN or infinity; impute them with the parameter features")
    refuse_large("the features", features)
    return features


class MeanImputer(SimpleImputer):  # type: ignore[misc]  # sklearn is untyped
    """Replace missing numbers by the means of the columns. ``y`` are counts of rows, which a pipeline passes on."""

    def fit(self, X: Any, y: Any = None) -> Self:
        super().fit(X)
        if y is not None and np.ptp(y) > 0.0:
            X = check_array(X.toarray() if hasattr(X, "toarray") else X, dtype=float, ensure_all_finite="allow-nan")
            self.statistics_ = np.ma.filled(np.ma.average(np.ma.masked_invalid(X), axis=0, weights=y), 0.0)
        return self


class TextColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Convert the columns of a data frame to text. Missing values of all kinds are one category."""

    def fit(self, X: Any, y: Any = None) -> Self:
        self.n_features_in_, self.feature_names_in_ = X.shape[1], np.array([*map(str, X.columns)], dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        columns = [[MISSING_CATEGORY if is_missing(value) else str(value) for value in X[name]] for name in X.columns]
        return np.array(columns, dtype=object).T.reshape(X.shape)


def flatten_rows(Z: Any) -> Any:
    """Return rows of any dimension, for example images, as rows of numbers."""
    return np.asarray(Z).reshape(len(Z), -1)


def _encode_columns(Z: Any) -> Any:
    """Return the unfitted encoding of the rows' own columns."""
    numbers = MeanImputer(keep_empty_features=True)
    if not is_frame(Z):
        return numbers if Z.ndim == 2 else Pipeline([("flat", FunctionTransformer(flatten_rows)), ("numbers", numbers)])
    if hasattr(Z, "select_dtypes"):
        numeric = [*Z.select_dtypes(["number", "bool"], exclude="timedelta"), *(k for k in Z if has_numbers(Z[k]))]
        words = Z.select_dtypes(exclude=["datetime", "datetimetz", "timedelta"]).columns.drop(numeric)
        if not column_names(Z):  # names that are integers would be read as positions
            numeric, words = (Z.columns.get_indexer(part) for part in (numeric, words))
    else:
        select = import_module("polars.selectors")
        numeric = Z.select(select.numeric() | select.boolean()).columns
        words = Z.select(~(select.numeric() | select.boolean() | select.temporal())).columns
    encode = OneHotEncoder(handle_unknown="ignore", max_categories=MAX_CATEGORIES, sparse_output=False)
    coded = Pipeline([("text", TextColumns()), ("encode", encode)])
    parts = [("numbers", numbers, [*numeric]), ("words", coded, [*words])]
    return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)
