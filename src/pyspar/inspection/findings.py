"""Findings about a source and a target. Each has a code, a sentence with numbers, and advice.

The table in docs/report.md lists all findings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.arrays import Vector
from pyspar.core.belief import inverse, spread_of_features
from pyspar.core.moments import Moments
from pyspar.estimators.calibrated_forecasts import Outcome
from pyspar.estimators.target_labels import LabelForecast
from pyspar.estimators.unseen_categories import UnseenRows, count_unseen, describe_columns
from pyspar.inspection.compare import Comparison, Direction, find_constant_features
from pyspar.inspection.judgement import SEVERITIES, Judgement, Severity, is_serious
from pyspar.inspection.target_rows import AbsurdRows, find_absurd_rows, name_weights, summarise_labels
from pyspar.wording import count_noun, format_interval, format_number, format_percent, list_some

OUTSIDE_SHARE, SERIOUS_OUTSIDE_SHARE = 0.01, 0.25
ROWS_PER_DIRECTION = 10.0
MAX_MEAN_SHIFT = 3.0
"""A column is reported if its mean moves by more than this many source standard deviations."""
LARGE_REMOVED_SHARE = 0.5
WIDE_INTERVAL_RATIO = 3.0
"""The 95 % interval of the linear model is reported if its upper end is at least this many times its lower end."""
SERIOUS_ABSURD_SHARE = 0.05
OUTCOME_CODES: dict[Outcome, str] = {
    "hurts": "SPAR001",
    "no-shift": "SPAR002",
    "unverified": "SPAR015",
    "unknown": "SPAR016",
}

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
        "the number of distinct rows does not exceed the number of directions, so the fit is exact; copies of rows "
        "(same features and same label) are not counted",
        "Drop the copies and fit again. More distinct rows give a better estimate of the noise.",
    ),
}
"""The meaning of each reported limit of the evidence, and the advice. Other limits are not reported."""


@dataclass(frozen=True)
class Finding:
    """One finding: an observation with its numbers, and the recommended action.

    The code, ``SPAR001`` and so on, does not change between versions. ``output`` is the label that the finding
    concerns; None if it concerns the features and therefore all labels.
    """

    code: str
    severity: Severity
    text: str
    advice: str
    output: str | None = None


def list_feature_findings(comparison: Comparison) -> Iterator[Finding]:
    """Return the findings about the features."""
    estimator, target, columns = comparison.estimator, comparison.target, comparison.columns
    source = estimator._source
    constant = find_constant_features(source, target)
    return derive_feature_findings(
        rows=source.weight,
        rank=int(estimator.rank_),
        fit_intercept=bool(estimator.fit_intercept),
        outside=comparison.outside,
        constant=list(dict.fromkeys(columns[int(j)] for j in np.flatnonzero(constant))),
        moved=find_moved_columns(source, target, columns),
    )


def find_moved_columns(source: Moments, target: Moments, columns: Sequence[str]) -> dict[str, float]:
    """Return the columns whose mean moved far, with the distance in source standard deviations, the farthest first."""
    d = target.n_features
    spread = spread_of_features(source, fit_intercept=True)
    shift = np.abs(target.mean[:d] - source.mean[:d]) * inverse(spread)
    moved: dict[str, float] = {}
    for j in np.argsort(-shift, kind="stable"):
        if shift[j] > MAX_MEAN_SHIFT:
            moved.setdefault(columns[j], float(shift[j]))  # the largest shift of the features with this name
    return moved


def derive_feature_findings(
    *,
    rows: float,
    rank: int,
    fit_intercept: bool = True,
    outside: float,
    constant: Sequence[str],
    moved: Mapping[str, float],
) -> Iterator[Finding]:
    """Yield the findings about the features.

    ``rows`` and ``rank`` are those of the source, ``outside`` is the share of the target's variation outside the span
    of the source, ``constant`` are columns that vary only in the target, and ``moved`` is the distance by which the
    mean of a column moved in source standard deviations.
    """
    if outside >= OUTSIDE_SHARE:
        yield Finding(
            "SPAR003",
            "serious" if outside >= SERIOUS_OUTSIDE_SHARE else "warning",
            f"{format_percent(outside)} of the target's variation is in directions that do not occur in the source, "
            "so the source labels carry no information about them.",
            "Label rows that vary in these directions, or drop the columns that vary only in the target.",
        )
    if constant:
        yield Finding(
            "SPAR004",
            "warning",
            f"{count_noun(len(constant), 'column is', 'columns are')} constant in the source but not in the target: "
            f"{list_some(constant, 5)}.",
            "The weights of these columns cannot be estimated and are zero. Label rows in which these columns vary.",
        )
    if rows < ROWS_PER_DIRECTION * rank:
        is_exact = rows <= rank + fit_intercept
        exact = "so least squares fits them exactly and the noise cannot be estimated"
        effect = exact if is_exact else "so the weights and the noise are uncertain"
        yield Finding(
            "SPAR005",
            "serious" if is_exact else "warning",
            f"The source has {rows:,.0f} rows for {count_noun(rank, 'direction')} ({format_number(rows / rank, 3)} per "
            f"direction), {effect}.",
            "Use more rows or fewer features.",
        )
    yield from describe_moved(moved)


def describe_moved(moved: Mapping[str, float]) -> Iterator[Finding]:
    """Yield the finding about columns whose mean moved far, if there are any."""
    if not moved:
        return
    farthest = ", ".join(f"{name!r} by {format_number(distance, 3)}" for name, distance in list(moved.items())[:3])
    where = f"{MAX_MEAN_SHIFT:g} source standard deviations in {count_noun(len(moved), 'column')}: {farthest}."
    advice = "Check that units and encodings agree. If they do, every prediction is an extrapolation."
    yield Finding("SPAR009", "warning", f"The mean moved by more than {where}", advice)


def derive_label_findings(
    judgement: Judgement,
    directions: Sequence[Direction] = (),
    *,
    limit: str = "interior",
    absurd: AbsurdRows | None = None,
) -> Iterator[Finding]:
    """Yield the findings about one label. The first is the judgement.

    ``limit`` is the limit at which the evidence has its maximum.
    """
    code = "SPAR017" if judgement.labels is not None else OUTCOME_CODES[judgement.outcome]
    missed = judgement.not_covered if judgement.outcome == "no-shift" else ""
    text = " ".join(filter(None, (judgement.headline, missed, judgement.comparison, judgement.experience)))
    yield Finding(code, judgement.severity, text, judgement.next_step)
    if absurd is not None:
        yield describe_absurd(absurd, name_weights(judgement.recommended))
    if limit in LIMITS:
        meaning, advice = LIMITS[limit]
        text = f"The evidence is largest at the limit {limit!r}: {meaning}."
        yield Finding("SPAR007", "warning", text, advice)
    removed = sum(direction.energy * direction.removed for direction in directions)
    if removed >= LARGE_REMOVED_SHARE:
        yield Finding(
            "SPAR008",
            "warning",
            f"Adapting removed {format_percent(removed, 0)} of the target's variation. Predictions no longer depend on "
            "the directions that vary most.",
            "The source labels determine only the remaining directions. Label some target rows to estimate the others.",
        )
    low, high = judgement.expected.interval95_if_linear or (0.0, 0.0)
    if low > 0.0 and WIDE_INTERVAL_RATIO * low <= high < math.inf:
        yield Finding(
            "SPAR010",
            "warning",
            "The expected error is uncertain: even if the labels are linear in the features, the 95 % interval of the "
            f"RMSE of {name_weights(judgement.recommended)} is {format_number(low, 3)} to {format_number(high, 3)}.",
            "Label some target rows, especially rows with a wide interval (predict_interval).",
        )
    if judgement.corrected is not None and judgement.labels is not None:
        yield describe_correction(judgement.corrected, judgement.labels.n, judgement.next_step)


def sort_by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with the serious ones first; findings of the same severity keep their order."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def describe_absurd(absurd: AbsurdRows, weights: str) -> Finding:
    """Return the finding about implausible predictions of the named weights."""
    share = absurd.n_absurd / absurd.n_rows
    verb = "is" if absurd.n_absurd == 1 else "are"
    worst = "row" if len(absurd.rows) == 1 else "rows"
    kinds = []
    if absurd.n_negative:
        kinds.append(f"{count_noun(absurd.n_negative, 'is', 'are')} negative although no source label is")
    if absurd.n_far:
        low, high = map(format_number, absurd.limits)
        far = count_noun(absurd.n_far, "is", "are")
        kinds.append(f"{far} below {low} or above {high}, far outside the source labels")
    return Finding(
        "SPAR018",
        "serious" if share >= SERIOUS_ABSURD_SHARE else "warning",
        f"{absurd.n_absurd:,} of {absurd.n_rows:,} predictions of {weights} ({format_percent(share)}) {verb} "
        f"implausible: {', and '.join(kinds)}. All predictions are between "
        f"{' and '.join(map(format_number, absurd.extremes))}. The worst {worst}: {', '.join(map(str, absurd.rows))} "
        "(counted from 0).",
        "Check these rows before using their predictions, and label some of them."
        + (" Consider fitting the logarithm of the label." if absurd.n_negative else ""),
    )


def describe_label_unit(reason: str) -> Finding:
    """Return the finding about target labels that may be in a different unit from the source labels."""
    return Finding(
        "SPAR019",
        "warning",
        f"The labels of the target may be in a different unit from those of the source: {reason}.",
        "Compare the units of both label columns. If they agree, the relation between features and label has changed "
        "by this much.",
    )


def describe_correction(corrected: LabelForecast, n_labels: int, next_step: str) -> Finding:
    """Return the finding about the error before and after a correction with the target labels."""
    ignored = " One label is far from all others and is not used." if corrected.n_labels < n_labels else ""
    return Finding(
        "SPAR020",
        "info",
        f"After a correction with {corrected.n_labels:g} target labels, the expected RMSE of "
        f"{name_weights(corrected.name)} on the target is {format_number(corrected.rmse, 3)} (95 %: "
        f"{format_interval(corrected.interval95, 3)}). Without a correction it is "
        f"{format_number(corrected.rmse_uncorrected, 3)}, given the same labels.{ignored}",
        next_step,
    )


def list_quick_findings(
    estimator: Any, target: Moments, columns: Sequence[str], predictions: Vector | None, name: str
) -> tuple[Finding, ...]:
    """Return the findings that need no directions: columns whose mean moved far, and implausible predictions.

    ``estimator`` is fitted on the source with one label, and ``predictions`` of the model called ``name`` are None if
    the target has no rows in memory.
    """
    findings = list(describe_moved(find_moved_columns(estimator._source, target, columns)))
    if predictions is not None and np.isfinite(predictions).all():
        absurd = find_absurd_rows(predictions, summarise_labels(estimator))
        findings += [] if absurd is None else [describe_absurd(absurd, name)]
    return sort_by_severity(findings)


def describe_unseen(unseen: UnseenRows) -> Iterator[Finding]:
    """Yield the finding about rows in unseen categories, if there are any."""
    if unseen.rows:
        yield Finding(
            "SPAR014",
            "serious" if is_serious(unseen) else "warning",
            f"{count_unseen(unseen)} ({format_percent(unseen.rows / unseen.n_target)}) "
            f"{unseen.verb} categories that do not occur in the source: "
            f"{describe_columns(unseen.columns)}. The labels carry no information about these categories, and the "
            "forecasts do not cover these rows.",
            "Label some of these rows first, or handle them with a separate model.",
        )
