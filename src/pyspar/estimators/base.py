"""AdaptableRegressor: adapt to a target, and forecast the error on it, from the moments of the source.

Every method validates its input and computes the new attributes first, and sets them last. An error or an interrupt
before that leaves the estimator unchanged.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Belief, Prior, Units, left_out_rmse, units_of_features
from pyspar.core.forecast import Forecast, Forecaster
from pyspar.core.moments import Moments, WeightMeaning
from pyspar.core.posterior import BLOCK_ROWS, Predictive, posteriors_of, predictive
from pyspar.core.separation import Separation, measure_separation
from pyspar.errors import InputError, warn
from pyspar.estimators.experience import rmse_interval, row_factor
from pyspar.estimators.linear_correction import LinearCorrection, fit_linear_correction
from pyspar.estimators.moments_regressor import (
    ADAPTED,
    Attributes,
    MomentsRegressor,
    linear_weights,
    per_output,
    weights_of,
)
from pyspar.estimators.target_labels import TargetDrift, check_counts
from pyspar.estimators.validation import (
    check_boolean,
    check_choice,
    check_level,
    check_rows,
    target_moments,
    warn_if_nothing_left_for_noise,
    warn_if_scales_are_too_far_apart,
    warn_if_weights_do_not_count,
)
from pyspar.sources.kinds import kind_of, use_device_of

__all__ = ["AdaptableRegressor", "Attributes", "MomentsRegressor", "linear_weights", "per_output", "weights_of"]


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
    def _prior_in(self, units: Vector) -> Prior:
        """Return the prior of the forecasts in the given units."""

    @abstractmethod
    def _prior_for_rows(self) -> Prior:
        """Return the prior used for per-row intervals."""

    def adapt(self, Z: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Adapt the weights to a target, in place.

        Parameters
        ----------
        Z : array, data frame, sparse matrix, Dask collection or tensor of shape (m, D), batches, or Moments
            Target rows with the source's columns. Batches are an iterable of row blocks.
        y : array of shape (m,) or (m, K), or mapping, optional
            Labels of some target rows, with NaN where unknown, or as ``{row position: label}``. The weights are adapted
            without labels first, and then corrected as by :class:`pyspar.TargetCorrection`: ``drift_`` is the
            difference, and intervals and expected errors are those of the corrected weights. Z must be rows.
        sample_weight : array of shape (m,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._validate_params()
        target = self._target(Z, sample_weight)
        rows = None if y is None else self._rows(Z)
        if getattr(self, "_is_partial_fit", False):
            self._warn_of_weights()
        self._warn_of_limits()
        with use_device_of(Z):
            new = copy.copy(self)
            for stale in ADAPTED:
                new.__dict__.pop(stale, None)
            new._adapt_moments(target)
            if rows is not None:
                new._correct_weights(rows, y, sample_weight)
        self.__dict__ = new.__dict__
        return self

    def adapted(self, Z: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Return a new estimator adapted to another target. The original is unchanged, and both share the source."""
        check_is_fitted(self)
        return copy.copy(self).adapt(Z, y, sample_weight=sample_weight)

    def reset(self) -> Self:
        """Restore the weights from before any adaptation."""
        check_is_fitted(self)
        for stale in ADAPTED:
            self.__dict__.pop(stale, None)
        self.__dict__.update(self._unadapted())
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

        If the regressor was fitted with ``groups``, the rows belong to new groups: this is then the error of
        cross-validation that leaves groups out, if it is larger than the expectation of the model. With two dimensions
        of y, return one number per output.
        """
        check_is_fitted(self)
        return per_output(np.sqrt(self._model_home_rmse() ** 2 + self._between_groups()), self._y_ndim)

    def _model_home_rmse(self) -> Vector:
        """Return the expected RMSE per output, under the model, of the weights before adapting.

        With no more rows than features, the model's expectation on the source's own rows is close to zero, because the
        weights fit them exactly. The error of generalised cross-validation replaces it.
        """
        if self.moments_.rows - self._belief.centred <= self._belief.x.rank:
            errors = left_out_rmse(self._belief)
            if np.isfinite(errors).all():
                return errors
        source = self._source.without_outputs()
        forecaster, weights = self._forecaster(source, plain=True), weights_of(copy.copy(self).reset())
        return np.sqrt([forecaster.expected_square(*weights, k) for k in range(weights[0].shape[1])])

    def _between_groups(self) -> Vector:
        """Return the squared error, per output, by which new groups exceed the expectation of the model."""
        if getattr(self, "_group_rmse", None) is None:
            if getattr(self, "_folds", None) is not None:
                warn(
                    "the source has a single group so far, so errors and intervals do not cover new groups; add "
                    "batches of other groups with partial_fit, or leave groups out",
                    stacklevel=4,
                )
            return np.zeros(self.moments_.n_outputs)
        return np.asarray(np.maximum(self._group_rmse**2 - self._model_home_rmse() ** 2, 0.0))

    def expected_rmse(self, Z: Any, *, sample_weight: Any = None) -> Forecast | list[Forecast]:
        """Forecast the root mean squared error of the current weights on a target, without its labels.

        The expectation uses the posterior of :class:`pyspar.BayesSpARRegressor`, also for
        :class:`pyspar.SpARRegressor`. With ``rule="keep"`` the adapted weights are the mean of this posterior. The
        intervals come from experience with real shifts; see ``docs/forecasts.md``.
        Theorems 1 and 2 of the paper are ``adaptation_.risk_before`` and ``adaptation_.risk_after``.

        Parameters
        ----------
        Z : same types as for ``adapt``
        sample_weight : array of shape (m,), optional

        Returns
        -------
        Forecast
            The forecast with intervals and the parts of the error. ``float(forecast)`` is the expected RMSE on noisy
            labels. If y had two dimensions, a list with one forecast per output. After ``adapt(Z, y)`` the forecast is
            a ``LabelForecast`` of the corrected weights.
        """
        check_is_fitted(self)
        if self._correction is not None:
            rows = self._rows(Z)
            corrected = self._correction.forecasts(rows, check_counts(sample_weight, len(rows)), type(self).__name__)
            return corrected[0] if self._y_ndim == 1 else list(corrected)
        forecaster = self._forecaster(self._target(Z, sample_weight))
        coef, intercept = weights_of(self)
        forecasts = [forecaster.forecast(type(self).__name__, coef, intercept, k) for k in range(coef.shape[1])]
        return forecasts[0] if self._y_ndim == 1 else forecasts

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict with the current weights.

        Parameters
        ----------
        X : array, data frame, sparse matrix, Dask collection or tensor of shape (n, D)
        return_std : bool, default False
            Also return, for each row, a standard deviation of the label about the prediction. It includes the noise,
            the uncertainty of the weights and the directions that adapting removed, multiplied by the factor of
            ``predict_interval`` at level 0.9.

        Returns
        -------
        array of shape (n,), or (n, K) if y had two dimensions; with ``return_std`` a pair of such arrays.
        """
        check_boolean("return_std", return_std)
        if not return_std:
            return super().predict(X)
        rows = self._rows(X)
        prediction = rows @ self.coef_.T + self.intercept_
        if self._correction is not None:
            return prediction, self._correction.predictive_scales(rows).reshape(prediction.shape)
        mean = prediction.reshape(len(rows), -1)
        (std,) = self._per_row(rows, lambda labels, at, k: [labels.std_about(mean[at, k])], 1)
        return prediction, std * self._row_factor(0.9)

    def predict_interval(
        self, X: Any, level: float = 0.9, *, basis: Literal["experience", "linear"] = "experience"
    ) -> tuple[Any, Any]:
        """Return an interval for each row that contains its label with a given probability.

        The interval averages the posterior of the current weights and posteriors in other units, each weighted by its
        evidence. By default it is then extended to contain the prediction, and its distances from the prediction are
        multiplied by a factor from real shifts. The factor depends on the separation of the source and the target of
        the last ``adapt``. Without ``adapt`` it is the factor for rows like those of the source.

        Parameters
        ----------
        X : array or data frame of shape (n, D)
        level : float in (0, 1), default 0.9
        basis : {"experience", "linear"}, default "experience"
            "linear" returns the interval without the factor. It holds if the labels are linear in the features. A
            prediction may then lie outside its interval if the evidence favours other units, or if a rule has removed
            directions.

        Returns
        -------
        low, high : arrays of shape (n,), or (n, K) if y had two dimensions
        """
        check_level(level)
        check_choice("basis", basis, ("experience", "linear"))
        rows = self._rows(X)
        if self._correction is not None:
            prediction = rows @ self.coef_.T + self.intercept_
            half = self._correction.half_widths(rows, level).reshape(prediction.shape)
            return prediction - half, prediction + half
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        low, high = self._per_row(rows, lambda labels, at, k: [labels.quantile(tail) for tail in tails], 2)
        if basis == "linear":
            return low, high
        prediction, factor = rows @ self.coef_.T + self.intercept_, self._row_factor(level)
        below, above = np.minimum(low - prediction, 0.0), np.maximum(high - prediction, 0.0)
        return prediction + factor * below, prediction + factor * above

    def _row_factor(self, level: float) -> Any:
        """Return the factor for distances from the predictions, for new groups too if the source has groups."""
        factor = row_factor(level, self.separation_ if hasattr(self, "adaptation_") else None)
        between = self._between_groups()
        if not between.any():
            return factor
        return factor * per_output(np.sqrt(1.0 + between / self._model_home_rmse() ** 2), self._y_ndim)

    def _warn_of_weights(self) -> None:
        warn_if_weights_do_not_count(self.moments_.weight, self.moments_.rows, self._weight_meaning)

    def _warn_of_limits(self) -> None:
        warn_if_nothing_left_for_noise(self._belief)
        warn_if_scales_are_too_far_apart(self._belief)

    @property
    def _source(self) -> Moments:
        """The source's moments, with weights that sum to the effective number of rows."""
        return self.moments_.counted(self._weight_meaning)

    def _target(self, Z: Any, sample_weight: Any) -> Moments:
        """Return the moments of a target, with the same meaning of the row weights as in the source."""
        target = target_moments(self, Z, sample_weight, solver=self.solver)
        if sample_weight is not None:
            warn_if_weights_do_not_count(target.weight, target.rows, self._weight_meaning, role="target")
        return target.counted(self._weight_meaning)

    def _spread_of(self, target: Moments) -> Vector:
        """Return the root mean square of each target feature about the source mean, or zero without an intercept."""
        mean = self._source.mean[: target.n_features]
        return target.spread_about(mean if self._belief.centred else np.zeros_like(mean))

    def _adapt_moments(self, target: Moments) -> None:
        """Adapt to a checked target: compute all attributes, then set them."""
        attributes = {**self._adapt_to(target), "_adapted_to": target}
        self.__dict__.pop("_separation", None)
        self.__dict__.update(attributes)

    def _correct_weights(self, rows: Matrix, y: Any, sample_weight: Any) -> None:
        """Correct the adapted weights with the labels of some target rows."""
        self._set_correction(*fit_linear_correction(self, weights_of(self), rows, y, sample_weight))

    def _set_correction(self, correction: LinearCorrection, reports: list[TargetDrift]) -> None:
        self._correction = correction
        self.drift_ = reports[0] if self._y_ndim == 1 else reports
        self.__dict__.update(linear_weights(*correction.corrected_weights(), self._y_ndim))

    def _forecaster(self, target: Moments, *, plain: bool = False) -> Forecaster:
        """Return the forecaster for a target; with ``plain`` without groups and calibration."""
        source, centred, spread = self._source, self._belief.centred, self._spread_of(target)
        units = units_of_features(source, spread, self._units, fit_intercept=centred, include_unseen=True)
        others = self._in_other_units(units, spread)
        return Forecaster(
            source,
            target,
            self._prior_in(units),
            other_priors=others,
            fit_intercept=centred,
            between_groups=None if plain else self._between_groups(),
            calibrate=None if plain else rmse_interval,
        )

    def _in_other_units(self, units: Vector, target_spread: Vector | None) -> list[Prior]:
        """Return the prior in the other kinds of units, which intervals also use.

        Features that share a unit have no other kind. Otherwise the common unit is excluded, because intervals would
        depend on the units in which the features are given.
        """
        kinds: tuple[Units, ...] = () if self._units == "common" else ("target", "source")
        source, centred, include_unseen = self._source, self._belief.centred, target_spread is not None
        candidates = [units]
        for kind in kinds:
            other = units_of_features(source, target_spread, kind, fit_intercept=centred, include_unseen=include_unseen)
            if not any(np.array_equal(other, candidate) for candidate in candidates):
                candidates.append(other)
        return [self._prior_in(other) for other in candidates[1:]]

    def _rows(self, X: Any) -> Matrix:
        check_is_fitted(self)
        if kind_of(X) != "rows":
            raise TypeError(
                f"X must be an array or data frame for intervals, got {type(X).__name__}; convert it in batches of rows"
            )
        return np.asarray(check_rows(self, X), dtype=np.float64)

    def _per_row(self, rows: Matrix, of: Callable[[Predictive, slice, int], list[Vector]], numbers: int) -> list[Any]:
        """Return the arrays that ``of`` computes for each block of rows and output, in the shape of predictions."""
        prior = self._prior_for_rows()
        priors = [prior, *self._in_other_units(prior.units, None)]
        _, posteriors = posteriors_of(self._source, priors, fit_intercept=self._belief.centred)
        result = np.empty((numbers, len(rows), len(posteriors[0].label_length)))
        for start in range(0, len(rows), BLOCK_ROWS):
            at = slice(start, start + BLOCK_ROWS)
            centre, scaled = prior.predict(rows[at]), [other.transform_rows(rows[at]) for other in priors]
            for k in range(result.shape[2]):
                result[:, at, k] = of(predictive(posteriors, scaled, centre[:, k], k), at, k)
        return [values[:, 0] if self._y_ndim == 1 else values for values in result]


def refuse_corrected(estimator: Any, use: str) -> None:
    """Raise InputError if target labels have corrected a regressor: adapting it again would discard the correction."""
    if hasattr(estimator, "drift_"):
        raise InputError(
            f"{use} needs a regressor without a correction by target labels, got one with drift_; call "
            "expected_rmse(Z) for the expected error of the corrected regressor, or pass one that is not corrected"
        )
