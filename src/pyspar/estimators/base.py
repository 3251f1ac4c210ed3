"""AdaptableRegressor: fit linear weights to the moments of a source, adapt them to a target, forecast their error.

An estimator keeps the moments of its source and never its rows. Every method validates its input and computes the new
attributes first, and sets them last. An error or an interrupt before that leaves the estimator unchanged.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast, expected_square, row_scale, source_square
from pyspar.core.moments import Matrix, Moments, Vector, WeightlessRows, column_names, refuse_extremes
from pyspar.core.regression import Fit, Prior, PriorScale, RidgePosterior, fit_ridge, spread_about_source
from pyspar.core.separation import Separation, measure_separation
from pyspar.core.spectrum import Eigen
from pyspar.estimators import validation
from pyspar.estimators.calibration import forecast_error, row_factor
from pyspar.estimators.groups import left_out_rmse, split_by_groups
from pyspar.estimators.validation import Attributes, Source, in_columns, per_output, weights_of
from pyspar.sources import eigen_on_device_of, kind_of, linear_prediction, moments_of, refuse_dates

ADAPTATION_ATTRIBUTES = ("adaptation_", "_adapted_to", "_separation")
"""The attributes that only an adapted regressor has."""


class AdaptableRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A linear regressor that can be adapted to an unlabelled target, and that forecasts its error on the target.

    The expectations assume that labels are linear in the features with noise of constant variance, in both source and
    target. The intervals do not: they are calibrated on real shifts.
    """

    coef_: Any
    intercept_: Any
    coef_source_: Any
    intercept_source_: Any
    moments_: Moments
    _fit: Fit
    _prior_scale: PriorScale = "max"
    _target_spread: Vector | None = None
    _adapted_to: Moments
    _separation: Separation
    _group_rmse: Vector | None
    _y_ndim: int

    @abstractmethod
    def _solve(self, source: Source, eigen: Eigen | None = None) -> Attributes:
        """Return the fitted attributes for a source, including ``_fit`` and the weights, without setting any."""

    @abstractmethod
    def _adapt_to(self, target: Moments, eigen: Eigen | None = None) -> Attributes:
        """Return the attributes for a target, including ``adaptation_`` and the weights, without setting any."""

    @abstractmethod
    def _prior(self, target_spread: Vector | None) -> Prior:
        """Return the prior of forecasts and intervals, given the spread of a target; None is no target."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit on labelled source rows. An earlier fit and adaptation are discarded.

        Parameters
        ----------
        X : array, data frame, sparse matrix, Dask collection or tensor of shape (n, D), Moments, or iterable of batches
            ``Moments.of(X, y)``, a sum of such, and batches ``(X, y)`` or ``(X, y, sample_weight)``, each read once,
            need no y. With one output the weights then have the same shape as for a one-dimensional y.
        y : array of shape (n,) or (n, K)
        sample_weight : array of shape (n,), optional
            A weight of 2 counts as two copies of the row.
        groups : array of shape (n,), optional
            The group of each row, such as a patient or a shop. Pass it if the target has other groups. Forecasts then
            include the error on new groups, by cross-validation over groups. The weights do not depend on it.
        """
        self._validate_params()
        if isinstance(X, Moments) or kind_of(X) == "batches":
            moments = X if isinstance(X, Moments) else moments_of(X, labelled=True)
            self._learn(validation.read_moments(moments, y, sample_weight, groups))
        else:
            folds = None if groups is None else split_by_groups(self, X, y, sample_weight, groups)
            source = validation.read_labelled_rows(self, X, y, sample_weight, min_rows=2)
            self._learn(source, folds, eigen_on_device_of(X))
        self._warn_of_limits()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of labelled source rows. The result is that of one fit on all rows.

        A batch after the first whose weights are all zero changes nothing. Batches have no groups.
        """
        self._validate_params()
        first = not hasattr(self, "moments_")
        if getattr(self, "_group_rmse", None) is not None:
            raise ValueError("partial_fit cannot add rows to a fit with groups; pass all rows and their groups to fit")
        try:
            source = validation.read_labelled_rows(self, X, y, sample_weight, min_rows=1, reset=first)
        except WeightlessRows:
            if first:
                raise
            return self
        self._learn(source if first else source.added_to(self), None, eigen_on_device_of(X))
        self._is_partial_fit = True  # a batch may have small weights, so adapt warns about their sum
        return self

    def adapt(self, Z: Any, *, sample_weight: Any = None) -> Self:
        """Adapt the weights to a target, in place. Target labels are for :class:`pyspar.TargetCorrection`.

        Z has the source's columns: an array, data frame, sparse matrix, Dask collection or tensor of shape (m, D), an
        iterable of such row blocks, or Moments. ``sample_weight`` has the shape (m,).
        """
        check_is_fitted(self)
        self._validate_params()
        target = self._target(Z, sample_weight)
        self._warn_of_limits(weights=getattr(self, "_is_partial_fit", False))
        self._adapt_moments(target, eigen_on_device_of(Z))
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the current weights.

        The result has the shape (n,), or (n, K) if y had two dimensions. For a Dask collection it is a lazy Dask array,
        for a tensor a tensor on its device.
        """
        check_is_fitted(self)
        if kind_of(X) in ("dask", "torch"):
            refuse_dates("X", X)
            validation.check_columns(self, column_names(X), X.shape[1] if X.ndim == 2 else 0, role="X")
            return linear_prediction(X, self.coef_, self.intercept_)
        return validation.check_rows(self, X) @ self.coef_.T + self.intercept_

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return an interval for each row that contains its label with a given probability.

        X is an array or a data frame. The interval is symmetric about the prediction. Its half-width is the scale of
        the row's label (noise, uncertain weights, and the distance of the current weights from the posterior mean)
        times a factor that was calibrated on real shifts, and that depends on the separation of the source and the
        target of the last ``adapt``.
        """
        validation.check_level(level)
        rows = validation.read_dense_rows(self, X)
        prediction = rows @ self.coef_.T + self.intercept_
        half = self._half_widths(rows, prediction, level)
        return prediction - half, prediction + half

    def source_rmse(self) -> Any:
        """Return the expected RMSE, before adapting, on new rows like those of the source.

        With ``groups`` the rows belong to new groups: the error of cross-validation that leaves groups out, if it is
        larger than the expectation of the model. With two dimensions of y, return one number per output.
        """
        check_is_fitted(self)
        return per_output(self._source_errors()[0], self._y_ndim)

    def expected_rmse(self, Z: Any = None, *, sample_weight: Any = None) -> Forecast | list[Forecast]:
        """Forecast the root mean squared error of the current weights on a target, without its labels.

        The forecast starts from the posterior of :class:`pyspar.BayesSpARRegressor`, also for
        :class:`pyspar.SpARRegressor`: ``model_rmse`` is its expectation. The median ``rmse`` and the intervals are
        calibrated on real shifts. Theorems 1 and 2 of the paper are
        ``adaptation_.risk_before`` and ``adaptation_.risk_after``.

        Z is a target as for ``adapt``, by default that of the last ``adapt``, unless the regressor was saved since.
        ``float(forecast)`` is the median of the RMSE on noisy labels. If y had two dimensions, return a list with one
        forecast per output.
        """
        check_is_fitted(self)
        if Z is None and not hasattr(self, "_adapted_to"):
            raise ValueError("expected_rmse needs target rows, got none; pass Z, or call adapt(Z) first")
        target, is_own = (self._adapted_to, True) if Z is None else (self._target(Z, sample_weight), False)
        separation = self.separation_ if is_own else measure_separation(self.moments_, target)
        source, between = self._source_errors()
        posterior = self._posterior(spread_about_source(self.moments_, target, self._fit.centred))
        model = np.sqrt(expected_square(posterior, *weights_of(self), target) + between)
        sizes = {"n_source": self.moments_.weight, "n_target": target.weight}
        spreads = self.moments_.spread[self.moments_.n_features :]
        forecasts = [
            forecast_error(
                float(source[k]), kind="linear", separation=separation, label_spread=float(spreads[k]),
                model_rmse=float(model[k]), name=type(self).__name__, **sizes,
            )
            for k in range(len(spreads))
        ]  # fmt: skip
        return forecasts[0] if self._y_ndim == 1 else forecasts

    @property
    def separation_(self) -> Separation:
        """How well the rows of the source and of the adapted target can be distinguished."""
        if not hasattr(self, "_separation"):
            if not hasattr(self, "_adapted_to"):
                raise AttributeError(f"{type(self).__name__} has separation_ only after adapt(Z)")
            self._separation = measure_separation(self.moments_, self._adapted_to)
        return self._separation

    def __getstate__(self) -> Any:
        """Return the state for a file, with the separation instead of the moments of the target."""
        if hasattr(self, "_adapted_to"):
            _ = self.separation_
        return {name: value for name, value in super().__getstate__().items() if name != "_adapted_to"}

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, source: Source, folds: list[Moments] | None = None, eigen: Eigen | None = None) -> None:
        """Compute all fitted attributes for a source, then set them."""
        refuse_extremes(source.moments)
        attributes = {
            **self._solve(source, eigen),
            "_group_rmse": None if folds is None else left_out_rmse(folds, self._fit_weights),
            "_target_spread": None,
            "moments_": source.moments,
            "n_features_in_": source.moments.n_features,
            "_y_ndim": source.y_ndim,
        }
        attributes |= {f"{name}_source_": np.copy(attributes[f"{name}_"])[()] for name in ("coef", "intercept")}
        names = {"feature_names_in_": source.names, "label_names_": source.label_names}
        optional = {**names, "label_range_": source.label_range}
        if source.names is not None:
            optional["feature_names_in_"] = np.array(source.names, dtype=object)
        attributes |= {name: value for name, value in optional.items() if value is not None}
        self._replace((*ADAPTATION_ATTRIBUTES, *optional, "_is_partial_fit"), attributes)

    def _fit_weights(self, moments: Moments) -> tuple[Matrix, Vector]:
        """Return the weights (D, K) and intercepts (K,) that are fitted to the moments of a source."""
        weights = self._solve(Source(moments, 2))
        return in_columns(weights["coef_"], weights["intercept_"])

    def _adapt_moments(self, target: Moments, eigen: Eigen | None = None) -> None:
        self._replace(ADAPTATION_ATTRIBUTES, {**self._adapt_to(target, eigen), "_adapted_to": target})

    def _replace(self, stale: tuple[str, ...], attributes: Attributes) -> None:
        """Set attributes in one step, without those that are stale."""
        self.__dict__ = {**{k: v for k, v in self.__dict__.items() if k not in stale}, **attributes}

    def _posterior(self, target_spread: Vector | None) -> RidgePosterior:
        """Return the posterior of forecasts and intervals, given the spread of a target; None is no target."""
        prior = self._prior(target_spread)
        if isinstance(self._fit, RidgePosterior) and np.array_equal(prior.units, self._fit.prior.units):
            return self._fit
        return fit_ridge(self.moments_, prior, fit_intercept=self._fit.centred)

    def _source_errors(self) -> tuple[Vector, Vector]:
        """Return the in-distribution RMSE, and the part of its square by which new groups exceed the model."""
        weights = in_columns(self.coef_source_, self.intercept_source_)
        square = source_square(self._fit, self._posterior(None), *weights, self.moments_)
        between = np.zeros_like(square)
        if self._group_rmse is not None:
            between = np.maximum(np.square(self._group_rmse) - square, 0.0)
        return np.sqrt(square + between), between

    def _half_widths(self, rows: Matrix, prediction: Any, level: float) -> Any:
        """Return the half-widths of the intervals of rows."""
        separation = self.separation_ if hasattr(self, "adaptation_") else None
        (errors, between), spreads = self._source_errors(), self.moments_.spread[self.moments_.n_features :]
        factors = [
            row_factor(level, separation, source_rmse=float(error), label_spread=float(spread))
            for error, spread in zip(errors, spreads, strict=True)
        ]
        scale = row_scale(self._posterior(self._target_spread), rows, prediction.reshape(len(rows), -1))
        return (np.hypot(scale, np.sqrt(between)) * factors).reshape(prediction.shape)

    def _warn_of_limits(self, *, weights: bool = True) -> None:
        """Warn about limitations of the source and about row weights."""
        if weights:
            validation.warn_if_weights_do_not_count(self.moments_, "source")
        validation.warn_if_exact(self._fit)

    def _target(self, Z: Any, sample_weight: Any) -> Moments:
        """Return the moments of a target."""
        with validation.name_target():
            target = validation.target_moments(self, Z, sample_weight)
            refuse_extremes(target)
        if sample_weight is not None:
            validation.warn_if_weights_do_not_count(target, "target")
        return target

    def _before_adapting(self) -> Self:
        """Return a copy with the weights before any adaptation."""
        new = copy.copy(self)
        weights = {"coef_": self.coef_source_, "intercept_": self.intercept_source_, "_target_spread": None}
        new._replace(ADAPTATION_ATTRIBUTES, weights)
        return new
