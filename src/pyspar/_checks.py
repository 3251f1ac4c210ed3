"""The gate: a caller's values are refused or made plain here, once, before anything is changed."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from pyspar.core.belief import FlatBelief
from pyspar.core.moments import Moments, measured_eps
from pyspar.errors import SparWarning

FLOATS = [np.float64, np.float32]


def check_alpha(alpha: Any) -> None:
    """Refuse a confidence level outside [0, 1]."""
    if not isinstance(alpha, Real) or isinstance(alpha, bool) or not 0.0 <= float(alpha) <= 1.0:
        raise ValueError(
            f"alpha is a confidence level and must lie in [0, 1]. Got {alpha!r} instead; the paper uses 0.999."
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not one of those known."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {value!r} instead.")


def check_components(n_components: Any, n_features: int) -> None:
    """Refuse a number of principal components that the features cannot have."""
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
    eps = measured_eps(X)
    # Moments.of finds NaN and infinity in what it computes anyway; a check of its own would be one more pass.
    X, y = validate_data(
        estimator, X, y, reset=first, dtype=FLOATS, multi_output=True, y_numeric=True,
        ensure_min_samples=min_rows, ensure_all_finite=False,
    )  # fmt: skip
    y = np.asarray(y, dtype=np.float64)
    return Moments.of(X, y, sample_weight, solver=solver, eps=eps), y.ndim


def target_moments(estimator: Any, Z: Any, sample_weight: Any, *, solver: Any) -> Moments:
    """Check a target against the source of a fitted estimator, and return its moments."""
    if isinstance(Z, Moments):
        if sample_weight is not None:
            raise ValueError("sample_weight goes into Moments.of; Moments carry their weights already.")
        if Z.n_features != estimator.n_features_in_:
            raise ValueError(f"target has {Z.n_features} columns, the source had {estimator.n_features_in_}.")
        if not np.isfinite(Z.root).all():
            raise ValueError("target Moments must be finite. Got NaN or infinity; make them anew with Moments.of.")
        return Z
    check_target_columns(estimator, Z)
    eps = measured_eps(Z)
    Z = validate_data(estimator, Z, reset=False, dtype=FLOATS, ensure_all_finite=False)
    return Moments.of(Z, sample_weight=sample_weight, solver=solver, eps=eps)


def check_target_columns(estimator: Any, Z: Any) -> None:
    """Refuse a target whose columns are not the source's, and name the difference."""
    names = getattr(estimator, "feature_names_in_", None)
    columns = getattr(Z, "columns", None)
    if names is not None and columns is not None:
        source, target = list(names), [str(c) for c in columns]
        missing = [c for c in source if c not in set(target)]
        extra = [c for c in target if c not in set(source)]
        if missing or extra:
            raise ValueError(
                f"target has {len(target)} columns, the source had {len(source)}: missing {_few(missing)}, "
                f"unexpected {_few(extra)}."
            )
        if source != target:
            raise ValueError(
                "target has the source's columns in another order; pass Z[list(estimator.feature_names_in_)]."
            )
    shape = np.shape(Z)
    if len(shape) == 2 and shape[1] != estimator.n_features_in_:
        raise ValueError(f"target has {shape[1]} columns, the source had {estimator.n_features_in_}.")


def warn_if_nothing_left_for_noise(belief: FlatBelief) -> None:
    """Say what follows from a source with no more rows than directions."""
    if belief.degrees_of_freedom <= 0:
        warnings.warn(
            f"The source has {belief.weight:g} rows and {belief.x.rank + belief.centred} directions (with intercept): "
            "least squares fits it exactly and the noise is estimated as zero, so adapt() will remove nothing and "
            "predicted risks will be zero. Use more rows or fewer features.",
            SparWarning,
            stacklevel=3,
        )


def _few(names: list[str], limit: int = 8) -> str:
    if not names:
        return "none"
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
