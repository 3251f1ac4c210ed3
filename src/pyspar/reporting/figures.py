"""The figures of a report, each from the plain numbers of one output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from pyspar.reporting.drawing import INK, KEEP, LINE, MUTED, REMOVE, THIRD, Points, drawn
from pyspar.wording import between, number

DECADES = 8
"""A logarithmic axis shows at most so many; what is smaller lies on its edge."""
DOTS = 500
_SPREAD = 20.0
"""Errors that differ by more than this factor are shown on a logarithmic axis."""


def expected_errors(output: dict[str, Any], name: str) -> str:
    """Draw the expected RMSE of each set of weights, with labels as they come and without their noise."""
    forecasts = [f for f in output["forecasts"] if f["rmse"] is not None][::-1]
    if not forecasts:
        return ""
    panels = (("on labels with their noise", ""), ("on the noiseless mean", "_noiseless"))
    home = output["in_distribution"]

    def draw(figure: Any, narrow: bool) -> None:
        axes = figure.subplots(2, 1) if narrow else figure.subplots(1, 2, sharey=True)
        for ax, (title, suffix) in zip(axes, panels):
            _error_bars(ax, forecasts, suffix)
            ax.set_title(title)
            if not suffix and home is not None:
                ax.axvline(home, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
                ax.annotate(
                    "source", (home, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -1),
                    textcoords="offset points", fontsize=7.5, color=MUTED, va="top",
                )  # fmt: skip
        where = "where it lies in 80 % (thick) and 95 % (thin) of cases"
        figure.supxlabel(f"expected RMSE, and\n{where}" if narrow else f"expected RMSE, and {where}", fontsize=9)

    label = "Expected RMSE on the target. " + "; ".join(
        f"{f['name']} {number(f['rmse'])}, 95 % interval {between(f['interval95'])}" for f in forecasts[::-1]
    )
    rows = len(forecasts)
    return drawn(name, label, draw, (1.1 + 0.36 * rows, 1.7 + 0.66 * rows))


def _error_bars(ax: Any, forecasts: Sequence[dict[str, Any]], suffix: str) -> None:
    values = [f["rmse" + suffix] or 0.0 for f in forecasts]
    highs = [_ends(f["interval95" + suffix], v)[1] for f, v in zip(forecasts, values)]
    positive = [v for v in values if v > 0.0]
    logarithmic = bool(positive) and max(positive) > _SPREAD * min(positive)
    if logarithmic:
        lows = [_ends(f["interval95" + suffix], v)[0] for f, v in zip(forecasts, values)]
        floor = 0.7 * min([low for low in lows if low > 0.0] + positive)
        _logarithmic(ax.xaxis, (floor, 3.0 * max(highs + positive)), ticks=4)
    else:
        ax.set_xlim(0.0, 1.25 * max([*highs, *values, 1e-300]))
    for place, (forecast, value, high) in enumerate(zip(forecasts, values, highs)):
        colour = KEEP if forecast["name"] == "Bayes-SpAR" else THIRD
        ax.barh(place, value, height=0.62, color=colour, alpha=0.28, linewidth=0)
        for level, width in (("interval95", 1.2), ("interval80", 4.0)):
            ax.plot(_ends(forecast[level + suffix], value), [place, place], color=colour, linewidth=width)
        ax.plot([value], [place], "o", color=INK, markersize=4)
        ax.annotate(
            number(value), (max(high, value), place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8
        )
    ax.set_yticks(range(len(forecasts)), [_short(f["name"]) for f in forecasts])
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def error_parts(output: dict[str, Any], name: str) -> str:
    """Draw how the expected squared error of each set of weights divides."""
    forecasts = [f for f in output["forecasts"] if f["rmse"] is not None][::-1]
    if not forecasts:
        return ""
    parts = (("variance", "not knowable from this source", THIRD), ("bias", "given away", REMOVE), ("noise", "", MUTED))

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for place, forecast in enumerate(forecasts):
            values = [max(forecast[part] or 0.0, 0.0) for part, _, _ in parts]
            largest = max(values) or 1.0
            total, left = sum(v / largest for v in values) or 1.0, 0.0
            for (part, what, colour), value in zip(parts, values):
                share = 100.0 * value / largest / total
                named = f"{part} ({what})" if what and not narrow else part
                ax.barh(
                    place, share, left=left, height=0.62, color=colour, alpha=0.75, linewidth=0,
                    label=named if place == 0 else None,
                )  # fmt: skip
                left += share
        ax.set_yticks(range(len(forecasts)), [_short(f["name"]) for f in forecasts])
        ax.set_xlim(0, 100)
        ax.set_xlabel("share of the expected squared error, %")
        ax.grid(visible=False)
        ax.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8.5, handlelength=1.0)

    label = "How the expected squared error divides. " + "; ".join(
        f"{f['name']}: variance {number(f['variance'])}, bias {number(f['bias'])}, noise {number(f['noise'])}"
        for f in forecasts[::-1]
    )
    return drawn(name, label, draw, (1.0 + 0.3 * len(forecasts), 1.1 + 0.36 * len(forecasts)))


def inflation(shown: Sequence[dict[str, Any]], ranks: Sequence[int], n_source: float, name: str) -> str:
    """Draw the spectral inflation of each direction, from the most to the least energetic."""
    values = [d["inflation"] or 0.0 for d in shown]
    low, high = _decades([*values, 1.0 / n_source])

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        _logarithmic(ax.yaxis, (low, high))
        ax.set_xlim(0, max(ranks, default=1) + 1)
        if low <= 1.0 / n_source <= high:
            ax.axhline(1.0 / n_source, color=INK, linestyle=(0, (4, 3)), linewidth=1.2)
            ax.annotate(
                "without a shift (1 / N)", (1.0, 1.0 / n_source), xycoords=("axes fraction", "data"), xytext=(-2, 3),
                textcoords="offset points", ha="right", fontsize=8,
            )  # fmt: skip
        ax.set_xlabel("target direction, most energetic first")
        ax.set_ylabel("spectral inflation" if narrow else "spectral inflation, in units of the noise")
        return ax, Points(ranks, [min(max(v, low), high) for v in values], [_class(d) for d in shown])

    above = sum(v > 1.0 / n_source for v in values)
    label = f"Spectral inflation of {len(shown)} target directions: {above} cost more than they would without a shift."
    return drawn(name, label, draw, (3.2, 3.4))


def plane(shown: Sequence[dict[str, Any]], name: str, alpha: float, quantile: float) -> str:
    """Draw for each direction what keeping it costs against what removing it would, and the rule's line."""
    keeping, removing = ([d[key] or 0.0 for d in shown] for key in ("keeping", "removing"))
    x, y = _decades(removing), _decades(keeping)

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        _logarithmic(ax.xaxis, x, ticks=5 if narrow else 8)
        _logarithmic(ax.yaxis, y)
        scale = max(quantile, 1e-12)
        (line,) = ax.plot([x[0], x[1]], [x[0] / scale, x[1] / scale], color=INK, linewidth=1.4)
        line.set_gid("rule")
        ax.text(0.02, 0.97, "removed: above the line", transform=ax.transAxes, va="top", color=REMOVE, fontsize=8.5)
        ax.text(
            0.98, 0.03, "kept: below the line", transform=ax.transAxes, va="bottom", ha="right", color=KEEP,
            fontsize=8.5,
        )  # fmt: skip
        ax.set_xlabel("removing: bias² per row" if narrow else "removing: bias² per row, as estimated")
        ax.set_ylabel("keeping: variance per row")
        where = [min(max(v, x[0]), x[1]) for v in removing], [min(max(v, y[0]), y[1]) for v in keeping]
        return ax, Points(*where, [_class(d) for d in shown])

    gone = sum(d["goes"] for d in shown)
    label = (
        f"What keeping and removing each of {len(shown)} target directions costs. At alpha {alpha:g} {gone} lie above "
        "the rule's line and would be removed. The table of directions below has the same numbers."
    )
    return drawn(name, label, draw, (4.2, 4.3))


def predictions(output: dict[str, Any], name: str) -> str:
    """Draw predictions before against after, with the range in which most of the source's labels lie."""
    found = output["predictions"]
    step = max(1, math.ceil(len(found["before"]) / DOTS))
    before, after = found["before"][::step], found["after"][::step]
    mean, spread = output["label_mean"], output["label_std"]

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        ends = min(*before, *after), max(*before, *after)
        pad = max(0.04 * (ends[1] - ends[0]), 1e-3 * max(map(abs, ends))) or 0.5
        ends = ends[0] - pad, ends[1] + pad
        ax.set_xlim(min(before) - pad, max(before) + pad)
        ax.set_ylim(min(after) - pad, max(after) + pad)
        if mean is not None and spread is not None:
            ax.axhspan(mean - 2 * spread, mean + 2 * spread, color=LINE, alpha=0.45, linewidth=0)
            ax.axvspan(mean - 2 * spread, mean + 2 * spread, color=LINE, alpha=0.3, linewidth=0)
        ax.plot(ends, ends, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.4g}")
            axis.set_major_locator(MaxNLocator(5))
        ax.set_xlabel("before: least squares")
        ax.set_ylabel("after: adapted")
        return ax, Points(before, after, ["dot"] * len(before), 2.0)

    label = (
        f"Predictions of {len(before)} target rows before and after. Before they run from {number(min(before))} to "
        f"{number(max(before))}, after from {number(min(after))} to {number(max(after))}."
    )
    return drawn(name, label, draw, (3.6, 3.8))


def _class(direction: dict[str, Any]) -> str:
    return "gone" if direction["goes"] else "kept"


def _decades(values: Sequence[float]) -> tuple[float, float]:
    positive = [v for v in values if v > 0.0]
    if not positive:
        return 0.1, 10.0
    high = max(positive)
    low = max(min(positive), high * 10.0**-DECADES)
    return low / 1.6, high * 1.6


def _logarithmic(axis: Any, ends: tuple[float, float], ticks: int = 7) -> None:
    """Give an axis a logarithmic scale with powers of ten in plain text: names may hold a dollar, so no mathtext."""
    set_scale, set_ends = (
        (axis.axes.set_xscale, axis.axes.set_xlim)
        if axis.axis_name == "x"
        else (axis.axes.set_yscale, axis.axes.set_ylim)
    )
    set_scale("log")
    set_ends(*ends)
    axis.set_major_locator(LogLocator(numticks=ticks) if ends[1] > 10.0 * ends[0] else LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: _power(value))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(NullLocator())


def _power(value: float) -> str:
    """Write a tick: ``0.01``, ``10⁻⁷``."""
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    digit = value / 10.0**exponent
    front = "" if abs(digit - 1.0) < 1e-6 else f"{digit:.0f}·"
    return front + "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _ends(interval: Sequence[float | None], value: float) -> tuple[float, float]:
    low, high = interval
    return (value if low is None else low), (value if high is None else high)


def _short(name: str, limit: int = 18) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"
