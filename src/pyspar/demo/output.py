"""The demo as text of at most 80 columns and as a figure. All numbers and verdicts are computed from the results."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.demo.story import (
    BOOSTING,
    BOOSTING_CORRECTED,
    FIRST_TARGET_YEAR,
    OURS,
    OURS_CORRECTED,
    RIDGE,
    SPAR,
    UNADAPTED,
    Claim,
    ErrorForecast,
    Story,
    Traffic,
)

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
  docs/evidence-sets.md. Settings and seeds are the defaults; RidgeCV tries 41
  penalties.
  Results on all data sets: docs/evidence.md (adapting), docs/labels.md
  (labels), docs/forecasts.md (intervals)"""


def describe_story(story: Story) -> list[str]:
    """Return the paragraphs of the demo, in order."""
    steps = (_describe_data, _describe_forecasts, _describe_adaptation, _describe_choice, _describe_correction)
    return [*("\n".join(describe(story)) for describe in (*steps, _describe_truth)), ORIGIN]


def _describe_data(story: Story) -> Iterator[str]:
    yield "Traffic deaths per 100,000 people in 48 US states"
    yield f"  source: {story.n_source} rows, 1980 to 1995, with the deaths"
    yield (
        f"  target: {story.n_target} rows, 1996 to 2004; {len(story.labelled)} labels used in step 4, the rest at the "
        "end"
    )
    yield f"  {story.n_columns} columns: speed limits, seat-belt and alcohol laws, miles driven, ..."
    yield _wrap(
        f"The shift: {story.fast_target} target rows have a speed limit of 70 mph or more. In the source, "
        f"{story.fast_source} rows have one, for at most {100 * story.longest_fast_source:.0f} % of the year."
    )


def _describe_forecasts(story: Story) -> Iterator[str]:
    yield "1. How large will the error of your models be? No target label is used."
    yield _list_forecasts((name, story.claim(name)) for name in (RIDGE, BOOSTING))
    yield _wrap(f"Intervals are wider if source and target rows are easier to distinguish (AUC {story.auc:.2f}).")


def _describe_adaptation(story: Story) -> Iterator[str]:
    yield "2. Adapt the linear model, still without target labels:"
    yield "   BayesSpARRegressor().fit(X, y).adapt(Z)"
    yield _list_forecasts([("before adapt", story.claim(UNADAPTED)), ("after adapt", story.claim(OURS))])
    yield _wrap(
        f"The predicted effect of a speed limit of 70 instead of 65 mph is {story.effect_before:.1f} additional deaths "
        f"per 100,000 before adapting and {story.effect_after:.1f} after. The number before adapting is extrapolated "
        f"from {story.fast_source} source rows."
    )


def _describe_choice(story: Story) -> Iterator[str]:
    n, space = len(story.labelled), "\N{NO-BREAK SPACE}"  # a state and its year stay on one line
    yield f"3. Choose {n} target rows to label: rows_to_label(model, Z, n={n})"
    yield _wrap(", ".join(name.replace(" ", space) for name in story.labelled)).replace(space, " ")


def _describe_correction(story: Story) -> Iterator[str]:
    yield f"4. Correct the models with {len(story.labelled)} labels: TargetCorrection(model).fit(Z, labels)"
    yield _list_forecasts((name, story.claim(name)) for name in (OURS_CORRECTED, BOOSTING_CORRECTED))


def _describe_truth(story: Story) -> Iterator[str]:
    best = min(story.claims, key=lambda claim: claim.error)
    yield f"The true RMSE on the {story.n_scored} target rows whose labels no model used"
    yield _table(
        [
            ("model", "expected", "95 % interval", "true RMSE", "in the interval?"),
            *(
                (c.model, f"{c.forecast.expected:.1f}", _interval(c.forecast), f"{c.error:.1f}", _verdict(c))
                for c in story.claims
            ),
        ]
    )
    yield f"  {sum(claim.holds for claim in story.claims)} of {len(story.claims)} intervals contain the true error."
    yield f"  Adapting changes the error from {_compare(story, UNADAPTED, OURS)}."
    yield f"  {len(story.labelled)} labels change it from {_compare(story, OURS, OURS_CORRECTED)},"
    yield f"  and the error of boosting from {_compare(story, BOOSTING, BOOSTING_CORRECTED)}."
    yield f"  {best.model} has the lowest error."


def _verdict(claim: Claim) -> str:
    if claim.holds:
        return "yes"
    return "no, it is lower" if claim.error < claim.forecast.low else "no, it is higher"


def _compare(story: Story, before: str, after: str) -> str:
    """Return two errors and the change in per cent."""
    one, two = story.claim(before).error, story.claim(after).error
    return f"{one:.1f} to {two:.1f} ({100 * (two / one - 1.0):+.0f} %)"


def _interval(forecast: ErrorForecast) -> str:
    return f"{forecast.low:.1f} to {forecast.high:.1f}"


def _list_forecasts(claims: Iterable[tuple[str, Claim]]) -> str:
    return "\n".join(
        f"  {name:<22}expected RMSE {claim.forecast.expected:.1f} (95 %: {_interval(claim.forecast)})"
        for name, claim in claims
    )


def _wrap(text: str) -> str:
    return textwrap.fill(text, 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)


def draw_story(story: Story, data: Traffic, path: Path) -> None:
    """Draw the figure and write it to a path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
    _draw_years(left, story, data)
    _draw_errors(right, story)
    figure.savefig(path, dpi=130)


def _draw_years(axis: Any, story: Story, data: Traffic) -> None:
    years, deaths = _yearly_means(data.source.years, data.y)
    later, truth = _yearly_means(data.target.years, data.truth)
    means = {name: _yearly_means(data.target.years, story.predictions[name])[1] for name in LINES}
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


def _yearly_means(years: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Any]:
    distinct = np.unique(years)
    return distinct, np.array([values[years == year].mean() for year in distinct])
