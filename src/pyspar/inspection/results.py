"""The result of an inspection as data. The terminal, the JSON file and the HTML report all show this object."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from html import escape
from typing import Any

import numpy as np

from pyspar.core.arrays import Vector
from pyspar.core.forecast import Forecast
from pyspar.core.separation import Separation
from pyspar.errors import InputError
from pyspar.estimators.calibrated_forecasts import Outcome
from pyspar.inspection.compare import Direction
from pyspar.inspection.findings import Finding, derive_label_findings, sort_by_severity
from pyspar.inspection.judgement import OUTCOMES, Judgement
from pyspar.inspection.target_rows import AbsurdRows, Predictions, SourceLabels, find_absurd_rows, sample_predictions

ASSUMPTION = "if the labels are linear in the features with noise of constant variance, in both source and target"
_COLOURS = {"good": "#176b30", "info": "#57606a", "warning": "#b07d00", "serious": "#b0221a"}
_SHOWN = (
    "name", "outcome", "severity", "home", "home_is_of_groups", "is_transformed", "recommended", "headline",
    "comparison", "not_covered", "experience", "next_step", "verdict", "base_rate", "labels", "corrected", "forecasts",
    "worth", "findings", "label_mean", "label_std", "groups", "directions", "columns", "predictions", "absurd",
)  # fmt: skip
"""What the JSON form of one output contains."""
LABELLING_CODES = ("SPAR003", "SPAR004", "SPAR008", "SPAR010", "SPAR014", "SPAR018")
"""The findings whose advice is to label rows."""


@dataclass(frozen=True, kw_only=True)
class OutputInspection(Judgement):
    """The inspection of one output: its judgement, and further details."""

    name: str
    findings: tuple[Finding, ...]  # about this output, the judgement first; ``Inspection.findings`` has all findings
    label_mean: float  # of the source labels
    label_std: float
    groups: Mapping[str, tuple[Forecast, ...]] = field(default_factory=dict)
    directions: tuple[Direction, ...] = ()  # the target's directions in order of falling variance cost
    columns: tuple[tuple[str, float], ...] = ()  # the columns in the removed directions, with their shares
    predictions: Predictions | None = None  # for a sample of rows; None if the target has no rows in memory
    absurd: AbsurdRows | None = None  # the rows whose predictions no source label resembles

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, text, lists and dicts; numbers that are not finite become None."""
        return {name: to_plain(getattr(self, name)) for name in _SHOWN}


@dataclass(frozen=True, kw_only=True)
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
    alpha: float = math.nan
    has_rule: bool = False
    rank: int = 0
    outside_energy: float
    findings: tuple[Finding, ...]
    outputs: tuple[OutputInspection, ...]
    assumption: str = ASSUMPTION

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, text, lists and dicts; numbers that are not finite become None."""
        return {field.name: to_plain(getattr(self, field.name)) for field in fields(self)}

    def __repr__(self) -> str:
        if len(self.outputs) == 1:
            return self.outputs[0].verdict
        return "\n".join(f"{output.name}: {output.verdict}" for output in self.outputs)

    def _repr_html_(self) -> str:
        """Return the verdict and the findings for a notebook."""
        return "".join(map(self._write_output_html, self.outputs))

    def _write_output_html(self, output: OutputInspection) -> str:
        sentences = (output.comparison, output.not_covered, output.experience, output.next_step)
        findings = [f for f in self.findings if f.output in (output.name, None) and f not in output.findings[:1]]
        items = (f"<li><b>{f.code}</b> {f.severity}: {escape(f.text)} {escape(f.advice)}</li>" for f in findings)
        return (
            f'<div style="border-left: 4px solid {_COLOURS[output.severity]}; padding-left: 0.8em">'
            f"<p><small>{escape(output.name)}</small><br><b>{escape(output.headline)}</b></p>"
            + "".join(f"<p>{escape(text)}</p>" for text in sentences if text)
            + (f"<ul>{''.join(items)}</ul></div>" if findings else "</div>")
        )


def describe_output(
    judgement: Judgement,
    name: str,
    labels: SourceLabels,
    predicted: Mapping[str, Vector | None],
    *,
    directions: tuple[Direction, ...] = (),
    groups: Mapping[str, tuple[Forecast, ...]] | None = None,
    columns: tuple[tuple[str, float], ...] = (),
    **observed: Any,
) -> OutputInspection:
    """Return the inspection of one output: the judgement, its findings and further details.

    ``predicted`` holds the predictions of the target rows by the weights in use, the adapted and the recommended ones,
    or None where they are unknown. ``observed`` are further arguments of ``derive_label_findings``.
    """
    recommended = predicted[judgement.recommended]
    absurd = None if recommended is None else find_absurd_rows(recommended, labels)
    findings = derive_label_findings(judgement, directions, absurd=absurd, **observed)
    return OutputInspection(
        **vars(judgement),
        name=name,
        findings=tuple(replace(_advise_all_labelled(finding, judgement), output=name) for finding in findings),
        label_mean=labels.mean,
        label_std=labels.std,
        directions=directions,
        predictions=sample_predictions(predicted[judgement.before], predicted[judgement.adapted]),
        absurd=absurd,
        groups=groups or {},
        columns=columns,
    )


def _advise_all_labelled(finding: Finding, judgement: Judgement) -> Finding:
    """Return a finding that does not advise to label rows if all rows are labelled."""
    labels = judgement.labels
    if labels is None or labels.n < judgement.n_target or finding.code not in LABELLING_CODES:
        return finding
    return replace(
        finding, advice="All target rows are labelled: compare the labels of these rows with their predictions."
    )


def join_outputs(
    outputs: Sequence[OutputInspection], feature_findings: Iterable[Finding], **details: Any
) -> Inspection:
    """Return the inspection of all outputs, with the findings about the features and further details."""
    first, own = outputs[0], [finding for output in outputs for finding in output.findings]
    return Inspection(
        outcome=max((output.outcome for output in outputs), key=OUTCOMES.index),
        separation=first.separation,
        before=first.before,
        adapted=first.adapted,
        outside_energy=first.outside,
        findings=sort_by_severity([*own, *(_advise_all_labelled(finding, first) for finding in feature_findings)]),
        outputs=tuple(outputs),
        **details,
    )


def name_outputs(names: Sequence[str] | None, known: Sequence[str] | None, n_outputs: int) -> tuple[str, ...]:
    """Return the caller's names of the labels, or else the known names, or "y", or "y0", "y1" and so on."""
    if known is None or len(known) != n_outputs:
        known = ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
    return read_names("outputs", names, known)


def read_names(parameter: str, names: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    """Return names as text, or the default names; refuse another number of names."""
    names = default if names is None else names
    if isinstance(names, str) or len(names) != len(default):
        got = repr(names) if isinstance(names, str) else len(names)
        raise InputError(f"{parameter} must be a sequence of {len(default)} names, got {got}")
    return tuple(map(str, names))


def to_plain(value: Any) -> Any:
    """Return a value as plain Python for JSON: lists, dicts, and None for numbers that are not finite."""
    if isinstance(value, OutputInspection):
        return value.as_dict()
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
