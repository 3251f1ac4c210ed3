"""What our regressors share: they keep the moments of their source, never its rows, and predict linearly."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar._checks import FLOATS, source_moments
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments


class MomentsRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A linear regressor whose fit is a function of the source's Moments.

    A subclass has the parameter ``solver`` and the methods ``_check_params`` and ``_solve``.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on labelled source rows.

        Parameters
        ----------
        X : array or data frame of shape (n, D)
        y : array of shape (n,) or (n, K)
        sample_weight : array of shape (n,), optional
            A weight of 2 counts as two copies of the row.

        Returns
        -------
        self
        """
        return self._absorb(X, y, sample_weight, first=True, min_rows=2)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of labelled source rows; the result is that of one fit on all of them."""
        return self._absorb(X, y, sample_weight, first=not hasattr(self, "moments_"), min_rows=1)

    def predict(self, X: Any) -> Any:
        """Predict with the current weights: an array of shape (n,), or (n, K) if y had two dimensions."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=FLOATS)
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
        before = dict(self.__dict__)
        try:
            self._check_params()
            batch, y_ndim = source_moments(
                self, X, y, sample_weight, solver=self.solver, first=first, min_rows=min_rows
            )
            self._y_ndim = y_ndim
            self.moments_: Moments = batch if first else self.moments_ + batch
            self._solve()
        except BaseException:  # rows that are refused leave the estimator as it was, Ctrl-C included
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _set_weights(self, w: Matrix, x_mean: Vector, y_mean: Vector) -> None:
        """Publish weights (features x outputs) in scikit-learn's shapes."""
        intercept = y_mean - x_mean @ w
        flat = self._y_ndim == 1
        self.coef_ = w[:, 0].copy() if flat else np.array(w.T, order="C")
        self.intercept_ = float(intercept[0]) if flat else intercept

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")
