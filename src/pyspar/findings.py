"""Findings: what a person should know of a source and a target, each with a code, a sentence with numbers, and a cure.

A finding looks at facts that :mod:`pyspar.inspection` has gathered. The table in docs/report.md lists them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pyspar.directions import Direction
from pyspar.verdicts import HURTS_MUCH, Judgement
from pyspar.wording import between, number, percent, times

Severity = Literal["good", "info", "warning", "serious"]

OUTSIDE, MUCH_OUTSIDE = 0.01, 0.25
ROWS_PER_DIRECTION = 10.0
TIE = 1e-3
"""Two singular values closer than this share of themselves have directions that any small change would turn."""
MOST = 0.5
MOVED = 3.0
"""How many source standard deviations a column's mean may move before it is mentioned."""
WIDE = 3.0
"""How many times its lower end the upper end of a 95 % interval may be."""
FAR_APART = 1e6
DECIDES, EVEN = 0.25, 10.0
"""A column decides the label if it carries this share of what the features explain, and so many times an even share."""
FAR_OUT = 3.0
"""How many times as far from the source's mean it may lie in the target before errors are likely larger than told."""

LIMITS = {
    "no-signal": (
        "the features explain nothing of the label, so every weight is zero",
        "Check that label and rows belong together; the mean is the best prediction there is.",
    ),
    "no-noise": (
        "the features explain the label exactly, so the noise is taken for zero",
        "Check that no feature holds the label itself; intervals are too narrow if the fit is an accident.",
    ),
    "repeated-rows": (
        "the fit is exact because no more rows differ than there are directions, so rows that repeat others, label and "
        "all, count for nothing",
        "Drop the copies and fit again; the noise is known better the more rows differ.",
    ),
}
"""What each limit of the evidence means, and what to do about it; elsewhere the evidence has no limit to tell of."""


@dataclass(frozen=True)
class Finding:
    """One thing to know.

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
        The label that it concerns; None where it concerns the features, and so every label.
    """

    code: str
    severity: Severity
    text: str
    advice: str
    output: str | None = None


@dataclass(frozen=True)
class DataFacts:
    """What is known of the features alone.

    Attributes
    ----------
    rows, rank : float, int
        Of the source.
    outside : float
        The share of the target's energy that the source does not span.
    stuck : tuple of str
        Columns with one value in the source and others in the target.
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
    """The column that carries most of what the features explain of a label on the source.

    Attributes
    ----------
    column : str
    share : float
        Of the squared contributions of all columns.
    columns : int
        How many there are.
    reach : float
        How many times as far from the source's mean it lies in the target as in the source.
    """

    column: str
    share: float
    columns: int
    reach: float


@dataclass(frozen=True)
class LabelFacts:
    """What is known for one label: what its forecasts come to, the directions, the evidence's limit, who leads."""

    judgement: Judgement
    directions: tuple[Direction, ...]
    limit: str
    leader: Leader | None = None


def findings_in_data(facts: DataFacts) -> tuple[Finding, ...]:
    """Return what the features alone give reason to say."""
    return _there(_outside(facts), _stuck(facts), _few_rows(facts), _moved(facts), _apart(facts))


def findings_in_label(facts: LabelFacts) -> tuple[Finding, ...]:
    """Return what one label gives reason to say; whether the shift hurts comes first."""
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
            "The shift hurts: the expected error of least squares on the target is larger than can be computed.",
            "Check the units of the columns that the target is far away in.",
        )
    numbers = (
        f"least squares is expected to err by {number(least.rmse)} on the target and by {number(found.home)} on the "
        "source"
    )
    best = found.advised
    if not found.hurts:
        cure = "For the shift's sake nothing has to be done" + (
            "." if best is None else f"; {best.name} is better still."
        )
        return Finding("SPAR002", "good", f"No shift that hurts: {numbers}.", cure)
    cure = (
        f"Label some rows of the target first, above all rows that differ {_where(facts)}: no other weights promise "
        "much less."
        if best is None
        else f"Use {best.name}: {number(best.rmse)} is expected of it."
    )
    severity: Severity = "serious" if ratio >= HURTS_MUCH else "warning"
    return Finding("SPAR001", severity, f"The shift hurts: {numbers}, {number(ratio, 3)} times as much.", cure)


def _price(facts: LabelFacts) -> Finding | None:
    if not facts.judgement.costs:  # also where either is unknown
        return None
    before, after = facts.judgement.before, facts.judgement.after
    advice = (
        "Until rows of the target are labelled, keep the weights as they are if you trust that the labels are linear "
        "in the features; the adapted ones stray less far if they are not."
        if facts.judgement.hurts
        else "If you trust that the labels are linear in the features, keep the weights as they are; if you do not, "
        "the adapted ones stray less far."
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
        f"{percent(facts.outside)} of the target's energy lies outside the span of the source: no label speaks of it.",
        "Label rows that vary there, or leave out the columns that only the target varies in.",
    )


def _stuck(facts: DataFacts) -> Finding | None:
    if not facts.stuck:
        return None
    return Finding(
        "SPAR004",
        "warning",
        f"{_count(len(facts.stuck), 'column has', 'columns have')} one value in the source and others in the target: "
        f"{_few(facts.stuck)}.",
        "No weight can be learnt for them, and they get none; label rows in which they vary.",
    )


def _few_rows(facts: DataFacts) -> Finding | None:
    if facts.rank == 0 or facts.rows >= ROWS_PER_DIRECTION * facts.rank:
        return None
    exact = facts.rows <= facts.rank + 1
    what = (
        "so least squares fits it exactly and leaves nothing to learn the noise from"
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
        "Use more rows or fewer features, or BayesSpARRegressor, which does not need many.",
    )


def _moved(facts: DataFacts) -> Finding | None:
    if not facts.moved:
        return None
    named = ", ".join(f"{name} by {number(distance, 3)}" for name, distance in facts.moved[:3])
    count = _count(len(facts.moved), "column's mean lies", "columns' means lie")
    return Finding(
        "SPAR009",
        "warning",
        f"{count} more than {MOVED:g} source standard deviations away in the target: {named}.",
        "Check that units and encodings agree; if they do, the target is a different place, and every prediction is an "
        "extrapolation.",
    )


def _apart(facts: DataFacts) -> Finding | None:
    if facts.apart < FAR_APART:
        return None
    return Finding(
        "SPAR011",
        "warning",
        f"The largest column varies {times(facts.apart)} times as much as the smallest, so what a direction is "
        "depends on their units.",
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
        "values on both sides of the rule's line: the directions are not unique, and neither is what is removed.",
        "Expect another choice on slightly different rows; the expected errors hardly differ.",
    )


def _limit(facts: LabelFacts) -> Finding | None:
    if facts.limit not in LIMITS:
        return None
    meaning, advice = LIMITS[facts.limit]
    return Finding("SPAR007", "warning", f"The evidence is largest at a limit, {facts.limit!r}: {meaning}.", advice)


def _most_removed(facts: LabelFacts) -> Finding | None:
    share = sum(each.energy * each.removed for each in facts.directions)
    if share < MOST:
        return None
    return Finding(
        "SPAR008",
        "warning",
        f"{percent(share, 0)} of the target's energy was taken away: what varies most in it no longer moves "
        "predictions.",
        "What is left is what the source can speak of; label some target rows to learn the rest.",
    )


def _wide(facts: LabelFacts) -> Finding | None:
    after = facts.judgement.after
    low, high = after.interval95
    if not (low > 0.0 and WIDE * low <= high < math.inf):
        return None
    return Finding(
        "SPAR010",
        "warning",
        f"The forecast says little: the RMSE of {after.name} may lie anywhere from {between((low, high))} (95 %).",
        "Labels of the target would narrow it, above all of rows with a wide interval (predict_interval).",
    )


def _decided(facts: LabelFacts) -> Finding | None:
    """The beliefs behind a forecast expect many columns to matter; one that decides is the case they are wrong in."""
    leader = facts.leader
    if leader is None or leader.share < max(DECIDES, EVEN / leader.columns):
        return None
    far = leader.reach >= FAR_OUT
    text = (
        f"One column decides: {leader.column} carries {percent(leader.share, 0)} of what {leader.columns:,} columns "
        "explain of the label. Forecasts do not expect that of one column, and the intervals of adapted weights may "
        "miss to either side"
    )
    if far:
        text += f"; since it reaches {times(leader.reach)} times as far in the target, errors above them are likely"
    return Finding(
        "SPAR013",
        "warning" if far else "info",
        f"{text}.",
        f"Label some rows in which {leader.column} lies far out before trusting an interval of adapted weights.",
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
