"""The HTML page of a report: one file without scripts and external resources. Its figures are HTML elements and CSS."""

from __future__ import annotations

import datetime
import math
from importlib import resources
from typing import Any

import jinja2

from pyspar.report.shift_report import OutputReport, ShiftReport
from pyspar.text import format_number, format_percent

MAX_OUTPUTS, MAX_COLUMNS, MAX_NAME = 12, 25, 60
LOG_SCALE_RATIO = 20.0  # errors that differ by more than this factor are shown on a logarithmic axis


def render_page(report: ShiftReport) -> str:
    """Return a report as HTML."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters.update(
        number=format_number, percent=lambda value: format_percent(value).replace(" ", "\N{NO-BREAK SPACE}"),
        count="{:,.0f}".format, cut=lambda name: name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…",
        between=lambda ends: " to ".join(map(format_number, ends)),
    )  # fmt: skip
    template = resources.files("pyspar.report").joinpath("page.html").read_text(encoding="utf-8")
    outputs = report.outputs[:MAX_OUTPUTS]
    return environment.from_string(template).render(
        report=report, outputs=[(output, draw_errors(output)) for output in outputs],
        n_hidden=len(report.outputs) - len(outputs), columns=report.columns[:MAX_COLUMNS],
        shared=[finding for finding in report.findings if finding.output is None], is_finite=math.isfinite,
        date=datetime.date.today().isoformat(),
    )  # fmt: skip


def draw_errors(output: OutputReport) -> dict[str, Any]:
    """Return the rows of the figure of errors, with positions in per cent of its width."""
    rows: list[tuple[Any, ...]] = [("on the source", "source", output.source_rmse, None, None)]
    rows += [(f"expected, {m.name}", "expected", m.rmse, m.interval80, m.interval95) for m in output.models]
    rows += [(f"measured, {m.name}", "measured", m.measured, None, m.measured95) for m in output.models]
    if (c := output.correction) is not None:
        rows.append((f"corrected, {c.n_labels:g} labels", "expected", c.rmse, c.interval80, c.interval95))
    rows = [row for row in rows if row[2] is not None and math.isfinite(row[2])]
    ends = [end for row in rows for end in (row[2], *(row[4] or ())) if 0.0 < end < math.inf] or [1.0]
    is_log = max(ends) > LOG_SCALE_RATIO * min(ends)
    low, high = (0.8 * min(ends), 1.3 * max(ends)) if is_log else (0.0, 1.1 * max(ends))

    def place(value: float) -> float:
        value = min(max(value, low), high)
        share = math.log(value / low) / math.log(high / low) if is_log else value / high
        return round(100.0 * share, 2)

    drawn = [
        {
            "label": label, "kind": kind, "value": value, "interval": wide, "at": place(value),
            "lines": [(css, *map(place, ends)) for css, ends in (("wide", wide), ("narrow", narrow)) if ends],
        }
        for label, kind, value, narrow, wide in rows
    ]  # fmt: skip
    source = place(output.source_rmse) if math.isfinite(output.source_rmse) else None
    return {"rows": drawn, "is_log": is_log, "source": source}
