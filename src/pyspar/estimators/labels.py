"""Labels of some target rows: choose the rows, read the labels, and compute predictions and features of the rows."""

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

from pyspar.estimators.pipelines import name_regressor, split_model
from pyspar.estimators.validation import is_missing
from pyspar.sources import refuse_dates, refuse_large, refuse_unread_tables
from pyspar.text import format_number, list_some

Array = NDArray[np.float64]
Positions = NDArray[np.intp]

MAX_CATEGORIES = 50
"""The maximum number of features of a text column. The rarest categories share one of them."""
MISSING_CATEGORY = "(missing)"


@dataclass(frozen=True, eq=False)
class LabelChoice:
    """Rows to label, in an order whose first rows are also a choice of fewer rows."""

    rows: Positions  # in the target
    reasons: tuple[str, ...]  # one for each row

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "\n".join(f"row {row}: {reason}" for row, reason in zip(self.rows, self.reasons))


def rows_to_label(model: Any, Z: Any, n: int = 10, *, exclude: Any = (), random_state: Any = 0) -> LabelChoice:
    """Choose target rows to label for :class:`pyspar.TargetCorrection`, spread over the range of the predictions.

    The target is divided into n intervals between quantiles of the prediction, and a random row of each is chosen.
    Every row is equally probable, so the rows are also a fair sample to measure the error of the model.
    The first row is in the middle interval, the next two in the middles of both halves, and so on.

    Parameters
    ----------
    model : fitted regressor, torch module, or array of predictions of shape (m,) or (m, K)
        For several outputs, the first principal component of their standardised predictions is used.
    Z : array, sparse matrix or data frame of shape (m, D)
    n : int, default 10
    exclude : iterable of row positions, or a mask of shape (m,), optional
        Rows that are not chosen, for example because their labels are known.
    random_state : int, RandomState, Generator or None, default 0

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from pyspar import rows_to_label
    >>> X = np.arange(11.0)[:, None]
    >>> model = LinearRegression().fit(X, X[:, 0])
    >>> rows_to_label(model, X, n=3).rows
    array([4, 0, 8])
    """
    refuse_unread_tables(Z)
    m = count_rows(Z)
    if not (hasattr(model, "shape") and not hasattr(model, "predict")):
        check_model(model)
    value, name = _one_value(read_predictions(model, Z, m))
    free = np.ones(m, dtype=bool)
    free[_read_positions(exclude, m)] = False
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= free.sum():
        raise ValueError(f"n must be an integer from 1 to the {int(free.sum())} rows that can be labelled, got {n!r}")
    if isinstance(random_state, np.random.Generator):
        random_state = np.random.RandomState(random_state.bit_generator)
    rng = check_random_state(random_state)
    shuffled = rng.permutation(m)
    order = shuffled[np.argsort(value[shuffled], kind="stable")]
    rank, place = np.empty(m), np.full(m, np.nan)
    rank[order] = (np.arange(m) + 0.5) / m
    place[order[free[order]]] = (np.arange(free.sum()) + 0.5) / free.sum()
    chosen: list[int] = []
    for step in _spread_order(int(n)):
        rows = np.flatnonzero(free)
        row = int(rows[np.argmin(np.abs(place[rows] - (step + rng.random_sample()) / n))])
        chosen.append(row)
        free[row] = False
    reasons = [f"{name} {format_number(value[i])}, at the {rank[i]:.0%} quantile of the target" for i in chosen]
    return LabelChoice(np.array(chosen), tuple(reasons))


def read_labels(y: Any, rows: int, owner: str, name: str = "y", *, outputs: int | None = None) -> tuple[Array, int]:
    """Return labels of shape (rows, K), with NaN where unknown, and the dimension of y.

    ``name`` is that of the argument in messages. ``outputs`` is the required number of columns.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None; use NaN for unknown labels")
    if isinstance(y, Mapping):
        y = _from_mapping(y, rows, name)
    refuse_dates(name, y)
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    if str(getattr(y, "dtype", "")) == "object" and y.ndim == 1:
        y = np.array([np.nan if is_missing(label) else label for label in y], dtype=object)
    y = check_array(
        y, ensure_2d=False, ensure_all_finite="allow-nan", ensure_min_samples=0, dtype=None, input_name=name
    )
    if y.ndim > 2 or y.ndim == 0:
        raise ValueError(f"{name} must have one or two dimensions, got shape {y.shape}")
    try:
        labels = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain numbers, or NaN where a label is unknown ({error})") from None
    if len(labels) != rows:
        raise ValueError(
            f"{name} must have one entry for each of {rows} rows, NaN where the label is unknown, got {len(labels)}; "
            f"pass {name} as {{row position: label}}"
        )
    if np.isinf(labels).any():
        raise ValueError(f"Input {name} contains infinity or a value too large for dtype('float64').")
    refuse_large(name, labels)
    labels = labels.reshape(rows, -1)
    if outputs is not None and labels.shape[1] != outputs:
        raise ValueError(f"{name} must have one column for each of {outputs} output(s), got {labels.shape[1]}")
    return labels, y.ndim


def check_index(Z: Any, y: Any) -> None:
    """Raise ValueError if rows and labels have a pandas index and disagree.

    The index 0, 1, ... agrees with every other index, unless both have the same labels in another order.
    """
    index: Any = getattr(Z, "index", None)
    own: Any = getattr(y, "index", None)
    if type(index).__module__.partition(".")[0] != "pandas":
        return
    count = import_module("pandas").RangeIndex
    if type(own).__module__.partition(".")[0] != "pandas" or index.equals(own):
        return
    if set(index) != set(own) and any(labels.equals(count(len(labels))) for labels in (index, own)):
        return
    difference = next((f"row {i}: {a!r} and {b!r}" for i, (a, b) in enumerate(zip(index, own)) if a != b), "lengths")
    raise ValueError(
        f"Z and y must have the same index, got different ones ({difference}); pass y.reindex(Z.index) to match them "
        "by index, or y.to_numpy() if they have the same order"
    )


def check_model(model: Any) -> None:
    """Raise an error for a model that has no ``predict``, is a classifier or is not fitted."""
    if isinstance(model, type) or not (hasattr(model, "predict") or _is_network(model)):
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model must be a fitted regressor with predict, got {got}; fit one first")
    if isinstance(model, BaseEstimator):
        if is_classifier(model):
            got = name_regressor(model)
            raise TypeError(f"model must be a regressor, got the classifier {got}; labels must be numbers")
        if hasattr(model, "fit"):
            check_is_fitted(model)


def _is_network(model: Any) -> bool:
    """Return whether a model is a torch module, without importing torch."""
    return not hasattr(model, "predict") and hasattr(model, "state_dict") and callable(model)


def read_predictions(model: Any, Z: Any, rows: int, outputs: int | None = None) -> Array:
    """Return the model's predictions of shape (rows, K). An array counts as the predictions themselves."""
    given = hasattr(model, "shape") and not hasattr(model, "predict")
    values = model if given else _run_network(model, Z) if _is_network(model) else model.predict(Z)
    prediction = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    name = "the predictions" if given else "model.predict"
    if prediction.dtype.kind not in "biufO":
        raise ValueError(f"{name} must return numbers, got {prediction.dtype} from {type(model).__name__}")
    prediction = prediction.astype(np.float64)
    if prediction.ndim not in (1, 2) or len(prediction) != rows:
        raise ValueError(f"{name} must return one prediction for each of {rows} rows, got {prediction.shape}")
    if not np.isfinite(prediction).all():
        raise ValueError(f"{name} must return finite numbers, got NaN or infinity from {type(model).__name__}")
    refuse_large("the predictions", prediction)
    prediction = prediction.reshape(rows, -1)
    if outputs is not None and prediction.shape[1] != outputs:
        raise ValueError(
            f"y must have one column for each of the model's {prediction.shape[1]} output(s), got {outputs}"
        )
    return prediction


def _run_network(model: Any, Z: Any, batch: int = 256) -> Array:
    """Return the outputs of a torch module, which is left as it was."""
    torch = import_module("torch")
    first = next(iter(model.parameters()), torch.zeros(()))
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            blocks = (torch.as_tensor(np.asarray(Z[i : i + batch])).to(first) for i in range(0, len(Z), batch))
            return np.concatenate([model(block).cpu().double().numpy() for block in blocks])
    finally:
        for part, mode in modes:
            part.training = mode


def count_rows(Z: Any) -> int:
    """Return the number of rows of an array, a data frame, a sparse matrix or a list."""
    if not hasattr(Z, "shape") and not isinstance(Z, (list, tuple)):
        raise TypeError(f"Z must contain target rows, as for the model's predict, got {type(Z).__name__}")
    return int(Z.shape[0]) if len(getattr(Z, "shape", ())) > 1 else len(Z)


def is_frame(Z: Any) -> bool:
    """Return whether rows are a pandas or polars data frame."""
    return hasattr(Z, "columns") and hasattr(Z, "dtypes")


def fit_features(features: Any, model: Any, rows: Any) -> Any:
    """Return the fitted transformer of the features; ``features`` is the parameter of ``TargetCorrection``."""
    steps, _ = split_model(model)
    if features is None and steps is not None:
        impute = SimpleImputer(keep_empty_features=True).fit(steps.transform(rows))
        return Pipeline([("steps", steps), ("impute", impute)])  # the regressor may accept NaN, for example boosting
    if features is not None:
        try:
            check_is_fitted(features)
            return features
        except NotFittedError:
            return clone(features).fit(rows)
    return _encode_columns(rows).fit(rows)


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


def flatten_rows(Z: Any) -> Any:
    """Return rows of any dimension, for example images, as rows of numbers."""
    return np.asarray(Z).reshape(len(Z), -1)


def _encode_columns(Z: Any) -> Any:
    """Return the unfitted encoding of the rows' own columns."""
    numbers = SimpleImputer(keep_empty_features=True)
    if not is_frame(Z):
        return numbers if Z.ndim == 2 else Pipeline([("flat", FunctionTransformer(flatten_rows)), ("numbers", numbers)])
    if hasattr(Z, "select_dtypes"):
        dates = list(Z.select_dtypes(include=["datetime", "datetimetz", "timedelta"]).columns)
        numeric = list(Z.select_dtypes(include=["number", "bool"], exclude=["timedelta"]).columns)
    else:
        select = import_module("polars.selectors")
        numeric, dates = Z.select(select.numeric() | select.boolean()).columns, Z.select(select.temporal()).columns
    used = {*numeric, *dates}
    words = [name for name in Z.columns if name not in used]
    encode = OneHotEncoder(handle_unknown="ignore", max_categories=MAX_CATEGORIES, sparse_output=False)
    text = Pipeline([("text", TextColumns()), ("encode", encode)])
    return ColumnTransformer([("numbers", numbers, numeric), ("words", text, words)], sparse_threshold=0.0)


def _from_mapping(y: Mapping[Any, Any], rows: int, name: str) -> Array:
    """Return labels by row position as an array. A row may have labels of some outputs only, with NaN for others."""
    positions = {p for p in y if isinstance(p, (int, np.integer)) and not isinstance(p, bool) and 0 <= p < rows}
    if unknown := [p for p in y if p not in positions]:
        raise ValueError(f"{name} must map row positions from 0 to {rows - 1} to labels, got {list_some(unknown)}")
    values: list[Any] = [np.nan if np.ndim(label) == 0 and is_missing(label) else label for label in y.values()]
    width = max((np.size(label) for label in values), default=1)
    labels = np.full((rows, width) if any(map(np.ndim, values)) else rows, np.nan)
    for position, label in zip(y, values):
        if np.ndim(label) and np.size(label) != width:
            raise ValueError(f"{name} must have labels of one shape, got {label!r} for row {position}")
        try:
            labels[position] = [np.nan if is_missing(one) else one for one in label] if np.ndim(label) else label
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must contain numbers, got {label!r} for row {position} ({error})") from None
    return labels


def _spread_order(n: int) -> list[int]:
    """Return 0 to n - 1 in an order whose first elements are spread: the middle, then the middles of the halves."""
    order, parts = [], [(0, n)]
    for low, high in parts:  # which grows
        if low < high:
            middle = (low + high) // 2
            order.append(middle)
            parts += [(low, middle), (middle + 1, high)]
    return order


def _one_value(prediction: Array) -> tuple[Array, str]:
    """Return the prediction, or the first principal component of several standardised outputs, and its name."""
    if prediction.shape[1] == 1:
        return prediction[:, 0], "prediction"
    spread = prediction.std(axis=0)
    centred = (prediction - prediction.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ vectors[:, -1]), "score of all outputs"


def _read_positions(rows: Any, m: int) -> Positions:
    positions = np.asarray(rows if hasattr(rows, "shape") or not isinstance(rows, Iterable) else list(rows))
    if positions.dtype == np.bool_ and positions.shape == (m,):
        return np.flatnonzero(positions)
    is_valid = positions.ndim == 1 and (not positions.size or positions.dtype.kind in "iu")
    if not is_valid or ((positions < 0) | (positions >= m)).any():
        got = f"{positions.dtype} {rows!r}"
        raise ValueError(f"exclude must contain row positions from 0 to {m - 1}, or be a mask of {m} rows, got {got}")
    return positions.astype(np.intp)
