"""The figures of a report, each from the plain numbers of one output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyspar.reporting.axes import decades, linear, logarithmic, with_line
from pyspar.reporting.drawing import INK, KEEP, LINE, MUTED, REMOVE, THIRD, Points, drawn
from pyspar.reporting.words import count, shortened
from pyspar.wording import between, number

DOTS = 500
_SPREAD = 20.0
"""Errors that differ by more than this factor are shown on a logarithmic axis."""
_CHEAP = 1e-3
"""Directions that multiply the noise by less than this share of what they would without a shift lie on the edge."""


def expected_errors(output: dict[str, Any], name: str, adapted: str) -> str:
    """Draw the expected RMSE of each set of weights, with labels as they come and without their noise.

    ``adapted`` names those that adapting the estimator gives.
    """
    forecasts = [f for f in output["forecasts"] if f["rmse"] is not None][::-1]
    if not forecasts:
        return ""
    panels = (("on labels with their noise", ""), ("on the noiseless mean", "_noiseless"))
    home = output["in_distribution"]

    def draw(figure: Any, narrow: bool) -> None:
        axes = figure.subplots(2, 1) if narrow else figure.subplots(1, 2, sharey=True)
        # The last tick of one panel must not run into the first of the next.
        figure.get_layout_engine().set(**({"hspace": 0.08} if narrow else {"wspace": 0.07}))
        for ax, (title, suffix) in zip(axes, panels):
            at_home = None if suffix else home
            _error_bars(ax, forecasts, suffix, at_home, adapted, narrow)
            ax.set_title(title)
            if at_home is not None:
                ax.axvline(at_home, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
                left = _fraction(ax, at_home) < 0.6  # the words stay within their panel
                ax.annotate(
                    "OLS on the source", (at_home, 1.0), xycoords=("data", "axes fraction"),
                    xytext=(3 if left else -3, -1), textcoords="offset points", fontsize=8, color=MUTED, va="top",
                    ha="left" if left else "right",
                )  # fmt: skip
        where = "where it lies in 80 % (thick) and 95 % (thin) of cases"
        figure.supxlabel(f"expected RMSE, and\n{where}" if narrow else f"expected RMSE, and {where}", fontsize=9)

    label = "Expected RMSE on the target. " + "; ".join(
        f"{f['name']} {number(f['rmse'])}, 95 % interval {between(f['interval95'])}" for f in forecasts[::-1]
    )
    rows = len(forecasts)
    return drawn(name, label, draw, (1.25 + 0.36 * rows, 1.9 + 0.66 * rows))


def _error_bars(
    ax: Any, forecasts: Sequence[dict[str, Any]], suffix: str, home: float | None, adapted: str, narrow: bool
) -> None:
    values = [f["rmse" + suffix] or 0.0 for f in forecasts]
    highs = [_ends(f["interval95" + suffix], v)[1] for f, v in zip(forecasts, values)]
    positive = [v for v in (*values, home or 0.0) if v > 0.0]
    if positive and max(positive) > _SPREAD * min(positive):
        lows = [_ends(f["interval95" + suffix], v)[0] for f, v in zip(forecasts, values)]
        ends = 0.7 * min([low for low in lows if low > 0.0] + positive), max(highs + positive)
        # Room for the number behind the longest bar, in decades.
        logarithmic(ax.xaxis, (ends[0], ends[1] * (ends[1] / ends[0]) ** 0.3), most=4)
    else:
        ax.set_xlim(0.0, 1.3 * max([*highs, *positive, 0.0]) or 1.0)
        linear(ax.xaxis, 5 if narrow else 4)
    for place, (forecast, value, high) in enumerate(zip(forecasts, values, highs)):
        colour = KEEP if forecast["name"] == adapted else THIRD
        ax.barh(place, value, height=0.62, color=colour, alpha=0.28, linewidth=0)
        for level, width in (("interval95", 1.2), ("interval80", 4.0)):
            ax.plot(_ends(forecast[level + suffix], value), [place, place], color=colour, linewidth=width)
        ax.plot([value], [place], "o", color=INK, markersize=4)
        ax.annotate(
            number(value), (max(high, value), place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8
        )
    ax.set_ylim(-0.5, len(forecasts) - 0.2)  # above the first bar stands a word
    _named(ax, forecasts)


def error_parts(output: dict[str, Any], name: str) -> str:
    """Draw how the expected squared error of each set of weights divides; nothing if none errs."""
    forecasts = [f for f in output["forecasts"] if f["rmse"]][::-1]
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
        ax.set_xlim(0, 100)
        ax.set_xlabel("share of the expected squared error, %")
        _named(ax, forecasts)
        ax.grid(visible=False)
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8.5, handlelength=1.0)

    label = "How the expected squared error divides. " + "; ".join(
        f"{f['name']}: variance {number(f['variance'])}, bias {number(f['bias'])}, noise {number(f['noise'])}"
        for f in forecasts[::-1]
    )
    return drawn(name, label, draw, (1.0 + 0.3 * len(forecasts), 1.1 + 0.36 * len(forecasts)))


def inflation(directions: Sequence[dict[str, Any]], ranks: Sequence[int], n_source: float, name: str) -> str:
    """Draw the spectral inflation of each direction, from the most to the least energetic; nothing without noise."""
    values, even = [d["inflation"] or 0.0 for d in directions], 1.0 / n_source
    if not any(values):
        return ""
    least = max(_CHEAP * min(even, max(values)), min(v for v in values if v > 0.0))
    low, high = min(even, least) / 1.6, max(*values, even) * 1.6  # so that the line is always to be seen

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        logarithmic(ax.yaxis, (low, high))
        ax.set_xlim(0, max(ranks, default=1) + 1)
        linear(ax.xaxis, 6, whole=True)
        ax.axhline(even, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label="without a shift (1 / N)")
        figure.legend(loc="outside upper right", frameon=False, fontsize=8.5)
        ax.set_xlabel("target direction, most energetic first")
        ax.set_ylabel("spectral inflation" if narrow else "spectral inflation, in units of the noise")
        return ax, Points(ranks, [min(max(v, low), high) for v in values], [_class(d) for d in directions])

    above = sum(v > even for v in values)
    label = (
        f"Spectral inflation of {count(len(directions))} target directions: {count(above)} cost more than they would "
        f"without a shift, the largest {number(max(values) / even)} times as much."
    )
    return drawn(name, label, draw, (3.2, 3.4))


def plane(directions: Sequence[dict[str, Any]], name: str, alpha: float, quantile: float) -> str:
    """Draw for each direction what keeping it costs against what removing it would, and the rule's line.

    Nothing where keeping costs nothing: then there is nothing to weigh.
    """
    keeping, removing = ([d[key] or 0.0 for d in directions] for key in ("keeping", "removing"))
    if not any(keeping):
        return ""
    scale = max(quantile, 1e-12)
    x = decades(removing)
    y = with_line(x, decades(keeping), 1.0 / scale)

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        logarithmic(ax.xaxis, x, most=4 if narrow else 7)
        logarithmic(ax.yaxis, y)
        (line,) = ax.plot([x[0], x[1]], [x[0] / scale, x[1] / scale], color=INK, linewidth=1.4)
        line.set_gid("rule")
        ax.set_title("above the line: removed", loc="left", color=REMOVE, fontsize=8.5)
        ax.set_title("below the line: kept", loc="right", color=KEEP, fontsize=8.5)
        ax.set_xlabel("removing: bias² per row" if narrow else "removing: bias² per row, as estimated")
        ax.set_ylabel("keeping: variance per row")
        where = [min(max(v, x[0]), x[1]) for v in removing], [min(max(v, y[0]), y[1]) for v in keeping]
        return ax, Points(*where, [_class(d) for d in directions])

    gone = sum(d["goes"] for d in directions)
    label = (
        f"What keeping and removing each of {count(len(directions))} target directions costs. At alpha {alpha:g} "
        f"{count(gone)} lie above the rule's line and would be removed. The table of directions below has the same "
        "numbers."
    )
    return drawn(name, label, draw, (4.2, 4.3))


def predictions(output: dict[str, Any], name: str, whose: str) -> str:
    """Draw predictions before against after, with the range in which most of the source's labels lie."""
    found = output["predictions"]
    pairs = [pair for pair in zip(found["before"], found["after"]) if None not in pair]
    if not pairs:
        return ""
    before, after = zip(*pairs[:: max(1, math.ceil(len(pairs) / DOTS))])
    mean, spread = output["label_mean"], output["label_std"]

    def draw(figure: Any, narrow: bool) -> tuple[Any, Points]:
        ax = figure.subplots()
        x, y = _padded(before), _padded(after)
        ax.set_xlim(*x)
        ax.set_ylim(*y)
        if mean is not None and spread is not None:
            ax.axhspan(mean - 2 * spread, mean + 2 * spread, color=LINE, alpha=0.45, linewidth=0)
            ax.axvspan(mean - 2 * spread, mean + 2 * spread, color=LINE, alpha=0.3, linewidth=0)
        ends = min(x[0], y[0]), max(x[1], y[1])
        ax.plot(ends, ends, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        linear(ax.xaxis, 4 if narrow else 5)
        linear(ax.yaxis)
        ax.set_xlabel("before: least squares")
        ax.set_ylabel(f"after: {whose}, adapted")
        return ax, Points(before, after, ["dot"] * len(before), 2.0 if len(before) > 100 else 3.0)

    label = (
        f"Predictions of {count(len(before))} target rows before and after. Before they run from {number(min(before))} "
        f"to {number(max(before))}, after from {number(min(after))} to {number(max(after))}."
    )
    return drawn(name, label, draw, (3.6, 3.8))


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = max(0.04 * (high - low), 1e-3 * max(abs(low), abs(high))) or 0.5
    return low - pad, high + pad


def _named(ax: Any, forecasts: Sequence[dict[str, Any]]) -> None:
    ax.set_yticks(range(len(forecasts)), [shortened(f["name"]) for f in forecasts])
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def _fraction(ax: Any, x: float) -> float:
    """Return how far to the right in an axes a value lies, 0 to 1."""
    place = ax.transAxes.inverted().transform(ax.transData.transform((x, 0.0)))
    return float(place[0])


def _class(direction: dict[str, Any]) -> str:
    return "gone" if direction["goes"] else "kept"


def _ends(interval: Sequence[float | None], value: float) -> tuple[float, float]:
    low, high = interval
    return (value if low is None else low), (value if high is None else high)
