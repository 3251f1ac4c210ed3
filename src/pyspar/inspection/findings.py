"""Findings about a source and a target. Each has a code, a sentence with numbers, and advice.

Findings are derived from the facts in :mod:`pyspar.inspection.facts`. The table in docs/report.md lists all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pyspar.inspection.facts import MAX_MEAN_SHIFT, FeatureFacts, LabelFacts
from pyspar.inspection.judgement import SERIOUS_HARM_RATIO
from pyspar.wording import format_factor, format_interval, format_number, format_percent, list_some

Severity = Literal["good", "info", "warning", "serious"]

OUTSIDE_SHARE, SERIOUS_OUTSIDE_SHARE = 0.01, 0.25
ROWS_PER_DIRECTION = 10.0
TIE_TOLERANCE = 1e-3
"""Directions are not unique if the relative difference of their singular values is below this."""
LARGE_REMOVED_SHARE = 0.5
WIDE_INTERVAL_RATIO = 3.0
"""A 95 % interval is reported if its upper end is at least this many times its lower end."""
LARGE_SCALE_RATIO = 1e6
LEADER_SHARE, LEADER_FACTOR = 0.25, 10.0
"""A column dominates if it contributes at least the first share, and at least the second times an equal share."""
LEADER_REACH = 3.0
"""A dominant column is a warning if its distance from the source mean in the target is this many times that in the
source."""

LIMITS = {
    "no-signal": (
        "the features do not explain the label, so every weight is zero",
        "Check that each label belongs to its row. If it does, the mean is the best prediction.",
    ),
    "no-noise": (
        "the features explain the label exactly, so the noise is estimated as zero",
        "Check that no feature contains the label. Intervals are too narrow if the exact fit is a coincidence.",
    ),
    "repeated-rows": (
        "the fit is exact because there are no more distinct rows than directions, so repeated rows (features and "
        "label) are not counted",
        "Drop the copies and fit again. More distinct rows give a better estimate of the noise.",
    ),
}
"""The meaning of each reported limit of the evidence, and the advice. Other limits are not reported."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes
    ----------
    code : str
        ``SPAR001`` and so on; it does not change between versions.
    severity : {"good", "info", "warning", "serious"}
    text : str
        The observation, with its numbers.
    advice : str
        The recommended action.
    output : str or None
        The label that it concerns; None if it concerns the features and therefore all labels.
    """

    code: str
    severity: Severity
    text: str
    advice: str
    output: str | None = None


def list_feature_findings(facts: FeatureFacts) -> tuple[Finding, ...]:
    """Return the findings that follow from the features alone."""
    checks = (_check_outside, _check_constant, _check_rows, _check_means, _check_scales)
    return tuple(finding for check in checks if (finding := check(facts)) is not None)


def list_label_findings(facts: LabelFacts) -> tuple[Finding, ...]:
    """Return the findings for one label. The first states whether the shift is harmful."""
    checks = (_check_cost, _check_ties, _check_limit, _check_removed, _check_interval, _check_leader)
    others = tuple(finding for check in checks if (finding := check(facts)) is not None)
    return (_check_harm(facts), *others)


def _check_harm(facts: LabelFacts) -> Finding:
    judgement = facts.judgement
    ratio, advised = judgement.shift_ratio, judgement.advised
    if not math.isfinite(ratio):
        return Finding(
            "SPAR001",
            "serious",
            "The shift hurts: the expected error of least squares on the target is too large to compute.",
            "Check the units of the columns in which the target is far from the source.",
        )
    errors = (
        f"the expected RMSE of least squares is {format_number(judgement.before.rmse)} on the target and "
        f"{format_number(judgement.source_rmse)} on the source"
    )
    if not judgement.is_harmful:
        advice = "The shift requires no action"
        if advised is not None:
            advice += f", but {advised.name} has a lower expected RMSE: {format_number(advised.rmse)}"
        return Finding("SPAR002", "good", f"No harmful shift: {errors}.", f"{advice}.")
    if advised is None:
        advice = (
            f"Label some rows of the target first, above all rows that differ {_describe_rows(facts)}. No other "
            "weights have a much lower expected error."
        )
    else:
        advice = f"Use {advised.name}: its expected RMSE is {format_number(advised.rmse)}."
    severity: Severity = "serious" if ratio >= SERIOUS_HARM_RATIO else "warning"
    return Finding("SPAR001", severity, f"The shift hurts: {errors}, {format_number(ratio, 3)} times as large.", advice)


def _check_cost(facts: LabelFacts) -> Finding | None:
    judgement = facts.judgement
    if not judgement.increases_error:  # also if either error is unknown
        return None
    before, after, advised = judgement.before, judgement.after, judgement.advised
    if advised is not None:
        advice = f"Use {advised.name} instead of adapting."
    else:
        until = "Until target rows are labelled, keep" if judgement.is_harmful else "Keep"
        advice = (
            f"{until} least squares if you trust that the labels are linear in the features. If you do not, prefer the "
            "adapted weights, which extrapolate less."
        )
    return Finding(
        "SPAR012",
        "info",
        f"Adapting is expected to increase the RMSE from {format_number(before.rmse)} (least squares) to "
        f"{format_number(after.rmse)} ({after.name}).",
        advice,
    )


def _check_outside(facts: FeatureFacts) -> Finding | None:
    if facts.outside < OUTSIDE_SHARE:
        return None
    return Finding(
        "SPAR003",
        "serious" if facts.outside >= SERIOUS_OUTSIDE_SHARE else "warning",
        f"{format_percent(facts.outside)} of the target's variation is in directions that do not occur in the source, "
        "so the labels carry no information about them.",
        "Label rows that vary in these directions, or drop the columns that vary only in the target.",
    )


def _check_constant(facts: FeatureFacts) -> Finding | None:
    if not facts.constant:
        return None
    return Finding(
        "SPAR004",
        "warning",
        f"{_count(len(facts.constant), 'column has', 'columns have')} one value in the source and other values in the "
        f"target: {list_some(facts.constant, 5)}.",
        "The weights of such columns cannot be estimated and are zero. Label rows in which these columns vary.",
    )


def _check_rows(facts: FeatureFacts) -> Finding | None:
    if facts.rank == 0 or facts.rows >= ROWS_PER_DIRECTION * facts.rank:
        return None
    is_exact = facts.rows <= facts.rank + 1
    effect = (
        "so least squares fits them exactly and the noise cannot be estimated"
        if is_exact
        else "which leaves the weights and the noise uncertain"
    )
    return Finding(
        "SPAR005",
        "serious" if is_exact else "warning",
        f"The source has {facts.rows:,.0f} rows for {facts.rank:,} directions "
        f"({format_number(facts.rows / facts.rank, 3)} per direction), {effect}.",
        "Use more rows or fewer features.",
    )


def _check_means(facts: FeatureFacts) -> Finding | None:
    if not facts.moved:
        return None
    farthest = ", ".join(f"{name!r} by {format_number(distance, 3)}" for name, distance in facts.moved[:3])
    count = _count(len(facts.moved), "column", "columns")
    return Finding(
        "SPAR009",
        "warning",
        f"The mean moved by more than {MAX_MEAN_SHIFT:g} source standard deviations in {count}: {farthest}.",
        "Check that units and encodings agree. If they do, every prediction is an extrapolation.",
    )


def _check_scales(facts: FeatureFacts) -> Finding | None:
    if facts.scale_ratio < LARGE_SCALE_RATIO:
        return None
    return Finding(
        "SPAR011",
        "warning",
        f"The standard deviation of the largest column is {format_factor(facts.scale_ratio)} times that of the "
        "smallest, so the directions depend on the units of the columns.",
        "Standardise the features. BayesSpARRegressor does this by default.",
    )


def _check_ties(facts: LabelFacts) -> Finding | None:
    ordered = sorted(facts.directions, key=lambda direction: -direction.energy)
    tied = 0
    for larger, smaller in pairwise(ordered):
        gap = 1.0 - (smaller.energy / larger.energy) ** 0.5 if larger.energy > 0.0 else 1.0
        tied += gap < TIE_TOLERANCE and larger.goes != smaller.goes
    if not tied:
        return None
    return Finding(
        "SPAR006",
        "info",
        f"{_count(tied, 'pair of target directions has', 'pairs of target directions have')} nearly equal singular "
        "values on both sides of the rule's threshold. Neither the directions nor the removed set is unique.",
        "Expect a different choice on slightly different rows. The expected errors differ very little.",
    )


def _check_limit(facts: LabelFacts) -> Finding | None:
    if facts.limit not in LIMITS:
        return None
    meaning, advice = LIMITS[facts.limit]
    return Finding(
        "SPAR007", "warning", f"The evidence has its maximum at the limit {facts.limit!r}: {meaning}.", advice
    )


def _check_removed(facts: LabelFacts) -> Finding | None:
    share = sum(direction.energy * direction.removed for direction in facts.directions)
    if share < LARGE_REMOVED_SHARE:
        return None
    return Finding(
        "SPAR008",
        "warning",
        f"Adapting removed {format_percent(share, 0)} of the target's variation. Predictions no longer depend on the "
        "directions that vary most.",
        "The source labels determine only the remaining directions. Label some target rows to learn the others.",
    )


def _check_interval(facts: LabelFacts) -> Finding | None:
    after = facts.judgement.after
    low, high = after.interval95
    if not (low > 0.0 and WIDE_INTERVAL_RATIO * low <= high < math.inf):
        return None
    return Finding(
        "SPAR010",
        "warning",
        f"The forecast is imprecise: the 95 % interval for the RMSE of {after.name} is {format_interval((low, high))}.",
        "Label some target rows, above all rows with a wide interval (predict_interval).",
    )


def _check_leader(facts: LabelFacts) -> Finding | None:
    """Report a dominant column. The prior behind a forecast assumes that many columns matter."""
    leader = facts.leader
    if leader is None or leader.share < max(LEADER_SHARE, LEADER_FACTOR / leader.n_columns):
        return None
    is_far = leader.reach >= LEADER_REACH
    text = (
        f"One column dominates: {leader.name!r} accounts for {format_percent(leader.share, 0)} of what the "
        f"{leader.n_columns:,} columns explain of the label. Forecasts assume that many columns matter, so the true "
        "error of adapted weights may be above or below its interval"
    )
    if is_far:
        reach = format_factor(leader.reach)
        text += f"; an error above it is likely because the column reaches {reach} times as far in the target"
    return Finding(
        "SPAR013",
        "warning" if is_far else "info",
        f"{text}.",
        f"Label some rows with extreme values of {leader.name!r} before relying on an interval of adapted weights.",
    )


def _describe_rows(facts: LabelFacts) -> str:
    loads = facts.directions[0].loads[:2] if facts.directions else ()
    names = [repr(name) for name, share in loads if share >= 0.05]
    return f"in {' and '.join(names)}" if names else "from the source"


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
