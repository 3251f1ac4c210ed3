"""The judgement of one label: whether the shift hurts, which weights to use, and what to do next.

Headline, verdict, findings, terminal, JSON and page all show the texts of this object, so they give the same advice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspar.core.drift import MIN_LABELS
from pyspar.core.forecast import Forecast
from pyspar.core.separation import Separation
from pyspar.estimators.calibrated_forecasts import EXCESS, BaseRate, Kind, Outcome, base_rate, judge_outcome
from pyspar.estimators.target_labels import ENOUGH_LABELS, LabelForecast
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS, UnseenRows, count_unseen, describe_columns
from pyspar.inspection.target_rows import COMMAND_METHODS, LabelEvidence, name_weights
from pyspar.wording import count_noun, format_interval, format_number, format_p_value, format_percent

OUTCOMES: tuple[Outcome, ...] = ("no-shift", "unverified", "unknown", "hurts")
"""The outcomes, from the mildest to the worst."""
Severity = Literal["good", "info", "warning", "serious"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "info", "good")
"""The severities in the order in which findings are listed."""
SERIOUS_UNSEEN_SHARE = 0.1
"""The error is unknown if at least this share of the target rows has an unseen category."""
SERIOUS_HARM_RATIO = 2.0
"""Harm is serious if the error on the target is this many times the error at home."""
WORTHWHILE_RATIO, SLIGHT_GAIN_RATIO = 0.95, 0.98
"""Thresholds on the ratio of two expected errors. Below the first, other weights are worth it. Below the second, a
correction with labels helps."""
SMALL_CHANGE = 0.01
"""A smaller relative change of the error is not noticeable. Figures that agree to three digits differ by less."""
ROWS_TO_LABEL = 40
"""With this many labels the upper end of the interval is about 1.3 times the RMSE, if the errors are normal."""

_DIGITS = 3
_ROUNDING = 1e-9
"""Expected errors whose relative difference is smaller count as equal."""


def is_serious(unseen: UnseenRows) -> bool:
    """Return whether so many rows have unseen categories that the error on the target is unknown."""
    return unseen.rows > 0 and unseen.rows >= SERIOUS_UNSEEN_SHARE * unseen.n_target


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The numbers of one label, and all sentences about them.

    ``before`` and ``adapted`` are the weights in use (least squares if the caller has no model), and the weights after
    adapting. They are equal for a model that cannot be adapted. ``used`` are the weights that made the predictions of a
    command, or None without a command. ``evidence`` is empty without target labels. If the source has groups, ``home``
    is the error on new groups, and ``home_is_of_groups`` is True.
    """

    forecasts: tuple[Forecast, ...]  # for each set of weights, on the whole target
    home: float  # the expected RMSE on rows like those of the source
    before: str
    adapted: str
    used: str | None = None
    separation: Separation
    alternatives: tuple[str, ...] = ()  # further weights that may be recommended
    kind: Kind = "linear"  # whether the model is one of pyspar's regressors or any other
    home_is_of_groups: bool = False
    is_transformed: bool = False  # whether all errors are in the unit of a transformed label
    is_command: bool = False  # whether a command with the target rows in memory judges, so that others can follow
    n_target: float = math.inf
    outside: float = 0.0  # the share of the target's variation outside the span of the source
    unseen: UnseenRows = NO_UNSEEN_ROWS  # rows that the forecasts do not cover
    evidence: Mapping[str, LabelEvidence] = field(default_factory=dict)
    corrected: LabelForecast | None = None  # of the recommended weights after a correction with the target labels

    def forecast(self, name: str) -> Forecast:
        """Return the forecast of one set of weights."""
        for forecast in self.forecasts:
            if forecast.name == name:
                return forecast
        raise KeyError(f"no weights named {name!r}; the names are {[forecast.name for forecast in self.forecasts]}")

    @property
    def shift_ratio(self) -> float:
        """The expected error of the weights in use on the target, divided by the error at home."""
        return self._compare_with_home(self.forecast(self.before).rmse)

    @property
    def adapted_ratio(self) -> float:
        """The expected error after adapting divided by that before."""
        before, after = self.forecast(self.before).rmse, self.forecast(self.adapted).rmse
        return after / before if before > 0.0 else 1.0

    @property
    def worth(self) -> bool:
        """Whether adapting reduces the expected error by more than 5 %."""
        return self.adapted_ratio < WORTHWHILE_RATIO

    @property
    def recommended(self) -> str:
        """The name of the weights to use.

        These are the adapted weights, or the weights in use if adapting increases the expected error. An alternative is
        recommended if its expected error is more than 5 % below that. Labels overrule the forecasts if the interval of
        other weights lies below that of these weights.
        """
        best = self.before if self.adapted_ratio > 1.0 + _ROUNDING else self.adapted
        for name in self.alternatives:
            if self.forecast(name).rmse < WORTHWHILE_RATIO * self.forecast(best).rmse:
                best = name
        for name in (self.before, self.adapted, *self.alternatives):
            if self.evidence and self.evidence[name].interval[1] < self.evidence[best].interval[0]:
                best = name
        return best

    @property
    def expected(self) -> Forecast:
        """The forecast of the recommended weights."""
        return self.forecast(self.recommended)

    @property
    def labels(self) -> LabelEvidence | None:
        """What labels of target rows show about the recommended weights; None without labels."""
        return self.evidence.get(self.recommended)

    @property
    def used_others(self) -> bool:
        """Whether other weights than the recommended ones made the predictions."""
        return self.used not in (None, self.recommended)

    @property
    def is_confirmed(self) -> bool:
        """Whether target labels confirm the recommended weights."""
        return self._confirms(self.recommended)

    def _confirms(self, name: str) -> bool:
        """Return whether target labels show an error not much above that at home, and are not unusually easy."""
        labels = self.evidence.get(name)
        if labels is None or not labels.confirmed:
            return False
        low = self.forecast(name).interval95[0]  # rows may be easy if the error is below, but the intervals overlap
        return labels.n >= self.n_target or labels.rmse >= low or labels.interval[1] < low

    @property
    def labels_show_harm(self) -> bool:
        """Whether target labels show an error of more than 1.3 times that at home: measured on all rows, or likely."""
        if self.labels is None:
            return False
        error = self.labels.rmse if self.labels.n >= self.n_target else self.labels.interval[0]
        return error > EXCESS * self.home

    def judge_forecast(self, name: str) -> Outcome:
        """Return the outcome by the forecast of one set of weights."""
        return judge_outcome(
            expected=self.forecast(name).known_rmse,  # temporary
            home=self.home,
            separation=self.separation,
            outside=self.outside,
            unseen=is_serious(self.unseen),
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome: "hurts" if this holds for the weights in use or for the recommended weights.

        At least ten labels overrule the forecasts, unless the forecasts expect harm and the labels point to it as well.
        """
        if self.labels_show_harm:
            return "hurts"
        outcome = self.judge_forecast(self.recommended)
        if self.separation.found and self.judge_forecast(self.before) == "hurts":
            outcome = "hurts"
        if self.labels is None or self.labels.n < ENOUGH_LABELS:
            return outcome
        if outcome == "hurts" and self.labels.rmse > EXCESS * self.home:
            return "hurts"
        return "no-shift" if outcome == "no-shift" else "unverified"

    @property
    def severity(self) -> Severity:
        """The severity. "good" requires that labels confirm the recommended weights and those that predicted."""
        if self.is_confirmed:
            if not self._confirms(self.used or self.recommended):
                return "warning"
            return "info" if self.is_transformed else "good"  # a small error may be a large one in the label's unit
        if self.outcome == "hurts":
            ratio = self.shift_ratio if self.labels is None else self._compare_with_home(self.labels.rmse)
            return "serious" if ratio >= SERIOUS_HARM_RATIO else "warning"
        severities: dict[Outcome, Severity] = {"no-shift": "info", "unverified": "warning", "unknown": "serious"}
        return severities[self.outcome]

    @property
    def base_rate(self) -> BaseRate | None:
        """How often the error was much larger than at home on similar real shifts; None if labels decide."""
        if self.labels is not None and (self.labels.n >= ENOUGH_LABELS or self.labels_show_harm):
            return None
        return base_rate(self.judge_forecast(self.recommended), self.separation, self.kind)

    @property
    def headline(self) -> str:
        """What is known about the error on the target, and about the predictions if other weights made them."""
        unit = " All errors are in the unit of the transformed label." if self.is_transformed else ""
        return self._describe_error() + self._describe_used() + unit

    def _describe_error(self) -> str:
        if self.labels is not None:
            return self._describe_labels(self.labels)
        home, expected = f"{_show(self.home)} at home{self.on_groups}", f"{_show(self.expected.rmse)} on the target"
        test = f"two-sample test of means and spreads, {format_p_value(self.separation.p_value)}"
        if self.outcome == "unknown":
            return f"The error on the target is unknown: {self._describe_gap()}."
        if self.outcome == "no-shift" and self.separation.matched:
            return (
                f"No covariate shift was found ({test}), but the source and target rows are matched: their means "
                "differ less than those of two random samples, as in a balanced experiment. This carries no "
                "information about a change of the relation between features and label; the expected RMSE is "
                f"{expected} ({home})."
            )
        if self.outcome == "no-shift":
            found = f"No covariate shift was found between the source and target rows ({test})"
            return f"{found}; the expected RMSE is {expected} ({home})."
        if self.outcome == "unverified" and self.kind == "any":
            low, high = (_show(self._compare_with_home(end)) for end in self.expected.interval95)
            past = f"; from similar shifts, expect {low} to {high} times that (95 %)" if self.home > 0.0 else ""
            return (
                f"A shift was found, and its effect on {name_weights(self.recommended)} is unknown without target "
                f"labels: the RMSE is {home}{past}."
            )
        if self.outcome == "unverified":
            return (
                f"A shift was found. The forecast of the RMSE is {expected} ({home}). It is unverified: it cannot show "
                "whether the relation between features and label has changed."
            )
        before = _show(self.forecast(self.before).rmse)
        text = (
            f"The shift hurts {name_weights(self.before)}: its expected RMSE on the target is {before}, "
            f"{_show(self.shift_ratio)} times the error at home ({_show(self.home)}{self.on_groups})"
        )
        if self.recommended != self.before:
            text += f"; with {name_weights(self.recommended)} it is {_show(self.expected.rmse)}"
        return f"{text}."

    def _describe_used(self) -> str:
        if self.used is None or not self.used_others:
            return ""
        kind, rmse = "expected", self.forecast(self.used).rmse
        if self.evidence:
            kind, rmse = "measured", self.evidence[self.used].rmse
        return (
            f" The predictions of this run are those of {name_weights(self.used)}; their {kind} RMSE is {_show(rmse)}."
        )

    @property
    def on_groups(self) -> str:
        """The words that follow the error at home: " on new groups", or "" if the source has no groups."""
        return " on new groups" if self.home_is_of_groups else ""

    @property
    def comparison(self) -> str:
        """One sentence that compares the forecast with the labels; "" without labels."""
        if self.labels is None:
            return ""
        forecast, true = self.expected, self.labels.rmse
        (low, high), ratio = forecast.interval95, true / forecast.rmse if forecast.rmse > 0.0 else math.nan
        interval = f"its 95 % interval ({format_interval((low, high), _DIGITS)})"
        size = f"measured RMSE of {_show(true)} is {_show(ratio)} times the forecast of {_show(forecast.rmse)}"
        if low <= true <= high:
            return f"The {size} and inside {interval}."
        text = f"{size} and {'above' if true > high else 'below'} {interval}"
        overlaps = self.labels.interval[0] <= high and self.labels.interval[1] >= low
        if self.labels.n < self.n_target and overlaps:
            return f"The {text}; the interval of the measurement overlaps it, so more labels must decide."
        return f"The forecast was wrong: the {text}."

    @property
    def not_covered(self) -> str:
        """What the test may have missed and which rows the forecast does not cover; "" if the headline says it."""
        texts, limit = [], math.inf
        if self.labels is None and self.outcome == "no-shift":
            found = f"finds a column whose spread grew {_show(limit)} times in about half of all cases"
            texts.append(f"The test {found if limit < math.inf else 'may miss a column whose spread changed'}.")
        if self.unseen.rows and not (is_serious(self.unseen) and self.labels is None):
            columns = describe_columns(self.unseen.columns)
            texts.append(f"The forecast does not cover {count_unseen(self.unseen)} with unseen categories ({columns}).")
        return " ".join(texts)

    @property
    def experience(self) -> str:
        """One sentence: how often this outcome was wrong on real shifts; "" if labels decide."""
        rate = self.base_rate
        if rate is None or not rate.n_tasks:
            return ""
        parts = ["this outcome"] * rate.is_of_outcome + ["a similar separation"] * rate.is_of_separation
        condition = f"with {' and '.join(parts)}"
        if self.judge_forecast(self.recommended) != self.outcome:
            condition = "in which no harm was expected of the recommended weights"
        return (
            f"Of {rate.n_tasks:,} real shifts {condition}, {format_percent(rate.rate, 0)} had an error of more than "
            f"{rate.threshold:g} times the error at home."
        )

    @property
    def advice(self) -> str:
        """The weights to use, as an instruction, and whether adapting makes no noticeable difference."""
        notes = [f"spar adapt --method {COMMAND_METHODS[self.recommended]}"] if self.used_others else []
        if self._is_change_small():
            notes.append(f"adapting is expected to change the error by less than {format_percent(SMALL_CHANGE, 0)}")
        verb = "Keep" if self.recommended == self.before and not self.used_others else "Use"
        return f"{verb} {name_weights(self.recommended)}" + (f" ({'; '.join(notes)})" if notes else "")

    def _is_change_small(self) -> bool:
        """Return whether adapting changes neither the expected error noticeably, nor the measured one if known."""
        names = {self.before, self.adapted}
        expected = [self.forecast(name).rmse for name in names]
        measured = [self.evidence[name].rmse for name in names] if self.evidence else expected
        is_small = all(max(errors) < (1.0 + SMALL_CHANGE) * min(errors) for errors in (expected, measured))
        return is_small and len(names) == 2 and self.recommended in names

    @property
    def next_step(self) -> str:
        """One sentence: what to do."""
        known = 0 if self.labels is None else self.labels.n
        n_rows = int(min(max(ROWS_TO_LABEL, 2 * known), self.n_target))
        rows = count_noun(n_rows, "target row")
        them = "it" if n_rows - known == 1 else "them"
        choose, correct = f"choose {them} with pyspar.rows_to_label", "pyspar.TargetCorrection"
        if self.is_command:
            choose = f"choose {them} with spar label --rows {n_rows - known}"
            method = COMMAND_METHODS.get(self.recommended)
            correct = f"spar adapt --method {method} --use-target-labels" if method in ("bayes", "spar") else correct
        helps = self.corrected is None or self.corrected.rmse < SLIGHT_GAIN_RATIO * self.corrected.rmse_uncorrected
        if not known and n_rows > ENOUGH_LABELS:
            choose += f"; {ENOUGH_LABELS} are enough to correct the model with {correct}"
        if self.is_confirmed and is_serious(self.unseen) and known < self.n_target:
            return f"{self.advice}, and label some rows with unseen categories, unless the labels include such rows."
        if self.is_confirmed:
            done = "; no further action is needed unless the target changes."
            return self.advice + (", and compare the errors in the unit of y as well." if self.is_transformed else done)
        if self.labels_show_harm and known >= MIN_LABELS:
            further = " before you predict further rows" if known >= self.n_target else ""
            no_help = " and expect this error: a correction with these labels is not expected to reduce it."
            return self.advice + (f", and correct it with these labels{further} ({correct})." if helps else no_help)
        if known >= self.n_target:
            return f"{self.advice}; all target rows are already labelled."
        if known:
            text = f"{self.advice}, and label more target rows, {n_rows:,} in total, to verify it ({choose})"
            can_correct = known >= ENOUGH_LABELS and helps
            return text + (f", or correct it now with these labels ({correct})." if can_correct else ".")
        if self.outcome == "unknown":
            return f"Label {rows} first ({choose}). Add rows that the source does not cover, if it chooses none."
        purpose = "measure the error" if self.kind == "any" else "verify the forecast"
        if self.outcome == "no-shift":
            purpose = "check whether the relation between features and label has changed"
        return f"{self.advice}, and label {rows} to {purpose} ({choose})."

    @property
    def verdict(self) -> str:
        """The sentences above as one text."""
        texts = self.headline, self.comparison, self.not_covered, self.experience, self.next_step
        return " ".join(filter(None, texts))

    def _describe_gap(self) -> str:
        if is_serious(self.unseen):
            rows, columns = f"{count_unseen(self.unseen)} {self.unseen.verb}", describe_columns(self.unseen.columns)
            return f"{rows} categories that do not occur in the source ({columns})"
        if not math.isfinite(self.expected.rmse):
            return "the expected error is too large to compute"
        share = format_percent(self.outside)
        return f"{share} of the target's variation is in directions that do not occur in the source"

    def _compare_with_home(self, rmse: float) -> float:
        if self.home > 0.0:
            return rmse / self.home
        return 1.0 if rmse == 0.0 else math.inf

    def _describe_labels(self, labels: LabelEvidence) -> str:
        times = f"{_show(self._compare_with_home(labels.rmse))} times" if self.home > 0.0 else "compared with"
        measured = (
            f"on {count_noun(labels.n, 'labelled target row')} the RMSE of {name_weights(self.recommended)} is "
            f"{_show(labels.rmse)} (95 %: {format_interval(labels.interval, _DIGITS)}), {times} the error at home "
            f"({_show(self.home)}{self.on_groups})"
        )
        if self.is_confirmed:
            name = name_weights(self.recommended) if self.used_others else "the model"
            return f"The labels confirm {name}: {measured}."
        if self.labels_show_harm:
            return f"The labels show that the shift hurts: {measured}."
        if labels.n >= self.n_target:
            return f"All target rows are labelled: {measured}."
        if labels.n < ENOUGH_LABELS:
            return f"The labels are too few to decide: {measured}."
        if labels.confirmed:
            return f"The labels are inconclusive, because the labelled rows may be unusually easy: {measured}."
        low, high = (_show(self._compare_with_home(end)) for end in labels.interval)
        return f"According to the labels, the error is {low} to {high} times that at home (95 %): {measured}."


def _show(value: float) -> str:
    return format_number(value, _DIGITS)
