"""Drawing: a matplotlib figure as an SVG inside a page: it follows the theme, and a script can reach its points.

matplotlib draws axes, bars and lines in stand-in colours that become the page's CSS variables, so one picture is right
in light, dark and print. Points are circles of our own, laid over it where matplotlib would have put them.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import escape
from matplotlib.figure import Figure

THEME = {
    "#00000a": "var(--ink)",
    "#00000b": "var(--muted)",
    "#00000c": "var(--line)",
    "#00000d": "var(--keep)",
    "#00000e": "var(--remove)",
    "#00000f": "var(--third)",
}
INK, MUTED, LINE, KEEP, REMOVE, THIRD = THEME
WIDE, NARROW = 7.4, 3.9
"""Width of a figure in inches, for a screen and for a telephone: text must be readable in both."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pyspar",
    "text.parse_math": False,  # names come from files, and may hold a dollar
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "font.size": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Points:
    """Circles to lay over an axes: where, in data, and a class for each."""

    x: Sequence[float]
    y: Sequence[float]
    classes: Sequence[str]
    radius: float = 3.2


Draw = Callable[[Any, bool], tuple[Any, Points] | None]
"""Draws into a figure, told whether it is narrow; returns the axes and the points to lay over it, if there are any."""


def drawn(name: str, label: str, draw: Draw, heights: tuple[float, float]) -> str:
    """Return the figure twice, for wide and for narrow screens; the page shows one of them."""
    wide = _one(f"{name}-w", label, draw, (WIDE, heights[0]), narrow=False)
    narrow = _one(f"{name}-n", label, draw, (NARROW, heights[1]), narrow=True)
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def _one(name: str, label: str, draw: Draw, size: tuple[float, float], *, narrow: bool) -> str:
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # The browser finds the letters that matplotlib's own font has not.
        warnings.filterwarnings(
            "ignore", message=r"(?s)(Glyph|Matplotlib currently does not support)", category=UserWarning
        )
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        over = draw(figure, narrow)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = _clean(text.getvalue(), name)
    attributes = f'role="img" aria-label="{escape(label)}" focusable="false"'
    if over is None:
        return svg.replace("<svg ", f"<svg {attributes} ", 1)
    axes, points = over
    height = size[1] * 72.0
    corners = axes.get_window_extent()
    box = (corners.x0, height - corners.y0, corners.x1, height - corners.y1)
    limits = (*axes.get_xlim(), *axes.get_ylim())
    attributes += f' data-box="{_numbers(box)}" data-limits="{_numbers(limits, 12)}"'
    svg = svg.replace("<svg ", f"<svg {attributes} ", 1)
    return svg.replace("</svg>", f"{_circles(axes, points, height)}</svg>")


def _circles(axes: Any, points: Points, height: float) -> str:
    if not len(points.x):
        return '<g class="points"></g>'
    places = axes.transData.transform(list(zip(points.x, points.y)))
    each = "".join(
        f'<circle cx="{x:.1f}" cy="{height - y:.1f}" r="{points.radius:g}" class="{kind}"/>'
        for (x, y), kind in zip(places, points.classes)
    )
    return f'<g class="points">{each}</g>'


def _clean(svg: str, name: str) -> str:
    """Return what can stand inside a page: no prolog, metadata or style, colours of the theme, ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r'(<svg [^>]*?) ?width="[^"]*"', r"\1", re.sub(r'(<svg [^>]*?) ?height="[^"]*"', r"\1", svg, count=1))
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    for stand_in, variable in THEME.items():
        svg = svg.replace(stand_in, variable)
    return re.sub(r"\n\s*", "\n", svg).strip()


def _numbers(values: Sequence[float], digits: int = 6) -> str:
    return " ".join(f"{value:.{digits}g}" for value in values)
