"""Forecasts of a fitted linear regressor, and their calibration by experience with real shifts.

``python -m benchmarks.trust`` computes ``experience.json`` from real data sets, each with a natural shift, and from
random splits of the same data sets. Tasks are grouped by the separation of source and target
(:mod:`pyspar.core.separation`): "none" if no shift is found, "matched" if their features are more similar than those of
random samples, otherwise by the AUC. Matched tasks have the factors of tasks with a small AUC and their own base rates.

If a shift is found or the rows are matched, two ratios also change the interval of the RMSE (:func:`rmse_factors`). If
the expected error is larger than the error at home, part of the increase often does not occur, so the lower end
decreases. If the labels vary more than the error at home, a change of their relation to the features can cost more, so
the upper end increases.

Two kinds of regressors are distinguished: "linear" are the regressors of this package with the forecasts of their
belief, and "any" are other regressors, whose expected error is their cross-validated error.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Belief, Prior, Units, left_out_rmse, ridge_belief, spread_about_source, units_of_features
from pyspar.core.forecast import Forecaster, Interval
from pyspar.core.moments import Moments
from pyspar.core.posterior import BLOCK_ROWS, Predictive, posteriors_of, predictive
from pyspar.core.separation import Separation
from pyspar.errors import warn
from pyspar.estimators.groups import GroupFolds

Kind = Literal["linear", "any"]
Outcome = Literal["hurts", "no-shift", "unverified", "unknown"]
EXCESS = 1.3
"""An outcome is judged by whether the actual error exceeds this many times the error at home."""
HURTS_RATIO = 1.1
"""A shift hurts if the expected error on the target exceeds this many times the error at home."""
OUTSIDE_LIMIT = 0.01
"""The outcome is unknown if a larger share of the target's variation lies outside the span of the source."""
MAX_RATIO = 10.0
"""Larger ratios to the error at home change an interval as this one does: few data sets have larger ones."""
UNITS_TOLERANCE = 1e-9
"""Units of features that differ by a smaller share differ by rounding only."""
FILE = Path(__file__).with_name("experience.json")


@dataclass(frozen=True, eq=False)
class SourceModel:
    """The linear model of labels that a labelled source and a prior imply.

    ``belief`` is that of the fit, ``prior`` has the units of the current weights, and ``units`` is their kind.
    ``weights`` are the coefficients (D, K) and intercepts (K,) before adapting, and ``folds`` the groups of the source.
    """

    source: Moments
    belief: Belief
    prior: Prior
    units: Units
    weights: tuple[Matrix, Vector]
    folds: GroupFolds | None

    @property
    def centred(self) -> bool:
        return self.belief.centred

    def home_rmse(self) -> Vector:
        """Return the expected RMSE per output, before adapting, on new rows like those of the source."""
        return np.sqrt(self._home_mse + self._between_groups)

    @cached_property
    def _home_mse(self) -> Vector:
        """The expected squared error per output on rows of the same groups.

        With no more rows than features, the model's expectation on the source's own rows is close to zero, because the
        weights fit them exactly. The error of generalised cross-validation replaces it.
        """
        if self.source.rows - self.centred <= self.belief.x.rank > 0:
            errors = left_out_rmse(self.belief)
            if np.isfinite(errors).all():
                return np.square(errors)
        forecaster = self._plain_forecaster(self.source.without_outputs())
        return np.array([forecaster.expected_square(*self.weights, k) for k in range(self.source.n_outputs)])

    @cached_property
    def _between_groups(self) -> Vector:
        """The squared error, per output, by which new groups exceed the expectation of the model."""
        if self.folds is None:
            return np.zeros(self.source.n_outputs)
        if self.folds.rmse is None:
            warn(
                "the source has a single group so far, so errors and intervals do not cover new groups; add batches "
                "of other groups with partial_fit, or fit without groups"
            )
            return np.zeros(self.source.n_outputs)
        return np.asarray(np.maximum(self.folds.rmse**2 - self._home_mse, 0.0))

    def row_factors(self, level: float, separation: Separation | None) -> Vector:
        """Return the factor for distances from the predictions per output, for new groups too if there are groups."""
        between = self._between_groups
        ratio2 = between / self._home_mse if between.any() else between
        return np.asarray(row_factor(level, separation) * np.sqrt(1.0 + ratio2))

    def forecaster(self, target: Moments) -> Forecaster:
        """Return the forecaster for a target, with the error on new groups and intervals from experience."""
        return self._plain_forecaster(target, between_groups=self._between_groups, calibrate=self._calibrate)

    def _calibrate(
        self, level: float, rmse: float, if_linear: Interval, separation: Separation, output: int, rows: float
    ) -> Interval:
        if separation_class(separation) == "none":  # the ratios are not used
            interval = rmse_interval(level, rmse, if_linear, separation, home=rmse, spread=rmse)
            if self.folds is None or self.folds.errors is None:
                return interval
            sizes = {"n_source": self.source.weight, "n_target": rows}
            return self.folds.errors.widen(interval, rmse, level=level, output=output, **sizes)
        home, spread = float(self.home_rmse()[output]), float(self.source.spread[self.source.n_features + output])
        return rmse_interval(level, rmse, if_linear, separation, home=home, spread=spread)

    def _plain_forecaster(self, target: Moments, **options: Any) -> Forecaster:
        spread = spread_about_source(self.source, target, self.centred)
        units = units_of_features(self.source, spread, self.units, fit_intercept=self.centred, include_unseen=True)
        return Forecaster(self.source, target, self._priors(units, spread), fit_intercept=self.centred, **options)

    def predictives(self, rows: Matrix) -> Iterator[tuple[slice, int, Predictive]]:
        """Yield the distribution of the labels for each block of rows and each output."""
        priors = self._priors(self.prior.units, None)
        posteriors = posteriors_of(self.source, priors, fit_intercept=self.centred)
        for start in range(0, len(rows), BLOCK_ROWS):
            at = slice(start, start + BLOCK_ROWS)
            centre, scaled = self.prior.predict(rows[at]), [prior.transform_rows(rows[at]) for prior in priors]
            for k in range(self.source.n_outputs):
                yield at, k, predictive(posteriors, scaled, centre[:, k], k)

    def row_stds(self, rows: Matrix, mean: Matrix) -> Matrix:
        """Return the standard deviations of the labels about predictions ``mean``, both of shape (n, K)."""
        stds = np.empty_like(mean)
        for at, k, labels in self.predictives(rows):
            stds[at, k] = labels.std_about(mean[at, k])
        return stds

    def row_intervals(self, rows: Matrix, level: float) -> Matrix:
        """Return the ends of intervals that contain the labels if the model holds: (2, n, K)."""
        ends = np.empty((2, len(rows), self.source.n_outputs))
        for at, k, labels in self.predictives(rows):
            ends[:, at, k] = labels.quantile((1.0 - level) / 2.0), labels.quantile((1.0 + level) / 2.0)
        return ends

    def predict(self, rows: Matrix) -> tuple[Matrix, list[Matrix]]:
        """Return the posterior mean of the labels of rows, and the root of its covariance relative to the noise.

        They are of shapes (m, K) and, for each output, (m, r). A test compares target labels with them. A source with
        fewer than two rows more than directions does not determine its noise; then the roots are NaN, and so are the
        p-values.
        """
        belief = ridge_belief(self.prior.transform_source(self.source), fit_intercept=self.centred)
        coef, intercept = self.prior.weights(belief, belief.w_hat)
        if belief.weight - belief.centred - belief.x.rank < 2.0:
            return rows @ coef + intercept, [np.full((len(rows), 1), np.nan)] * coef.shape[1]
        centred = self.prior.transform_rows(rows) - belief.x_mean
        return rows @ coef + intercept, [belief.error_root(centred, k) for k in range(coef.shape[1])]

    def _priors(self, units: Vector, target_spread: Vector | None) -> list[Prior]:
        """Return the prior in the given units and in the other kinds of units, which intervals also use.

        Features that share a unit have no other kind. Otherwise the common unit is excluded, because intervals would
        depend on the units in which the features are given.
        """
        kinds: tuple[Units, ...] = () if self.units == "equal" else ("max", "source")
        candidates = [units]
        for kind in kinds:
            other = units_of_features(
                self.source, target_spread, kind, fit_intercept=self.centred, include_unseen=target_spread is not None
            )
            if not any(np.allclose(other, candidate, rtol=UNITS_TOLERANCE, atol=0.0) for candidate in candidates):
                candidates.append(other)
        return [replace(self.prior, units=candidate) for candidate in candidates]


@dataclass(frozen=True)
class BaseRate:
    """How often the actual error exceeded ``threshold`` times the error at home, among real shifts with one outcome.

    A data set that was measured with several sets of features counts once, with the share of these whose error exceeded
    the threshold.
    """

    n_tasks: int
    n_exceeded: int
    threshold: float = EXCESS
    is_of_outcome: bool = True  # whether these shifts had the same outcome; otherwise any outcome
    is_of_separation: bool = True  # whether these shifts had a similar separation; otherwise any separation

    @property
    def rate(self) -> float:
        """The share of tasks that exceeded the threshold; NaN without tasks."""
        return self.n_exceeded / self.n_tasks if self.n_tasks else float("nan")


def judge_outcome(
    *, expected: float, home: float, separation: Separation, outside: float = 0.0, unseen: bool = False
) -> Outcome:
    """Return the outcome for a target without labels.

    ``expected`` and ``home`` are the expected RMSE on the target and on rows like those of the source (on new groups,
    if the rows have groups). ``outside`` is the share of the target's variation outside the span of the source
    (``Adaptation.outside_energy``), and ``unseen`` whether the target has categories that the source does not have.
    "unverified" means that a shift was found and the error is not expected to increase much, which only labels can
    verify.

    >>> judge_outcome(expected=2.0, home=1.0, separation=Separation(auc=0.9, p_value=0.0, found=True))
    'hurts'
    """
    if unseen or not outside <= OUTSIDE_LIMIT or not (np.isfinite(expected) and np.isfinite(home)):
        return "unknown"
    if expected > HURTS_RATIO * home and (separation.found or expected > EXCESS * home):
        return "hurts"
    return "unverified" if separation.found else "no-shift"


def separation_class(separation: Separation) -> str:
    """Return the class of a separation: "none" or "matched" if no shift is found, else a range of AUCs: "0.5-0.95"."""
    if not separation.found:
        return "matched" if separation.matched else "none"
    ends: list[float] = _experience()["auc_limits"]
    return auc_classes(ends)[bisect_right(ends, separation.auc)]


def auc_classes(ends: list[float]) -> list[str]:
    """Return the names of the classes between given ends.

    >>> auc_classes([0.7, 0.95])
    ['0.5-0.7', '0.7-0.95', '0.95-1']
    """
    limits = [0.5, *ends, 1]
    return [f"{low:g}-{high:g}" for low, high in pairwise(limits)]


def rmse_factors(
    level: float, separation: Separation, kind: Kind = "linear", *, increase: float = 1.0, signal: float = 1.0
) -> Interval:
    """Return the factors by which the expected RMSE is multiplied for an interval of level 0.8 or 0.95.

    ``increase`` is the expected RMSE, and ``signal`` the standard deviation of the source labels, both as a
    ``ratio_to_home``. Except in the class "none", a learnt power of them changes the factors of the class:
    ``low / increase**a`` and ``high * signal**b``.
    """
    learnt, name = _experience()[kind], separation_class(separation)
    low, high = learnt["rmse"][f"{level:g}"][name]
    if name != "none":
        low, high = low / increase ** learnt["powers"][0], high * signal ** learnt["powers"][1]
    return min(low, 1.0), max(high, 1.0)


def ratio_to_home(value: float, home: float) -> float:
    """Return the ratio of a value to the error at home, at least 1 and at most 10.

    >>> ratio_to_home(3.0, 2.0), ratio_to_home(1.0, 2.0), ratio_to_home(1.0, 0.0), ratio_to_home(0.0, 0.0)
    (1.5, 1.0, 10.0, 1.0)
    """
    if not value > home:
        return 1.0
    return min(value / home, MAX_RATIO) if home > 0.0 else MAX_RATIO


def rmse_interval(
    level: float,
    rmse: float,
    narrow: Interval,
    separation: Separation,
    kind: Kind = "linear",
    *,
    home: float,
    spread: float,
) -> Interval:
    """Return the interval of the RMSE on a target, given the error at home and the spread of the source labels.

    In the class "none" this is the interval ``narrow`` (of the model or of cross-validation), stretched on the log
    scale by a factor learnt from random splits of real data. Otherwise it is the expected RMSE times ``rmse_factors``.
    """
    low, high = narrow
    if separation_class(separation) != "none" or not (0.0 < low <= rmse <= high < np.inf):
        ratios = {"increase": ratio_to_home(rmse, home), "signal": ratio_to_home(spread, home)}
        factors = rmse_factors(level, separation, kind, **ratios)
        return (rmse * factors[0], rmse * factors[1])
    down, up = _experience()[kind]["stretch"][f"{level:g}"]
    return float(rmse * (low / rmse) ** down), float(rmse * (high / rmse) ** up)


def row_factor(level: float, separation: Separation | None) -> float:
    """Return the factor for the half-widths of row intervals of a level; ``None`` is a regressor without a target.

    It is interpolated between the levels of the file, in normal quantiles.
    """
    rows: dict[str, dict[str, float]] = _experience()["linear"]["rows"]
    name = "none" if separation is None else separation_class(separation)
    levels = sorted(rows, key=float)
    wanted, *known = (NormalDist().inv_cdf((1.0 + value) / 2.0) for value in (level, *map(float, levels)))
    return float(np.interp(wanted, known, [rows[value][name] for value in levels]))


MIN_BASE_RATE_SETS = 5
"""A rate of fewer data sets is not printed."""


def base_rate(outcome: Outcome, separation: Separation, kind: Kind = "linear") -> BaseRate:
    """Return how often real shifts with an outcome, and with a similar separation, had an excessive error.

    If fewer than five data sets had this outcome with this separation, those with other separations are counted too. If
    none had this outcome at all, such as "unknown" for other regressors, those with this separation and any outcome are
    counted.
    """
    rates: dict[str, dict[str, list[int]]] = _experience()[kind]["base_rates"]
    name, counts = separation_class(separation), rates.get(outcome, {})
    is_known = counts.get(name, [0])[0] >= MIN_BASE_RATE_SETS
    if counts:
        found = [counts[name]] if is_known else list(counts.values())
    else:
        found = [of_outcome[name] for of_outcome in rates.values() if name in of_outcome]
    return BaseRate(
        sum(n for n, _ in found),
        sum(k for _, k in found),
        is_of_outcome=bool(counts),
        is_of_separation=not counts or is_known,
    )


@cache
def _experience() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))
