"""The figure of the demo: deaths by year as predicted and as counted, and the error of each model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.demo.story import BOOSTING, BOOSTING_CORRECTED, OURS, OURS_CORRECTED, RIDGE, SPAR, Story
from pyspar.demo.traffic import FIRST_TARGET_YEAR, Traffic

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
