"""Validate the arguments of fit, adapt and predict. Nothing in this module changes an estimator."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import hypergeom
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from pyspar.core.moments import EPS64, ExtremeValues, Moments, column_names, measured_eps, refuse_masked
from pyspar.errors import InputError, warn
from pyspar.sources import kind_of, moments_of, refuse_dates
from pyspar.text import list_some

Attributes = dict[str, Any]  # fitted attributes by name, computed but not yet set
READ_OPTIONS: dict[str, Any] = {"dtype": [np.float64, np.float32], "accept_sparse": ("csr", "csc")}
CONFIDENCE = Interval(Real, 0.0, 1.0, closed="both")  # of the parameter ``alpha``
MIN_COUNT = 0.5  # weights that sum to less than this share of the rows are probably not counts, which are at least 1
MISSING_LEVEL = 0.005  # the level of the test of equal shares of missing values


@dataclass(frozen=True, eq=False)
class Source:
    """The validated input of a fit. What is not known is None."""

    moments: Moments
    y_ndim: int  # 1 or 2
    names: Any = None  # of the features
    label_names: Any = None
    label_range: Any = None  # the smallest and the largest label of each output, of shape (2, K)

    def added_to(self, fitted: Any) -> Source:
        """Return this batch and the earlier batches of a fitted estimator as one source."""
        names, before = (getattr(fitted, name, None) for name in ("feature_names_in_", "label_range_"))
        label_range = None
        if before is not None and self.label_range is not None:
            label_range = np.stack([np.minimum(before, self.label_range)[0], np.maximum(before, self.label_range)[1]])
        return replace(self, moments=fitted.moments_ + self.moments, names=names, label_range=label_range)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, or NaN, NaT or NA, which do not equal themselves, or an array of only such.

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(np.ones(1))
    (True, True, False, False)
    """
    is_equal: Any = value is not None and value == value
    is_equal = bool(is_equal.any()) if hasattr(is_equal, "any") else is_equal
    return not isinstance(is_equal, bool) or not is_equal


def is_frame(rows: Any) -> bool:
    """Return whether rows are a pandas or polars data frame."""
    return hasattr(rows, "columns") and hasattr(rows, "dtypes")


def has_numbers(column: Any) -> bool:
    """Return whether a pandas column has no numeric dtype, and all of its known values are numbers or Decimals."""
    known = [v for v in column if not is_missing(v)] if str(column.dtype).startswith(("object", "decimal")) else []
    return bool(known) and all(isinstance(v, (Real, Decimal)) and not isinstance(v, bool) for v in known)


def accepts_nan(model: Any) -> bool:
    """Return whether a model may accept NaN. The tag of a Pipeline is always False; its predict refuses NaN."""
    return isinstance(model, Pipeline) or (isinstance(model, BaseEstimator) and get_tags(model).input_tags.allow_nan)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_level(level: Any) -> None:
    """Refuse a coverage outside (0, 1)."""
    if not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        raise ValueError(f"level is the share of labels to cover and must be in (0, 1), got {level!r}; try 0.9")


def read_labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, min_rows: int, reset: bool = True
) -> Source:
    """Validate labelled rows and compute their moments. Without ``reset`` the columns must be those of the fit."""
    for name, values in (("X", X), ("y", y)):
        refuse_masked(name, values)
        refuse_dates(name, values)
    if not reset and y is not None:
        check_order(estimator, X, "batch")
        ndim, outputs, shape = estimator._y_ndim, estimator.moments_.n_outputs, tuple(np.shape(y))
        if shape[1:] != (outputs,) * (ndim - 1):
            expected = f"y must have {ndim} dimension(s) and {outputs} output(s), as in earlier batches"
            raise ValueError(f"{expected}, got shape {shape}")
    if kind_of(X) in ("dask", "torch"):
        if y is None:
            raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
        if not reset:
            check_columns(estimator, column_names(X, integers=True), X.shape[-1], role="batch")
        moments = moments_of(X, y, sample_weight)
        if moments.rows < min_rows:
            raise ValueError(f"Found {moments.rows} sample(s) while a minimum of {min_rows} is required.")
        return Source(moments, int(y.ndim), moments.names or None)
    eps, label_names = measured_eps(X), label_names_of(y)
    reader = copy.copy(estimator)  # validate_data sets n_features_in_ and feature_names_in_
    # Moments.of detects NaN and infinity in its result; a separate check would cost one more pass over the rows.
    options: Attributes = {"multi_output": True, "y_numeric": True, "ensure_min_samples": min_rows}
    with explain_text(X):
        X, y = validate_data(reader, X, y, reset=reset, ensure_all_finite=False, **READ_OPTIONS, **options)
        y = np.asarray(y, dtype=np.float64)
    names = getattr(reader, "feature_names_in_", None)
    moments = _moments_in_memory(X, y, sample_weight, eps, names, label_names)
    counted = y if sample_weight is None else y[np.asarray(sample_weight, dtype=np.float64) > 0.0]
    label_range = np.stack([counted.min(axis=0), counted.max(axis=0)]).reshape(2, -1)
    return Source(moments, y.ndim, names, label_names, label_range)


def label_names_of(y: Any) -> list[str] | None:
    """Return the names of the labels if y is a named series or a frame."""
    names = getattr(y, "columns", None)
    if names is None:
        names = [name] if isinstance(name := getattr(y, "name", None), str) else None
    return None if names is None else [str(name) for name in names]


def read_moments(moments: Moments, *others: Any) -> Source:
    """Validate the moments of a labelled source. One output counts as a one-dimensional y."""
    if any(value is not None for value in others):
        raise ValueError("y, sample_weight and groups must be None for Moments and batches, which include them")
    if moments.n_outputs == 0:
        raise ValueError("moments must have at least one output, got features only; use Moments.of(X, y)")
    if moments.rows < 2 or not np.isfinite(moments.root).all():
        raise ValueError(f"moments must be finite and have at least 2 rows, got {moments!r}")
    return Source(moments, min(moments.n_outputs, 2), moments.names or None)


def target_moments(estimator: Any, Z: Any, sample_weight: Any) -> Moments:
    """Check a target against the source of a fitted estimator, and return its moments."""
    kind = "Moments" if isinstance(Z, Moments) else kind_of(Z)
    if kind in ("Moments", "batches") and sample_weight is not None:
        raise ValueError(f"sample_weight must be None for {kind}; pass Moments of the weighted rows instead")
    if kind in ("rows", "sparse"):
        if len(shape := np.shape(Z)) == 2:
            names = column_names(Z, integers=True) or tuple(map(str, getattr(Z, "columns", ())))
            check_columns(estimator, names, shape[1])
        eps = measured_eps(Z)
        rows = check_rows(estimator, Z, "the target", ensure_all_finite=False)
        return _moments_in_memory(rows, None, sample_weight, eps, getattr(estimator, "feature_names_in_", None))
    refuse_dates("the target", Z)
    target = Z if isinstance(Z, Moments) else moments_of(Z, sample_weight=sample_weight)
    check_columns(estimator, target.names, target.n_features)
    if not np.isfinite(target.root).all():
        raise ValueError("the Moments of the target must be finite, got NaN or infinity; use Moments.of")
    return target


def _moments_in_memory(X: Any, y: Any, weight: Any, eps: Any, names: Any, label_names: Any = None) -> Moments:
    """Return the moments of validated rows. A frame of sparse columns has become a sparse matrix."""
    try:
        return moments_of(X, y, weight) if kind_of(X) == "sparse" else Moments.of(X, y, weight, eps=eps)
    except ExtremeValues as error:
        raise ExtremeValues(error.place, *([] if known is None else known for known in (names, label_names))) from None


@contextmanager
def name_target() -> Iterator[None]:
    """Write "the target" instead of X in errors about the rows from which moments are computed."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"(?<!')\bX\b(?!')", "the target", str(error), count=1)  # not a column with the name 'X'
        if text == str(error):
            raise
        raise ValueError(text) from None


def check_rows(estimator: Any, X: Any, name: str = "X", **options: Any) -> Any:
    """Check unlabelled rows against the features of a fitted estimator, and return them as floats."""
    refuse_masked(name, X)
    refuse_dates(name, X)
    check_order(estimator, X, name)
    with explain_text(X):
        return validate_data(estimator, X, reset=False, **(READ_OPTIONS | options))


def check_columns(estimator: Any, names: tuple[str, ...], width: int, *, role: str = "target") -> None:
    """Raise ValueError for columns that differ from those of a fitted estimator. ``names`` is empty if unknown."""
    known = getattr(estimator, "feature_names_in_", getattr(estimator, "_column_order", ()))
    compare_columns(known, estimator.n_features_in_, names, width, role)


def check_order(estimator: Any, X: Any, role: str) -> None:
    """Raise InputError for a frame with the integer names of the fit in another order."""
    if not hasattr(estimator, "feature_names_in_"):
        check_columns(estimator, column_names(X, integers=True), estimator.n_features_in_, role=role)


def compare_columns(known: Any, expected: int, names: Any, width: int, role: str) -> None:
    """Raise InputError if the columns of a role are not those of the source, given the names (if any) and widths."""
    if len(known) and len(names) and list(known) != list(names):
        given, old = set(names), set(known)
        missing, extra = [name for name in known if name not in given], [name for name in names if name not in old]
        if not missing and not extra:
            raise InputError(f"{role} has the columns of the source in a different order; use {list_some(known)}")
        if isinstance(known[0], str):  # pandas also gives integers to columns without names
            differ = f"missing {list_some(missing)}, unexpected {list_some(extra)}"
            raise InputError(f"{role} has {width} columns, the source has {expected}: {differ}")
    if width != expected:
        fix = "pass the columns used in fit, in order" + "; is the label one of them?" * (width == expected + 1)
        raise InputError(f"{role} has {width} columns, the source has {expected}; {fix}")


@contextmanager
def explain_text(rows: Any) -> Iterator[None]:
    """Name the columns of text or other objects in errors about them, and explain the encoding."""
    try:
        yield
    except (ValueError, TypeError) as error:
        known = "could not convert string", "float() argument must be", "could not be promoted by"
        if not any(text in str(error) for text in known):
            raise
        content = "text" if isinstance(error, ValueError) else "other objects"
        columns = []
        if hasattr(rows, "select_dtypes"):
            columns = [str(name) for name in rows.select_dtypes(exclude=["number", "bool"]).columns]
        if not columns and (hasattr(rows, "columns") or np.asarray(rows).dtype.kind in "biuf"):
            raise type(error)(f"y must contain numbers, got {content} ({error}); convert the labels first") from error
        where = f" in {list_some(columns)}" if columns else ""
        raise type(error)(
            f"features must be numbers, got {content}{where} ({error}); encode them first, for example with "
            "make_pipeline(make_column_transformer((OneHotEncoder(), columns), remainder='passthrough'), "
            "regressor), or use the command spar adapt, which encodes text"
        ) from error


def check_counts(moments: Moments, role: str, *, least: float = 0.0) -> None:
    """Warn if weights, which are counts, sum to much less than the rows; raise InputError below the ``least`` count."""
    if moments.weight < MIN_COUNT * moments.rows:
        count = f"{moments.weight:.6g}"
        text = (
            f"The weights of the {role}'s {moments.rows:,} rows sum to {count}, so they count as {count} rows. If "
            "only their ratios matter, as with inverse-probability weights, multiply them by sum(w) / sum(w**2)."
        )
        if moments.weight < least:
            raise InputError(f"{text} At least {least:g} are required for the noise.")
        warn(text)


def warn_of_fit(estimator: Any) -> None:
    """Warn if no rows are left for the noise, or if low precision makes features constant although they vary."""
    fit, source = estimator._fit, estimator.moments_
    if min(source.rows, source.weight) <= fit.x.rank + fit.centred and not np.any(fit.sigma):
        warn(
            f"The source has {min(source.rows, source.weight):,.6g} rows for {fit.x.rank + fit.centred} weights: they "
            "fit it exactly and the noise is estimated as zero, so adapt() removes no direction and predicted risks "
            "are zero. Use more rows or fewer features."
        )
    varying, rounding = np.sqrt(source.weight) * source.spread[: source.n_features], source.rounding()
    # Rounding errors of several columns add up: a direction may be dropped although each column exceeds its own.
    is_rounding = (varying <= np.sqrt(len(varying)) * rounding) & (varying > rounding * EPS64 / source.eps)
    lost = np.flatnonzero(is_rounding)
    lost = lost[np.square(fit.x.V[lost]).sum(axis=1) < 0.99]
    if fit.centred and lost.size:
        names = getattr(estimator, "feature_names_in_", None)
        columns = list_some(f"column {i}" if names is None else names[i] for i in lost.tolist())
        warn(
            f"{columns} of the source count as constant, because they do not vary clearly more than the rounding error "
            "of their dtype at these values. Subtract a constant, such as the mean, or read them as float64 at first."
        )


def find_missing(X: Any, Z: Any, names: Any) -> dict[str, tuple[float, float]]:
    """Return the columns whose shares of missing values differ significantly, with the shares in source and target.

    The test is Fisher's, with Bonferroni's correction. A column that is missing in the whole target only is always
    included. ``names`` are those of the columns of arrays.
    """
    names, (n, m) = getattr(X, "columns", names), (len(X), len(Z))
    a, b = (_count_missing(rows, getattr(X, "columns", None)) for rows in (X, Z))
    tails = hypergeom.cdf(b, n + m, a + b, m), hypergeom.sf(b - 1, n + m, a + b, m)
    p_values = 2.0 * np.minimum(*tails) * np.count_nonzero(a + b)
    found = (p_values <= MISSING_LEVEL) & (a + b > 0) | (a == 0) & (b == m)
    return {str(names[j]): (a[j] / n, b[j] / m) for j in np.flatnonzero(found)}


def _count_missing(rows: Any, keys: Any) -> Any:
    """Return the number of missing values of each column of an array, or of these columns of a data frame."""
    if keys is None:
        return np.isnan(np.reshape(rows, (len(rows), -1)).astype(np.float64)).sum(axis=0)
    columns = [np.asarray(rows[key]) for key in keys]
    return np.array([sum(map(is_missing, of)) if of.dtype.kind == "O" else (of != of).sum() for of in columns])
