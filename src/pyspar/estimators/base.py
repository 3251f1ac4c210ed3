"""What our regressors share: they keep the moments of their source, never its rows, and predict linearly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments, refuse_masked
from pyspar.estimators.validation import FLOATS, SPARSE, batch_moments, labelled_moments, numbers_only, source_moments
from pyspar.sources import kind_of, linear_prediction, working_near


class MomentsRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A linear regressor whose fit is a function of the source's Moments.

    A subclass has the parameter ``solver`` and the methods ``_check_params`` and ``_solve``.
    """

    _y_ndim: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on labelled source rows; an earlier fit, and an adaptation, are forgotten.

        Parameters
        ----------
        X : array or data frame of shape (n, D)
        y : array of shape (n,) or (n, K)
        sample_weight : array of shape (n,), optional
            A weight of 2 counts as two copies of the row, unless ``weights="importance"``.

        Returns
        -------
        self
        """
        self._absorb(X, y, sample_weight, first=True, min_rows=2)
        self._warn_of_limits()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of labelled source rows; the result is that of one fit on all of them."""
        return self._absorb(X, y, sample_weight, first=not hasattr(self, "moments_"), min_rows=1)

    def fit_batches(self, batches: Any) -> Self:
        """Fit on an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` batches, each read once.

        The batches may be arrays, frames or tensors, of any size; the result is that of one fit on all rows.
        """
        self._learn(lambda: batch_moments(self, batches, solver=self.solver), add=False)
        self._warn_of_limits()
        return self

    def fit_moments(self, moments: Moments) -> Self:
        """Fit on the summary of a labelled source, ``Moments.of(X, y)`` or a sum of such: no rows are needed.

        With one output the weights have the shape they would have for a one-dimensional y.
        """
        self._learn(lambda: labelled_moments(self, moments), add=False)
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
        refuse_masked("X", X)
        with numbers_only(X):
            X = validate_data(self, X, reset=False, dtype=FLOATS, accept_sparse=SPARSE)
        return X @ self.coef_.T + self.intercept_

    def to_linear_regression(self) -> LinearRegression:
        """Return a plain ``LinearRegression`` with the current weights, for exporters and servers."""
        check_is_fitted(self)
        plain = LinearRegression(fit_intercept=bool(np.any(self.intercept_)))
        plain.coef_, plain.intercept_ = np.array(self.coef_), np.copy(self.intercept_)[()]
        plain.n_features_in_, plain.rank_ = self.n_features_in_, self.rank_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        return plain

    def _absorb(self, X: Any, y: Any, sample_weight: Any, *, first: bool, min_rows: int) -> Self:
        def read() -> tuple[Moments, int]:
            return source_moments(self, X, y, sample_weight, solver=self.solver, first=first, min_rows=min_rows)

        with working_near(X):
            return self._learn(read, add=not first)

    def _learn(self, read: Callable[[], tuple[Moments, int]], *, add: bool) -> Self:
        before = dict(self.__dict__)
        try:
            self._check_params()
            found, y_ndim = read()
            if add and y_ndim != self._y_ndim:
                raise ValueError(f"y must have {self._y_ndim} dimension(s), as in earlier batches. Got {y_ndim}.")
            self._y_ndim = y_ndim
            self.moments_: Moments = self.moments_ + found if add else found
            self._solve()
        except BaseException:  # rows that are refused leave the estimator as it was, Ctrl-C included
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _warn_of_limits(self) -> None:
        """Warn about what follows from the source; a subclass adds its own warnings."""

    def _set_weights(self, w: Matrix, intercept: Vector) -> None:
        """Publish weights (features x outputs) and intercepts in scikit-learn's shapes."""
        flat = self._y_ndim == 1
        self.coef_ = w[:, 0].copy() if flat else np.array(w.T, order="C")
        self.intercept_ = float(intercept[0]) if flat else intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")
