"""The judgement of one label's forecasts: whether the shift is harmful, and which weights to use.

Headline, findings and verdict all use the same judgement, so they recommend the same weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pyspar.core.forecast import Forecast
from pyspar.wording import format_factor, format_interval, format_number

ASSUMPTION = "if the labels are linear in the features with noise of constant variance, in both source and target"
HARM_RATIO, SERIOUS_HARM_RATIO = 1.1, 2.0
"""A shift is harmful if the expected error of least squares on the target is this many times that on the source."""
WORTHWHILE_RATIO, SLIGHT_GAIN_RATIO = 0.95, 0.98
"""Thresholds on the expected error of other weights relative to least squares. Weights below the first are worth using.
Weights below the second help slightly. Weights above the inverse of the second increase the error."""
SMALL_FACTOR, LARGE_FACTOR = 0.05, 2.0
"""Below the first ratio and above the second, a change of the error is written as a factor instead of per cent."""

Outcome = Literal["unknown", "label", "adapt", "use", "slight", "same", "worse"]
"""The conclusion of a verdict: the errors cannot be computed; label target rows first; adapt; use other weights than
the adapted weights; adapting helps slightly, changes little, or increases the error."""


@dataclass(frozen=True)
class Judgement:
    """The forecasts of one label by name, and the conclusions from them.

    ``source_rmse`` is the expected error of least squares on rows like those of the source, and ``adapted`` is the name
    of the weights that the estimator has after adapting.
    """

    forecasts: dict[str, Forecast]
    source_rmse: float
    adapted: str

    @property
    def before(self) -> Forecast:
        return self.forecasts["OLS"]

    @property
    def after(self) -> Forecast:
        return self.forecasts[self.adapted]

    @property
    def shift_ratio(self) -> float:
        """The expected error of least squares on the target divided by that on the source."""
        return self.before.rmse / self.source_rmse if self.source_rmse > 0.0 else 1.0

    @property
    def is_harmful(self) -> bool:
        """Whether the shift is harmful; True if the ratio cannot be computed."""
        return not self.shift_ratio < HARM_RATIO

    @property
    def adapted_ratio(self) -> float:
        """The expected error after adapting divided by that of least squares."""
        return self.after.rmse / self.before.rmse if self.before.rmse > 0.0 else 1.0

    @property
    def is_worthwhile(self) -> bool:
        return self.adapted_ratio < WORTHWHILE_RATIO

    @property
    def helps_slightly(self) -> bool:
        return WORTHWHILE_RATIO <= self.adapted_ratio < SLIGHT_GAIN_RATIO

    @property
    def increases_error(self) -> bool:
        """Whether adapting noticeably increases the expected error; False if the ratio cannot be computed."""
        return self.adapted_ratio * SLIGHT_GAIN_RATIO > 1.0

    @property
    def advised(self) -> Forecast | None:
        """The weights to use instead of least squares, or None if no weights are worth using.

        These are the adapted weights if they are worth using and no other weights are noticeably better.
        """
        best = min(self.forecasts.values(), key=lambda forecast: forecast.rmse)
        if not best.rmse < WORTHWHILE_RATIO * self.before.rmse:
            return None
        return self.after if self.is_worthwhile and best.rmse >= WORTHWHILE_RATIO * self.after.rmse else best

    @property
    def outcome(self) -> Outcome:
        if not (math.isfinite(self.before.rmse) and math.isfinite(self.after.rmse)):
            return "unknown"
        if self.advised is not None:
            return "adapt" if self.advised is self.after else "use"
        if self.is_harmful:
            return "label"
        if self.helps_slightly:
            return "slight"
        return "worse" if self.increases_error else "same"


def write_verdict(judgement: Judgement) -> str:
    """Return one sentence with the recommendation, the expected errors and the assumption."""
    before, after, advised = judgement.before, judgement.after, judgement.advised
    outcome = judgement.outcome
    if outcome == "unknown":
        return "Whether adapting is worth it is unknown: the expected errors are too large to compute."
    least, adapted = format_number(before.rmse), f"{format_number(after.rmse)} with {after.name}"
    interval = f"95 %: {format_interval(after.interval95)}"
    both = f"the expected RMSE is {least} with least squares and {adapted} ({interval})"
    change = f"from {least} to {adapted} ({_describe_change(judgement.adapted_ratio)}; {interval})"
    if outcome == "adapt":
        text = f"Adapting is worth it: the expected RMSE falls {change}"
    elif outcome == "use" and advised is not None:
        text = (
            f"Use {advised.name}: the expected RMSE falls from {least} with least squares to "
            f"{format_number(advised.rmse)} ({_describe_change(advised.rmse / before.rmse)}; 95 %: "
            f"{format_interval(advised.interval95)}); adapting gives {adapted}"
        )
    elif outcome == "label":
        effect = "helps only slightly" if judgement.helps_slightly else "does not help"
        text = f"Label some rows of the target first, because the shift hurts and adapting {effect}: {both}"
    elif outcome == "slight":
        text = f"Adapting helps slightly: the expected RMSE falls {change}"
    elif outcome == "same":
        text = f"Adapting changes little: {both}"
    else:
        text = f"Adapting increases the expected error: the RMSE rises {change}"
    return f"{text}, {ASSUMPTION}."


def _describe_change(ratio: float) -> str:
    """Return the change of an error as text: in per cent, or as a factor if the change is large."""
    if 0.0 < ratio < SMALL_FACTOR:
        return f"{format_factor(1.0 / ratio)} times smaller"
    if ratio > LARGE_FACTOR:
        return f"{format_factor(ratio)} times as large"
    return f"{100.0 * abs(1.0 - ratio):.0f} % {'less' if ratio < 1.0 else 'more'}"
