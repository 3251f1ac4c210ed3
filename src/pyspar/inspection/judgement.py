"""Verdicts: a summary of the forecasts of one label. Headline, findings and verdict all use the same judgement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyspar.core.forecast import Forecast
from pyspar.wording import between, number, times

ASSUMPTION = "if the labels are linear in the features with noise of constant variance, in both source and target"
HURTS, HURTS_MUCH = 1.1, 2.0
"""Thresholds on the ratio of expected target error to expected source error: a harmful and a very harmful shift."""
WORTH, SLIGHT = 0.95, 0.98
"""Thresholds on the expected error of other weights relative to least squares. Below ``WORTH`` they are worth using,
below ``SLIGHT`` they help slightly, and above ``1 / SLIGHT`` they increase the error."""
FEW, MANY = 0.05, 2.0
"""Below the first ratio and above the second, a change of the error is written as a factor instead of per cent."""


@dataclass(frozen=True)
class Judgement:
    """The forecasts of one label, and what follows from them.

    Attributes
    ----------
    forecasts : dict of str to Forecast
        The forecasts by name.
    home : float
        The expected error of least squares on rows like the source's.
    adapted : str
        The name of the weights that the estimator has after adapting.
    """

    forecasts: dict[str, Forecast]
    home: float
    adapted: str

    @property
    def before(self) -> Forecast:
        """The forecast of least squares."""
        return self.forecasts["OLS"]

    @property
    def after(self) -> Forecast:
        """The forecast of the weights that adapting this estimator gives."""
        return self.forecasts[self.adapted]

    @property
    def ratio(self) -> float:
        """The expected error of least squares on the target divided by that on the source."""
        return self.before.rmse / self.home if self.home > 0.0 else 1.0

    @property
    def hurts(self) -> bool:
        """Whether the shift is harmful; True if the ratio cannot be computed."""
        return not self.ratio < HURTS

    @property
    def share(self) -> float:
        """The expected error after adapting divided by that of least squares."""
        return self.after.rmse / self.before.rmse if self.before.rmse > 0.0 else 1.0

    @property
    def worth(self) -> bool:
        """Whether adapting reduces the expected error enough to be worth it."""
        return self.share < WORTH

    @property
    def slight(self) -> bool:
        """Whether adapting reduces the expected error slightly."""
        return WORTH <= self.share < SLIGHT

    @property
    def costs(self) -> bool:
        """Whether adapting noticeably increases the expected error."""
        return self.share * SLIGHT > 1.0

    @property
    def advised(self) -> Forecast | None:
        """The weights to use in place of least squares: the adapted ones unless others are noticeably better."""
        best = min(self.forecasts.values(), key=lambda each: each.rmse)
        if not best.rmse < WORTH * self.before.rmse:
            return None
        return self.after if best.rmse >= WORTH * self.after.rmse else best


def judged(forecasts: Sequence[Forecast], home: float, adapted: str) -> Judgement:
    """Return the judgement of forecasts; their names must include "OLS" and the value of ``adapted``."""
    return Judgement({found.name: found for found in forecasts}, home, adapted)


def verdict_of(found: Judgement) -> str:
    """Return one sentence with the recommendation, the expected errors and the assumption."""
    before, after, advised = found.before, found.after, found.advised
    if not (math.isfinite(before.rmse) and math.isfinite(after.rmse)):
        return "Whether adapting is worth it is unknown: the expected errors are too large to compute."
    least, adapted = number(before.rmse), f"{number(after.rmse)} with {after.name}"
    range95 = f"95 %: {between(after.interval95)}"
    both = f"an expected RMSE of {least} with least squares and {adapted} ({range95})"
    if advised is None and found.hurts:
        helps = "helps only slightly" if found.slight else "does not help"
        what = f"Label some rows of the target first: the shift hurts and adapting {helps}, {both}"
    elif found.worth:
        still = "" if advised is None or advised is after else f"; with {advised.name}: {number(advised.rmse)}"
        what = (
            f"Adapting is worth it: the expected RMSE falls from {least} to {adapted} "
            f"({_change(found.share)}; {range95}{still})"
        )
    elif advised is not None:
        what = (
            f"Use {advised.name} rather than least squares: the expected RMSE falls from {least} to "
            f"{number(advised.rmse)} ({_change(advised.rmse / before.rmse)}; 95 %: {between(advised.interval95)}); "
            f"adapting gives {adapted}"
        )
    elif found.slight:
        change = f"{_change(found.share)}; {range95}"
        what = f"Adapting helps slightly: the expected RMSE falls from {least} to {adapted} ({change})"
    elif not found.costs:
        what = f"Adapting changes little: {both}"
    else:
        what = (
            f"Adapting increases the expected error: the RMSE rises from {least} to {adapted} "
            f"({_change(found.share)}; {range95})"
        )
    return f"{what}, {ASSUMPTION}."


def _change(share: float) -> str:
    """Return the change of an error as text: in per cent, or as a factor if the change is large."""
    if 0.0 < share < FEW:
        return f"{times(1.0 / share)} times smaller"
    if share > MANY:
        return f"{times(share)} times as large"
    return f"{100.0 * abs(1.0 - share):.0f} % {'less' if share < 1.0 else 'more'}"
