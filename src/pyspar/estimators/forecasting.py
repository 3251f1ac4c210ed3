"""Forecasts of a fitted regressor before any target label: expected error, and per-row spread and intervals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Belief
from pyspar.core.forecast import Forecast, Forecaster
from pyspar.core.moments import Moments, Weights, refuse_masked
from pyspar.core.posterior import posteriors_of
from pyspar.core.predictive import blocks, predictive
from pyspar.core.prior import Prior
from pyspar.core.scaling import Units, units_of_features
from pyspar.estimators.base import MomentsRegressor
from pyspar.estimators.validation import FLOATS, check_level, numbers_only
from pyspar.sources import kind_of


class ForecastingRegressor(MomentsRegressor):
    """A linear regressor that forecasts its own error from the moments of its source.

    The forecasts assume that labels are linear in the features with noise of constant variance, in both source and
    target. If this does not hold, the forecasts are too small.

    A subclass sets ``_belief``, ``_weights`` (the meaning of a row's weight) and ``_prior`` (the prior of forecasts for
    rows). It defines ``_target`` and ``_prior_for`` (the prior of forecasts for a target).
    """

    _belief: Belief
    _prior: Prior
    _weights: Weights

    @property
    def _common(self) -> bool:
        """Whether all features share a unit."""
        return False

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
        found = [forecaster.of(type(self).__name__, coef, intercept, k) for k in range(coef.shape[1])]
        return found[0] if self._y_ndim == 1 else found

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
        prediction = super().predict(X)
        if not return_std:
            return prediction
        rows = self._rows(X)
        mean = np.asarray(prediction, dtype=np.float64).reshape(len(rows), -1)
        return prediction, self._per_row(rows, lambda p, at, k: [p.std_about(mean[at, k])])[0]

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return an interval for each row that contains its label with a given probability.

        The probability assumes labels that are linear in the features. The interval averages the posterior of the
        current weights and posteriors in other units, each weighted by its evidence. A prediction lies outside its
        interval where the evidence favours other units, or where a rule has removed directions.

        Parameters
        ----------
        X : array or data frame of shape (n, D)
        level : float in (0, 1), default 0.9

        Returns
        -------
        low, high : arrays of shape (n,), or (n, K) if y had two dimensions
        """
        check_is_fitted(self)
        check_level(level)
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        low, high = self._per_row(self._rows(X), lambda p, at, k: [p.quantile(tail) for tail in tails], numbers=2)
        return low, high

    @property
    def _source(self) -> Moments:
        """The source's moments, with weights that sum to the effective number of rows."""
        return self.moments_.counted(self._weights)

    @abstractmethod
    def _target(self, Z: Any, sample_weight: Any) -> Moments:
        """Return the moments of a target."""

    @abstractmethod
    def _prior_for(self, target: Moments | None) -> Prior:
        """Return the prior of forecasts for a target; None means rows distributed like the source."""

    def _forecaster(self, target: Moments) -> Forecaster:
        prior = self._prior_for(target)
        others = self._in_other_units(prior, target)
        return Forecaster(self._source, target, prior, beside=others, fit_intercept=self._belief.centred)

    def _in_other_units(self, prior: Prior, target: Moments | None) -> list[Prior]:
        """Return the prior in the other kinds of units, which intervals also use.

        Features that share a unit have no other kind. Otherwise the common unit is excluded, because intervals would
        depend on the units in which the features are given.
        """
        kinds: tuple[Units, ...] = () if self._common else ("target", "source")
        source, centred, unknown = self._source, self._belief.centred, target is not None
        units = [units_of_features(source, target, kind, fit_intercept=centred, unknown=unknown) for kind in kinds]
        different = [each for each in units if not np.array_equal(each, prior.units)]
        return [replace(prior, units=each) for i, each in enumerate(different) if not _among(each, different[:i])]

    def _rows(self, X: Any) -> Matrix:
        if kind_of(X) != "rows":
            raise TypeError(
                f"X must be an array or data frame for intervals. Got {type(X).__name__} instead; convert it in "
                "batches of rows."
            )
        refuse_masked("X", X)
        with numbers_only(X):
            return np.asarray(validate_data(self, X, reset=False, dtype=FLOATS), dtype=np.float64)

    def _per_row(self, rows: Matrix, of: Any, numbers: int = 1) -> list[Any]:
        """Return the arrays that ``of`` computes for each block of rows and output, in the shape of predictions."""
        priors = [self._prior, *self._in_other_units(self._prior, None)]
        _, posteriors = posteriors_of(self._source, priors, fit_intercept=self._belief.centred)
        result = np.empty((numbers, len(rows), len(posteriors[0].unit)))
        for at in blocks(len(rows)):
            centre = rows[at] @ self._prior.coef + self._prior.intercept
            scaled = [prior.of_rows(rows[at]) for prior in priors]
            for k in range(result.shape[2]):
                result[:, at, k] = of(predictive(posteriors, scaled, centre[:, k], k), at, k)
        return [each[:, 0] if self._y_ndim == 1 else each for each in result]


def _among(units: Vector, others: list[Vector]) -> bool:
    return any(np.array_equal(units, each) for each in others)


def weights_of(estimator: Any) -> tuple[Matrix, Vector]:
    """Return the weights (D, K) and intercepts (K,) of a fitted linear regressor."""
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    coef = coef[:, None] if coef.ndim == 1 else coef.T
    return coef, np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64), (coef.shape[1],))
