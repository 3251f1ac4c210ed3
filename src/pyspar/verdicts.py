"""Verdicts: what the forecasts of one label come to. Headline, findings and verdict all speak from one judgement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyspar.core.forecast import Forecast
from pyspar.wording import between, number, times

ASSUMPTION = "if the labels are linear in the features, in the source and in the target alike, with noise of one size"
HURTS, HURTS_MUCH = 1.1, 2.0
"""The expected error on the target over that on the source, from which a shift hurts, and hurts much."""
WORTH, SLIGHT = 0.95, 0.98
"""Other weights are worth it where they leave less than the first share of the expected error; they help slightly where
they leave less than the second, and cost where they add as much."""
FEW, MANY = 0.05, 2.0
"""Below this share of the error, and above this multiple of it, it is told how many times less or more there is."""


@dataclass(frozen=True)
class Judgement:
    """The forecasts of one label by name, the expected error of least squares on rows like the source's, and whose
    weights the estimator in hand gets by adapting."""

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
        """How many times as much least squares is expected to err on the target as on the source."""
        return self.before.rmse / self.home if self.home > 0.0 else 1.0

    @property
    def hurts(self) -> bool:
        """Whether the shift does harm; one that cannot be computed does."""
        return not self.ratio < HURTS

    @property
    def share(self) -> float:
        """What adapting leaves of the expected error."""
        return self.after.rmse / self.before.rmse if self.before.rmse > 0.0 else 1.0

    @property
    def worth(self) -> bool:
        """Whether adapting takes away a part of the expected error that is worth it."""
        return self.share < WORTH

    @property
    def slight(self) -> bool:
        """Whether it takes away a part that is noticeable, and no more."""
        return WORTH <= self.share < SLIGHT

    @property
    def costs(self) -> bool:
        """Whether adapting adds a noticeable part to it."""
        return self.share * SLIGHT > 1.0

    @property
    def advised(self) -> Forecast | None:
        """The weights to use in place of least squares: the adapted ones unless others are noticeably better."""
        best = min(self.forecasts.values(), key=lambda each: each.rmse)
        if not best.rmse < WORTH * self.before.rmse:
            return None
        return self.after if best.rmse >= WORTH * self.after.rmse else best


def judged(forecasts: Sequence[Forecast], home: float, adapted: str) -> Judgement:
    """Return the judgement of some forecasts, among them that of ``OLS`` and that of the adapted weights, by name."""
    return Judgement({found.name: found for found in forecasts}, home, adapted)


def verdict_of(found: Judgement) -> str:
    """Say in one sentence what to do, with what is expected of it and under which assumption."""
    before, after, advised = found.before, found.after, found.advised
    if not (math.isfinite(before.rmse) and math.isfinite(after.rmse)):
        return "Whether adapting is worth it is unknown: the expected errors are beyond what numbers can hold."
    least, adapted = number(before.rmse), f"{number(after.rmse)} with {after.name}"
    range95 = f"95 %: {between(after.interval95)}"
    both = f"an expected RMSE of {least} with least squares and {adapted} ({range95})"
    if advised is None and found.hurts:
        mends = "hardly mends it" if found.slight else "does not mend it"
        what = f"Label some rows of the target first: the shift hurts and adapting {mends}, {both}"
    elif found.worth:
        still = "" if advised is None or advised is after else f"; {advised.name} promises {number(advised.rmse)}"
        what = (
            f"Adapting is worth it: the expected RMSE falls from {least} to {adapted} "
            f"({_change(found.share)}; {range95}{still})"
        )
    elif advised is not None:
        what = (
            f"Use {advised.name} rather than least squares: the expected RMSE falls from {least} to "
            f"{number(advised.rmse)} ({_change(advised.rmse / before.rmse)}; 95 %: {between(advised.interval95)}); "
            f"adapting would leave {adapted}"
        )
    elif found.slight:
        change = f"{_change(found.share)}; {range95}"
        what = f"Adapting helps slightly: the expected RMSE falls from {least} to {adapted} ({change})"
    elif not found.costs:
        what = f"Adapting changes little: {both}"
    else:
        what = (
            f"Adapting is insurance that costs: the expected RMSE rises from {least} to {adapted} "
            f"({_change(found.share)}; {range95})"
        )
    return f"{what}, {ASSUMPTION}."


def _change(share: float) -> str:
    """Say how much less or more a share of an error is: in per cent, unless it is another order of size."""
    if 0.0 < share < FEW:
        return f"{times(1.0 / share)} times smaller"
    if share > MANY:
        return f"{times(share)} times as much"
    return f"{100.0 * abs(1.0 - share):.0f} % {'less' if share < 1.0 else 'more'}"
