"""AdaptableRegressor: fit linear weights to the moments of a source, adapt them to a target, forecast their error.

An estimator keeps the moments of its source and never its rows. Every method first validates its input, then computes
the new attributes, and sets them last. An error or an interrupt before that leaves the estimator unchanged.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pyspar.core.adapt import Adaptation
from pyspar.core.forecast import Forecast, expected_square, row_scale, source_square
from pyspar.core.moments import Matrix, Moments, Vector, WeightlessRows, column_names, refuse_extremes
from pyspar.core.regression import Fit, PriorScale, RidgePosterior, fit_ridge, make_prior, spread_about_source
from pyspar.core.separation import Separation, measure_separation
from pyspar.core.spectrum import Eigen
from pyspar.estimators import validation
from pyspar.estimators.calibration import forecast_error, row_factor
from pyspar.estimators.cross_validation import left_out_group_rmse
from pyspar.estimators.validation import Attributes, Source
from pyspar.sources import eigen_on_device_of, kind_of, linear_prediction, moments_of, refuse_dates, refuse_large

ADAPTATION_ATTRIBUTES = ("adaptation_", "separation_", "_adapted_to")  # only an adapted regressor has them


class AdaptableRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A linear regressor that can be adapted to an unlabelled target, and that forecasts its error on the target."""

    coef_: Any
    intercept_: Any
    moments_: Moments
    adaptation_: Adaptation
    _fit: Fit  # of the source
    _prior_scale: PriorScale
    _group_rmse: Vector | None
    _adapted_to: Moments
    _y_ndim: int

    @abstractmethod
    def _solve(self, source: Moments, eigen: Eigen | None = None) -> Fit:
        """Return the fit to a source."""

    @abstractmethod
    def _adapt_fit(self, target: Moments, eigen: Eigen | None = None) -> tuple[Fit, Adaptation]:
        """Return the adaptation to a target, and the fit to the source that was adapted."""

    @abstractmethod
    def _weights(self, fit: Fit, w: Matrix) -> tuple[Matrix, Vector]:
        """Return coefficients (D, K) and intercepts (K,) for weights in the coordinates of a fit."""

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
        group_rmse = None
        if isinstance(X, Moments) or kind_of(X) == "batches":
            moments = X if isinstance(X, Moments) else moments_of(X, labelled=True)
            source = validation.read_moments(moments, y, sample_weight, groups)
        else:
            if groups is not None:
                group_rmse = left_out_group_rmse(self, X, y, sample_weight, groups)
            source = validation.read_labelled_rows(self, X, y, sample_weight, min_rows=2)
        # The weights of least squares do not depend on the noise, but forecasts do.
        validation.check_counts(source.moments, "source", least=2.0 if hasattr(self, "prior_scale") else 0.0)
        self._learn(source, group_rmse, eigen_on_device_of(X))
        self._column_order = column_names(X, integers=True)
        validation.warn_of_fit(self)
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
        self._column_order = column_names(X, integers=True) if first else self._column_order
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
        if getattr(self, "_is_partial_fit", False):
            validation.check_counts(self.moments_, "source")
        validation.warn_of_fit(self)
        fit, adaptation = self._adapt_fit(target, eigen_on_device_of(Z))
        weights = self._describe(fit, adaptation.w_proj, self._y_ndim)
        self._replace(ADAPTATION_ATTRIBUTES, {**weights, "adaptation_": adaptation, "_adapted_to": target})
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the current weights.

        The result has the shape (n,), or (n, K) if y had two dimensions: a lazy Dask array or a tensor if X is one.
        """
        check_is_fitted(self)
        if kind_of(X) in ("dask", "torch"):
            refuse_dates("X", X)
            validation.check_columns(self, column_names(X, integers=True), X.shape[1] if X.ndim == 2 else 0, role="X")
            return linear_prediction(X, self.coef_, self.intercept_)
        return validation.check_rows(self, X) @ self.coef_.T + self.intercept_

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return an interval for each row that contains its label with a given probability, about its prediction.

        X is an array or a data frame. The half-width is the scale of the row's label (noise, uncertain weights, and
        their distance from the posterior mean) times a factor calibrated on real shifts, for the last target.
        """
        check_is_fitted(self)
        validation.check_level(level)
        rows = np.asarray(validation.check_rows(self, X, accept_sparse=False), dtype=np.float64)
        refuse_large("X", rows)
        prediction = rows @ self.coef_.T + self.intercept_
        separation = self.separation_ if hasattr(self, "adaptation_") else None
        source, between = self._source_errors()
        factors = [
            row_factor(level, separation, source_rmse=float(rmse), label_spread=float(spread))
            for rmse, spread in zip(source, self._label_spreads, strict=True)
        ]
        scale = row_scale(self._posterior(getattr(self, "_adapted_to", None)), rows, prediction.reshape(len(rows), -1))
        half = (np.hypot(scale, np.sqrt(between)) * factors).reshape(prediction.shape)
        return prediction - half, prediction + half

    def source_rmse(self) -> Any:
        """Return the expected RMSE, before adapting, on new rows like those of the source: one number per output of y.

        With ``groups`` it is the error of cross-validation that leaves groups out, if that is larger.
        """
        check_is_fitted(self)
        return per_output(self._source_errors()[0], self._y_ndim)

    def expected_rmse(self, Z: Any = None, *, sample_weight: Any = None) -> Forecast | list[Forecast]:
        """Forecast the root mean squared error of the current weights on a target, without its labels.

        For both regressors ``model_rmse`` is the expectation of the posterior of :class:`pyspar.BayesSpARRegressor`.
        The median ``rmse``, which is also ``float(forecast)``, and the intervals are calibrated on real shifts.

        Z is a target as for ``adapt``, by default that of the last ``adapt``. If y had two dimensions, return a list
        with one forecast per output. Theorems 1 and 2 of the paper are ``adaptation_.risk_before`` and ``risk_after``.
        """
        check_is_fitted(self)
        if Z is None and not hasattr(self, "_adapted_to"):
            raise ValueError("expected_rmse needs target rows, got none; pass Z, or call adapt(Z) first")
        target = self._adapted_to if Z is None else self._target(Z, sample_weight)
        separation = self.separation_ if Z is None else measure_separation(self.moments_, target)
        source, between = self._source_errors()
        coef = np.reshape(self.coef_, (-1, self.n_features_in_)).T
        posterior = self._posterior(target)
        model = np.sqrt(expected_square(posterior, coef, np.atleast_1d(self.intercept_), target) + between)
        sizes = {"n_source": self.moments_.weight, "n_target": target.weight}
        forecasts = [
            forecast_error(
                float(source[k]), kind="linear", separation=separation, label_spread=float(spread),
                model_rmse=float(model[k]), name=type(self).__name__, **sizes,
            )
            for k, spread in enumerate(self._label_spreads)
        ]  # fmt: skip
        return forecasts[0] if self._y_ndim == 1 else forecasts

    @cached_property
    def separation_(self) -> Separation:
        """How well the rows of the source and of the adapted target can be distinguished."""
        if not hasattr(self, "_adapted_to"):
            raise AttributeError(f"{type(self).__name__} has separation_ only after adapt(Z)")
        return measure_separation(self.moments_, self._adapted_to)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, source: Source, group_rmse: Vector | None = None, eigen: Eigen | None = None) -> None:
        """Compute all fitted attributes for a source, then set them."""
        refuse_extremes(source.moments)
        fit = self._solve(source.moments, eigen)
        attributes = {
            **self._describe(fit, fit.w_hat, source.y_ndim),
            "_fit": fit,
            "_prior_scale": getattr(self, "prior_scale", "max"),
            "_group_rmse": group_rmse,
            "moments_": source.moments,
            "n_features_in_": source.moments.n_features,
            "rank_": fit.x.rank,
            "_y_ndim": source.y_ndim,
        }
        attributes |= {f"{name}_source_": np.copy(attributes[f"{name}_"])[()] for name in ("coef", "intercept")}
        names = None if source.names is None else np.array(source.names, dtype=object)
        optional = {"feature_names_in_": names, "label_names_": source.label_names, "label_range_": source.label_range}
        attributes |= {name: value for name, value in optional.items() if value is not None}
        self._replace((*ADAPTATION_ATTRIBUTES, *optional, "_is_partial_fit"), attributes)

    def _describe(self, fit: Fit, w: Matrix, y_ndim: int) -> Attributes:
        """Return the attributes that an adaptation changes, in scikit-learn's shapes."""
        coef, intercept = self._weights(fit, w)
        return {
            "coef_": coef[:, 0].copy() if y_ndim == 1 else np.array(coef.T, order="C"),
            "intercept_": per_output(intercept, y_ndim),
            "sigma2_": per_output(fit.sigma2, y_ndim),
        }

    def _replace(self, stale: tuple[str, ...], attributes: Attributes) -> None:
        """Set attributes in one step, without those that are stale."""
        self.__dict__ = {**{k: v for k, v in self.__dict__.items() if k not in stale}, **attributes}

    def _posterior(self, target: Moments | None, *, unseen: bool = True, eigen: Eigen | None = None) -> RidgePosterior:
        """Return the posterior with the scales of both; with ``unseen``, constant source features have a prior too."""
        if self.moments_.weight < 2.0:
            validation.check_counts(self.moments_, "source", least=2.0)
        centred = self._fit.centred
        spread = None if target is None else spread_about_source(self.moments_, target, centred)
        prior = make_prior(self.moments_, spread, self._prior_scale, fit_intercept=centred, unseen=unseen)
        if isinstance(self._fit, RidgePosterior) and np.array_equal(prior.units, self._fit.prior.units):
            return self._fit
        return fit_ridge(self.moments_, prior, fit_intercept=centred, eigen=eigen)

    def _source_errors(self) -> tuple[Vector, Vector]:
        """Return the in-distribution RMSE, and the part of its square by which new groups exceed the model."""
        weights = self._weights(self._fit, self._fit.w_hat)
        square = source_square(self._fit, self._posterior(None), *weights, self.moments_)
        between = np.maximum((0.0 if self._group_rmse is None else np.square(self._group_rmse)) - square, 0.0)
        return np.sqrt(square + between), between

    @property
    def _label_spreads(self) -> Vector:
        return self.moments_.spread[self.moments_.n_features :]

    def _target(self, Z: Any, sample_weight: Any) -> Moments:
        """Return the moments of a target."""
        with validation.name_target():
            target = validation.target_moments(self, Z, sample_weight)
            refuse_extremes(target)
        if sample_weight is not None:
            validation.check_counts(target, "target")
        return target

    def _before_adapting(self) -> Self:
        """Return a copy with the weights before any adaptation."""
        new = copy.copy(self)
        new._replace(ADAPTATION_ATTRIBUTES, self._describe(self._fit, self._fit.w_hat, self._y_ndim))
        return new


def per_output(values: Vector, y_ndim: int) -> Any:
    """Return one number per output: a float for a one-dimensional y."""
    return float(values[0]) if y_ndim == 1 else values
