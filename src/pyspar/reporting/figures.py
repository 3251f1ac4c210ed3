"""The figures of a report. Each function draws one figure from the JSON form of an inspection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyspar.reporting import drawing
from pyspar.reporting.drawing import INK, KEEP, LINE, MUTED, REMOVE, THIRD, Points
from pyspar.wording import format_interval, format_number

MAX_DOTS = 500
_LOG_SCALE_RATIO = 20.0
"""Errors that differ by more than this factor are shown on a logarithmic axis."""
_REMOVED_SHARE = 0.5
"""Without a rule, a direction is marked as removed if adapting removed this share of its weight."""
_MIN_INFLATION = 1e-3
"""Directions with an inflation below this share of that without a shift are drawn at the edge."""


def draw_judgement(output: dict[str, Any], name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Draw the error at home, the expected errors on the target with their intervals, and the true error if known.

    Each row has a ``label``, a ``value``, and the ends ``interval80`` and ``interval95`` or None. Return "" if no error
    is known.
    """
    shown = [row for row in rows if row["value"] is not None][::-1]
    if not any(row["value"] for row in shown):
        return ""
    ends = [end for row in shown for end in (*(row["interval95"] or ()), row["value"]) if end]
    high = max(ends)

    def draw(ax: Any, narrow: bool) -> None:
        if high > _LOG_SCALE_RATIO * min(ends):
            low = 0.8 * min(ends)
            drawing.set_log_scale(ax.xaxis, (low, high * (high / low) ** 0.15), max_ticks=4 if narrow else 6)
        else:
            ax.set_xlim(0.0, 1.15 * high)
            drawing.set_linear_scale(ax.xaxis, 4 if narrow else 6)
        if output["home"]:
            ax.axvline(output["home"], color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
        for place, row in enumerate(shown):
            value, colour = row["value"], {"home": MUTED, "before": THIRD, "true": INK}.get(row["kind"], KEEP)
            for level, width in (("interval95", 1.6), ("interval80", 5.0)):
                if row[level] is not None:
                    ends_shown = [value if end is None else end for end in row[level]]
                    ax.plot(ends_shown, [place, place], color=colour, linewidth=width)
            ax.plot([value], [place], "D" if row["kind"] == "true" else "o", color=colour, markersize=7)
            ax.annotate(
                format_number(value, 3), (value, place), xytext=(5, 5), textcoords="offset points", va="bottom",
                ha="left", fontsize=9.5,
            )  # fmt: skip
        ax.set_ylim(-0.4, len(shown) - 0.3)
        _name_bars(ax, [_shorten_label(row["label"]) if narrow else row["label"] for row in shown])
        ax.set_xlabel("RMSE")  # the caption below the figure has the key, because it wraps on a narrow screen

    label = "; ".join(
        f"{row['label']}: {format_number(row['value'])}"
        + (f", 95 % interval {format_interval(row['interval95'])}" if row["interval95"] else "")
        for row in shown[::-1]
    )
    return drawing.draw_figure(name, label, draw, (0.75 + 0.42 * len(shown), 0.85 + 0.46 * len(shown)))


def draw_error_parts(output: dict[str, Any], name: str) -> str:
    """Draw the parts of the expected squared error of each set of weights; return "" if all errors are zero."""
    forecasts = [f for f in output["forecasts"] if f["rmse"] and f["noise"] is not None][::-1]
    if not forecasts:
        return ""
    parts = (
        ("variance", "uncertain weights", THIRD),
        ("bias", "not the best weights", REMOVE),
        ("noise", "", MUTED),
    )

    def draw(ax: Any, narrow: bool) -> None:
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
        ax.set(xlim=(0, 100), xlabel="share, %" if narrow else "share of the expected squared error, %")
        _name_bars(ax, [drawing.cut_middle(f["name"]) for f in forecasts])
        ax.grid(visible=False)
        ax.figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8.5, handlelength=1.0)

    label = "The parts of the expected squared error. " + "; ".join(
        f"{f['name']}: " + ", ".join(f"{part} {format_number(f[part])}" for part in ("variance", "bias", "noise"))
        for f in forecasts[::-1]
    )
    return drawing.draw_figure(name, label, draw, (1.0 + 0.3 * len(forecasts), 1.1 + 0.36 * len(forecasts)))


def draw_inflation(
    directions: Sequence[dict[str, Any]], ranks: Sequence[int], n_source: float, name: str, *, has_rule: bool
) -> str:
    """Draw the spectral inflation of each direction against its energy rank; return "" if all inflations are zero.

    Directions that the method in use removed are marked: by its rule, or at least half of their weight.
    """
    values, unshifted = [d["inflation"] or 0.0 for d in directions], 1.0 / n_source
    if not any(values):
        return ""
    least = max(_MIN_INFLATION * min(unshifted, max(values)), min(v for v in values if v > 0.0))
    low, high = min(unshifted, least) / 1.6, max(*values, unshifted) * 1.6  # the line is always visible

    def draw(ax: Any, narrow: bool) -> Points:
        drawing.set_log_scale(ax.yaxis, (low, high))
        ax.set_xlim(0, max(ranks, default=1) + 1)
        drawing.set_linear_scale(ax.xaxis, 6, integers=True)
        ax.axhline(unshifted, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label="without a shift (1 / N)")
        ax.figure.legend(loc="outside upper right", frameon=False, fontsize=8.5)
        inflation = "spectral inflation" if narrow else "spectral inflation, in units of the noise"
        ax.set(xlabel="target direction, largest energy first", ylabel=inflation)
        return _place_directions(directions, ranks, _clip(values, (low, high)), has_rule=has_rule)

    above = sum(v > unshifted for v in values)
    label = (
        f"Spectral inflation of {len(directions):,} target directions: {above:,} have a larger variance cost than "
        f"without a shift, the largest {format_number(max(values) / unshifted)} times as much."
    )
    return drawing.draw_figure(name, label, draw, (3.2, 3.4))


def draw_costs(directions: Sequence[dict[str, Any]], name: str, alpha: float, quantile: float) -> str:
    """Draw the cost of keeping each direction against the cost of removing it, and the line of the rule.

    Return "" if keeping has no cost in any direction.
    """
    keeping, removing = ([d[key] or 0.0 for d in directions] for key in ("keeping", "removing"))
    if not any(keeping):
        return ""
    scale = max(quantile, 1e-12)
    x = drawing.compute_log_limits(removing)
    y = drawing.include_line(x, drawing.compute_log_limits(keeping), 1.0 / scale)

    def draw(ax: Any, narrow: bool) -> Points:
        drawing.set_log_scale(ax.xaxis, x, max_ticks=4 if narrow else 7)
        drawing.set_log_scale(ax.yaxis, y)
        (line,) = ax.plot([x[0], x[1]], [x[0] / scale, x[1] / scale], color=INK, linewidth=1.4)
        line.set_gid("rule")
        ax.set_title("above the line: removed", loc="left", color=REMOVE, fontsize=8.5)
        ax.set_title("below the line: kept", loc="right", color=KEEP, fontsize=8.5)
        bias = "removing: bias² per row" if narrow else "removing: bias² per row (estimated)"
        ax.set(xlabel=bias, ylabel="keeping: variance per row")
        return _place_directions(directions, _clip(removing, x), _clip(keeping, y))

    removed = sum(d["goes"] for d in directions)
    label = (
        f"The costs of keeping and of removing each of {len(directions):,} target directions. At alpha "
        f"{alpha:g} the rule removes {removed:,} of them, which are above its line. The table below "
        "has the same numbers."
    )
    return drawing.draw_figure(name, label, draw, (4.2, 4.3))


def draw_predictions(output: dict[str, Any], name: str, before_name: str, after_name: str) -> str:
    """Draw predictions before and after adapting, with the range of most source labels; return "" without any."""
    predictions = output["predictions"]
    if predictions is None:
        return ""
    step = math.ceil(len(predictions["rows"]) / MAX_DOTS)
    before, after = predictions["before"][::step], predictions["after"][::step]
    mean, std = output["label_mean"], output["label_std"]

    def draw(ax: Any, narrow: bool) -> Points:
        x, y = _pad_limits(before), _pad_limits(after)
        ax.set(xlim=x, ylim=y, xlabel=f"before: {before_name}", ylabel=f"after: {after_name}")
        if mean is not None and std is not None:
            ax.axhspan(mean - 2 * std, mean + 2 * std, color=LINE, alpha=0.45, linewidth=0)
            ax.axvspan(mean - 2 * std, mean + 2 * std, color=LINE, alpha=0.3, linewidth=0)
        ends = min(x[0], y[0]), max(x[1], y[1])
        ax.plot(ends, ends, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        drawing.set_linear_scale(ax.xaxis, 4 if narrow else 5)
        drawing.set_linear_scale(ax.yaxis)
        return Points(before, after, ["dot"] * len(before), 2.0 if len(before) > 100 else 3.0)

    label = (
        f"Predictions of {len(before):,} target rows: {format_interval((min(before), max(before)))} before "
        f"adapting, {format_interval((min(after), max(after)))} after it."
    )
    return drawing.draw_figure(name, label, draw, (3.6, 3.8))


def _shorten_label(label: str, limit: int = 24) -> str:
    """Return the label of a row for a narrow figure.

    >>> _shorten_label("expected, least squares"), _shorten_label("expected, model since spring")
    ('expected, least squares', 'model since spring')
    """
    return label if len(label) <= limit else drawing.cut_middle(label.removeprefix("expected, "), limit)


def _pad_limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = max(0.04 * (high - low), 1e-3 * max(abs(low), abs(high))) or 0.5
    return low - pad, high + pad


def _name_bars(ax: Any, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), [drawing.cut_middle(name, 34) for name in names])
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def _place_directions(
    directions: Sequence[dict[str, Any]], x: Sequence[float], y: Sequence[float], *, has_rule: bool = True
) -> Points:
    is_removed = [d["goes"] if has_rule else (d["removed"] or 0.0) >= _REMOVED_SHARE for d in directions]
    return Points(x, y, ["gone" if removed else "kept" for removed in is_removed])


def _clip(values: Sequence[float], limits: tuple[float, float]) -> list[float]:
    return [min(max(value, limits[0]), limits[1]) for value in values]
