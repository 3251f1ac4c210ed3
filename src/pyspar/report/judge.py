"""Decide about one output: the better model, the outcome, the findings, and one advice that agrees with all of them.

Labels overrule forecasts. If every target row is labelled, the smaller measured error decides. Otherwise two models are
compared by the paired differences of their squared errors on the same rows, because both share the noise of the labels.
A label far from the others then counts less. No advice contradicts a serious finding: a model is kept only without one,
and adapted only if each serious finding is about the model before adapting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.special import gammaincinv, stdtrit

from pyspar.core.drift import MIN_LABELS, weigh_labels
from pyspar.core.forecast import Interval
from pyspar.core.moments import Vector
from pyspar.core.separation import Separation
from pyspar.errors import collect_warnings
from pyspar.estimators.calibration import EXCESS, Outcome, judge_outcome
from pyspar.estimators.correction import TargetCorrection, warn_of_labels
from pyspar.report.shift_report import (
    LABELS_TO_DECIDE,
    Advice,
    ColumnDrift,
    Correction,
    Finding,
    ModelErrors,
    OutputReport,
    Severity,
)

SERIOUS_RATIO = 2.0  # harm is serious if the error on the target is this many times the source RMSE
MAX_CORRECTION_LABELS = 100  # with more, ``TargetCorrection`` would take longer than everything else
OUTSIDE_SHARE, SERIOUS_OUTSIDE_SHARE, SERIOUS_UNSEEN_SHARE, SERIOUS_IMPLAUSIBLE_SHARE = 0.01, 0.25, 0.1, 0.05
SERIOUS_MISSING_CHANGE = 0.1  # of the share of missing values of a column
MAX_MEAN_SHIFT = 3.0  # a column is reported if its mean moves by more than this many source standard deviations
# A prediction is implausible if it is outside the range of the source labels by half of the range, or, if the range is
# unknown, six standard deviations from the mean; or negative if no source label and no prediction on the source is.
FAR_RANGE_SHARE, FAR_DEVIATIONS, LOWEST_DEVIATIONS = 0.5, 6.0, 3.0
ROUNDING_SHARE, MEAN_ROUNDING = 1e-6, 1e-13  # of the labels' deviation and mean; smaller errors are rounding


@dataclass(frozen=True)
class SourceLabel:
    """One label of the source: the RMSE in distribution, the labels, and the lowest prediction of the source rows."""

    rmse: float
    mean: float
    std: float
    range: Interval | None = None  # None if unknown
    lowest: float = 0.0

    @classmethod
    def of(cls, regressor: Any, k: int = 0, rmse: float = 0.0) -> Self:
        """Return an output of a SpARRegressor or BayesSpARRegressor, as if its predictions were normal."""
        fitted, m, ends = regressor._before_adapting(), regressor.moments_, getattr(regressor, "label_range_", None)
        D, coef = m.n_features, np.reshape(fitted.coef_, (-1, m.n_features))[k]
        spread = float(np.linalg.norm(m.root_about(None)[:, :D] @ coef)) / math.sqrt(m.weight)
        lowest = float(np.ravel(fitted.intercept_)[k] + m.mean[:D] @ coef) - LOWEST_DEVIATIONS * spread
        known = None if ends is None else (float(ends[0, k]), float(ends[1, k]))
        return cls(rmse, float(m.mean[D + k]), float(m.spread[D + k]), known, lowest)

    @property
    def rounding(self) -> float:
        """The error up to which predictions agree with labels."""
        return ROUNDING_SHARE * self.std + MEAN_ROUNDING * abs(self.mean)

    def ratio(self, rmse: float) -> float:
        """Return an error relative to the source RMSE; smaller errors than rounding count as rounding."""
        least = max(self.rmse, self.rounding)
        return max(rmse, self.rounding) / least if least > 0.0 else 1.0 if rmse == 0.0 else math.inf

    @property
    def plausible(self) -> Interval:
        """The interval of plausible predictions."""
        if self.range is None:
            return self.mean - FAR_DEVIATIONS * self.std, self.mean + FAR_DEVIATIONS * self.std
        low, high = self.range
        margin, is_positive = FAR_RANGE_SHARE * (high - low), min(low, self.lowest) >= -self.rounding
        return max(low - margin, 0.0) if is_positive else low - margin, high + margin

    def check_predictions(self, model: str, predictions: Vector) -> Finding | None:
        """Return the finding of predictions that no source label resembles, or None; it lists the worst rows first.

        >>> label = SourceLabel(1.0, 5.0, 2.0, (1.0, 9.0))
        >>> label.check_predictions("ridge", np.array([3.0, -1.0, 40.0])).numbers["rows"]
        [2, 1]
        """
        low, high = self.plausible
        distance = np.maximum(np.maximum(low - predictions, predictions - high), 0.0)
        far = np.flatnonzero((distance > self.rounding) & (self.std > 0.0))
        if not len(far):
            return None
        far = far[np.argsort(-distance[far], kind="stable")]
        share, floor = len(far) / len(predictions), math.sqrt(np.square(distance).mean())
        numbers = {
            "model": model, "n": len(far), "total": len(predictions), "share": share, "limits": (low, high),
            "worst": float(predictions[far[0]]), "rows": far[:5].tolist(), "floor": floor,
        }  # fmt: skip
        is_serious = share >= SERIOUS_IMPLAUSIBLE_SHARE or floor >= self.std  # the mean of the labels has the error std
        return Finding("SPAR018", "serious" if is_serious else "warning", numbers)


@dataclass(frozen=True)
class InspectedModel:
    """A model that may be recommended: its forecast, and its predictions of the target rows if they are in memory.

    ``model_rmse`` is the expected RMSE if the relation stays; models without such a theory have the source RMSE.
    """

    name: str
    forecast: Any  # rmse, interval80 and interval95
    model_rmse: float
    predictions: Vector | None
    model: Any


@dataclass(frozen=True)
class Target:
    """What is known about the target, for all outputs.

    ``unseen`` has the rows with unseen categories, their number among all rows, and the categories of each column.
    ``missing`` has the columns whose share of missing values changed, with the shares in the source and the target.
    """

    n_target: float
    separation: Separation
    drift: tuple[ColumnDrift, ...]
    outside: float = 0.0  # the share of its variation outside the span of the source
    unseen: Mapping[str, Any] | None = None
    missing: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def has_many_unseen(self) -> bool:
        return self.unseen is not None and self.unseen["rows"] >= SERIOUS_UNSEEN_SHARE * self.unseen["total"]

    @property
    def often_missing(self) -> list[str]:
        return [name for name, (old, new) in self.missing.items() if abs(new - old) >= SERIOUS_MISSING_CHANGE]

    def find_problems(self, *, is_settled: bool = False) -> list[Finding]:
        """Return the findings about the features; none is serious if labels of all rows settle the matter."""

        def grade(is_serious: bool) -> Severity:
            return "serious" if is_serious and not is_settled else "warning"

        moved = [(c.name, abs(c.mean_shift)) for c in self.drift if MAX_MEAN_SHIFT < abs(c.mean_shift) < math.inf]
        moved.sort(key=lambda pair: -pair[1])
        constant = [column.name for column in self.drift if column.is_constant]
        found = [
            self.missing and Finding("SPAR024", grade(bool(self.often_missing)), {"columns": self.missing}),
            self.unseen and Finding("SPAR014", grade(self.has_many_unseen), self.unseen),
            self.outside >= OUTSIDE_SHARE
            and Finding("SPAR003", grade(self.outside >= SERIOUS_OUTSIDE_SHARE), {"outside": self.outside}),
            constant and Finding("SPAR004", "warning", {"columns": constant}),
            moved and Finding("SPAR009", "warning", {"columns": moved, "limit": MAX_MEAN_SHIFT}),
        ]
        return [finding for finding in found if isinstance(finding, Finding)]


def measure_rmse(errors: Vector, weights: Any = 1.0) -> tuple[float, Interval]:
    """Return the RMSE of errors and a 95 % interval for all rows, if these rows were drawn at random from them.

    A chi-squared variable with 2 n / c degrees of freedom varies like the mean of n squared errors with the squared
    coefficient of variation c. Few rows rarely contain the largest error, so the upper end counts it twice.
    """
    squares, ends = np.square(errors) * weights / np.mean(weights), []
    for values, tail in ((squares, 0.975), (np.append(squares, squares.max()), 0.025)):
        mean = values.mean()
        variation = float((values / mean).var(ddof=1)) if mean > 0.0 and len(values) > 1 else 0.0
        half = len(errors) * float(np.mean(weights)) / max(variation, 2.0)
        quantile = float(gammaincinv(half, tail))
        ends.append(math.sqrt(mean * half / quantile) if quantile > 0.0 else math.inf)
    return math.sqrt(squares.mean()), (ends[0], ends[1])


def weigh_known(candidates: Sequence[InspectedModel], labels: Vector, rounding: float) -> tuple[Vector, list[str]]:
    """Return weights of labels, by the model with the smaller median error, and problems; 1 and none for all rows."""
    known, weights = np.isfinite(labels), np.ones(len(labels))
    predictions: list[Any] = [one.predictions for one in candidates]
    with collect_warnings() as problems:
        if known.any() and not known.all():
            best = min(predictions, key=lambda own: float(np.median(np.abs(labels - own)[known])))
            errors = np.where(np.abs(labels - best) > rounding, labels - best, 0.0)
            weights[known] = weigh_labels(errors[known], np.ones(known.sum()))
            warn_of_labels(best[:, None], labels[:, None], weights[:, None], limit=1.0)
    return weights, problems


def choose_model(
    candidates: Sequence[InspectedModel], labels: Vector | None, rounding: float = 0.0, weights: Any = 1.0
) -> InspectedModel:
    """Return the model to use.

    Without labels this is the last one (the adapted model) unless its expected error is larger. Labels overrule the
    forecast if the paired difference of squared errors differs from zero at the level of 5 %, or if all are known.
    """
    first, last = candidates[0], candidates[-1]
    chosen = last if last.model_rmse <= first.model_rmse * (1.0 + 1e-9) else first
    if labels is None or first.predictions is None or last.predictions is None:
        return chosen
    gain = weights * (np.square(labels - first.predictions) - np.square(labels - last.predictions))
    gain = gain[np.isfinite(labels)]
    n, noise = len(gain), rounding**2
    if n < len(labels):
        noise = stdtrit(n - 1, 0.975) * gain.std(ddof=1) / math.sqrt(n) if n >= MIN_LABELS else math.inf
    mean = float(gain.sum()) / max(n, 1)
    return chosen if abs(mean) <= noise else last if mean > 0.0 else first


def judge_output(
    name: str,
    candidates: Sequence[InspectedModel],
    source: SourceLabel,
    target: Target,
    *,
    labels: Vector | None = None,
    rows: Any = None,
    can_forecast: bool = True,
    **context: Any,
) -> OutputReport:
    """Return the report of one output.

    ``labels`` are those of the target rows, NaN where unknown, and ``rows`` the rows if a correction can use them.
    ``can_forecast`` is whether the models have a theory of their error on the target. ``context`` are further numbers
    of the headline, and in ``change`` what adapting changes.
    """
    change = context.pop("change", None)
    weights, problems = (np.ones(0), []) if labels is None else weigh_known(candidates, labels, source.rounding)
    model, first, ratio = choose_model(candidates, labels, source.rounding, weights), candidates[0], source.ratio
    if change is not None and change["change"] <= source.rounding:
        model = first
    errors = {one.name: _measure(one, labels, weights) for one in candidates}
    own, n_labels = errors[model.name], 0 if labels is None else int(np.isfinite(labels).sum())
    is_all = labels is not None and n_labels == len(labels)

    def expect(candidate: InspectedModel) -> Outcome:
        rmse, unseen = ratio(candidate.model_rmse), target.has_many_unseen or bool(target.often_missing)
        about: dict[str, Any] = {"separation": target.separation, "outside": target.outside, "unseen": unseen}
        return judge_outcome(model_rmse=rmse, source_rmse=1.0, **about)

    outcome = "hurts" if target.separation.found and expect(first) == "hurts" else expect(model)
    far = None if model.predictions is None else source.check_predictions(model.name, model.predictions)
    is_far = far is not None and far.severity == "serious" and not is_all
    shown, verdict = errors[first.name] if outcome == "hurts" else own, ""
    numbers = {
        **context, "model": shown.name, "rmse": shown.rmse, "interval95": shown.interval95, "ratio": ratio(shown.rmse),
        "source_rmse": source.rmse, "outside": target.outside, "p_value": target.separation.p_value,
        "matched": target.separation.matched, "missing": target.often_missing,
    }  # fmt: skip
    harm = ratio(first.model_rmse)
    if own.measured is not None:
        harm, (low, high) = ratio(own.measured), own.measured95 or (0.0, 0.0)
        # The labelled rows may be easy ones if their error is below the interval of the forecast and both overlap.
        is_easy = own.measured < own.interval95[0] <= high and not is_all
        verdict = "inconclusive" if ratio(high) > EXCESS or is_far else "easy" if is_easy else "confirmed"
        verdict = "few" if n_labels < LABELS_TO_DECIDE and not is_all else verdict
        if ratio(low) > EXCESS:
            verdict = outcome = "hurts"
        elif verdict != "few" and not (outcome == "hurts" and harm > EXCESS):
            outcome = "no-shift" if outcome == "no-shift" else "unverified"
        numbers |= {
            "model": own.name, "verdict": verdict, "n_labels": n_labels, "is_all": is_all, "measured": own.measured,
            "measured95": own.measured95, "ratio": harm, "is_rounding": own.measured <= source.rounding,
        }  # fmt: skip
    if is_far and outcome != "hurts":
        outcome = "unknown"
    is_confirmed, is_settled = verdict == "confirmed", verdict == "confirmed" and is_all
    if verdict not in ("", "hurts"):
        numbers["responsible"] = ()  # the labels show no increase
    mild: dict[Outcome, Severity] = {"no-shift": "info", "unverified": "warning"}
    mild |= {"hurts": "warning"} if harm < SERIOUS_RATIO else {}
    severity = "good" if is_confirmed else mild.get(outcome, "serious")
    codes = {"hurts": "SPAR001", "no-shift": "SPAR002", "unverified": "SPAR015", "unknown": "SPAR016"}
    findings = [Finding("SPAR017" if verdict else codes[outcome], severity, numbers)]
    findings += [Finding("SPAR023", "warning", {"problem": problem}) for problem in problems]
    if far is not None:
        findings.append(replace(far, severity="warning") if is_settled else far)
    if change is not None and change["change"] > source.rounding:
        findings.append(Finding("SPAR008", "info", change))
    correction = None
    if rows is not None and labels is not None and MIN_LABELS <= n_labels <= MAX_CORRECTION_LABELS and not is_all:
        with collect_warnings():
            fixed = TargetCorrection(model.model).fit(rows, labels)
        correction = _summarise(fixed.expected_rmse(), fixed.drift_)
        findings.append(Finding("SPAR020", "info", vars(correction)))

    # SPAR001 is about the model before adapting, so adapting answers it if the adapted model is not expected to suffer.
    is_fixed = model is not first and expect(model) != "hurts"
    serious = {f.code for f in (*findings, *target.find_problems(is_settled=is_settled)) if f.severity == "serious"}
    is_unsafe = bool(serious - ({"SPAR001"} if is_fixed else set()))
    has_enough = n_labels >= MIN_LABELS and (is_all or n_labels >= LABELS_TO_DECIDE or outcome == "hurts")
    is_open = {"unknown": True, "hurts": not is_fixed, "unverified": not can_forecast}.get(outcome, False)
    if has_enough and not is_confirmed:
        advice = Advice.CORRECT
    elif is_unsafe or (is_open and not is_confirmed):
        advice = Advice.LABEL
    else:
        advice = Advice.KEEP if model is first else Advice.ADAPT
    return OutputReport(
        name=name, outcome=outcome, severity=severity, source_rmse=source.rmse, models=tuple(errors.values()),
        recommended=model.name, advice=advice, n_labels=n_labels, confirmed=is_confirmed, correction=correction,
        responsible=context["responsible"],
        findings=tuple(sorted((replace(f, output=name) for f in findings), key=lambda finding: finding.rank)),
    )  # fmt: skip


def _measure(model: InspectedModel, labels: Vector | None, weights: Vector) -> ModelErrors:
    """Return the forecast of a model and its error on the labels."""
    forecast, measured = model.forecast, dict[str, Any]()
    if model.predictions is not None and labels is not None and np.isfinite(labels).any():
        known = np.isfinite(labels)
        errors = (labels - model.predictions)[known]
        rmse, interval = measure_rmse(errors, weights[known])
        measured = {"measured": rmse, "measured95": (rmse, rmse) if len(errors) == len(labels) else interval}
    return ModelErrors(model.name, forecast.rmse, forecast.interval80, forecast.interval95, **measured)


def judge_correction(method: str, name: str, forecast: Any, drift: Any) -> OutputReport:
    """Return the report of one output of a TargetCorrection, whose forecast contains the labels."""
    own, model = _summarise(forecast, drift), f"{method} corrected"
    return OutputReport(
        name=name, outcome="unverified", severity="info", source_rmse=math.nan, recommended=model, advice=Advice.KEEP,
        models=(ModelErrors(model, own.rmse, own.interval80, own.interval95),), n_labels=int(own.n_labels),
        confirmed=True, correction=own, findings=(Finding("SPAR022", "info", {"model": method, **vars(own)}, name),),
    )  # fmt: skip


def _summarise(forecast: Any, drift: Any) -> Correction:
    own = forecast.rmse, forecast.interval80, forecast.interval95, forecast.rmse_uncorrected, forecast.n_labels
    return Correction(*own, getattr(drift, "probability", None))
