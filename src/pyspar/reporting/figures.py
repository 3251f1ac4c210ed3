"""The figures of a report. Each function draws one figure from the JSON form of an inspection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyspar.reporting.axes import compute_log_limits, include_line, set_linear_scale, set_log_scale
from pyspar.reporting.drawing import INK, KEEP, LINE, MUTED, REMOVE, THIRD, Points, draw_figure
from pyspar.reporting.formatting import shorten
from pyspar.wording import format_interval, format_number

MAX_DOTS = 500
_LOG_SCALE_RATIO = 20.0
"""Errors that differ by more than this factor are shown on a logarithmic axis."""
_MIN_INFLATION = 1e-3
"""Directions with an inflation below this share of that without a shift are drawn at the edge."""


def draw_expected_errors(output: dict[str, Any], name: str, adapted: str) -> str:
    """Draw the expected RMSE of each set of weights, for labels with and without noise.

    ``adapted`` is the name of the weights that adapting the estimator gives. Return "" if no error is known.
    """
    forecasts = [f for f in output["forecasts"] if f["rmse"] is not None][::-1]
    if not forecasts:
        return ""
    panels = (("for labels with noise", ""), ("for labels without noise", "_noiseless"))
    source_rmse = output["in_distribution"]

    def draw(figure: Any, narrow: bool) -> None:
        axes = figure.subplots(2, 1) if narrow else figure.subplots(1, 2, sharey=True)
        # Keep the last tick of one panel apart from the first tick of the next.
        figure.get_layout_engine().set(**({"hspace": 0.08} if narrow else {"wspace": 0.07}))
        for ax, (title, suffix) in zip(axes, panels):
            reference = None if suffix else source_rmse
            _draw_error_bars(ax, forecasts, suffix, reference, adapted, narrow)
            ax.set_title(title)
            if reference is not None:
                ax.axvline(reference, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
                fraction = (ax.transData - ax.transAxes).transform((reference, 0.0))[0]
                is_left = fraction < 0.6  # keeps the text inside its panel
                ax.annotate(
                    "OLS on the source", (reference, 1.0), xycoords=("data", "axes fraction"),
                    xytext=(3 if is_left else -3, -1), textcoords="offset points", fontsize=8, color=MUTED, va="top",
                    ha="left" if is_left else "right",
                )  # fmt: skip
        figure.supxlabel(
            "expected RMSE" + ("\n" if narrow else " ") + "with 80 % (thick) and 95 % (thin) interval", fontsize=9
        )

    label = "Expected RMSE on the target. " + "; ".join(
        f"{f['name']} {format_number(f['rmse'])}, 95 % interval {format_interval(f['interval95'])}"
        for f in forecasts[::-1]
    )
    rows = len(forecasts)
    return draw_figure(name, label, draw, (1.25 + 0.36 * rows, 1.9 + 0.66 * rows))


def _draw_error_bars(
    ax: Any, forecasts: Sequence[dict[str, Any]], suffix: str, reference: float | None, adapted: str, narrow: bool
) -> None:
    values = [f["rmse" + suffix] or 0.0 for f in forecasts]
    lows, highs = zip(*(_fill_ends(f["interval95" + suffix], v) for f, v in zip(forecasts, values)))
    positive = [v for v in (*values, reference or 0.0) if v > 0.0]
    # Leave space for the number after the longest bar.
    if positive and max(positive) > _LOG_SCALE_RATIO * min(positive):
        low, high = 0.7 * min(v for v in (*lows, *positive) if v > 0.0), max(*highs, *positive)
        set_log_scale(ax.xaxis, (low, high * (high / low) ** 0.3), max_ticks=4)
    else:
        ax.set_xlim(0.0, 1.3 * max(*highs, *positive, 0.0) or 1.0)
        set_linear_scale(ax.xaxis, 5 if narrow else 4)
    for place, (forecast, value, high) in enumerate(zip(forecasts, values, highs)):
        colour = KEEP if forecast["name"] == adapted else THIRD
        ax.barh(place, value, height=0.62, color=colour, alpha=0.28, linewidth=0)
        for level, width in (("interval95", 1.2), ("interval80", 4.0)):
            ax.plot(_fill_ends(forecast[level + suffix], value), [place, place], color=colour, linewidth=width)
        ax.plot([value], [place], "o", color=INK, markersize=4)
        end = max(high, value), place
        ax.annotate(format_number(value), end, xytext=(5, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_ylim(-0.5, len(forecasts) - 0.2)  # leaves space for the text above the first bar
    _name_bars(ax, forecasts)


def draw_error_parts(output: dict[str, Any], name: str) -> str:
    """Draw the parts of the expected squared error of each set of weights; return "" if all errors are zero."""
    forecasts = [f for f in output["forecasts"] if f["rmse"]][::-1]
    if not forecasts:
        return ""
    parts = (
        ("variance", "uncertain weights", THIRD),
        ("bias", "not the best weights", REMOVE),
        ("noise", "", MUTED),
    )

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for place, forecast in enumerate(forecasts):
            values = [max(forecast[part] or 0.0, 0.0) for part, _, _ in parts]
            largest = max(values) or 1.0
            total, left = sum(v / largest for v in values) or 1.0, 0.0
            for (part, meaning, colour), value in zip(parts, values):
                share = 100.0 * value / largest / total
                entry = f"{part} ({meaning})" if meaning and not narrow else part
                ax.barh(
                    place, share, left=left, height=0.62, color=colour, alpha=0.75, linewidth=0,
                    label=entry if place == 0 else None,
                )  # fmt: skip
                left += share
        ax.set(xlim=(0, 100), xlabel="share of the expected squared error, %")
        _name_bars(ax, forecasts)
        ax.grid(visible=False)
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8.5, handlelength=1.0)

    label = "The parts of the expected squared error. " + "; ".join(
        f"{f['name']}: " + ", ".join(f"{part} {format_number(f[part])}" for part in ("variance", "bias", "noise"))
        for f in forecasts[::-1]
    )
    return draw_figure(name, label, draw, (1.0 + 0.3 * len(forecasts), 1.1 + 0.36 * len(forecasts)))


def draw_inflation(directions: Sequence[dict[str, Any]], ranks: Sequence[int], n_source: float, name: str) -> str:
    """Draw the spectral inflation of each direction against its energy rank; return "" if all inflations are zero."""
    values, unshifted = [d["inflation"] or 0.0 for d in directions], 1.0 / n_source
    if not any(values):
        return ""
    least = max(_MIN_INFLATION * min(unshifted, max(values)), min(v for v in values if v > 0.0))
    low, high = min(unshifted, least) / 1.6, max(*values, unshifted) * 1.6  # the line is always visible

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        set_log_scale(ax.yaxis, (low, high))
        ax.set_xlim(0, max(ranks, default=1) + 1)
        set_linear_scale(ax.xaxis, 6, integers=True)
        ax.axhline(unshifted, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label="without a shift (1 / N)")
        figure.legend(loc="outside upper right", frameon=False, fontsize=8.5)
        inflation = "spectral inflation" if narrow else "spectral inflation, in units of the noise"
        ax.set(xlabel="target direction, largest energy first", ylabel=inflation)
        return ax, _place_directions(directions, ranks, _clip(values, (low, high)))

    above = sum(v > unshifted for v in values)
    label = (
        f"Spectral inflation of {len(directions):,} target directions: {above:,} have a larger variance cost than "
        f"without a shift, the largest {format_number(max(values) / unshifted)} times as much."
    )
    return draw_figure(name, label, draw, (3.2, 3.4))


def draw_costs(directions: Sequence[dict[str, Any]], name: str, alpha: float, quantile: float) -> str:
    """Draw the cost of keeping each direction against the cost of removing it, and the line of the rule.

    Return "" if keeping has no cost in any direction.
    """
    keeping, removing = ([d[key] or 0.0 for d in directions] for key in ("keeping", "removing"))
    if not any(keeping):
        return ""
    scale = max(quantile, 1e-12)
    x = compute_log_limits(removing)
    y = include_line(x, compute_log_limits(keeping), 1.0 / scale)

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        set_log_scale(ax.xaxis, x, max_ticks=4 if narrow else 7)
        set_log_scale(ax.yaxis, y)
        (line,) = ax.plot([x[0], x[1]], [x[0] / scale, x[1] / scale], color=INK, linewidth=1.4)
        line.set_gid("rule")
        ax.set_title("above the line: removed", loc="left", color=REMOVE, fontsize=8.5)
        ax.set_title("below the line: kept", loc="right", color=KEEP, fontsize=8.5)
        bias = "removing: bias² per row" if narrow else "removing: bias² per row (estimated)"
        ax.set(xlabel=bias, ylabel="keeping: variance per row")
        return ax, _place_directions(directions, _clip(removing, x), _clip(keeping, y))

    removed = sum(d["goes"] for d in directions)
    label = (
        f"The costs of keeping and of removing each of {len(directions):,} target directions. At alpha "
        f"{alpha:g} the rule removes {removed:,} of them, which are above its line. The table below "
        "has the same numbers."
    )
    return draw_figure(name, label, draw, (4.2, 4.3))


def draw_predictions(output: dict[str, Any], name: str, estimator: str) -> str:
    """Draw predictions before and after adapting, with the range of most source labels; return "" without any."""
    predictions = output["predictions"]
    if predictions is None:
        return ""
    step = math.ceil(len(predictions["rows"]) / MAX_DOTS)
    before, after = predictions["before"][::step], predictions["after"][::step]
    mean, std = output["label_mean"], output["label_std"]

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        x, y = _pad_limits(before), _pad_limits(after)
        ax.set(xlim=x, ylim=y, xlabel="before: least squares", ylabel=f"after: {estimator}, adapted")
        if mean is not None and std is not None:
            ax.axhspan(mean - 2 * std, mean + 2 * std, color=LINE, alpha=0.45, linewidth=0)
            ax.axvspan(mean - 2 * std, mean + 2 * std, color=LINE, alpha=0.3, linewidth=0)
        ends = min(x[0], y[0]), max(x[1], y[1])
        ax.plot(ends, ends, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        set_linear_scale(ax.xaxis, 4 if narrow else 5)
        set_linear_scale(ax.yaxis)
        return ax, Points(before, after, ["dot"] * len(before), 2.0 if len(before) > 100 else 3.0)

    label = (
        f"Predictions of {len(before):,} target rows: {format_interval((min(before), max(before)))} before "
        f"adapting, {format_interval((min(after), max(after)))} after it."
    )
    return draw_figure(name, label, draw, (3.6, 3.8))


def _pad_limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = max(0.04 * (high - low), 1e-3 * max(abs(low), abs(high))) or 0.5
    return low - pad, high + pad


def _name_bars(ax: Any, forecasts: Sequence[dict[str, Any]]) -> None:
    ax.set_yticks(range(len(forecasts)), [shorten(f["name"]) for f in forecasts])
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def _place_directions(directions: Sequence[dict[str, Any]], x: Sequence[float], y: Sequence[float]) -> Points:
    return Points(x, y, ["gone" if direction["goes"] else "kept" for direction in directions])


def _clip(values: Sequence[float], limits: tuple[float, float]) -> list[float]:
    return [min(max(value, limits[0]), limits[1]) for value in values]


def _fill_ends(interval: Sequence[float | None], value: float) -> tuple[float, float]:
    low, high = interval
    return (value if low is None else low), (value if high is None else high)
