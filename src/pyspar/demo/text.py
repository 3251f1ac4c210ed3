"""The demo as text. Every number and every verdict is computed from the results."""

from __future__ import annotations

from collections.abc import Sequence

from pyspar.demo.story import (
    BOOSTING,
    BOOSTING_CORRECTED,
    OURS,
    OURS_CORRECTED,
    RIDGE,
    UNADAPTED,
    Claim,
    ErrorForecast,
    Story,
)

CHOICE = """\
This data set was chosen from several hundred because every step has a visible effect. It is not typical: on most
data sets the repair changes little, and ten labels help less. Rows, columns and seeds were not chosen: they are those
of docs/evidence-sets.md ("driving") and of the library. All data sets: docs/evidence.md (repair), docs/labels.md
(labels), docs/forecasts.md (intervals)."""


def describe_story(story: Story) -> list[str]:
    """Return the paragraphs of the demo, in order."""
    steps = (
        describe_data, describe_forecasts, describe_repair, describe_choice, describe_correction, describe_truth
    )  # fmt: skip
    return [*(step(story) for step in steps), CHOICE]


def describe_data(story: Story) -> str:
    """Return what the source and the target are."""
    return f"""\
Traffic deaths per 100,000 people in 48 US states
  source: {story.n_source} rows, 1980 to 1995, with the deaths
  target: {story.n_target} rows, 1996 to 2004. The deaths are not used until the last table.
  {story.n_columns} columns: speed limits, seat-belt and alcohol laws, miles driven, unemployment, ...
  The shift: {story.fast_target} target rows have a speed limit of 70 mph or more. In the source, {story.fast_source} \
rows have one,
  for at most {100 * story.longest_fast_source:.0f} % of the year."""


def describe_forecasts(story: Story) -> str:
    """Return the first step: what the models in use will do."""
    models = "\n".join(f"  {name:<22}{_range(story.claim(name).forecast)}" for name in (RIDGE, BOOSTING))
    return f"""\
1. How large will the error of your models be? No target label is used.
{models}
  Source and target rows are easy to tell apart (AUC {story.auc:.2f}), so the intervals are wide."""


def describe_repair(story: Story) -> str:
    """Return the second step: what the repair changes."""
    return f"""\
2. The repair, still without a target label: BayesSpARRegressor().fit(X, y).adapt(Z)
  before adapt          {_range(story.claim(UNADAPTED).forecast)}
  after adapt           {_range(story.claim(OURS).forecast)}
  What it changes: a speed limit of 70 instead of 65 mph adds {story.effect_before:.1f} predicted deaths per 100,000 \
before
  and {story.effect_after:.1f} after. The larger number is extrapolated from {story.fast_source} source rows."""


def describe_choice(story: Story) -> str:
    """Return the third step: the rows to label."""
    rows = [story.labelled[i : i + 5] for i in range(0, len(story.labelled), 5)]
    lines = "\n".join(f"  {', '.join(names)}" for names in rows)
    return f"""\
3. Which {len(story.labelled)} target rows to label: rows_to_label(model, Z, n={len(story.labelled)})
{lines}"""


def describe_correction(story: Story) -> str:
    """Return the fourth step: the forecasts with labels."""
    models = "\n".join(
        f"  {name:<34}{_range(story.claim(name).forecast)}" for name in (OURS_CORRECTED, BOOSTING_CORRECTED)
    )
    return f"""\
4. With these {len(story.labelled)} labels: TargetCorrection(model).fit(Z, labels)
{models}"""


def describe_truth(story: Story) -> str:
    """Return the truth beside every claim, and what follows from it."""
    header = ("model", "expected", "95 % interval", "true RMSE", "in the interval?")
    rows = [
        (c.model, f"{c.forecast.expected:.1f}", _interval(c.forecast), f"{c.error:.1f}", _verdict(c))
        for c in story.claims
    ]
    best = min(story.claims, key=lambda claim: claim.error)
    inside = sum(claim.holds for claim in story.claims)
    return f"""\
The truth: RMSE on the {story.n_scored} target rows whose labels no model used
{_table([header, *rows])}
  {inside} of {len(story.claims)} intervals contain the true error. The lowest error is that of {best.model}.
  The repair: {_compare(story, UNADAPTED, OURS)}. Ten labels: {_compare(story, OURS, OURS_CORRECTED)}; with boosting, \
{_compare(story, BOOSTING, BOOSTING_CORRECTED)}."""


def _verdict(claim: Claim) -> str:
    if claim.holds:
        return "yes"
    return "no, the error is lower" if claim.error < claim.forecast.low else "no, the error is higher"


def _compare(story: Story, before: str, after: str) -> str:
    """Return two errors and the change in per cent."""
    one, two = story.claim(before).error, story.claim(after).error
    return f"{one:.1f} to {two:.1f} ({100 * (two / one - 1.0):+.0f} %)"


def _interval(forecast: ErrorForecast) -> str:
    return f"{forecast.low:.1f} to {forecast.high:.1f}"


def _range(forecast: ErrorForecast) -> str:
    return f"expected RMSE {forecast.expected:.1f} (95 %: {_interval(forecast)})"


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  " + "  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows)
