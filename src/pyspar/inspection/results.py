"""The result of an inspection as data. The terminal, the JSON file and the HTML report all show this object."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np

from pyspar.core.forecast import Forecast
from pyspar.core.separation import Separation
from pyspar.estimators.forecasts import BaseRate, Outcome
from pyspar.inspection.directions import Direction
from pyspar.inspection.findings import Finding
from pyspar.inspection.judgement import OUTCOMES, Judgement, Severity
from pyspar.inspection.labels import LabelEvidence
from pyspar.inspection.target_rows import AbsurdRows, Predictions

ASSUMPTION = "if the labels are linear in the features with noise of constant variance, in both source and target"
_COLOURS = {"good": "#176b30", "info": "#57606a", "warning": "#b07d00", "serious": "#b0221a"}


@dataclass(frozen=True)
class OutputInspection:
    """The inspection of one output.

    Attributes
    ----------
    name : str
    outcome : {"hurts", "unknown", "unverified", "no-shift"}
        The shift hurts; the error cannot be forecast; there is a shift, but no harm is expected; source and target rows
        cannot be told apart.
    severity : {"good", "info", "warning", "serious"}
        "good" only if at least ten target labels confirm the model.
    home : float
        The expected RMSE on rows like those of the source.
    recommended : str
        The name of the weights to use.
    headline, comparison, not_covered, experience, next_step : str
        One sentence each: what is known about the error; the forecast compared with the labels ("" without labels);
        the rows that the forecast does not cover ("" if it covers all); how often the error was large on real shifts
        with this outcome ("" if labels tell); what to do.
    verdict : str
        These sentences as one text.
    base_rate : BaseRate or None
        The numbers behind ``experience``.
    labels : LabelEvidence or None
        What labels of target rows show about the recommended weights.
    forecasts : tuple of Forecast
        For each set of weights, on the whole target.
    worth : bool
        Whether adapting reduces the expected error by more than 5 %.
    groups : dict of group to tuple of Forecast
    directions : tuple of Direction
        The target's directions in order of falling variance cost.
    columns : pairs of (column, share)
        The columns in the removed directions.
    label_mean, label_std : float
        Of the source labels.
    findings : tuple of Finding
        The findings about this output, the judgement first; ``Inspection.findings`` has all findings.
    predictions : Predictions or None
        For a sample of rows; None if the target has no rows in memory.
    absurd : AbsurdRows or None
        The rows whose predictions no source label resembles.
    """

    name: str
    outcome: Outcome
    severity: Severity
    home: float
    recommended: str
    headline: str
    comparison: str
    not_covered: str
    experience: str
    next_step: str
    verdict: str
    base_rate: BaseRate | None
    labels: LabelEvidence | None
    forecasts: tuple[Forecast, ...]
    worth: bool
    findings: tuple[Finding, ...]
    label_mean: float
    label_std: float
    groups: Mapping[str, tuple[Forecast, ...]] = field(default_factory=dict)
    directions: tuple[Direction, ...] = ()
    columns: tuple[tuple[str, float], ...] = ()
    predictions: Predictions | None = None
    absurd: AbsurdRows | None = None

    @property
    def expected(self) -> Forecast:
        """The forecast of the recommended weights."""
        return self.forecast(self.recommended)

    def forecast(self, name: str) -> Forecast:
        """Return the forecast of one set of weights."""
        for forecast in self.forecasts:
            if forecast.name == name:
                return forecast
        raise KeyError(f"no weights named {name!r}; the names are {[forecast.name for forecast in self.forecasts]}")


@dataclass(frozen=True)
class Inspection:
    """The result of :func:`pyspar.inspect`; ``as_dict`` returns it as plain Python for JSON.

    ``outcome`` is the worst outcome of the outputs. ``before`` and ``adapted`` are the names of the weights in use and
    of the weights that adapting gives. ``findings`` are sorted by severity. A finding about one output has its name as
    ``output``, a finding about the features has None.
    """

    outcome: Outcome
    n_source: float
    n_target: float
    separation: Separation
    columns: tuple[str, ...]
    estimator: str
    before: str
    adapted: str
    alpha: float
    has_rule: bool
    rank: int
    outside_energy: float
    findings: tuple[Finding, ...]
    outputs: tuple[OutputInspection, ...]
    assumption: str = ASSUMPTION

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, text, lists and dicts; numbers that are not finite become None."""
        return dict(to_plain(asdict(self)))

    def __repr__(self) -> str:
        return "\n".join(output.verdict for output in self.outputs)

    def _repr_html_(self) -> str:
        """Return the verdict and the findings for a notebook."""
        return "".join(map(self._write_output_html, self.outputs))

    def _write_output_html(self, output: OutputInspection) -> str:
        sentences = (output.comparison, output.not_covered, output.experience, output.next_step)
        findings = [f for f in self.findings if f.output in (output.name, None) and f not in output.findings[:1]]
        listed = "".join(
            f"<li><b>{f.code}</b> {f.severity}: {escape(f.text)} {escape(f.advice)}</li>" for f in findings
        )
        return (
            f'<div style="border-left: 4px solid {_COLOURS[output.severity]}; padding-left: 0.8em">'
            f"<p><small>{escape(output.name)}</small><br><b>{escape(output.headline)}</b></p>"
            + "".join(f"<p>{escape(text)}</p>" for text in sentences if text)
            + (f"<ul>{listed}</ul>" if listed else "")
            + "</div>"
        )


def describe_output(judgement: Judgement, **details: Any) -> OutputInspection:
    """Return the inspection of one output: the judgement and further details."""
    return OutputInspection(
        outcome=judgement.outcome,
        severity=judgement.severity,
        home=judgement.home,
        recommended=judgement.recommended,
        headline=judgement.headline,
        comparison=judgement.comparison,
        not_covered=judgement.not_covered,
        experience=judgement.experience,
        next_step=judgement.next_step,
        verdict=judgement.verdict,
        base_rate=judgement.base_rate,
        labels=judgement.labels,
        forecasts=tuple(judgement.forecasts.values()),
        worth=judgement.is_worthwhile,
        **details,
    )


def find_worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst of several outcomes.

    >>> find_worst_outcome(["no-shift", "hurts", "unknown"])
    'hurts'
    """
    return max(outcomes, key=OUTCOMES.index)


def to_plain(value: Any) -> Any:
    """Return a value as plain Python for JSON: lists, dicts, and None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
