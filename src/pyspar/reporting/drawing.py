"""Draw matplotlib figures as SVG elements for a page that follow its theme and whose points a script can access.

matplotlib draws axes, bars and lines in placeholder colours, which are replaced by CSS variables of the page. One
figure therefore suits the light theme, the dark theme and print. Points are SVG circles that are added at the positions
that matplotlib computes.
"""

from __future__ import annotations

import io
import math
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import escape
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from pyspar.wording import format_factor, replace_exponents

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

MAX_DECADES = 8
"""A logarithmic axis shows at most this many decades. Smaller values are drawn at its edge."""
_EQUAL_STEP_DECADES = 0.6
"""Over fewer decades than this, equal steps are easier to read than 1, 2, 5."""
_MIN_PLAIN_TICK, _MAX_PLAIN_TICK = 1e-3, 1e6
"""If a tick is outside these limits, all ticks of a logarithmic axis are written as powers of ten."""
AXIS_EXPONENT = 7
"""On an axis, numbers from this power of ten on are written as powers, because space is limited."""

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


Draw = Callable[[Any, bool], Points | None]
"""A function that draws into an axes, given whether the figure is narrow; it may return points to add to the axes."""


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
        axes: Any = figure.subplots()
        points = draw(axes, narrow)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = _clean_svg(text.getvalue(), name)
    attributes = f'role="img" aria-label="{escape(label)}" focusable="false"'
    if points is None:
        return svg.replace("<svg ", f"<svg {attributes} ", 1)
    height = size[1] * 72.0
    corners = axes.get_window_extent()
    box = (corners.x0, height - corners.y0, corners.x1, height - corners.y1)
    limits = (*axes.get_xlim(), *axes.get_ylim())
    attributes += f' data-box="{_join_numbers(box)}" data-limits="{_join_numbers(limits, 12)}"'
    svg = svg.replace("<svg ", f"<svg {attributes} ", 1)
    positions = axes.transData.transform(list(zip(points.x, points.y)))
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{height - y:.1f}" r="{points.radius:g}" class="{css_class}"/>'
        for (x, y), css_class in zip(positions, points.classes)
    )
    return svg.replace("</svg>", f'<g class="points">{circles}</g></svg>')


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


def compute_log_limits(values: Sequence[float]) -> tuple[float, float]:
    """Return the limits of a logarithmic axis; values that are zero are drawn at its edge."""
    positive = [v for v in values if v > 0.0]
    if not positive:
        return 0.1, 10.0
    high = max(positive)
    low = max(min(positive), high * 10.0**-MAX_DECADES)
    return low / 1.6, high * 1.6


def include_line(x: tuple[float, float], y: tuple[float, float], slope: float) -> tuple[float, float]:
    """Return y limits that show the line ``y = slope * x``, or the same limits if the line is too far away."""
    reach = min((x[1] / x[0]) ** 0.5, 10.0)  # half the width or one decade of the line, whichever is less
    low, high = min(y[0], slope * x[1] / reach), max(y[1], slope * x[0] * reach)
    return (low, high) if low > 0.0 and high / low < 10.0 ** (1.5 * MAX_DECADES) else y


def choose_log_ticks(low: float, high: float, max_ticks: int) -> list[float]:
    """Return the ticks of a logarithmic axis, at least two.

    >>> choose_log_ticks(0.004, 30.0, 7)
    [0.01, 0.1, 1.0, 10.0]
    >>> choose_log_ticks(0.4, 3.0, 7)
    [0.5, 1.0, 2.0]
    """
    span = math.log10(high) - math.log10(low)  # the ratio may exceed float64
    if span < _EQUAL_STEP_DECADES:
        unit = 10.0 ** math.floor(math.log10(low))  # MaxNLocator treats tiny numbers as zero
        steps = MaxNLocator(min(max_ticks, 5) - 1).tick_values(low / unit, high / unit)
        return [float(t) * unit for t in steps if low <= t * unit <= high]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if span <= max_ticks / 3.0:
        ticks = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in (1, 2, 5)]
    else:
        step = math.ceil(span / max_ticks)
        ticks = [float(f"1e{power}") for power in range(first, last + 1) if power % step == 0]
    return [t for t in ticks if low <= t <= high]


def set_log_scale(axis: Any, limits: tuple[float, float], max_ticks: int = 7) -> None:
    """Give an axis a logarithmic scale. Ticks are plain text, because mathtext interprets dollar signs in names."""
    name = axis.axis_name
    axis.axes.set(**{f"{name}scale": "log", f"{name}lim": limits})
    ticks = choose_log_ticks(*limits, max_ticks)
    as_power = bool(ticks) and not (min(ticks) >= _MIN_PLAIN_TICK and max(ticks) < _MAX_PLAIN_TICK)
    _set_ticks(axis, FixedLocator(ticks), lambda value: format_log_tick(value, as_power=as_power))


def set_linear_scale(axis: Any, max_steps: int = 5, *, integers: bool = False) -> None:
    """Give an axis at most this many equal steps."""
    locator = MaxNLocator(max_steps, integer=integers, min_n_ticks=1 if integers else 2)
    _set_ticks(axis, locator, lambda value: format_factor(value, 4, AXIS_EXPONENT))


def _set_ticks(axis: Any, locator: Any, format_value: Callable[[float], str]) -> None:
    axis.set_major_locator(locator)
    axis.set_major_formatter(lambda value, _: format_value(value))
    axis.set_minor_locator(NullLocator())


def format_log_tick(value: float, *, as_power: bool) -> str:
    """Return a number for a logarithmic axis, with all digits or as a power of ten.

    >>> format_log_tick(0.02, as_power=False), format_log_tick(1000.0, as_power=False)
    ('0.02', '1,000')
    >>> format_log_tick(2e5, as_power=True), format_log_tick(1e-4, as_power=True), format_log_tick(10.0, as_power=True)
    ('2·10⁵', '10⁻⁴', '10')
    """
    if not as_power:
        return f"{value:,.4g}" if value < 1.0 else f"{value:,.0f}" if value >= 100.0 else f"{value:g}"
    digits, exponent = f"{value:.3e}".split("e")
    if int(exponent) in (0, 1):
        return f"{value:g}"
    return replace_exponents(f"{float(digits):g}e{int(exponent):+d}", 0).removeprefix("1·")


def cut_middle(name: str, limit: int = 20) -> str:
    """Return a long name without its middle, because long names often differ only at their ends.

    >>> cut_middle("the model in use since spring", 20)
    'the model in… spring'
    """
    if len(name) <= limit:
        return name
    end = (limit - 1) * 2 // 5
    return f"{name[: limit - 1 - end]}…{name[-end:]}"
