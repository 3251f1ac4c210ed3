"""Validate the arguments of public functions once, before any state changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from pyspar.core.belief import Belief, FlatBelief
from pyspar.core.moments import Moments, measured_eps, refuse_masked
from pyspar.errors import SparWarning
from pyspar.sources import kind_of, moments_of
from pyspar.sources.refusals import refuse_dates, refuse_extreme_weights
from pyspar.sources.stream import is_batches

FLOATS = [np.float64, np.float32]
SPARSE = ("csr", "csc")

FEW_COUNTS = 0.5
"""Counts are at least one, so weights that sum to less than this share of the rows are probably not counts."""

_NOT_TEXT = ("could not convert string to float",)
_NOT_A_NUMBER = ("float() argument must be", "could not be promoted by")


def check_alpha(alpha: Any) -> None:
    """Raise ValueError for a confidence level outside [0, 1]."""
    if not isinstance(alpha, Real) or isinstance(alpha, bool) or not 0.0 <= float(alpha) <= 1.0:
        raise ValueError(
            f"alpha is a confidence level and must lie in [0, 1]. Got {alpha!r} instead; the paper uses 0.999."
        )


def check_level(level: Any) -> None:
    """Raise ValueError for a coverage outside (0, 1)."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0.0 < float(level) < 1.0:
        raise ValueError(f"level is the share of labels to cover and must lie in (0, 1). Got {level!r}; try 0.9.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError for a value that is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {value!r} instead.")


def check_components(n_components: Any, n_features: int) -> None:
    """Raise ValueError for an invalid number of principal components."""
    if isinstance(n_components, str) and n_components == "gcv":
        return
    number = isinstance(n_components, Real) and not isinstance(n_components, bool)
    whole = number and isinstance(n_components, Integral) and 1 <= int(n_components) <= n_features
    share = number and not isinstance(n_components, Integral) and 0.0 < float(n_components) <= 1.0
    if not (whole or share):
        raise ValueError(
            f"n_components must be 'gcv', a whole number from 1 to the number of features ({n_features}), or a share "
            f"of the variance in (0, 1]. Got {n_components!r} instead."
        )


def source_moments(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, *, solver: Any, first: bool, min_rows: int
) -> tuple[Moments, int]:
    """Check labelled rows against the estimator, and return their moments and the dimension of y (1 or 2)."""
    for name, part in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        refuse_masked(name, part)
    refuse_dates("features", X)
    refuse_dates("y", y)
    kind = kind_of(X)
    if kind != "dask":  # Dask weights are checked where they are computed
        refuse_extreme_weights("sample_weight", sample_weight)
    if kind in ("dask", "torch"):
        if y is None:
            raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
        found = moments_of(X, y, sample_weight, solver=solver)
        if found.rows < min_rows:
            raise ValueError(f"Found {found.rows} sample(s) while a minimum of {min_rows} is required.")
        register_features(estimator, found, first=first)
        return found, int(y.ndim)
    eps = measured_eps(X)
    # Moments.of detects NaN and infinity in its result; a separate check would cost one more pass over the rows.
    with numbers_only(X):
        X, y = validate_data(
            estimator, X, y, reset=first, dtype=FLOATS, multi_output=True, y_numeric=True,
            ensure_min_samples=min_rows, ensure_all_finite=False, accept_sparse=SPARSE,
        )  # fmt: skip
        y = np.asarray(y, dtype=np.float64)
    if kind == "sparse":
        return moments_of(X, y, sample_weight, solver=solver), y.ndim
    return Moments.of(X, y, sample_weight, solver=solver, eps=eps), y.ndim


def batch_moments(estimator: BaseEstimator, batches: Any, *, solver: Any) -> tuple[Moments, int]:
    """Return the moments of labelled batches, and the dimension of the first y."""
    if not is_batches(batches):
        raise TypeError(f"batches must be an iterable of (X, y). Got {type(batches).__name__}; for rows use fit(X, y).")
    first_y: list[int] = []

    def seen() -> Iterator[Any]:
        for batch in batches:
            if isinstance(batch, (tuple, list)) and len(batch) > 1:
                if not first_y:
                    first_y.append(len(np.shape(batch[1])))
                if hasattr(batch[0], "select_dtypes") and _not_numeric(batch[0]):
                    with numbers_only(batch[0]):
                        np.asarray(batch[0], dtype=np.float64)
            yield batch

    found = moments_of(seen(), True, solver=solver)
    if found.rows < 2:
        raise ValueError(f"Found {found.rows} sample(s) while a minimum of 2 is required.")
    register_features(estimator, found, first=True)
    return found, first_y[0]


def labelled_moments(estimator: BaseEstimator, moments: Any) -> tuple[Moments, int]:
    """Check that moments have labels, and return them with the dimension of y."""
    if not isinstance(moments, Moments):
        raise TypeError(f"moments must be Moments. Got {type(moments).__name__} instead; for rows use fit(X, y).")
    if moments.n_outputs == 0:
        raise ValueError("moments must have at least one output. Got features only; create them with Moments.of(X, y).")
    if moments.rows < 2 or not np.isfinite(moments.root).all():
        raise ValueError(f"moments must be finite and have at least 2 rows. Got {moments!r}.")
    register_features(estimator, moments, first=True)
    return moments, 1 if moments.n_outputs == 1 else 2


def register_features(estimator: Any, found: Moments, *, first: bool) -> None:
    """Store or compare the number and names of the features of data that scikit-learn did not validate."""
    if not first:
        check_moments(estimator, found)
        return
    estimator.n_features_in_ = found.n_features
    estimator.__dict__.pop("feature_names_in_", None)
    if found.names:
        estimator.feature_names_in_ = np.array(found.names, dtype=object)


def target_moments(estimator: Any, Z: Any, sample_weight: Any, *, solver: Any) -> Moments:
    """Check a target against the source of a fitted estimator, and return its moments."""
    if isinstance(Z, Moments):
        if sample_weight is not None:
            raise ValueError("sample_weight must be None for Moments, which include weights; pass it to Moments.of.")
        check_moments(estimator, Z)
        return Z
    refuse_masked("the target", Z)
    refuse_dates("the target", Z)
    kind = kind_of(Z)
    if kind != "dask":
        refuse_extreme_weights("sample_weight", sample_weight)
    if kind in ("dask", "torch", "batches"):
        if kind == "batches" and sample_weight is not None:
            raise ValueError("sample_weight must be None for batches; pass Moments of the weighted rows instead.")
        found = moments_of(Z, sample_weight=sample_weight, solver=solver)
        check_moments(estimator, found)
        return found
    check_target_columns(estimator, Z)
    eps = measured_eps(Z)
    with numbers_only(Z):
        Z = validate_data(estimator, Z, reset=False, dtype=FLOATS, ensure_all_finite=False, accept_sparse=SPARSE)
    if kind == "sparse":
        return moments_of(Z, sample_weight=sample_weight, solver=solver)
    return Moments.of(Z, sample_weight=sample_weight, solver=solver, eps=eps)


def check_moments(estimator: Any, found: Moments) -> None:
    """Raise ValueError for moments whose features differ from the source's."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and found.names:
        _compare_names(list(names), list(found.names), "put its columns in that order")
    if found.n_features != estimator.n_features_in_:
        raise ValueError(_other_width(found.n_features, estimator.n_features_in_))
    if not np.isfinite(found.root).all():
        raise ValueError("target Moments must be finite. Got NaN or infinity; recompute them with Moments.of.")


def check_target_columns(estimator: Any, Z: Any) -> None:
    """Raise ValueError for a target whose columns differ from the source's, and name the difference."""
    names = getattr(estimator, "feature_names_in_", None)
    columns = getattr(Z, "columns", None)
    if names is not None and columns is not None:
        _compare_names(list(names), [str(c) for c in columns], "pass Z[list(estimator.feature_names_in_)]")
    shape = np.shape(Z)
    if len(shape) == 2 and shape[1] != estimator.n_features_in_:
        raise ValueError(_other_width(shape[1], estimator.n_features_in_))


def warn_if_nothing_left_for_noise(belief: FlatBelief) -> None:
    """Warn if the source has no more rows than directions."""
    if belief.degrees_of_freedom <= 0 and not belief.sigma.any():
        warnings.warn(
            f"The source has {belief.weight:,.6g} rows and {belief.x.rank + belief.centred} directions (with "
            "intercept): least squares fits it exactly and the noise is estimated as zero, so adapt() removes no "
            "direction and predicted risks are zero. Use more rows or fewer features.",
            SparWarning,
            stacklevel=4,
        )


def warn_if_weights_do_not_count(weight: float, rows: int, weights: str, *, what: str = "source") -> None:
    """Warn if weights that are counts of rows sum to much less than the number of rows."""
    if weights == "counts" and weight < FEW_COUNTS * rows:
        warnings.warn(
            f"The weights of the {what}'s {rows:,} rows sum to {weight:.6g}, so they count as {weight:.6g} rows. If "
            'only their ratios matter, as with inverse-probability weights, use weights="importance".',
            SparWarning,
            stacklevel=4,
        )


def warn_if_scales_are_too_far_apart(belief: Belief) -> None:
    """Warn if the sizes of the features differ by more than the precision of float64."""
    lam = belief.x.lam
    if lam.size and lam[-1] < 1e-13 * lam[0]:
        warnings.warn(
            f"The features' sizes span {np.log10(lam[0] / lam[-1]):.0f} decades, more than the precision of "
            "float64: least squares is correct, but adapt() cannot separate the small directions. Standardise the "
            "features.",
            SparWarning,
            stacklevel=4,
        )


def _compare_names(source: list[str], target: list[str], cure: str) -> None:
    missing = [c for c in source if c not in set(target)]
    extra = [c for c in target if c not in set(source)]
    if missing or extra:
        raise ValueError(
            f"target has {len(target)} columns, the source has {len(source)}: missing {_few(missing)}, "
            f"unexpected {_few(extra)}."
        )
    if source != target:
        raise ValueError(f"target has the source's columns in a different order; {cure}.")


def _other_width(target: int, source: int) -> str:
    label = "; check whether the label is one of them." if target == source + 1 else "."
    return (
        f"target has {target} columns, the source has {source}; pass the columns used in fit, in the same order{label}"
    )


@contextmanager
def numbers_only(rows: Any) -> Iterator[None]:
    """Raise an error that says how to encode text or dates among the features."""
    refuse_dates("features", rows)
    try:
        yield
    except (ValueError, TypeError) as error:
        text = isinstance(error, ValueError)
        if not any(known in str(error) for known in (_NOT_TEXT if text else _NOT_A_NUMBER)):
            raise
        columns, got = _not_numeric(rows), "text" if text else "other objects"
        if columns == []:
            message = f"y must hold numbers. Got {got} ({error}); convert the labels to numbers first."
        else:
            where = f" in {_few(columns)}" if columns else ""
            message = (
                f"features must be numbers. Got {got}{where} ({error}); encode it first, for example with "
                "make_pipeline(make_column_transformer((OneHotEncoder(), columns), remainder='passthrough'), "
                "regressor), or use the command spar adapt, which encodes text itself."
            )
        raise (ValueError if text else TypeError)(message) from error


def _not_numeric(rows: Any) -> list[str] | None:
    """Return the names of non-numeric columns; an empty list if all are numeric, None if they have no names."""
    named = getattr(rows, "select_dtypes", None)
    if named is not None:
        return [str(c) for c in named(exclude=["number", "bool"]).columns]
    dtype = getattr(rows, "dtype", None)
    return [] if (np.asarray(rows).dtype if dtype is None else dtype).kind in "biuf" else None


def _few(names: list[str], limit: int = 8) -> str:
    if not names:
        return "none"
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
