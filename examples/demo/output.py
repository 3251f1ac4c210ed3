"""The demo as text of at most 80 columns and as a figure. All numbers and verdicts are computed from the results."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from examples.demo.story import (
    BOOSTING,
    BOOSTING_CORRECTED,
    FIRST_TARGET_YEAR,
    OURS,
    OURS_CORRECTED,
    RIDGE,
    SPAR,
    UNADAPTED,
    Claim,
    Story,
    Traffic,
)
from matplotlib.figure import Figure
from numpy.typing import NDArray

COLOURS = {
    RIDGE: "#c44e52",
    BOOSTING: "#dd8452",
    SPAR: "#8c8c8c",
    OURS: "#6a9bd1",
    OURS_CORRECTED: "#1f4e8c",
    BOOSTING_CORRECTED: "#b8621b",
}
LINES = (RIDGE, BOOSTING, OURS, OURS_CORRECTED)
"""The models of the left panel; more lines would hide each other."""
MAX_RATIO = 2.0
"""A bar is cut if it is this many times longer than the median bar."""
ORIGIN = """How this data set was chosen
  It is one of several hundred, chosen because adapting and ten labels both have
  a visible effect. It is not typical: on most data sets adapting changes
  little, and ten labels help less. Rows and columns are those of 'driving' in
  benchmarks/shifts. Settings and seeds are the defaults; RidgeCV tries 41
  penalties.
  Results on all data sets: docs/evidence.md (adapting), docs/labels.md
  (labels), docs/forecasts.md (intervals)"""


def describe_story(story: Story) -> list[str]:
    """Return the paragraphs of the demo, in order."""
    n, space = len(story.labelled), "\N{NO-BREAK SPACE}"  # a state and its year stay on one line
    best = min(story.claims, key=lambda claim: claim.error)
    scores = [
        (c.model, f"{c.forecast['expected']:.1f}", _interval(c), f"{c.error:.1f}", _verdict(c)) for c in story.claims
    ]
    paragraphs = (
        [
            "Traffic deaths per 100,000 people in 48 US states",
            f"  source: {story.n_source} rows, 1980 to 1995, with the deaths",
            f"  target: {story.n_target} rows, 1996 to 2004; {n} labels used in step 4, the rest at the end",
            f"  {story.n_columns} columns: speed limits, seat-belt and alcohol laws, miles driven, ...",
            _wrap(
                f"The shift: {story.fast_target} target rows have a speed limit of 70 mph or more. In the source, "
                f"{story.fast_source} rows have one, for at most {100 * story.longest_fast_source:.0f} % of the year."
            ),
        ],
        [
            "1. How large will the error of your models be? No target label is used.",
            *(_show_forecast(name, story.claim(name)) for name in (RIDGE, BOOSTING)),
            _wrap(f"Intervals are wider if source and target rows are easier to distinguish (AUC {story.auc:.2f})."),
        ],
        [
            "2. Adapt the linear model, still without target labels:",
            "   BayesSpARRegressor().fit(X, y).adapt(Z)",
            _show_forecast("before adapt", story.claim(UNADAPTED)),
            _show_forecast("after adapt", story.claim(OURS)),
            _wrap(
                f"The predicted effect of a speed limit of 70 instead of 65 mph is {story.effect_before:.1f} "
                f"additional deaths per 100,000 before adapting and {story.effect_after:.1f} after. The number before "
                f"adapting is extrapolated from {story.fast_source} source rows."
            ),
        ],
        [
            f"3. Choose {n} target rows to label: rows_to_label(model, Z, n={n})",
            _wrap(", ".join(name.replace(" ", space) for name in story.labelled)).replace(space, " "),
        ],
        [
            f"4. Correct the models with {n} labels: TargetCorrection(model).fit(Z, labels)",
            *(_show_forecast(name, story.claim(name)) for name in (OURS_CORRECTED, BOOSTING_CORRECTED)),
        ],
        [
            f"The true RMSE on the {story.n_scored} target rows whose labels no model used",
            *_align(("model", "expected", "95 % interval", "true RMSE", "in the interval?"), *scores),
            f"  {sum(claim.holds for claim in story.claims)} of {len(story.claims)} intervals contain the true error.",
            f"  Adapting changes the error from {_compare(story, UNADAPTED, OURS)}.",
            f"  {n} labels change it from {_compare(story, OURS, OURS_CORRECTED)},",
            f"  and the error of boosting from {_compare(story, BOOSTING, BOOSTING_CORRECTED)}.",
            f"  {best.model} has the lowest error.",
        ],
    )
    return [*map("\n".join, paragraphs), ORIGIN]


def _verdict(claim: Claim) -> str:
    if claim.holds:
        return "yes"
    return "no, it is lower" if claim.error < claim.forecast["low"] else "no, it is higher"


def _compare(story: Story, before: str, after: str) -> str:
    """Return two errors and the change in per cent."""
    one, two = story.claim(before).error, story.claim(after).error
    return f"{one:.1f} to {two:.1f} ({100 * (two / one - 1.0):+.0f} %)"


def _interval(claim: Claim) -> str:
    return f"{claim.forecast['low']:.1f} to {claim.forecast['high']:.1f}"


def _show_forecast(name: str, claim: Claim) -> str:
    return f"  {name:<22}expected RMSE {claim.forecast['expected']:.1f} (95 %: {_interval(claim)})"


def _wrap(text: str) -> str:
    return textwrap.fill(text, 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _align(*rows: Sequence[str]) -> list[str]:
    """Return the lines of a table."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]


def draw_story(story: Story, data: Traffic, path: Path) -> None:
    """Draw the figure and write it to a path."""
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
    _draw_years(left, story, data)
    _draw_errors(right, story)
    figure.savefig(path, dpi=130)


def _draw_years(axis: Any, story: Story, data: Traffic) -> None:
    years, deaths = _yearly_means(data.X, data.y)
    later, truth = _yearly_means(data.Z, data.truth)
    means = {name: _yearly_means(data.Z, story.predictions[name])[1] for name in LINES}
    top = 1.15 * max(deaths.max(), *(values.max() for values in means.values()))
    axis.axvspan(FIRST_TARGET_YEAR - 0.5, later[-1] + 0.5, color="0.94", zorder=0)
    axis.plot(years, deaths, color="black", lw=2.2, label="true deaths (source)")
    axis.plot(later, truth, ":", color="black", lw=2.2, zorder=5, label="true deaths (target)")
    for name, values in means.items():
        axis.plot(later, values, color=COLOURS[name], lw=2.2, label=f"predicted by {name}")
    axis.set(xlim=(years[0], later[-1] + 0.5), ylim=(0.0, top))
    axis.set_title("Traffic deaths per 100,000 people, mean of 48 US states", loc="left", fontsize=11)
    axis.text(years[0] + 0.5, 0.04 * top, "source: labels known", color="0.35")
    axis.text(FIRST_TARGET_YEAR, 0.04 * top, "target: labels unknown", color="0.35")
    limits = f"Speed limits of\n70 mph or more:\n{story.fast_source} source rows,\n{story.fast_target} target rows"
    axis.text(FIRST_TARGET_YEAR, 0.54 * top, limits, va="center", color="0.35")
    axis.legend(loc="upper left", frameon=False, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_errors(axis: Any, story: Story) -> None:
    claims = [claim for claim in story.claims if claim.model in COLOURS][::-1]
    errors = np.array([claim.error for claim in claims])
    end = 1.15 * min(float(errors.max()), MAX_RATIO * float(np.median(errors)))
    bars = axis.barh(
        [claim.model for claim in claims], np.minimum(errors, end), color=[COLOURS[claim.model] for claim in claims]
    )
    for bar, error in zip(bars, errors):
        is_cut = error > end
        text = f"{error:.1f} (bar cut off) →" if is_cut else f"{error:.1f}"
        x, side, colour = (0.97 * end, "right", "white") if is_cut else (error + 0.01 * end, "left", "black")
        axis.text(x, bar.get_y() + bar.get_height() / 2, text, va="center", ha=side, color=colour)
    axis.set_xlim(0.0, end)
    axis.set_title(f"Error (RMSE) on {story.n_scored} target rows without a label", loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)


def _yearly_means(rows: Any, values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Any]:
    distinct = np.unique(rows["year"])
    return distinct, np.array([values[rows["year"] == year].mean() for year in distinct])
