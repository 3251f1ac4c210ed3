"""MomentsRegressor: a linear regressor that is fitted from the moments of its source.

An estimator keeps the moments of its source and never its rows. Every method validates its input and computes the new
attributes first, and sets them last. An error or an interrupt before that leaves the estimator unchanged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments, Solver
from pyspar.estimators.groups import GroupFolds
from pyspar.estimators.validation import SPARSE_FORMATS, Source, check_rows, read_batches, read_moments, read_rows
from pyspar.sources import is_batches, kind_of, linear_prediction, use_device_of

Attributes = dict[str, Any]
"""Fitted attributes by name, computed but not yet set."""
ADAPTED = ("adaptation_", "_adapted_to", "_separation", "_correction", "drift_")
"""The attributes that only an adapted regressor has."""


class MomentsRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A linear regressor whose fit is a function of the moments of its source.

    A subclass has the parameter ``solver`` and defines ``_solve``.
    """

    solver: Solver
    moments_: Moments
    _y_ndim: int

    @abstractmethod
    def _solve(self, source: Source) -> Attributes:
        """Return the fitted attributes for a source, including ``coef_`` and ``intercept_``, without setting any."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit on labelled source rows. An earlier fit and adaptation are discarded.

        Parameters
        ----------
        X : array or data frame of shape (n, D)
        y : array of shape (n,) or (n, K)
        sample_weight : array of shape (n,), optional
            A weight of 2 counts as two copies of the row, unless ``weights="importance"``.
        groups : array of shape (n,), optional
            The group of each row, such as a patient or a shop. Pass it if the groups of the target do not occur in the
            source. The weights do not depend on it. Forecasts then include the error on new groups, by cross-validation
            over groups.

        Returns
        -------
        self
        """
        self._validate_params()
        with use_device_of(X):
            folds = self._read_groups(GroupFolds(), X, y, sample_weight, groups)
            if folds is not None:
                folds.check_number()
            self._learn(read_rows(self, X, y, sample_weight, solver=self.solver, min_rows=2), folds)
        self._warn_of_weights()
        self._warn_of_limits()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Add a batch of labelled source rows. The result is that of one fit on all rows."""
        self._validate_params()
        first = not hasattr(self, "moments_")
        folds = None if first else getattr(self, "_folds", None)
        if not first and (groups is None) != (folds is None):
            raise ValueError(f"pass groups in all batches or in none, got {groups!r} after earlier batches")
        with use_device_of(X):
            folds = self._read_groups(folds or GroupFolds(), X, y, sample_weight, groups)
            source = read_rows(self, X, y, sample_weight, solver=self.solver, min_rows=1, reset=first)
            if not first:
                if source.y_ndim != self._y_ndim:
                    raise ValueError(
                        f"y must have {self._y_ndim} dimension(s), as in earlier batches, got {source.y_ndim}"
                    )
                names = getattr(self, "feature_names_in_", None)
                source = Source(
                    self.moments_ + source.moments,
                    source.y_ndim,
                    names,
                    source.label_names,
                    merge_ranges(getattr(self, "label_range_", None), source.label_range),
                )
            self._learn(source, folds)
        self._is_partial_fit = True  # a batch may have small weights, so adapt warns about their sum
        return self

    def fit_batches(self, batches: Any) -> Self:
        """Fit on an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` batches, each read once.

        The batches may be arrays, frames or tensors of any size. The result is that of one fit on all rows. Batches of
        rows with groups are ``(X, y, sample_weight, groups)``, where ``sample_weight`` may be None.
        """
        self._validate_params()
        folds: list[GroupFolds | None] = [None]

        def without_groups() -> Iterator[Any]:
            for number, batch in enumerate(batches):
                has_groups = isinstance(batch, (tuple, list)) and len(batch) == 4
                if number and has_groups != (folds[0] is not None):
                    raise ValueError(f"pass groups in all batches or in none, got another kind in batch {number}")
                if has_groups:
                    folds[0] = self._read_groups(folds[0] or GroupFolds(), *batch)
                    batch = batch[:2] if batch[2] is None else batch[:3]
                yield batch

        source = read_batches(without_groups() if is_batches(batches) else batches, solver=self.solver)
        if folds[0] is not None:
            folds[0].check_number()
        self._learn(source, folds[0])
        self._warn_of_weights()
        self._warn_of_limits()
        return self

    def fit_moments(self, moments: Moments) -> Self:
        """Fit on the summary of a labelled source, ``Moments.of(X, y)`` or a sum of such; no rows are needed.

        With one output the weights have the same shape as for a one-dimensional y.
        """
        self._validate_params()
        self._learn(read_moments(moments))
        self._warn_of_weights()
        self._warn_of_limits()
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the current weights: an array of shape (n,), or (n, K) if y had two dimensions.

        For a Dask collection the result is a lazy Dask array, for a tensor a tensor on its device.
        """
        check_is_fitted(self)
        kind = kind_of(X)
        if kind in ("dask", "torch"):
            return linear_prediction(self, X, kind)
        return check_rows(self, X, accept_sparse=SPARSE_FORMATS) @ self.coef_.T + self.intercept_

    def to_linear_regression(self) -> LinearRegression:
        """Return a ``LinearRegression`` with the current weights, for exporters and servers."""
        check_is_fitted(self)
        plain = LinearRegression(fit_intercept=bool(np.any(self.intercept_)))
        plain.coef_, plain.intercept_ = np.array(self.coef_), np.copy(self.intercept_)[()]
        plain.n_features_in_, plain.rank_ = self.n_features_in_, self.rank_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        return plain

    def _read_groups(self, folds: GroupFolds, X: Any, y: Any, sample_weight: Any, groups: Any) -> GroupFolds | None:
        """Return the folds with further rows, or None without groups."""
        if groups is None:
            return None

        def read(X: Any, y: Any, sample_weight: Any) -> Moments:
            return read_rows(self, X, y, sample_weight, solver=self.solver, min_rows=1).moments

        return folds.including(X, y, sample_weight, groups, read)

    def _left_out_rmse(self, folds: GroupFolds, y_ndim: int) -> Vector | None:
        """Return the error, per output, on groups that were left out of the fit."""

        def solve(moments: Moments) -> tuple[Matrix, Vector]:
            weights = self._solve(Source(moments, y_ndim))
            return in_columns(weights["coef_"], weights["intercept_"])

        return folds.left_out_rmse(solve)

    def _learn(self, source: Source, folds: GroupFolds | None = None) -> None:
        """Compute all fitted attributes for a source, then set them."""
        attributes = {
            **self._solve(source),
            "_folds": folds,
            "_group_rmse": None if folds is None else self._left_out_rmse(folds, source.y_ndim),
            "moments_": source.moments,
            "n_features_in_": source.moments.n_features,
            "_y_ndim": source.y_ndim,
        }
        optional = {
            "feature_names_in_": source.names,
            "label_names_": source.label_names,
            "label_range_": source.label_range,
        }
        attributes |= {name: value for name, value in optional.items() if value is not None}
        for stale in (*ADAPTED, *optional, "_is_partial_fit"):
            self.__dict__.pop(stale, None)
        self.__dict__.update(attributes)

    def _warn_of_weights(self) -> None:
        """Warn about the weights of the source's rows. It is called once, by fit, or after partial_fit by adapt."""

    def _warn_of_limits(self) -> None:
        """Warn about limitations of the source. It is called by fit and by adapt."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")


def merge_ranges(one: Any, other: Any) -> Any:
    """Return the range of two sets of labels, arrays of shape (2, K); None if one of them is unknown."""
    if one is None or other is None:
        return None
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])


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
