"""Forecasts for any fitted regressor, such as boosting or a forest, given its source rows.

The error at home is that of cross-validation on the source, which leaves whole groups out if the rows have groups. It
is also the expected error on the target. The interval comes from experience with real shifts
(:mod:`pyspar.estimators.experience`), by how well source and target rows can be distinguished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.forecast import LEVELS, Forecast, Interval
from pyspar.core.moments import Moments
from pyspar.core.separation import Separation, measure_separation
from pyspar.errors import InputError
from pyspar.estimators.experience import BaseRate, Outcome, base_rate, judge_outcome, rmse_interval
from pyspar.estimators.groups import check_groups, is_missing
from pyspar.estimators.row_features import name_regressor
from pyspar.inspection.findings import find_moved_columns
from pyspar.sources import moments_of
from pyspar.sources.kinds import refuse_unread_tables
from pyspar.terminal import SILENT, Progress

FOLDS = 5
MAX_CATEGORIES = 100
"""Of each column, for the separation; less frequent categories are one category."""


@dataclass(frozen=True)
class RegressorForecast:
    """The forecast for one output of any regressor.

    Attributes
    ----------
    forecast : Forecast
        The expected RMSE on the target, with calibrated intervals. Its parts are unknown (NaN).
    home : float
        The cross-validated RMSE on the source.
    separation : Separation
    outcome : {"hurts", "no-shift", "unverified", "unknown"}
        "hurts" does not occur: without labels, nothing shows how much the error of an unknown model grows.
    base_rate : BaseRate
    unseen : dict of column to share
        The columns with categories that the source does not have, and the share of target rows with such categories.
    moved : dict of column to distance
        The columns whose mean moved by more than three source standard deviations, and by how many.
    n_source, n_target, n_folds : int
    has_groups : bool
    """

    forecast: Forecast
    home: float
    separation: Separation
    outcome: Outcome
    base_rate: BaseRate
    unseen: dict[str, float]
    moved: dict[str, float]
    n_source: int
    n_target: int
    n_folds: int
    has_groups: bool


def forecast_regressor(
    model: Any, Z: Any, *, source: tuple[Any, Any], groups: Any = None, progress: Progress = SILENT
) -> tuple[RegressorForecast, ...]:
    """Forecast the error of any fitted regressor on a target without labels, for each output.

    Parameters
    ----------
    model : fitted scikit-learn regressor
        Clones of it are fitted for cross-validation. The model itself is not changed.
    Z : array, data frame or sparse matrix
        Target rows that ``model.predict`` accepts.
    source : pair (X, y)
        The rows and labels that the model was fitted on. Columns may be of mixed types.
    groups : array of shape (n,), optional
        The group of each source row. Rows of one group are never in both parts of a split.
    progress : Progress
    """
    if not hasattr(model, "predict"):
        raise TypeError(
            f"the model must be a fitted regressor, got {type(model).__name__} without predict; end a pipeline with a "
            "regressor"
        )
    check_is_fitted(model)
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        raise InputError(f"source must be a pair (X, y) of rows and labels, got {type(source).__name__}")
    X, y = source[0], np.asarray(source[1], dtype=np.float64)
    for rows in (X, Z):
        refuse_unread_tables(rows)
    n, m = int(np.shape(X)[0]), int(np.shape(Z)[0])
    if y.ndim not in (1, 2) or len(y) != n or not np.isfinite(y).all():
        raise InputError(f"y must have one finite label for each of {n} source rows, got shape {y.shape}")
    if m < 1 or n < 2 * FOLDS:
        raise InputError(f"at least {2 * FOLDS} source rows and one target row are needed, got {n} and {m}")
    moments, target, names, unseen = _encode(X, Z)
    moved = find_moved_columns(moments, target, names)
    splits = list(_split(X, groups))
    squares = np.square(_left_out_errors(model, X, y, splits, progress))
    separation = measure_separation(moments, target)
    return tuple(
        RegressorForecast(
            *_forecast_output(name_regressor(model), squares[:, k], m, separation, bool(unseen)),
            unseen=unseen,
            moved=moved,
            n_source=n,
            n_target=m,
            n_folds=len(splits),
            has_groups=groups is not None,
        )
        for k in range(squares.shape[1])
    )


def _forecast_output(
    name: str, squares: Vector, m: int, separation: Separation, unseen: bool
) -> tuple[Forecast, float, Separation, Outcome, BaseRate]:
    n, home = len(squares), float(np.sqrt(squares.mean()))
    # The standard error of the log RMSE of m new rows, and of its estimate from n rows.
    error = 0.5 * float(squares.std()) / max(home**2, np.finfo(np.float64).tiny) * np.sqrt(1.0 / n + 1.0 / m)

    def interval(level: float) -> Interval:
        reach = float(np.exp(NormalDist().inv_cdf((1.0 + level) / 2.0) * error))
        return rmse_interval(level, home, (home / reach, home * reach), separation, "any")

    nan = float("nan")
    interval80, interval95 = map(interval, LEVELS)
    forecast = Forecast(name, home, interval80, interval95, nan, (nan, nan), (nan, nan), nan, nan, nan)
    outcome = judge_outcome(expected=home, home=home, separation=separation, unseen=unseen)
    return forecast, home, separation, outcome, base_rate(outcome, separation, "any")


def _split(X: Any, groups: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the row numbers of both parts of each split of the source."""
    rows = np.zeros((int(np.shape(X)[0]), 1))
    if groups is None:
        yield from KFold(FOLDS, shuffle=True, random_state=0).split(rows)
        return
    names = check_groups(groups, X)
    count = len(set(names))
    if count < 2:
        raise InputError(f"groups must contain at least 2 groups, got {count}")
    yield from GroupKFold(min(FOLDS, count)).split(rows, groups=names)


def _left_out_errors(model: Any, X: Any, y: Matrix, splits: list[tuple[Any, Any]], progress: Progress) -> Matrix:
    """Return the error of each source row by a clone that was fitted without it, of shape (n, outputs)."""
    errors = np.zeros((len(y), 1 if y.ndim == 1 else y.shape[1]))
    progress.start("cross-validation", f"cross-validating {name_regressor(model)}", total=len(splits), unit="folds")
    for done, (kept, left_out) in enumerate(splits, start=1):
        fitted = clone(model).fit(_safe_indexing(X, kept), y[kept])
        predicted = np.asarray(fitted.predict(_safe_indexing(X, left_out)), dtype=np.float64)
        errors[left_out] = (predicted.reshape(y[left_out].shape) - y[left_out]).reshape(len(left_out), -1)
        progress.advance("cross-validation", done)
    progress.finish("cross-validation")
    return errors


def _encode(X: Any, Z: Any) -> tuple[Moments, Moments, list[str], dict[str, float]]:
    """Return the moments of source and target rows as numbers, their names, and shares of unseen categories.

    Missing numbers are replaced by the source mean and marked by a further column. Text has a column per category.
    """
    if hasattr(X, "tocsr"):
        return moments_of(X), moments_of(Z), [f"x{j}" for j in range(X.shape[1])], {}
    X, Z = (rows if hasattr(rows, "columns") else np.asarray(rows) for rows in (X, Z))
    if np.ndim(X) != 2 or np.ndim(Z) != 2 or X.shape[1] != Z.shape[1]:
        raise InputError(f"source and target must have the same columns, got shapes {np.shape(X)} and {np.shape(Z)}")
    names = list(map(str, getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])])))
    if hasattr(Z, "columns") and hasattr(X, "columns") and list(map(str, Z.columns)) != names:
        raise InputError("source and target must have the same columns in the same order")
    parts: list[tuple[Matrix, Matrix]] = []
    unseen: dict[str, float] = {}
    for j, name in enumerate(names):
        one, two = (rows.iloc[:, j] if hasattr(rows, "iloc") else rows[:, j] for rows in (X, Z))
        numbers = [_as_numbers(values) for values in (one, two)]
        if numbers[0] is not None and numbers[1] is not None:
            parts.append(_impute(numbers[0], numbers[1]))
            continue
        texts = [np.array(["" if is_missing(v) else str(v) for v in values], dtype=object) for values in (one, two)]
        new = ~np.isin(texts[1], np.unique(texts[0]))
        if new.any():
            unseen[name] = float(new.mean())
        kinds, counts = np.unique(np.concatenate(texts), return_counts=True)
        kinds = kinds[np.argsort(-counts, kind="stable")][:MAX_CATEGORIES]
        parts.append(tuple(np.equal.outer(text, kinds).astype(np.float64) for text in texts))
    encoded = [np.column_stack([part[i] for part in parts]) for i in (0, 1)]
    features = [name for name, (one, _) in zip(names, parts, strict=True) for _ in range(one.shape[1])]
    return Moments.of(encoded[0]), Moments.of(encoded[1]), features, unseen


def _as_numbers(values: Any) -> Vector | None:
    """Return a column as float64, with NaN for missing numbers, or None for text."""
    kind = str(getattr(values, "dtype", "object")).lower()
    if kind.startswith("datetime"):
        return np.asarray(values, dtype="datetime64[s]").astype(np.float64)
    if not kind.startswith(("bool", "int", "uint", "float", "double")):
        return None
    if hasattr(values, "iloc"):  # a series of pandas, which may have its own mark of missing values
        return np.asarray(values.to_numpy(dtype="float64", na_value=np.nan))
    return np.asarray(values, dtype=np.float64)


def _impute(one: Vector, two: Vector) -> tuple[Matrix, Matrix]:
    known = np.isfinite(one)
    mean = float(one[known].mean()) if known.any() else 0.0
    filled = [np.where(np.isfinite(values), values, mean) for values in (one, two)]
    if known.all() and np.isfinite(two).all():
        return filled[0][:, None], filled[1][:, None]
    marks = [(~np.isfinite(values)).astype(np.float64) for values in (one, two)]
    return np.column_stack([filled[0], marks[0]]), np.column_stack([filled[1], marks[1]])
