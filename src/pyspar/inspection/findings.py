"""Findings about a source and a target. Each has a code, a sentence with numbers, and advice.

Findings are derived from facts that :mod:`pyspar.inspection` computes. The table in docs/report.md lists them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pyspar.inspection.directions import Direction
from pyspar.inspection.judgement import HURTS_MUCH, Judgement
from pyspar.wording import between, number, percent, times

Severity = Literal["good", "info", "warning", "serious"]

OUTSIDE, MUCH_OUTSIDE = 0.01, 0.25
ROWS_PER_DIRECTION = 10.0
TIE = 1e-3
"""Singular values whose relative difference is below this have directions that small changes of the data rotate."""
MOST = 0.5
MOVED = 3.0
"""A column is reported if its mean moves by more than this many source standard deviations."""
WIDE = 3.0
"""A 95 % interval is reported if its upper end is at least this many times its lower end."""
FAR_APART = 1e6
DECIDES, EVEN = 0.25, 10.0
"""A column dominates if its share of what the features explain is at least the first, and at least the second times an
even share."""
FAR_OUT = 3.0
"""The finding is a warning if the dominant column lies at least this many times as far from the source mean in the
target as in the source."""

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
        What was found, with its numbers.
    advice : str
        What to do about it.
    output : str or None
        The label that it concerns; None if it concerns the features, and therefore every label.
    """

    code: str
    severity: Severity
    text: str
    advice: str
    output: str | None = None


@dataclass(frozen=True)
class DataFacts:
    """Facts about the features.

    Attributes
    ----------
    rows, rank : float, int
        Of the source.
    outside : float
        The share of the target's variation outside the span of the source.
    stuck : tuple of str
        Columns with one value in the source and other values in the target.
    moved : pairs of (column, distance)
        Columns whose mean moved, in source standard deviations, the farthest first.
    apart : float
        The largest spread of a column over the smallest, in the units that the regressor works in.
    """

    rows: float
    rank: int
    outside: float
    stuck: tuple[str, ...]
    moved: tuple[tuple[str, float], ...]
    apart: float


@dataclass(frozen=True)
class Leader:
    """The column with the largest share of what the features explain of a label on the source.

    Attributes
    ----------
    column : str
    share : float
        Of the squared contributions of all columns.
    columns : int
        The number of columns.
    reach : float
        The distance of the column from the source mean in the target, divided by that in the source.
    """

    column: str
    share: float
    columns: int
    reach: float


@dataclass(frozen=True)
class LabelFacts:
    """Facts about one label: the judgement of its forecasts, the directions, the limit of the evidence, the leader."""

    judgement: Judgement
    directions: tuple[Direction, ...]
    limit: str
    leader: Leader | None = None


def findings_in_data(facts: DataFacts) -> tuple[Finding, ...]:
    """Return the findings that follow from the features alone."""
    return _there(_outside(facts), _stuck(facts), _few_rows(facts), _moved(facts), _apart(facts))


def findings_in_label(facts: LabelFacts) -> tuple[Finding, ...]:
    """Return the findings for one label; the first says whether the shift hurts."""
    return _there(
        _harm(facts), _price(facts), _ties(facts), _limit(facts), _most_removed(facts), _wide(facts), _decided(facts)
    )


def _there(*found: Finding | None) -> tuple[Finding, ...]:
    return tuple(finding for finding in found if finding is not None)


def _harm(facts: LabelFacts) -> Finding:
    found = facts.judgement
    least, ratio = found.before, found.ratio
    if not math.isfinite(ratio):
        return Finding(
            "SPAR001",
            "serious",
            "The shift hurts: the expected error of least squares on the target is too large to compute.",
            "Check the units of the columns in which the target is far from the source.",
        )
    numbers = (
        f"the expected RMSE of least squares is {number(least.rmse)} on the target and {number(found.home)} on the "
        "source"
    )
    best = found.advised
    if not found.hurts:
        cure = "The shift requires no action" + (
            "." if best is None else f", but {best.name} is expected to be better."
        )
        return Finding("SPAR002", "good", f"No harmful shift: {numbers}.", cure)
    cure = (
        f"Label some rows of the target first, above all rows that differ {_where(facts)}. No other weights have "
        "a much smaller expected error."
        if best is None
        else f"Use {best.name}: its expected RMSE is {number(best.rmse)}."
    )
    severity: Severity = "serious" if ratio >= HURTS_MUCH else "warning"
    return Finding("SPAR001", severity, f"The shift hurts: {numbers}, {number(ratio, 3)} times as large.", cure)


def _price(facts: LabelFacts) -> Finding | None:
    if not facts.judgement.costs:  # also where either is unknown
        return None
    before, after = facts.judgement.before, facts.judgement.after
    advice = (
        "Until target rows are labelled, keep the current weights if you trust that the labels are linear in the "
        "features. If you do not, prefer the adapted weights, which extrapolate less."
        if facts.judgement.hurts
        else "Keep the current weights if you trust that the labels are linear in the features. If you do not, prefer "
        "the adapted weights, which extrapolate less."
    )
    return Finding(
        "SPAR012",
        "info",
        f"Adapting is expected to increase the RMSE from {number(before.rmse)} (least squares) to "
        f"{number(after.rmse)} ({after.name}).",
        advice,
    )


def _outside(facts: DataFacts) -> Finding | None:
    if facts.outside < OUTSIDE:
        return None
    return Finding(
        "SPAR003",
        "serious" if facts.outside >= MUCH_OUTSIDE else "warning",
        f"{percent(facts.outside)} of the target's variation is outside the span of the source. The labels carry "
        "no information about it.",
        "Label rows that vary in these directions, or drop the columns that vary only in the target.",
    )


def _stuck(facts: DataFacts) -> Finding | None:
    if not facts.stuck:
        return None
    return Finding(
        "SPAR004",
        "warning",
        f"{_count(len(facts.stuck), 'column has', 'columns have')} one value in the source and other values in the "
        f"target: {_few(facts.stuck)}.",
        "Their weights cannot be estimated and are zero. Label rows in which they vary.",
    )


def _few_rows(facts: DataFacts) -> Finding | None:
    if facts.rank == 0 or facts.rows >= ROWS_PER_DIRECTION * facts.rank:
        return None
    exact = facts.rows <= facts.rank + 1
    what = (
        "so least squares fits them exactly and the noise cannot be estimated"
        if exact
        else "which leaves the weights and the noise uncertain"
    )
    text = (
        f"The source has {facts.rows:,.0f} rows for {facts.rank:,} directions "
        f"({number(facts.rows / facts.rank, 3)} each), {what}."
    )
    return Finding(
        "SPAR005",
        "serious" if exact else "warning",
        text,
        "Use more rows, fewer features, or BayesSpARRegressor, which works with few rows.",
    )


def _moved(facts: DataFacts) -> Finding | None:
    if not facts.moved:
        return None
    named = ", ".join(f"{name} by {number(distance, 3)}" for name, distance in facts.moved[:3])
    count = _count(len(facts.moved), "column", "columns")
    return Finding(
        "SPAR009",
        "warning",
        f"The mean moved by more than {MOVED:g} source standard deviations in {count}: {named}.",
        "Check that units and encodings agree. If they do, every prediction is an extrapolation.",
    )


def _apart(facts: DataFacts) -> Finding | None:
    if facts.apart < FAR_APART:
        return None
    return Finding(
        "SPAR011",
        "warning",
        f"The largest column varies {times(facts.apart)} times as much as the smallest, so the "
        "directions depend on their units.",
        "Standardise the features, or use BayesSpARRegressor, which chooses the units itself.",
    )


def _ties(facts: LabelFacts) -> Finding | None:
    ordered = sorted(facts.directions, key=lambda each: -each.energy)
    tied = 0
    for one, next_ in pairwise(ordered):
        gap = 1.0 - (next_.energy / one.energy) ** 0.5 if one.energy > 0.0 else 1.0
        tied += gap < TIE and one.goes != next_.goes
    if not tied:
        return None
    return Finding(
        "SPAR006",
        "info",
        f"{_count(tied, 'pair of target directions has', 'pairs of target directions have')} nearly equal singular "
        "values on both sides of the rule's threshold: neither the directions nor the removed set is unique.",
        "Expect a different choice on slightly different rows. The expected errors differ very little.",
    )


def _limit(facts: LabelFacts) -> Finding | None:
    if facts.limit not in LIMITS:
        return None
    meaning, advice = LIMITS[facts.limit]
    return Finding(
        "SPAR007", "warning", f"The evidence has its maximum at a limit, {facts.limit!r}: {meaning}.", advice
    )


def _most_removed(facts: LabelFacts) -> Finding | None:
    share = sum(each.energy * each.removed for each in facts.directions)
    if share < MOST:
        return None
    return Finding(
        "SPAR008",
        "warning",
        f"{percent(share, 0)} of the target's variation was removed: predictions no longer depend on the directions "
        "that vary most.",
        "The source labels determine only the remaining directions. Label some target rows to learn the others.",
    )


def _wide(facts: LabelFacts) -> Finding | None:
    after = facts.judgement.after
    low, high = after.interval95
    if not (low > 0.0 and WIDE * low <= high < math.inf):
        return None
    return Finding(
        "SPAR010",
        "warning",
        f"The forecast is imprecise: the 95 % interval for the RMSE of {after.name} is {between((low, high))}.",
        "Label some target rows, above all rows with a wide interval (predict_interval).",
    )


def _decided(facts: LabelFacts) -> Finding | None:
    """Report a dominant column. The prior behind a forecast assumes that many columns matter."""
    leader = facts.leader
    if leader is None or leader.share < max(DECIDES, EVEN / leader.columns):
        return None
    far = leader.reach >= FAR_OUT
    text = (
        f"One column dominates: {leader.column} carries {percent(leader.share, 0)} of what {leader.columns:,} columns "
        "explain of the label. Forecasts assume that many columns matter, so the true error of adapted weights may be "
        "above or below its interval"
    )
    if far:
        text += (
            f"; an error above it is likely because the column reaches {times(leader.reach)} times as far in the target"
        )
    return Finding(
        "SPAR013",
        "warning" if far else "info",
        f"{text}.",
        f"Label some rows with extreme values of {leader.column} before relying on an interval of adapted weights.",
    )


def _where(facts: LabelFacts) -> str:
    loads = facts.directions[0].loads[:2] if facts.directions else ()
    named = [name for name, share in loads if share >= 0.05]
    return f"in {' and '.join(named)}" if named else "from the source"


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _few(names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
