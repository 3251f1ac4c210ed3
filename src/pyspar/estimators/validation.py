"""Validate the arguments of fit, adapt and predict. Nothing in this module changes an estimator."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar.core.moments import Matrix, Moments, Vector, column_names, column_norms, measured_eps, refuse_masked
from pyspar.core.regression import Fit, OLSFit
from pyspar.errors import warn
from pyspar.sources import kind_of, moments_of, name_columns, refuse_dates, refuse_extreme_weights, refuse_large
from pyspar.text import list_some

Attributes = dict[str, Any]
"""Fitted attributes by name, computed but not yet set."""
FLOATS = [np.float64, np.float32]
SPARSE_FORMATS = ("csr", "csc")

SMALLEST_SIZE = 1e-13
"""Features below this share of the largest feature are too small for float64."""
MIN_COUNT = 0.5
"""Counts are at least one, so weights that sum to less than this share of the rows are probably not counts."""


@dataclass(frozen=True, eq=False)
class Source:
    """The validated input of a fit: moments of the labelled rows, dimension of y (1 or 2), and feature names if any.

    ``label_names`` (a list) and ``label_range`` (the smallest and largest label of each output, of shape (2, K)) are
    None if they are unknown.
    """

    moments: Moments
    y_ndim: int
    names: Any = None
    label_names: Any = None
    label_range: Any = None

    def added_to(self, fitted: Any) -> Source:
        """Return this batch and the earlier batches of a fitted estimator as one source."""
        names, before = (getattr(fitted, name, None) for name in ("feature_names_in_", "label_range_"))
        both = None if before is None or self.label_range is None else np.stack([before, self.label_range])
        label_range = None if both is None else np.stack([both[:, 0].min(axis=0), both[:, 1].max(axis=0)])
        return replace(self, moments=fitted.moments_ + self.moments, names=names, label_range=label_range)


def clone_without(estimator: Any, name: str) -> Any:
    """Return an unfitted copy whose parameter ``name`` is not cloned, because a fitted model must stay fitted."""
    values = estimator.get_params(deep=False)
    params = {key: value if key == name else clone(value, safe=False) for key, value in values.items()}
    new = type(estimator)(**params)
    for private in ("_metadata_request", "_sklearn_output_config"):
        if private in estimator.__dict__:
            setattr(new, private, estimator.__dict__[private])
    return new


class Confidence(Interval):  # type: ignore[misc]  # sklearn is untyped
    """The constraint of the parameter ``alpha``: a real number from 0 to 1. Unlike ``Interval`` it excludes bool."""

    def __init__(self) -> None:
        super().__init__(Real, 0.0, 1.0, closed="both")

    def is_satisfied_by(self, val: Any) -> bool:
        return is_number(val) and 0.0 <= float(val) <= 1.0

    def __str__(self) -> str:
        return "a confidence in [0, 1] (the paper uses 0.999)"


def is_number(value: Any) -> bool:
    """Return whether a value is a real number. A bool is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA. The last three are not equal to themselves.

    An array or tensor is missing if all its entries are.

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(np.ones(1))
    (True, True, False, False)
    """
    is_equal: Any = value is not None and value == value
    if hasattr(is_equal, "any"):
        is_equal = bool(is_equal.any())
    return not isinstance(is_equal, bool) or not is_equal


def check_alpha(alpha: Any) -> None:
    """Raise ValueError for a confidence outside [0, 1]."""
    if not Confidence().is_satisfied_by(alpha):
        raise ValueError(f"alpha must be {Confidence()}, got {alpha!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError for a value that is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_boolean(name: str, value: Any) -> None:
    """Raise TypeError for a value that is not True or False, such as "no", which would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_level(level: Any) -> None:
    """Raise ValueError for a coverage outside (0, 1)."""
    if not is_number(level) or not 0.0 < float(level) < 1.0:
        raise ValueError(f"level is the share of labels to cover and must be in (0, 1), got {level!r}; try 0.9")


def read_labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, min_rows: int, reset: bool = True
) -> Source:
    """Validate labelled rows and compute their moments. Without ``reset`` the columns must be those of the fit."""
    refuse_masked("X", X)
    refuse_masked("y", y)
    refuse_dates("features", X)
    refuse_dates("y", y)
    if not reset and y is not None:
        check_further_labels(estimator, y)
    kind = kind_of(X)
    if kind != "dask":  # the weights of Dask rows are checked where they are computed
        refuse_extreme_weights("sample_weight", sample_weight)
    if kind in ("dask", "torch"):
        if y is None:
            raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
        if not reset:
            check_columns(estimator, column_names(X), X.shape[-1], role="batch")
        moments = moments_of(X, y, sample_weight)
        if moments.rows < min_rows:
            raise ValueError(f"Found {moments.rows} sample(s) while a minimum of {min_rows} is required.")
        return Source(moments, int(y.ndim), _names_of(moments))
    eps, label_names = measured_eps(X), label_names_of(y)
    reader = copy.copy(estimator)  # validate_data sets n_features_in_ and feature_names_in_
    # Moments.of detects NaN and infinity in its result; a separate check would cost one more pass over the rows.
    with explain_text(X):
        X, y = validate_data(
            reader, X, y, reset=reset, dtype=FLOATS, multi_output=True, y_numeric=True,
            ensure_min_samples=min_rows, ensure_all_finite=False, accept_sparse=SPARSE_FORMATS,
        )  # fmt: skip
        y = np.asarray(y, dtype=np.float64)
    names = getattr(reader, "feature_names_in_", None)
    with name_columns(names, label_names):
        moments = _moments_in_memory(X, y, sample_weight, eps)
    counted = y if sample_weight is None else y[np.asarray(sample_weight, dtype=np.float64) > 0.0]
    label_range = np.stack([counted.min(axis=0), counted.max(axis=0)]).reshape(2, -1)
    return Source(moments, y.ndim, names, label_names, label_range)


def check_further_labels(estimator: Any, y: Any) -> None:
    """Raise ValueError if the labels of a further batch have another shape than those of earlier batches."""
    ndim, outputs, shape = estimator._y_ndim, estimator.moments_.n_outputs, tuple(np.shape(y))
    if shape[1:] != (outputs,) * (ndim - 1):
        expected = f"y must have {ndim} dimension(s) and {outputs} output(s), as in earlier batches"
        raise ValueError(f"{expected}, got shape {shape}")


def label_names_of(y: Any) -> list[str] | None:
    """Return the names of the labels if y is a named series or a frame."""
    names = getattr(y, "columns", None)
    if names is None:
        names = [name] if isinstance(name := getattr(y, "name", None), str) else None
    return None if names is None else [str(name) for name in names]


def read_batches(batches: Any) -> Source:
    """Validate labelled batches and compute their moments. The first batch determines the dimension of y."""
    y_ndims: list[int] = []

    def checked_batches() -> Iterator[Any]:
        for batch in batches:
            if isinstance(batch, (tuple, list)) and len(batch) > 1:
                y_ndims.append(len(np.shape(batch[1])))
                if hasattr(batch[0], "select_dtypes") and _columns_of_text(batch[0]):
                    refuse_dates("features", batch[0])
                    with explain_text(batch[0]):
                        np.asarray(batch[0], dtype=np.float64)
            yield batch

    moments = moments_of(checked_batches(), labelled=True)
    if moments.rows < 2:
        raise ValueError(f"Found {moments.rows} sample(s) while a minimum of 2 is required.")
    return Source(moments, y_ndims[0], _names_of(moments))


def read_moments(moments: Moments, *others: Any, y_ndim: int | None = None) -> Source:
    """Validate the moments of a labelled source. By default y has one dimension if there is one output."""
    if any(value is not None for value in others):
        raise ValueError("y, sample_weight and groups must be None for Moments, which include labels and weights")
    if moments.n_outputs == 0:
        raise ValueError("moments must have at least one output, got features only; use Moments.of(X, y)")
    if moments.rows < 2 or not np.isfinite(moments.root).all():
        raise ValueError(f"moments must be finite and have at least 2 rows, got {moments!r}")
    return Source(moments, y_ndim or min(moments.n_outputs, 2), _names_of(moments))


def _names_of(moments: Moments) -> Any:
    return np.array(moments.names, dtype=object) if moments.names else None


def target_moments(estimator: Any, Z: Any, sample_weight: Any) -> Moments:
    """Check a target against the source of a fitted estimator, and return its moments."""
    if isinstance(Z, Moments):
        if sample_weight is not None:
            raise ValueError("sample_weight must be None for Moments, which include weights; pass it to Moments.of")
        check_columns(estimator, Z.names, Z.n_features)
        if not np.isfinite(Z.root).all():
            raise ValueError("the Moments of the target must be finite, got NaN or infinity; use Moments.of")
        return Z
    kind = kind_of(Z)
    if kind != "dask":
        refuse_extreme_weights("sample_weight", sample_weight)
    if kind in ("dask", "torch", "batches"):
        refuse_dates("the target", Z)
        if kind == "batches" and sample_weight is not None:
            raise ValueError("sample_weight must be None for batches; pass Moments of the weighted rows instead")
        with name_target():
            moments = moments_of(Z, sample_weight=sample_weight)
        return target_moments(estimator, moments, None)
    shape = np.shape(Z)
    if len(shape) == 2:
        check_columns(estimator, tuple(map(str, getattr(Z, "columns", ()))), shape[1])
    eps = measured_eps(Z)
    Z = check_rows(estimator, Z, "the target", ensure_all_finite=False, accept_sparse=SPARSE_FORMATS)
    with name_target(), name_columns(getattr(estimator, "feature_names_in_", None)):
        return _moments_in_memory(Z, None, sample_weight, eps)


def _moments_in_memory(X: Any, y: Any, sample_weight: Any, eps: Any) -> Moments:
    """Return the moments of validated rows. A frame of sparse columns has become a sparse matrix."""
    if kind_of(X) == "sparse":
        return moments_of(X, y, sample_weight)
    return Moments.of(X, y, sample_weight, eps=eps)


@contextmanager
def name_target() -> Iterator[None]:
    """Name the target in errors about the rows from which moments are computed, which call them X."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"(?<!')\bX\b(?!')", "the target", str(error), count=1)  # not a column with the name 'X'
        if text == str(error):
            raise
        raise ValueError(text) from None


def check_rows(estimator: Any, X: Any, name: str = "features", **options: Any) -> Any:
    """Check unlabelled rows against the features of a fitted estimator, and return them as floats."""
    refuse_masked(name, X)
    refuse_dates(name, X)
    with explain_text(X):
        return validate_data(estimator, X, reset=False, dtype=FLOATS, **options)


def read_dense_rows(estimator: Any, X: Any) -> Matrix:
    """Check rows in memory for intervals or labels, and return them as float64."""
    check_is_fitted(estimator)
    refuse_other_than_rows("X", X, "intervals")
    rows = np.asarray(check_rows(estimator, X), dtype=np.float64)
    refuse_large("X", rows)
    return rows


def refuse_other_than_rows(name: str, rows: Any, use: str) -> None:
    """Raise TypeError for sparse rows, batches, Moments and other data that are not dense rows in memory."""
    if kind_of(rows) != "rows":
        fix = f"pass {name}.toarray()" if hasattr(rows, "toarray") else "pass rows in memory"
        raise TypeError(f"{name} must be an array or data frame for {use}, got {type(rows).__name__}; {fix}")


def check_columns(estimator: Any, names: tuple[str, ...], width: int, *, role: str = "target") -> None:
    """Raise ValueError for columns that differ from those of a fitted estimator. ``names`` is empty if unknown."""
    fitted, expected = getattr(estimator, "feature_names_in_", None), estimator.n_features_in_
    if fitted is not None and names:
        source_names, target_names = set(fitted), set(names)
        missing = [name for name in fitted if name not in target_names]
        extra = [name for name in names if name not in source_names]
        if missing or extra:
            raise ValueError(
                f"{role} has {width} columns, the source has {expected}: missing {list_some(missing)}, "
                f"unexpected {list_some(extra)}"
            )
        if list(fitted) != list(names):
            raise ValueError(
                f"{role} has the source's columns in a different order; use the order of estimator.feature_names_in_"
            )
    if width != expected:
        label = "; check whether the label is one of them" if width == expected + 1 else ""
        raise ValueError(
            f"{role} has {width} columns, the source has {expected}; pass the columns used in fit, in order{label}"
        )


@contextmanager
def explain_text(rows: Any) -> Iterator[None]:
    """Replace errors caused by text or other objects among the features by an error that explains the encoding."""
    try:
        yield
    except (ValueError, TypeError) as error:
        is_text = isinstance(error, ValueError)
        known = ("could not convert string",) if is_text else ("float() argument must be", "could not be promoted by")
        if not any(text in str(error) for text in known):
            raise
        columns, content = _columns_of_text(rows), "text" if is_text else "other objects"
        if columns == []:
            message = f"y must contain numbers, got {content} ({error}); convert the labels to numbers first"
        else:
            where = f" in {list_some(columns)}" if columns else ""
            message = (
                f"features must be numbers, got {content}{where} ({error}); encode them first, for example with "
                "make_pipeline(make_column_transformer((OneHotEncoder(), columns), remainder='passthrough'), "
                "regressor), or use the command spar adapt, which encodes text"
            )
        raise (ValueError if is_text else TypeError)(message) from error


def _columns_of_text(rows: Any) -> list[str] | None:
    """Return the names of the columns that are not numeric; an empty list if all are, None without names."""
    select = getattr(rows, "select_dtypes", None)
    if select is not None:
        return [str(c) for c in select(exclude=["number", "bool"]).columns]
    if hasattr(rows, "schema") and hasattr(rows, "with_columns"):  # a data frame of polars
        return [name for name, dtype in rows.schema.items() if not (dtype.is_numeric() or str(dtype) == "Boolean")]
    dtype = getattr(rows, "dtype", None)
    return [] if (np.asarray(rows).dtype if dtype is None else dtype).kind in "biuf" else None


def warn_if_weights_do_not_count(moments: Moments, role: str) -> None:
    """Warn if weights that are counts of rows sum to much less than the number of rows."""
    weight, rows = moments.weight, moments.rows
    if weight < MIN_COUNT * rows:
        warn(
            f"The weights of the {role}'s {rows:,} rows sum to {weight:.6g}, so they count as {weight:.6g} rows. If "
            "only their ratios matter, as with inverse-probability weights, multiply them by sum(w) / sum(w**2)."
        )


def warn_if_limited(fit: Fit) -> None:
    """Warn if least squares leaves no rows for the noise, or if the sizes of the features exceed float64's precision.

    A small singular value may also be due to nearly dependent features of the same size. Standardising does not change
    that, so the sizes of the features themselves are compared.
    """
    if isinstance(fit, OLSFit) and fit.degrees_of_freedom <= 0 and not fit.sigma.any():
        warn(
            f"The source has {fit.weight:,.6g} rows and {fit.x.rank + fit.centred} directions (with "
            "intercept): least squares fits it exactly and the noise is estimated as zero, so adapt() removes no "
            "direction and predicted risks are zero. Use more rows or fewer features."
        )
    lam = fit.x.lam
    if not lam.size or lam[-1] >= SMALLEST_SIZE * lam[0]:
        return
    sizes = column_norms((fit.x.V * (lam / lam[0])).T)
    sizes = sizes[sizes > 0.0]
    if sizes.min() < SMALLEST_SIZE * sizes.max():
        warn(
            f"The features' sizes span {np.log10(sizes.max() / sizes.min()):.0f} decades, more than the precision of "
            "float64: least squares is correct, but adapt() cannot separate the small directions. Standardise the "
            "features."
        )


def linear_weights(w: Matrix, intercept: Vector, y_ndim: int) -> Attributes:
    """Return ``coef_`` and ``intercept_`` in scikit-learn's shapes, for weights of shape (features, outputs)."""
    coef = w[:, 0].copy() if y_ndim == 1 else np.array(w.T, order="C")
    return {"coef_": coef, "intercept_": per_output(intercept, y_ndim)}


def per_output(values: Vector, y_ndim: int) -> Any:
    """Return one number per output: a float for a one-dimensional y."""
    return float(values[0]) if y_ndim == 1 else values


def weights_of(estimator: Any) -> tuple[Matrix, Vector]:
    """Return the weights (D, K) and intercepts (K,) of a fitted linear regressor."""
    return in_columns(estimator.coef_, estimator.intercept_)


def in_columns(coef: Any, intercept: Any) -> tuple[Matrix, Vector]:
    """Return weights of shape (D, K) and intercepts of shape (K,), for weights in scikit-learn's shapes."""
    coef = np.asarray(coef, dtype=np.float64)
    coef = coef[:, None] if coef.ndim == 1 else coef.T
    return coef, np.broadcast_to(np.asarray(intercept, dtype=np.float64), (coef.shape[1],))
