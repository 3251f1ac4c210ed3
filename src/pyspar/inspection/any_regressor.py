"""The inspection of any fitted regressor, such as boosting or a forest, given its source rows.

The error at home is that of cross-validation on the source, which leaves whole groups out if the rows have groups. It
is also the expected error on the target. The interval comes from experience with real shifts
(:mod:`pyspar.estimators.calibrated_forecasts`), by how well source and target rows can be distinguished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.forecast import Forecast
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.core.separation import Separation, measure_separation
from pyspar.errors import InputError
from pyspar.estimators.calibration import forecast_from_errors
from pyspar.estimators.groups import check_groups
from pyspar.estimators.row_features import (
    compute_features,
    fit_features,
    is_frame,
    name_regressor,
    refuse_classifier,
)
from pyspar.estimators.target_labels import forecast_correction
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS, UnseenRows, summarise_unseen
from pyspar.estimators.validation import is_missing, label_names_of
from pyspar.inspection.compare import lies_outside
from pyspar.inspection.findings import describe_moved, describe_unseen, find_moved_columns
from pyspar.inspection.judgement import Judgement
from pyspar.inspection.results import Inspection, describe_output, join_outputs, name_outputs
from pyspar.inspection.target_rows import SourceLabels, read_target_labels, weigh_evidence
from pyspar.sources import moments_of, refuse_unread_tables

ASSUMPTION = "if the target's error relative to the error at home is like that of earlier shifts"
FOLDS = 5
MAX_CATEGORIES = 100
"""Of each column, for the separation; less frequent categories are one category."""


def inspect_regressor(
    model: Any, Z: Any, *, source: tuple[Any, Any], y: Any, groups: Any, outputs: Sequence[str] | None
) -> Inspection:
    """Return the inspection of any fitted regressor, with the arguments of :func:`pyspar.inspect`.

    The outcome is never "hurts" without labels: nothing shows how much the error of an unknown model grows.
    """
    if not hasattr(model, "predict"):
        raise TypeError(
            f"the model must be a fitted regressor, got {type(model).__name__} without predict; end a pipeline with a "
            "regressor"
        )
    refuse_classifier(model)
    check_is_fitted(model)
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        raise InputError(f"source must be a pair (X, y) of rows and labels, got {type(source).__name__}")
    X, source_y = source[0], np.asarray(source[1], dtype=np.float64)
    for rows in (X, Z):
        refuse_unread_tables(rows)
    n, m = int(np.shape(X)[0]), int(np.shape(Z)[0])
    if source_y.ndim not in (1, 2) or len(source_y) != n or not np.isfinite(source_y).all():
        raise InputError(f"y must have one finite label for each of {n} source rows, got shape {source_y.shape}")
    if m < 1 or n < 2 * FOLDS:
        raise InputError(f"at least {2 * FOLDS} source rows and one target row are needed, got {n} and {m}")
    labels = source_y.reshape(n, -1)
    names = name_outputs(outputs, label_names_of(source[1]), labels.shape[1])
    target_labels = None if y is None else read_target_labels(y, Z, labels.shape[1])
    moments, target, columns, unseen = _encode(X, Z)
    features = None if target_labels is None else _correction_features(model, Z)
    separation = measure_separation(moments, target)
    names_of_groups = None if groups is None else np.array(check_groups(groups, X))
    left_out = _compute_left_out_errors(model, X, source_y, names_of_groups)
    predictions = np.asarray(model.predict(Z), dtype=np.float64).reshape(m, -1)

    inspected, method = [], name_regressor(model)
    for k, name in enumerate(names):
        forecast = _forecast(method, left_out[:, k], m, names_of_groups, separation, float(labels[:, k].std()))
        errors = {} if target_labels is None else {method: SquaredErrors.of(target_labels[:, k] - predictions[:, k])}
        corrected = None
        if target_labels is not None and features is not None:
            corrected = forecast_correction(features, predictions[:, k], target_labels[:, k], method, smooth=True)
        judgement = Judgement(
            forecasts=(forecast,),
            home=forecast.rmse,
            before=method,
            adapted=method,
            separation=separation,
            kind="any",
            home_is_of_groups=groups is not None,
            n_target=m,
            outside=float(lies_outside(moments, target)),
            unseen=unseen,
            evidence=weigh_evidence(errors, forecast.rmse, m),
            corrected=corrected,
        )
        own = labels[:, k]
        known = SourceLabels(float(own.mean()), float(own.std()), (float(own.min()), float(own.max())))
        inspected.append(describe_output(judgement, name, known, {method: predictions[:, k]}))
    return join_outputs(
        inspected,
        [*describe_unseen(unseen), *describe_moved(find_moved_columns(moments, target, columns))],
        n_source=n,
        n_target=m,
        columns=tuple(dict.fromkeys(columns)),
        estimator=repr(model),
        assumption=ASSUMPTION,
    )


def _forecast(name: str, errors: Vector, m: int, groups: Any, separation: Separation, spread: float) -> Forecast:
    """Return the forecast for m target rows, given the errors of cross-validation. Its parts are unknown.

    ``spread`` is the standard deviation of the source labels.
    """
    labels = np.array([-spread, spread])  # temporary
    known = forecast_from_errors(errors[:, None], labels[:, None], kind="regressor", separation=separation, n_target=m)
    return replace(known[0], name=name)


def _compute_left_out_errors(model: Any, X: Any, y: Matrix, groups: Any) -> Matrix:
    """Return the error of each source row by a clone that was fitted without it, of shape (n, outputs)."""
    splitter, options = KFold(FOLDS, shuffle=True, random_state=0), {}
    if groups is not None:
        count = len(np.unique(groups))
        if count < 2:
            raise InputError(f"groups must contain at least 2 groups, got {count}")
        splitter = GroupKFold(min(FOLDS, count))
        # A search passes the groups to its splitter, and a regressor may choose its parameters by them.
        if hasattr(model, "best_estimator_") or (has_fit_parameter(model, "groups") and count > 2):
            options = {"groups": groups}
    errors = np.zeros(y.shape)
    for kept, left_out in splitter.split(y, groups=groups):  # cross_val_predict needs a request for metadata
        fitted = clone(model).fit(_safe_indexing(X, kept), y[kept], **{key: of[kept] for key, of in options.items()})
        predicted = np.asarray(fitted.predict(_safe_indexing(X, left_out)), dtype=np.float64)
        errors[left_out] = predicted.reshape(y[left_out].shape) - y[left_out]
    return errors.reshape(len(y), -1)


def _correction_features(model: Any, Z: Any) -> Matrix | None:
    """Return the features that ``TargetCorrection(model)`` computes, or None for rows that it does not accept."""
    if hasattr(Z, "tocsr"):
        return None
    rows = Z if is_frame(Z) else np.asarray(Z)
    if not is_frame(rows) and rows.dtype.kind not in "biuf":
        return None
    return compute_features(fit_features(None, model, [rows]), rows)


def _encode(X: Any, Z: Any) -> tuple[Moments, Moments, list[str], UnseenRows]:
    """Return the moments of source and target rows as numbers, the column of each, and rows in unseen categories.

    Missing numbers are replaced by the source mean and marked by a further column. Text has a column per category.
    """
    if hasattr(X, "tocsr"):
        return moments_of(X), moments_of(Z), [f"x{j}" for j in range(X.shape[1])], NO_UNSEEN_ROWS
    X, Z = (rows if hasattr(rows, "columns") else np.asarray(rows) for rows in (X, Z))
    if np.ndim(X) != 2 or np.ndim(Z) != 2 or X.shape[1] != Z.shape[1]:
        raise InputError(f"source and target must have the same columns, got shapes {np.shape(X)} and {np.shape(Z)}")
    names = list(map(str, getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])])))
    if hasattr(Z, "columns") and hasattr(X, "columns") and list(map(str, Z.columns)) != names:
        raise InputError("source and target must have the same columns in the same order")
    n, parts, columns = len(X), [], []
    found: list[tuple[str, Any, Any]] = []
    for j, name in enumerate(names):
        both = [rows.iloc[:, j] if hasattr(rows, "iloc") else rows[:, j] for rows in (X, Z)]
        numbers = [column for column in map(_as_numbers, both) if column is not None]
        if len(numbers) == 2:
            part = _impute(np.concatenate(numbers), n)
        else:
            text = np.array(["" if is_missing(v) else str(v) for values in both for v in values], dtype=object)
            found.append((name, text[n:], ~np.isin(text[n:], np.unique(text[:n]))))
            kinds, counts = np.unique(text, return_counts=True)
            part = np.equal.outer(text, kinds[np.argsort(-counts, kind="stable")][:MAX_CATEGORIES])
        parts.append(part)
        columns += [name] * part.shape[1]
    rows = np.column_stack(parts).astype(np.float64, copy=False)
    return Moments.of(rows[:n]), Moments.of(rows[n:]), columns, summarise_unseen(found)


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


def _impute(values: Vector, n: int) -> Matrix:
    """Return a column with the mean of its first n rows for missing numbers, and a mark of them if there are any."""
    is_known = np.isfinite(values)
    source = values[:n][is_known[:n]]
    filled = np.where(is_known, values, source.mean() if source.size else 0.0)
    return filled[:, None] if is_known.all() else np.column_stack([filled, ~is_known])
