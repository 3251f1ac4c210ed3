"""Base classes of the estimators: fit, adapt, predict and forecast from the moments of the source.

An estimator keeps the moments of its source and never its rows. Every method validates its input and computes the new
attributes first, and sets them last. An error or an interrupt before that leaves the estimator unchanged.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.forecast import Forecast, Forecaster
from pyspar.core.moments import Moments, Solver, WeightMeaning
from pyspar.core.posterior import posteriors_of
from pyspar.core.predictive import BLOCK_ROWS, Predictive, predictive
from pyspar.core.prior import Prior, Units, inverse, units_of_features
from pyspar.core.ridge import Belief
from pyspar.estimators.validation import (
    SPARSE_FORMATS,
    Source,
    check_level,
    check_rows,
    read_batches,
    read_moments,
    read_rows,
    target_moments,
    warn_if_nothing_left_for_noise,
    warn_if_scales_are_too_far_apart,
    warn_if_weights_do_not_count,
)
from pyspar.sources import linear_prediction
from pyspar.sources.kinds import kind_of, use_device_of

Attributes = dict[str, Any]
"""Fitted attributes by name, computed but not yet set."""


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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on labelled source rows. An earlier fit and adaptation are discarded.

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
        self._validate_params()
        with use_device_of(X):
            self._learn(read_rows(self, X, y, sample_weight, solver=self.solver, min_rows=2))
        self._warn_of_limits()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of labelled source rows. The result is that of one fit on all rows."""
        self._validate_params()
        first = not hasattr(self, "moments_")
        with use_device_of(X):
            source = read_rows(self, X, y, sample_weight, solver=self.solver, min_rows=1, reset=first)
            if not first:
                if source.y_ndim != self._y_ndim:
                    raise ValueError(
                        f"y must have {self._y_ndim} dimension(s), as in earlier batches, got {source.y_ndim}"
                    )
                names = getattr(self, "feature_names_in_", None)
                source = Source(self.moments_ + source.moments, source.y_ndim, names)
            self._learn(source)
        return self

    def fit_batches(self, batches: Any) -> Self:
        """Fit on an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` batches, each read once.

        The batches may be arrays, frames or tensors of any size. The result is that of one fit on all rows.
        """
        self._validate_params()
        self._learn(read_batches(batches, solver=self.solver))
        self._warn_of_limits()
        return self

    def fit_moments(self, moments: Moments) -> Self:
        """Fit on the summary of a labelled source, ``Moments.of(X, y)`` or a sum of such; no rows are needed.

        With one output the weights have the same shape as for a one-dimensional y.
        """
        self._validate_params()
        self._learn(read_moments(moments))
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

    def _learn(self, source: Source) -> None:
        """Compute all fitted attributes for a source, then set them."""
        attributes = {
            **self._solve(source),
            "moments_": source.moments,
            "n_features_in_": source.moments.n_features,
            "_y_ndim": source.y_ndim,
        }
        if source.names is not None:
            attributes["feature_names_in_"] = source.names
        for stale in ("adaptation_", "feature_names_in_"):
            self.__dict__.pop(stale, None)
        self.__dict__.update(attributes)

    def _warn_of_limits(self) -> None:
        """Warn about limitations of the source."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")


class AdaptableRegressor(MomentsRegressor):
    """A regressor that can be adapted to an unlabelled target, and that forecasts its error on the target.

    The forecasts assume that labels are linear in the features with noise of constant variance, in both source and
    target. If this does not hold, the forecasts are too small.

    A subclass sets ``_belief`` and ``_weight_meaning`` in ``_solve``, and defines the abstract methods.
    """

    _belief: Belief
    _weight_meaning: WeightMeaning
    _units: Units = "target"

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

    def adapt(self, Z: Any, *, sample_weight: Any = None) -> Self:
        """Adapt the weights to an unlabelled target, in place.

        Parameters
        ----------
        Z : array, data frame, sparse matrix, Dask collection or tensor of shape (m, D), batches, or Moments
            Target rows with the source's columns. Batches are an iterable of row blocks.
        sample_weight : array of shape (m,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._validate_params()
        target = self._target(Z, sample_weight)
        self._warn_of_limits()
        with use_device_of(Z):
            self._adapt_moments(target)
        return self

    def adapted(self, Z: Any, *, sample_weight: Any = None) -> Self:
        """Return a new estimator adapted to another target. The original is unchanged, and both share the source."""
        check_is_fitted(self)
        return copy.copy(self).adapt(Z, sample_weight=sample_weight)

    def reset(self) -> Self:
        """Restore the weights from before any adaptation."""
        check_is_fitted(self)
        self.__dict__.pop("adaptation_", None)
        self.__dict__.update(self._unadapted())
        return self

    def expected_rmse(self, Z: Any, *, sample_weight: Any = None) -> Forecast | list[Forecast]:
        """Forecast the root mean squared error of the current weights on a target, without its labels.

        The forecast uses the posterior of :class:`pyspar.BayesSpARRegressor`, also for :class:`pyspar.SpARRegressor`.
        With ``rule="keep"`` the adapted weights are its mean.
        Theorems 1 and 2 of the paper are ``adaptation_.risk_before`` and ``adaptation_.risk_after``.

        Parameters
        ----------
        Z : same types as for ``adapt``
        sample_weight : array of shape (m,), optional

        Returns
        -------
        Forecast
            The forecast with intervals and the parts of the error. ``float(forecast)`` is the expected RMSE on noisy
            labels. If y had two dimensions, a list with one forecast per output.
        """
        check_is_fitted(self)
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
            Also return, for each row, the root of the expected squared difference between label and prediction. It
            includes the noise, the uncertainty of the weights, and the directions that adapting removed.

        Returns
        -------
        array of shape (n,), or (n, K) if y had two dimensions; with ``return_std`` a pair of such arrays.
        """
        if not return_std:
            return super().predict(X)
        rows = self._rows(X)
        prediction = rows @ self.coef_.T + self.intercept_
        mean = prediction.reshape(len(rows), -1)
        (std,) = self._per_row(rows, lambda labels, at, k: [labels.std_about(mean[at, k])], 1)
        return prediction, std

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return an interval for each row that contains its label with a given probability.

        The probability assumes labels that are linear in the features. The interval averages the posterior of the
        current weights and posteriors in other units, each weighted by its evidence. A prediction may lie outside its
        interval if the evidence favours other units, or if a rule has removed directions.

        Parameters
        ----------
        X : array or data frame of shape (n, D)
        level : float in (0, 1), default 0.9

        Returns
        -------
        low, high : arrays of shape (n,), or (n, K) if y had two dimensions
        """
        check_level(level)
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        low, high = self._per_row(self._rows(X), lambda labels, at, k: [labels.quantile(tail) for tail in tails], 2)
        return low, high

    def _warn_of_limits(self) -> None:
        warn_if_weights_do_not_count(self.moments_.weight, self.moments_.rows, self._weight_meaning)
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
        self.__dict__.update(self._adapt_to(target))

    def _forecaster(self, target: Moments) -> Forecaster:
        source, centred, spread = self._source, self._belief.centred, self._spread_of(target)
        units = units_of_features(source, spread, self._units, fit_intercept=centred, include_unseen=True)
        others = self._in_other_units(units, spread)
        return Forecaster(source, target, self._prior_in(units), other_priors=others, fit_intercept=centred)

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
            centre = rows[at] @ prior.coef + prior.intercept
            scaled = [rows[at] * inverse(other.units) for other in priors]
            for k in range(result.shape[2]):
                result[:, at, k] = of(predictive(posteriors, scaled, centre[:, k], k), at, k)
        return [values[:, 0] if self._y_ndim == 1 else values for values in result]


def linear_weights(w: Matrix, intercept: Vector, y_ndim: int) -> Attributes:
    """Return ``coef_`` and ``intercept_`` in scikit-learn's shapes, for weights of shape (features, outputs)."""
    coef = w[:, 0].copy() if y_ndim == 1 else np.array(w.T, order="C")
    return {"coef_": coef, "intercept_": per_output(intercept, y_ndim)}


def per_output(values: Vector, y_ndim: int) -> Any:
    """Return one number per output: a float for a one-dimensional y."""
    return float(values[0]) if y_ndim == 1 else values


def weights_of(estimator: Any) -> tuple[Matrix, Vector]:
    """Return the weights (D, K) and intercepts (K,) of a fitted linear regressor."""
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    coef = coef[:, None] if coef.ndim == 1 else coef.T
    return coef, np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64), (coef.shape[1],))
