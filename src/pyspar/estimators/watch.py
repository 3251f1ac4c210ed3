"""Watching: a target that keeps arriving, and an alarm before its labels do.

Each batch is folded into the moments of the recent target; the regressor is adapted to them anew, which costs no pass
over any other row, and its expected error is compared with a level that a person has set.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from functools import reduce
from numbers import Integral, Real
from operator import add
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast
from pyspar.core.moments import Moments
from pyspar.estimators.base import AdaptationMixin
from pyspar.estimators.validation import target_moments


@dataclass(frozen=True, eq=False)
class WatchState:
    """What is known after a batch.

    Attributes
    ----------
    batch : int
        Its number, from 1.
    rows : float
        The rows that count, by their weights.
    adapted, before : tuples of Forecast
        The expected error on the recent target, per output: of the regressor adapted to it, and of the same without.
    alarm : bool
        Whether the adapted regressor's expected RMSE exceeds the limit, for any output.
    estimator : the regressor, adapted to the recent target
    """

    batch: int
    rows: float
    adapted: tuple[Forecast, ...]
    before: tuple[Forecast, ...]
    alarm: bool
    estimator: AdaptationMixin

    def __repr__(self) -> str:
        errors = ", ".join(
            f"{_told(after.rmse)} ({_told(before.rmse)} without adapting)"
            for after, before in zip(self.adapted, self.before)
        )
        return f"batch {self.batch}: {'ALARM, ' if self.alarm else ''}expected RMSE {errors} on {self.rows:,.0f} rows"


class TargetWatch:
    """Adapts a fitted regressor to a stream of unlabelled batches, and tells when its errors will grow too large.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor
        It is not changed.
    limit : float
        The RMSE, in the labels' unit, beyond which there is an alarm.
    window : int, optional
        How many batches count.
    decay : float in (0, 1), optional
        What a batch counts for when the next one comes. Give this or ``window``.

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import SpARRegressor, TargetWatch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) * [1, 0.1]
    >>> est = SpARRegressor().fit(X, X[:, 0] + rng.normal(size=500))
    >>> watch = TargetWatch(est, limit=2.0, window=2)
    >>> [watch.update(rng.normal(size=(50, 2)) * [size, 0.1]).alarm for size in (1, 1, 300, 300, 1, 1)]
    [False, False, True, True, True, False]
    """

    def __init__(self, estimator: Any, *, limit: float, window: int | None = None, decay: float | None = None) -> None:
        if not isinstance(estimator, AdaptationMixin):
            raise TypeError(
                f"estimator must be a SpARRegressor or a BayesSpARRegressor. Got {type(estimator).__name__} instead."
            )
        check_is_fitted(estimator)
        if not _is_number(limit) or not 0.0 < float(limit) < np.inf:
            raise ValueError(f"limit is an RMSE and must be a finite number above 0. Got {limit!r} instead.")
        if (window is None) == (decay is None):
            raise ValueError(
                "Pass either window, a number of batches, or decay, what a batch counts for after the next."
            )
        if window is not None and (not isinstance(window, Integral) or isinstance(window, bool) or window < 1):
            raise ValueError(f"window must be a whole number of batches, at least 1. Got {window!r} instead.")
        if decay is not None and not (_is_number(decay) and 0.0 < float(decay) < 1.0):
            raise ValueError(f"decay must lie in (0, 1). Got {decay!r} instead.")
        self._estimator = estimator
        self._limit = float(limit)
        self._decay = None if decay is None else float(decay)
        self._recent: deque[Moments] = deque(maxlen=1 if window is None else int(window))
        self._batches = 0

    def update(self, Z: Any, *, sample_weight: Any = None) -> WatchState:
        """Take in a batch of target rows, adapt, forecast, compare. A batch that is refused leaves all as it was."""
        estimator = self._estimator
        found = target_moments(estimator, Z, sample_weight, solver=estimator.solver)
        if self._decay is not None and self._recent:
            found = self._recent[-1].discounted(self._decay) + found
        recent = deque([*self._recent, found], maxlen=self._recent.maxlen)
        target = reduce(add, recent)
        adapted, plain = estimator.adapted(target), copy.copy(estimator).reset()
        after, before = (_forecasts(each, target) for each in (adapted, plain))
        self._recent = recent
        self._batches += 1
        alarm = any(not forecast.rmse <= self._limit for forecast in after)  # what cannot be computed is no calm
        return WatchState(self._batches, target.weight, after, before, alarm, adapted)


def _forecasts(estimator: Any, target: Moments) -> tuple[Forecast, ...]:
    found = estimator.expected_rmse(target)
    return (found,) if isinstance(found, Forecast) else tuple(found)


def _told(error: float) -> str:
    return f"{error:.4g}" if np.isfinite(error) else "beyond what numbers can hold"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
