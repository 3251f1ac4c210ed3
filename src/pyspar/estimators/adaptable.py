"""The base class of regressors that can be adapted: ``fit``, ``adapt``, ``adapted`` and ``reset``."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from pyspar.core.adapt import Adaptation
from pyspar.core.moments import Moments
from pyspar.estimators.forecasting import ForecastingRegressor
from pyspar.estimators.validation import target_moments, warn_if_weights_do_not_count
from pyspar.sources import working_near


class AdaptableRegressor(ForecastingRegressor):
    """A linear regressor that can be adapted to an unlabelled target.

    A subclass defines ``_adapt_to``, which sets the weights for a target's moments and returns the adaptation, and
    ``_unadapt``, which sets the weights of the fit.
    """

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
        self._check_params()
        target = self._target(Z, sample_weight)
        self._warn_of_limits()
        with working_near(Z):
            self.adaptation_: Adaptation = self._adapt_to(target)
        return self

    def adapted(self, Z: Any, *, sample_weight: Any = None) -> Self:
        """Return a new estimator adapted to another target. The original is unchanged, and both share the source."""
        check_is_fitted(self)
        return copy.copy(self).adapt(Z, sample_weight=sample_weight)

    def reset(self) -> Self:
        """Restore the weights from before any adaptation."""
        check_is_fitted(self)
        self.__dict__.pop("adaptation_", None)
        self._unadapt()
        return self

    def _target(self, Z: Any, sample_weight: Any) -> Moments:
        """Return the moments of a target, with the same meaning of the row weights as in the source."""
        target = target_moments(self, Z, sample_weight, solver=self.solver)
        if sample_weight is not None:
            warn_if_weights_do_not_count(target.weight, target.rows, self._weights, what="target")
        return target.counted(self._weights)

    @abstractmethod
    def _adapt_to(self, target: Moments) -> Adaptation:
        """Set the weights for a target, and return every number of the adaptation."""

    @abstractmethod
    def _unadapt(self) -> None:
        """Set the weights of the fit."""
