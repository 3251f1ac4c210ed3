"""What a fitted regressor can say of a target before any label of it: expected error, spread and intervals per row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar._checks import FLOATS, check_level, numbers_only, target_moments
from pyspar._regressor import MomentsRegressor
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Belief
from pyspar.core.forecast import Forecast, forecaster_for
from pyspar.core.moments import refuse_masked
from pyspar.core.posterior import Posterior, posterior_of
from pyspar.core.predictive import blocks, predictive
from pyspar.sources import kind_of


class ForecastingRegressor(MomentsRegressor):
    """A linear regressor that forecasts its own error; all it needs is the moments of its source.

    The forecasts assume that labels are linear in the features, on the source and on the target alike, with noise of
    one size. Where that does not hold they are too small.
    """

    _belief: Belief

    def expected_rmse(self, Z: Any, *, sample_weight: Any = None) -> Forecast | list[Forecast]:
        """Forecast the root mean squared error of the current weights on a target, without its labels.

        Parameters
        ----------
        Z : whatever ``adapt`` takes
        sample_weight : array of shape (m,), optional

        Returns
        -------
        Forecast
            With intervals and the parts of the error; ``float(forecast)`` is the expected RMSE on noisy labels. A list
            of them, one per output, if y had two dimensions.
        """
        check_is_fitted(self)
        target = target_moments(self, Z, sample_weight, solver=self.solver)
        forecaster = forecaster_for(self.moments_, target, fit_intercept=self._belief.centred)
        coef, intercept = weights_of(self)
        found = [forecaster.of(type(self).__name__, coef, intercept, k) for k in range(coef.shape[1])]
        return found[0] if self._y_ndim == 1 else found

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict with the current weights.

        Parameters
        ----------
        X : array, data frame, sparse matrix, Dask collection or tensor of shape (n, D)
        return_std : bool, default False
            Also return for each row the expected root of the squared difference between label and prediction: noise,
            uncertainty of the weights, and what adapting took away.

        Returns
        -------
        array of shape (n,), or (n, K) if y had two dimensions; with ``return_std`` a pair of such.
        """
        prediction = super().predict(X)
        if not return_std:
            return prediction
        rows = self._rows(X)
        mean = np.asarray(prediction, dtype=np.float64).reshape(len(rows), -1)
        return prediction, self._per_row(rows, lambda p, at, k: [p.std_about(mean[at, k])])[0]

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return for each row where its label lies with a given probability.

        The interval is that of the label given the source, whatever the current weights predict: adapting moves the
        prediction, not what is known, and may move it out of the interval.

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

    def _posterior(self) -> Posterior:
        """Return the posterior in the source's own units: the widest, since what is asked about may be any row."""
        return posterior_of(self.moments_, fit_intercept=self._belief.centred)

    def _rows(self, X: Any) -> Matrix:
        if kind_of(X) != "rows":
            raise TypeError(
                f"Intervals are made for arrays and data frames. Got {type(X).__name__} instead; convert it, a batch "
                "of rows at a time."
            )
        refuse_masked("X", X)
        with numbers_only(X):
            return np.asarray(validate_data(self, X, reset=False, dtype=FLOATS), dtype=np.float64)

    def _per_row(self, rows: Matrix, of: Any, numbers: int = 1) -> list[Any]:
        """Return arrays of numbers that ``of`` finds for a block of rows and an output, shaped as predictions are."""
        posterior = self._posterior()
        found = np.empty((numbers, len(rows), len(posterior.unit)))
        for at in blocks(len(rows)):
            for k in range(found.shape[2]):
                found[:, at, k] = of(predictive(posterior, rows[at], k), at, k)
        return [each[:, 0] if self._y_ndim == 1 else each for each in found]


def weights_of(estimator: Any) -> tuple[Matrix, Vector]:
    """Return the weights (D, K) and intercepts (K,) of a fitted linear regressor."""
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    coef = coef[:, None] if coef.ndim == 1 else coef.T
    return coef, np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64), (coef.shape[1],))
