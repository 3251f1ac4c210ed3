"""MomentsRegressor fits linear weights to the moments of a source; AdaptableRegressor adapts them to a target.

An estimator keeps the moments of its source and never its rows. Every method validates its input and computes the new
attributes first, and sets them last. An error or an interrupt before that leaves the estimator unchanged.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Vector
from pyspar.core.belief import Belief, Prior, Units
from pyspar.core.forecast import Forecast
from pyspar.core.moments import Moments, Solver, WeightlessRows, WeightMeaning, refuse_extremes
from pyspar.core.separation import Separation, measure_separation
from pyspar.estimators import validation
from pyspar.estimators.calibrated_forecasts import SourceModel
from pyspar.estimators.groups import GroupFolds, UngroupedBatches, check_groups, check_several, extend_folds
from pyspar.estimators.linear_correction import LinearCorrection, fit_linear_correction
from pyspar.estimators.target_labels import TargetDrift, check_labelled_rows
from pyspar.estimators.validation import Attributes, Source, linear_weights, per_output, weights_of
from pyspar.sources import kind_of, linear_prediction, use_device_of

ADAPTATION_ATTRIBUTES = ("adaptation_", "_adapted_to", "_separation", "_correction", "drift_")
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
            The group of each row, such as a patient or a shop. Pass it if the target has other groups. Forecasts then
            include the error on new groups, by cross-validation over groups. The weights do not depend on it.

        Returns
        -------
        self
        """
        self._validate_params()
        with use_device_of(X):
            folds = None if groups is None else check_several(extend_folds(None, self, X, y, sample_weight, groups))
            self._learn(validation.read_labelled_rows(self, X, y, sample_weight, min_rows=2), folds)
        self._warn_of_limits()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Add a batch of labelled source rows. The result is that of one fit on all rows.

        A batch after the first whose weights are all zero changes nothing.
        """
        self._validate_params()
        first, folds = not hasattr(self, "moments_"), getattr(self, "_folds", None)
        if not first and (groups is None) != (folds is None):
            raise ValueError(f"pass groups in all batches or in none, got {groups!r} after earlier batches")
        groups = None if groups is None else check_groups(groups, X)
        with use_device_of(X):
            try:
                source = validation.read_labelled_rows(self, X, y, sample_weight, min_rows=1, reset=first)
            except WeightlessRows:
                if first:
                    raise
                return self
            folds = None if groups is None else extend_folds(folds, self, X, y, sample_weight, groups)
            self._learn(source if first else source.added_to(self), folds)
        self._is_partial_fit = True  # a batch may have small weights, so adapt warns about their sum
        return self

    def fit_batches(self, batches: Any) -> Self:
        """Fit on an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` batches, each read once.

        The batches may be arrays, frames or tensors of any size. The result is that of one fit on all rows. Batches of
        rows with groups are ``(X, y, sample_weight, groups)``, where ``sample_weight`` may be None.
        """
        self._validate_params()
        ungrouped = UngroupedBatches(self, batches)
        self._learn(validation.read_batches(ungrouped, solver=self.solver), check_several(ungrouped.folds))
        self._warn_of_limits()
        return self

    def fit_moments(self, moments: Moments) -> Self:
        """Fit on the summary of a labelled source, ``Moments.of(X, y)`` or a sum of such; no rows are needed.

        With one output the weights have the same shape as for a one-dimensional y.
        """
        self._validate_params()
        self._learn(validation.read_moments(moments))
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
        return validation.check_rows(self, X, accept_sparse=validation.SPARSE_FORMATS) @ self.coef_.T + self.intercept_

    def _learn(self, source: Source, folds: GroupFolds | None = None) -> None:
        """Compute all fitted attributes for a source, then set them."""
        refuse_extremes(source.moments)
        attributes = {
            **self._solve(source if folds is None else folds.divide(source)),
            "_folds": None if folds is None else folds.measure(self, source.y_ndim),
            "moments_": source.moments,
            "n_features_in_": source.moments.n_features,
            "_y_ndim": source.y_ndim,
        }
        names = {"feature_names_in_": source.names, "label_names_": source.label_names}
        optional = {**names, "label_range_": source.label_range}
        attributes |= {name: value for name, value in optional.items() if value is not None}
        self._replace((*ADAPTATION_ATTRIBUTES, *optional, "_is_partial_fit"), attributes)

    def _replace(self, stale: tuple[str, ...], attributes: Attributes) -> None:
        for name in stale:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)

    def _warn_of_limits(self, *, weights: bool = True) -> None:
        """Warn about limitations of the source and about row weights, in subclasses that have any to report."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class AdaptableRegressor(MomentsRegressor):
    """A regressor that can be adapted to an unlabelled target, and that forecasts its error on the target.

    The expectations assume that labels are linear in the features with noise of constant variance, in both source and
    target. The intervals do not: they come from experience with real shifts.

    A subclass sets ``_belief`` and ``_weight_meaning`` in ``_solve``, and defines the abstract methods.
    """

    _belief: Belief
    _weight_meaning: WeightMeaning
    _units: Units = "target"
    _adapted_to: Moments
    _separation: Separation
    _correction: LinearCorrection | None = None

    @abstractmethod
    def _adapt_to(self, target: Moments) -> Attributes:
        """Return the attributes for a target, including ``adaptation_``, without setting any."""

    @abstractmethod
    def _unadapted(self) -> Attributes:
        """Return the attributes of the fit that an adaptation changes."""

    @abstractmethod
    def _prior(self) -> Prior:
        """Return the prior of forecasts and intervals, in the units of the current weights."""

    def adapt(self, Z: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Adapt the weights to a target, in place.

        Parameters
        ----------
        Z : array, data frame, sparse matrix, Dask collection or tensor of shape (m, D), batches, or Moments
            Target rows with the source's columns. Batches are an iterable of row blocks.
        y : array of shape (m,) or (m, K), or mapping, optional
            Labels of some target rows, with NaN where unknown, or as ``{row position: label}``; Z must be rows. The
            weights are adapted without labels first, and then corrected by a linear :class:`pyspar.TargetCorrection`:
            ``drift_`` is the difference. Intervals and expected errors are those of the corrected weights.
        sample_weight : array of shape (m,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._validate_params()
        if y is not None:
            check_labelled_rows(Z, y)
        target = self._target(Z, sample_weight)
        rows = None if y is None else validation.read_dense_rows(self, Z)
        self._warn_of_limits(weights=getattr(self, "_is_partial_fit", False))
        with use_device_of(Z):
            new = copy.copy(self)
            new._adapt_moments(target)
            if rows is not None:
                new._set_correction(*fit_linear_correction(new, weights_of(new), rows, y, sample_weight))
        self.__dict__ = new.__dict__
        return self

    def adapted(self, Z: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Return a new estimator adapted to another target. The original is unchanged, and both share the source."""
        return copy.copy(self).adapt(Z, y, sample_weight=sample_weight)

    def reset(self) -> Self:
        """Restore the weights from before any adaptation."""
        check_is_fitted(self)
        self._replace(ADAPTATION_ATTRIBUTES, self._unadapted())
        return self

    @property
    def separation_(self) -> Separation:
        """How well the rows of the source and of the adapted target can be distinguished."""
        if not hasattr(self, "_separation"):
            if not hasattr(self, "_adapted_to"):
                raise AttributeError(f"{type(self).__name__} has separation_ only after adapt(Z)")
            self._separation = measure_separation(self._source, self._adapted_to)
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

    def home_rmse(self) -> Any:
        """Return the expected RMSE, before adapting, on new rows like those of the source.

        With ``groups`` the rows belong to new groups: the error of cross-validation that leaves groups out, if it is
        larger than the expectation of the model. With two dimensions of y, return one number per output.
        """
        check_is_fitted(self)
        return per_output(self._model.home_rmse(), self._y_ndim)

    def expected_rmse(self, Z: Any, *, sample_weight: Any = None) -> Forecast | list[Forecast]:
        """Forecast the root mean squared error of the current weights on a target, without its labels.

        The expectation uses the posterior of :class:`pyspar.BayesSpARRegressor`, also for
        :class:`pyspar.SpARRegressor`. The intervals come from experience with real shifts; see ``docs/forecasts.md``.
        Theorems 1 and 2 of the paper are ``adaptation_.risk_before`` and ``adaptation_.risk_after``.

        Parameters
        ----------
        Z : same types as for ``adapt``
        sample_weight : array of shape (m,), optional

        Returns
        -------
        Forecast
            ``float(forecast)`` is the expected RMSE on noisy labels. A list with one forecast per output if y had two
            dimensions. A ``LabelForecast`` of the corrected weights after ``adapt(Z, y)``.
        """
        check_is_fitted(self)
        name, forecasts = type(self).__name__, list[Forecast]()
        if self._correction is not None:
            forecasts += self._correction.forecasts(validation.read_dense_rows(self, Z), sample_weight, name)
        else:
            forecaster = self._model.forecaster(self._target(Z, sample_weight))
            forecasts += [forecaster.forecast(name, *weights_of(self), k) for k in range(self.moments_.n_outputs)]
        return forecasts[0] if self._y_ndim == 1 else forecasts

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict with the current weights.

        Parameters
        ----------
        X : array, data frame, sparse matrix, Dask collection or tensor of shape (n, D)
        return_std : bool, default False
            Also return the standard deviation of each label about its prediction, from noise, uncertain weights and
            removed directions, times the factor of ``predict_interval`` at level 0.9.

        Returns
        -------
        array of shape (n,), or (n, K) if y had two dimensions; a pair of such arrays with ``return_std``
        """
        validation.check_boolean("return_std", return_std)
        if not return_std:
            return super().predict(X)
        rows = validation.read_dense_rows(self, X)
        prediction = rows @ self.coef_.T + self.intercept_
        if self._correction is not None:
            return prediction, self._correction.predictive_scales(rows).reshape(prediction.shape)
        model = self._model
        std = model.row_stds(rows, prediction.reshape(len(rows), -1)).reshape(prediction.shape)
        return prediction, std * self._row_factors(model, 0.9)

    def predict_interval(
        self, X: Any, level: float = 0.9, *, basis: Literal["experience", "linear"] = "experience"
    ) -> tuple[Any, Any]:
        """Return an interval for each row that contains its label with a given probability.

        It averages the posterior of the current weights and posteriors in other units, weighted by their evidence. By
        default it is extended to contain the prediction, and its distances from the prediction are multiplied by a
        factor from real shifts, which depends on the separation of the source and the target of the last ``adapt``.

        Parameters
        ----------
        X : array or data frame of shape (n, D)
        level : float in (0, 1), default 0.9
        basis : {"experience", "linear"}, default "experience"
            "linear" omits the factor, which is correct for labels linear in the features. The interval may then
            exclude the prediction (other units, or removed directions). No effect after ``adapt(Z, y)``.

        Returns
        -------
        low, high : arrays of shape (n,), or (n, K) if y had two dimensions
        """
        validation.check_level(level)
        validation.check_choice("basis", basis, ("experience", "linear"))
        rows = validation.read_dense_rows(self, X)
        prediction = rows @ self.coef_.T + self.intercept_
        if self._correction is not None:
            half = self._correction.half_widths(rows, level).reshape(prediction.shape)
            return prediction - half, prediction + half
        model = self._model
        low, high = model.row_intervals(rows, level).reshape(2, *prediction.shape)
        if basis == "linear":
            return low, high
        factors = self._row_factors(model, level)
        below, above = np.minimum(low - prediction, 0.0), np.maximum(high - prediction, 0.0)
        return prediction + factors * below, prediction + factors * above

    @property
    def _source(self) -> Moments:
        """The source's moments, with weights that sum to the effective number of rows."""
        return self.moments_.counted(self._weight_meaning)

    @property
    def _model(self) -> SourceModel:
        weights = weights_of(copy.copy(self).reset())
        return SourceModel(self._source, self._belief, self._prior(), self._units, weights, self._folds)

    def _row_factors(self, model: SourceModel, level: float) -> Vector:
        return model.row_factors(level, self.separation_ if hasattr(self, "adaptation_") else None)

    def _warn_of_limits(self, *, weights: bool = True) -> None:
        if weights:
            validation.warn_if_weights_do_not_count(self.moments_, self._weight_meaning, "source")
        validation.warn_if_limited(self._belief)

    def _target(self, Z: Any, sample_weight: Any) -> Moments:
        """Return the moments of a target, with the same meaning of the row weights as in the source."""
        target = validation.target_moments(self, Z, sample_weight)
        with validation.name_target():
            refuse_extremes(target)
        if sample_weight is not None:
            validation.warn_if_weights_do_not_count(target, self._weight_meaning, "target")
        return target.counted(self._weight_meaning)

    def _adapt_moments(self, target: Moments) -> None:
        self._replace(ADAPTATION_ATTRIBUTES, {**self._adapt_to(target), "_adapted_to": target})

    def _set_correction(self, correction: LinearCorrection, reports: list[TargetDrift]) -> None:
        self._correction, self.drift_ = correction, reports[0] if self._y_ndim == 1 else reports
        self.__dict__.update(linear_weights(*correction.corrected_weights(), self._y_ndim))
