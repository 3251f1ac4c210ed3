"""TargetWatch: monitor a target that arrives in batches, and raise an alarm before its labels are known.

Each batch is added to the moments of the recent target. The regressor is adapted to these moments, which needs no
other rows. The watch raises an alarm if the lower end of the calibrated 95 % interval of the RMSE exceeds a limit, by
default the error at home. Labels that arrive later are compared with the source by a test that is valid after every
batch.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from operator import add
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast
from pyspar.core.moments import Moments
from pyspar.estimators.base import AdaptableRegressor, refuse_corrected
from pyspar.estimators.pipelines import find_regressor, list_layers, replace_regressor
from pyspar.estimators.relation_watch import RELATION_LEVEL, RelationWatch
from pyspar.estimators.validation import is_number, target_moments
from pyspar.wording import format_interval, format_number


@dataclass(frozen=True, eq=False)
class WatchState:
    """The state of a watch after a batch.

    Attributes
    ----------
    batch : int
        The number of the batch, from 1.
    rows : float
        The number of recent rows, by their weights.
    adapted, before : tuples of Forecast
        The expected error on the recent target, per output, of the adapted regressor and of the regressor before
        adapting.
    alarm : bool
        Whether the lower end of the 95 % interval of the adapted regressor's RMSE exceeds the limit, for any output.
    limits : tuple of float
        The limit of each output.
    estimator : the regressor or pipeline, adapted to the recent target
    labels : int
        The number of labelled rows so far.
    relation_p_value : float
        For the hypothesis that features and labels have the same linear relation as in the source, from all labels so
        far. It is valid at any time: without a change it falls below 0.05 in at most 5 % of all watches, regardless of
        how often it is checked. It assumes normal noise, and never increases.
    relation_changed : bool
        Whether ``relation_p_value`` is at most 0.05.
    """

    batch: int
    rows: float
    adapted: tuple[Forecast, ...]
    before: tuple[Forecast, ...]
    alarm: bool
    limits: tuple[float, ...]
    estimator: Any
    labels: int = 0
    relation_p_value: float = 1.0

    @property
    def relation_changed(self) -> bool:
        return self.relation_p_value <= RELATION_LEVEL

    def __repr__(self) -> str:
        errors = ", ".join(
            f"{format_number(after.rmse)} (95 %: {format_interval(after.interval95)}; limit {format_number(limit)}; "
            f"{format_number(before.rmse)} without adapting)"
            for after, before, limit in zip(self.adapted, self.before, self.limits)
        )
        text = f"batch {self.batch}: {'ALARM, ' if self.alarm else ''}expected RMSE {errors} on {self.rows:,.0f} rows"
        if self.labels:
            relation = "changed" if self.relation_changed else "no change found"
            text += f"; {self.labels:,} labels: {relation} (p = {format_number(self.relation_p_value, 2)})"
        return text


class TargetWatch:
    """Adapt a fitted regressor to unlabelled batches, and raise an alarm if its expected error is too large.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor, or a Pipeline or search that contains one
        It is not changed.
    limit : float, optional
        The watch raises an alarm if the lower end of the 95 % interval of the RMSE, in the unit of the labels, exceeds
        the limit. The default is the error at home (``home_rmse``) of each output. A shift that does not change the
        features raises no alarm; only labels show it.
    window : int, optional
        The number of recent batches to use.
    decay : float in (0, 1), optional
        The factor by which the weights of earlier batches are multiplied at each new batch. Pass either this or
        ``window``.

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

    def __init__(
        self, estimator: Any, *, limit: float | None = None, window: int | None = None, decay: float | None = None
    ) -> None:
        regressor = find_last_regressor(estimator)
        refuse_corrected(regressor, "TargetWatch")
        if limit is not None and (not is_number(limit) or not 0.0 < float(limit) < np.inf):
            raise ValueError(f"limit is an RMSE and must be a finite number above 0, got {limit!r}")
        if (window is None) == (decay is None):
            raise ValueError("pass either window, a number of batches, or decay, the factor for earlier batches")
        if window is not None and (not isinstance(window, Integral) or not is_number(window) or window < 1):
            raise ValueError(f"window must be an integer of at least 1, got {window!r}")
        if decay is not None and not (is_number(decay) and 0.0 < float(decay) < 1.0):
            raise ValueError(f"decay must be in (0, 1), got {decay!r}")
        self.model, self._estimator = estimator, regressor
        homes = np.atleast_1d(regressor.home_rmse())
        self._limits = tuple(map(float, homes if limit is None else np.full(homes.shape, limit)))
        self._decay = None if decay is None else float(decay)
        self._recent: deque[Moments] = deque(maxlen=1 if window is None else int(window))
        self._batches = 0
        self._relation = RelationWatch(regressor)

    def update(self, Z: Any, y: Any = None, *, sample_weight: Any = None) -> WatchState:
        """Add a batch of target rows, and return the new state. An invalid batch raises and changes nothing.

        ``y`` are labels of the batch, with NaN where unknown, if there are any; they are used by ``relation_p_value``
        alone, without the weights.
        """
        estimator, Z = self._estimator, find_regressor(self.model, Z).Z
        relation = self._relation if y is None else self._relation.add(Z, y)
        batch = target_moments(estimator, Z, sample_weight, solver=estimator.solver)
        if self._decay is not None and self._recent:
            batch = self._recent[-1].discounted(self._decay) + batch
        recent = deque([*self._recent, batch], maxlen=self._recent.maxlen)
        target = reduce(add, recent)
        adapted, plain = estimator.adapted(target), copy.copy(estimator).reset()
        after, before = _forecasts(adapted, target), _forecasts(plain, target)
        self._recent, self._relation = recent, relation
        self._batches += 1
        # NaN is an alarm.
        alarm = any(not forecast.interval95[0] <= limit for forecast, limit in zip(after, self._limits))
        return WatchState(
            batch=self._batches,
            rows=target.weight,
            adapted=after,
            before=before,
            alarm=alarm,
            limits=self._limits,
            estimator=replace_regressor(self.model, adapted),
            labels=relation.labels,
            relation_p_value=relation.p_value,
        )


def find_last_regressor(model: Any) -> AdaptableRegressor:
    """Return the fitted regressor in a pipeline or search."""
    layers = list_layers(model)
    if any(isinstance(layer, TransformedTargetRegressor) for layer in layers):
        raise TypeError(
            "TargetWatch does not support a TransformedTargetRegressor, because errors in the units of its labels need "
            "all rows; pass its regressor_, whose limit and errors are in the transformed units"
        )
    if not isinstance(layers[-1], AdaptableRegressor):
        raise TypeError(
            "estimator must be a SpARRegressor, a BayesSpARRegressor, or a pipeline that ends in one, got "
            f"{type(layers[-1]).__name__}"
        )
    check_is_fitted(layers[-1])
    return layers[-1]


def _forecasts(estimator: Any, target: Moments) -> tuple[Forecast, ...]:
    forecasts = estimator.expected_rmse(target)
    return (forecasts,) if isinstance(forecasts, Forecast) else tuple(forecasts)
