"""TargetWatch: monitor a target that arrives in batches, and raise an alarm before its labels are known.

Each batch is added to the moments of the recent target. The regressor is adapted to these moments, which needs no
other rows. The watch raises an alarm if the lower end of the calibrated 95 % interval of the RMSE exceeds a limit, by
default the error at home. Labels, if there are any, measure the RMSE, and are compared with the source by a test that
is valid after every batch.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from functools import reduce
from numbers import Integral, Real
from operator import add
from typing import Any, Self

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from pyspar.core.arrays import Matrix
from pyspar.core.belief import inverse
from pyspar.core.concept_shift import log_bayes_factor
from pyspar.core.drift_features import TargetUnits
from pyspar.core.forecast import Forecast
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.core.roots import root_sum_squares
from pyspar.errors import warn
from pyspar.estimators import pipelines
from pyspar.estimators.base import AdaptableRegressor
from pyspar.estimators.target_labels import ENOUGH_LABELS, check_index, read_labels
from pyspar.estimators.unseen_categories import warn_of_unseen
from pyspar.estimators.validation import read_dense_rows, target_moments, weights_of
from pyspar.wording import count_noun, format_interval, format_number, format_p_value

_CONSTRAINTS = {
    "limit": [Interval(Real, 0.0, None, closed="neither"), None],
    "window": [Interval(Integral, 1, None, closed="left")],
}


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
        Labels come first. There is an alarm if the lower end of the interval of the measured RMSE exceeds the limit,
        and none if its upper end does not exceed the limit, with at least 10 labels. Otherwise the forecast decides.
    above_limit : bool
        Whether the RMSE exceeds the limit, for any output. This is the measured RMSE with at least 10 labels, otherwise
        the larger of the measured and the expected RMSE. Without an alarm it is not certain.
    limits : tuple of float
        The limit of each output.
    estimator : the regressor or pipeline, adapted to the recent target
    measured : tuple of SquaredErrors
        The errors of the adapted regressor on the labelled rows among the recent batches, per output: ``n``, ``rmse``
        and ``interval()``, which contains the RMSE on all rows with probability 95 % if the labelled rows were drawn at
        random. ``n`` is 0 without labels.
    labels : int
        The number of labelled rows since the start of the watch.
    relation_p_value : float
        For the hypothesis that features and labels have the same linear relation as in the source, from all labels
        since the start of the watch; it does not follow ``window``. It is valid at any time: without a
        change it falls below 0.05 in at most 5 % of all watches, regardless of how often it is checked. It assumes
        normal noise, independent outputs, and that the uncertainty of the weights relative to the noise is known. This
        uncertainty is estimated on the source, so the rate of 5 % is approximate. The p-value never increases. After a
        correction of the model, create a new watch.
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
    above_limit: bool = False
    measured: tuple[SquaredErrors, ...] = ()
    labels: int = 0
    relation_p_value: float = 1.0

    @property
    def relation_changed(self) -> bool:
        return self.relation_p_value <= RELATION_LEVEL

    @property
    def verdict(self) -> str:
        """The verdict as text: "ALARM", "above the limit, not certain" or "no alarm"."""
        return "ALARM" if self.alarm else "above the limit, not certain" if self.above_limit else "no alarm"

    def describe_labels(self) -> str:
        """Return the measured RMSE and the test of the relation as text, which is empty without labels."""
        if not self.labels:
            return ""
        parts = [
            f"measured RMSE {format_number(errors.rmse)} (95 %: {format_interval(errors.interval())}) on "
            f"{count_noun(errors.n, 'label')}"
            for errors in self.measured
            if errors.n
        ]
        relation = "changed" if self.relation_changed else "no change found"
        p_value = format_p_value(self.relation_p_value)
        return ", ".join([*parts, f"relation from {count_noun(self.labels, 'label')}: {relation} ({p_value})"])

    def __repr__(self) -> str:
        errors = ", ".join(
            f"{format_number(after.rmse)} (95 %: {format_interval(after.interval95)}; limit {format_number(limit)}; "
            f"{format_number(before.rmse)} without adapting)"
            for after, before, limit in zip(self.adapted, self.before, self.limits)
        )
        text = f"batch {self.batch}: {self.verdict}; expected RMSE {errors} on {count_noun(round(self.rows), 'row')}"
        return "; ".join(filter(None, [text, self.describe_labels()]))


class TargetWatch:
    """Adapt a fitted regressor to batches, and raise an alarm if its expected or measured error is too large.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor, or a Pipeline or search that contains one
        It is not changed.
    limit : float, optional
        The watch raises an alarm if the lower end of the 95 % interval of the RMSE, in the unit of the labels, exceeds
        the limit. The default is the error at home (``home_rmse``) of each output; a lower limit causes a warning. A
        shift that does not change the features raises an alarm only if labels are passed.
    window : int, default 1
        The number of recent batches to use, for the forecast and for the measured error. The test of the relation uses
        all labels since the start of the watch.

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

    def __init__(self, estimator: Any, *, limit: float | None = None, window: int = 1) -> None:
        layers = pipelines.check_layers(estimator)
        regressor = layers[-1]
        pipelines.refuse_corrected(regressor, "TargetWatch")
        if any(isinstance(layer, TransformedTargetRegressor) for layer in layers):
            raise TypeError(
                "TargetWatch does not support a TransformedTargetRegressor, because errors in the units of its labels "
                "need all rows; pass its regressor_, whose limit and errors are in the transformed units"
            )
        validate_parameter_constraints(_CONSTRAINTS, {"limit": limit, "window": window}, "TargetWatch")
        self.model, self._estimator = estimator, regressor
        homes = np.atleast_1d(regressor.home_rmse())
        self._limits = tuple(map(float, homes if limit is None else np.full(homes.shape, limit)))
        if any(limit < home for limit, home in zip(self._limits, homes)):
            pairs = zip(self._limits, homes)
            texts = [f"{format_number(low)} < {format_number(home)}" for low, home in pairs if low < home]
            warn(
                f"the limit is below the error at home ({', '.join(texts)}), so even rows without a shift exceed it; "
                "choose a larger limit",
            )
        self._recent = deque[Moments](maxlen=window)
        self._labelled: deque[tuple[Matrix, Matrix]] = deque(maxlen=window)
        self._batches = 0
        self._relation = RelationWatch(regressor)

    def update(self, Z: Any, y: Any = None, *, sample_weight: Any = None) -> WatchState:
        """Add a batch of target rows, and return the new state. An invalid batch raises and changes nothing.

        ``y`` are labels of the batch, with NaN where unknown, if there are any. They measure the error and test the
        relation, without the weights. They do not change the regressor.
        """
        check_index(Z, y)
        part = pipelines.find_regressor(self.model, Z)
        warn_of_unseen(part.preprocessing, Z)
        estimator, Z, relation = self._estimator, part.Z, self._relation
        d, n_outputs = estimator._source.n_features, len(self._limits)
        labelled = (np.empty((0, d)), np.empty((0, n_outputs))) if y is None else relation.read(Z, y)
        relation = relation.add(*labelled)
        recent = deque([*self._recent, target_moments(estimator, Z, sample_weight)], maxlen=self._recent.maxlen)
        target = reduce(add, recent)
        adapted, plain = estimator.adapted(target), copy.copy(estimator).reset()
        after, before = _forecasts(adapted, target), _forecasts(plain, target)
        recent_labels = deque([*self._labelled, labelled], maxlen=self._labelled.maxlen)
        rows, labels = (np.vstack(parts) for parts in zip(*recent_labels))
        measured = _measure(adapted, rows, labels)
        verdicts = [_judge(*each) for each in zip(after, measured, self._limits)]
        self._recent, self._labelled, self._relation = recent, recent_labels, relation
        self._batches += 1
        return WatchState(
            batch=self._batches,
            rows=target.weight,
            adapted=after,
            before=before,
            alarm=any(alarm for alarm, _ in verdicts),
            above_limit=any(above for _, above in verdicts),
            measured=measured,
            limits=self._limits,
            estimator=pipelines.replace_regressor(self.model, adapted),
            labels=relation.labels,
            relation_p_value=relation.p_value,
        )


def _forecasts(estimator: Any, target: Moments) -> tuple[Forecast, ...]:
    forecasts = estimator.expected_rmse(target)
    return (forecasts,) if isinstance(forecasts, Forecast) else tuple(forecasts)


def _measure(estimator: Any, rows: Matrix, labels: Matrix) -> tuple[SquaredErrors, ...]:
    """Return the errors of each output on the known labels."""
    coef, intercept = weights_of(estimator)
    return tuple(map(SquaredErrors.of, (rows @ coef + intercept - labels).T))


def _judge(forecast: Forecast, measured: SquaredErrors, limit: float) -> tuple[bool, bool]:
    """Return whether there is an alarm, and whether the RMSE exceeds the limit."""
    if measured.n:
        low, high = measured.interval()
        if low > limit:
            return True, True
        if measured.n >= ENOUGH_LABELS and high <= limit:
            return False, False
    alarm = forecast.interval95[0] > limit
    estimates = [measured.rmse] if measured.n >= ENOUGH_LABELS else [measured.rmse, forecast.rmse]
    return alarm, alarm or any(rmse > limit for rmse in estimates)


RELATION_LEVEL = 0.05


class RelationWatch:
    """The labels of a target so far, and the evidence against the relation of the source.

    The evidence is the Bayes factor of a drift against none (:mod:`pyspar.core.concept_shift`), averaged over the
    outputs. Features are standardised by the source, so that later rows do not change the factor of earlier ones.
    """

    def __init__(self, estimator: AdaptableRegressor) -> None:
        self._estimator = estimator
        source, (coef, intercept) = estimator._source, weights_of(estimator)
        d = source.n_features
        root = source.root_about(None)[:, :d] / np.sqrt(source.weight)  # its square is the covariance
        spread, size = root_sum_squares(root), root_sum_squares(root @ coef)
        scale = inverse(spread) / np.sqrt(max(int((spread > 0.0).sum()), 1))
        centre = source.mean[:d] @ coef + intercept
        self._units = [
            TargetUnits(source.mean[:d], scale, float(mean), float(factor))
            for mean, factor in zip(centre, inverse(size), strict=True)
        ]
        self._rows: Matrix = np.empty((0, d))
        self._labels: Matrix = np.empty((0, coef.shape[1]))
        self._largest = 0.0

    @property
    def labels(self) -> int:
        """The number of rows with a label of any output."""
        return len(self._labels)

    @property
    def p_value(self) -> float:
        """The reciprocal of the largest evidence so far."""
        return float(np.exp(-self._largest))

    def read(self, Z: Any, y: Any) -> tuple[Matrix, Matrix]:
        """Return the rows of a batch that have a label of any output, and their labels; NaN where unknown."""
        rows = read_dense_rows(self._estimator, Z)
        labels, _ = read_labels(y, len(rows), "TargetWatch.update", outputs=self._labels.shape[1])
        known = np.isfinite(labels).any(axis=1)
        return rows[known], labels[known]

    def add(self, rows: Matrix, labels: Matrix) -> Self:
        """Return a watch with the labels of more rows, as ``read`` returns them."""
        new = copy.copy(self)
        new._rows, new._labels = np.vstack([self._rows, rows]), np.vstack([self._labels, labels])
        if len(rows):
            new._largest = max(self._largest, new._log_evidence())
        return new

    def _log_evidence(self) -> float:
        mean, roots = self._estimator._model.predict(self._rows)
        coef, intercept = weights_of(self._estimator)
        prediction = self._rows @ coef + intercept
        factors = []
        for k, units in enumerate(self._units):
            at = np.isfinite(self._labels[:, k])
            features, q = units.standardise(self._rows[at], prediction[at, k])
            residual = (self._labels - mean)[at, k]
            factors.append(log_bayes_factor(features, q, residual, error_root=roots[k][at]) if at.any() else 0.0)
        return float(np.logaddexp.reduce(factors) - np.log(len(factors)))
