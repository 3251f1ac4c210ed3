"""Draw matplotlib figures as SVG elements for a page that follow its theme and whose points a script can access.

matplotlib draws axes, bars and lines in placeholder colours, which are replaced by CSS variables of the page. One
figure therefore suits the light theme, the dark theme and print. Points are SVG circles that are added at the positions
that matplotlib computes.
"""

from __future__ import annotations

import io
import re
import threading
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
WIDE_INCHES, NARROW_INCHES = 7.4, 3.9
"""The width of a figure on a screen and on a telephone."""

_LOCK = threading.Lock()
"""matplotlib's settings and the filters of warnings belong to the process, so one thread draws at a time."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pyspar",
    "text.parse_math": False,  # names from files may contain a dollar sign
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
    """Circles to draw over an axes: their positions in data coordinates, and the CSS class of each."""

    x: Sequence[float]
    y: Sequence[float]
    classes: Sequence[str]
    radius: float = 3.2


Draw = Callable[[Any, bool], tuple[Any, Points] | None]
"""A function that draws into a figure, given whether it is narrow; it may return an axes and points to add to it."""


def draw_figure(name: str, label: str, draw: Draw, heights: tuple[float, float]) -> str:
    """Return the figure twice, for wide and for narrow screens; the page shows one of them."""
    wide = _draw_svg(f"{name}-w", label, draw, (WIDE_INCHES, heights[0]), narrow=False)
    narrow = _draw_svg(f"{name}-n", label, draw, (NARROW_INCHES, heights[1]), narrow=True)
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def _draw_svg(name: str, label: str, draw: Draw, size: tuple[float, float], *, narrow: bool) -> str:
    with _LOCK, matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # The browser has fonts for characters that are missing in matplotlib's font.
        warnings.filterwarnings(
            "ignore", message=r"(?s)(Glyph|Matplotlib currently does not support)", category=UserWarning
        )
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        overlay = draw(figure, narrow)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = _clean_svg(text.getvalue(), name)
    attributes = f'role="img" aria-label="{escape(label)}" focusable="false"'
    if overlay is None:
        return svg.replace("<svg ", f"<svg {attributes} ", 1)
    axes, points = overlay
    height = size[1] * 72.0
    corners = axes.get_window_extent()
    box = (corners.x0, height - corners.y0, corners.x1, height - corners.y1)
    limits = (*axes.get_xlim(), *axes.get_ylim())
    attributes += f' data-box="{_join_numbers(box)}" data-limits="{_join_numbers(limits, 12)}"'
    svg = svg.replace("<svg ", f"<svg {attributes} ", 1)
    return svg.replace("</svg>", f"{_draw_circles(axes, points, height)}</svg>")


def _draw_circles(axes: Any, points: Points, height: float) -> str:
    positions = axes.transData.transform(list(zip(points.x, points.y)))
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{height - y:.1f}" r="{points.radius:g}" class="{css_class}"/>'
        for (x, y), css_class in zip(positions, points.classes)
    )
    return f'<g class="points">{circles}</g>'


def _clean_svg(svg: str, name: str) -> str:
    """Return an SVG for use inside a page: without prolog, metadata and style, with theme colours and unique ids."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r'(<svg [^>]*?) ?width="[^"]*"', r"\1", re.sub(r'(<svg [^>]*?) ?height="[^"]*"', r"\1", svg, count=1))
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    return re.sub(r"\n\s*", "\n", svg).strip()


def _join_numbers(values: Sequence[float], digits: int = 6) -> str:
    return " ".join(f"{value:.{digits}g}" for value in values)
