"""What regressors share that can be adapted: a belief from the source, and a life cycle around it."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from pyspar._checks import target_moments
from pyspar._forecasting import ForecastingRegressor
from pyspar.core.adapt import Adaptation
from pyspar.core.arrays import Matrix
from pyspar.core.belief import Belief
from pyspar.core.moments import Moments
from pyspar.sources import working_near


class AdaptableRegressor(ForecastingRegressor):
    """A linear regressor that can be adapted to an unlabelled target.

    A subclass sets ``_belief`` in ``_solve``, and has ``_adaptation`` (what an adaptation to a target's moments is) and
    ``_publish`` (how weights of the belief become ``coef_`` and ``intercept_``).
    """

    _belief: Belief

    def adapt(self, Z: Any, *, sample_weight: Any = None) -> Self:
        """Adapt the weights to an unlabelled target, in place.

        Parameters
        ----------
        Z : array, data frame, sparse matrix, Dask collection or tensor of shape (m, D), batches, or Moments
            Rows of the new world, with the source's columns. Batches are an iterable of row blocks.
        sample_weight : array of shape (m,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._check_params()
        target = target_moments(self, Z, sample_weight, solver=self.solver)
        self._warn_of_limits()
        with working_near(Z):
            self.adaptation_: Adaptation = self._adaptation(target)
        self._publish(self.adaptation_.w_proj)
        return self

    def adapted(self, Z: Any, *, sample_weight: Any = None) -> Self:
        """Return a new estimator adapted to another target; this one is unchanged, and the source is shared."""
        check_is_fitted(self)
        return copy.copy(self).adapt(Z, sample_weight=sample_weight)

    def reset(self) -> Self:
        """Go back to the weights before any adaptation."""
        check_is_fitted(self)
        self.__dict__.pop("adaptation_", None)
        self._publish(self._belief.w_hat)
        return self

    @abstractmethod
    def _adaptation(self, target: Moments) -> Adaptation:
        """Return what an adaptation to a target's moments is."""

    def _publish(self, w: Matrix) -> None:
        self._set_weights(w, self._belief.x_mean, self._belief.y_mean)
