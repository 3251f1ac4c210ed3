"""An inspection as lines for the terminal: what error to expect of which weights, and whether adapting is worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspar.wording import between, number

if TYPE_CHECKING:
    from pyspar.inspection import Inspection


def forecast_lines(found: Inspection) -> list[str]:
    """Return one line for each set of weights: its expected RMSE with intervals."""
    lines = []
    for output in found.outputs:
        width = max(len(forecast.name) for forecast in output.forecasts)
        for forecast in output.forecasts:
            lines.append(
                f"{forecast.name:<{width}}  {number(forecast.rmse)} RMSE  "
                f"(80 %: {between(forecast.interval80)}; 95 %: {between(forecast.interval95)})"
            )
    return lines


def finding_lines(found: Inspection) -> list[str]:
    """Return the findings, those of the label first."""
    return [f"{each.code} {each.severity}: {each.text} {each.advice}" for each in found.findings]


def verdict(found: Inspection) -> str:
    """Return the verdicts, one sentence each."""
    return " ".join(output.verdict for output in found.outputs)
