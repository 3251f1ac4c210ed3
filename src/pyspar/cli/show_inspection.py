"""The lines of ``spar inspect``: forecasts, verdict and findings of an inspection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspar.wording import format_interval, format_number

if TYPE_CHECKING:
    from pyspar.inspection import Inspection


def forecast_lines(inspection: Inspection) -> list[str]:
    """Return one line for each set of weights: its expected RMSE with intervals."""
    lines = []
    for output in inspection.outputs:
        width = max(len(forecast.name) for forecast in output.forecasts)
        for forecast in output.forecasts:
            lines.append(
                f"{forecast.name:<{width}}  {format_number(forecast.rmse)} RMSE  "
                f"(80 %: {format_interval(forecast.interval80)}; 95 %: {format_interval(forecast.interval95)})"
            )
    return lines


def finding_lines(inspection: Inspection) -> list[str]:
    """Return one line for each finding, those about the labels first."""
    return [f"{item.code} {item.severity}: {item.text} {item.advice}" for item in inspection.findings]


def verdict(inspection: Inspection) -> str:
    """Return the verdicts of all outputs."""
    return " ".join(output.verdict for output in inspection.outputs)
