"""The inspection of any fitted regressor, such as boosting or a forest: its forecast, judged like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyspar.core.mean_square import SquaredErrors
from pyspar.estimators.correction import name_regressor
from pyspar.inspection.any_regressor import RegressorForecast, forecast_regressor
from pyspar.inspection.findings import Finding, derive_label_findings, describe_moved, sort_by_severity
from pyspar.inspection.judgement import Judgement
from pyspar.inspection.labels import read_target_labels, weigh_evidence
from pyspar.inspection.results import Inspection, OutputInspection, describe_output, find_worst_outcome
from pyspar.inspection.target_rows import find_absurd_rows, sample_predictions
from pyspar.inspection.unseen_categories import SERIOUS_SHARE
from pyspar.wording import format_percent, list_some

ASSUMPTION = "if the target's error relative to the error at home is like that of earlier shifts"


def inspect_regressor(
    model: Any, Z: Any, *, source: tuple[Any, Any], y: Any, groups: Any, outputs: Sequence[str] | None
) -> Inspection:
    """Return the inspection of any fitted regressor, given the rows and labels that it was fitted on."""
    name = name_regressor(model)
    forecasts = forecast_regressor(model, Z, source=source, groups=groups)
    source_labels = np.asarray(source[1], dtype=np.float64).reshape(-1, len(forecasts))
    predictions = np.asarray(model.predict(Z), dtype=np.float64).reshape(-1, len(forecasts))
    labels = None if y is None else read_target_labels(y, Z, len(forecasts))
    names = name_labels(source[1], len(forecasts)) if outputs is None else list(map(str, outputs))
    inspected: list[OutputInspection] = []
    for k, found in enumerate(forecasts):
        errors = SquaredErrors() if labels is None else SquaredErrors.of(labels[:, k] - predictions[:, k])
        judgement = _judge(name, found, errors)
        own = source_labels[:, k]
        absurd = find_absurd_rows(predictions[:, k], (own.min(), own.max()), float(own.mean()), float(own.std()))
        own_findings = derive_label_findings(judgement, absurd=absurd)
        inspected.append(
            describe_output(
                judgement,
                name=names[k],
                findings=tuple(replace(finding, output=names[k]) for finding in own_findings),
                label_mean=float(own.mean()),
                label_std=float(own.std()),
                predictions=sample_predictions(predictions, predictions, k),
                absurd=absurd,
            )
        )
    first = forecasts[0]
    findings = [finding for output in inspected for finding in output.findings]
    return Inspection(
        outcome=find_worst_outcome(output.outcome for output in inspected),
        n_source=first.n_source,
        n_target=first.n_target,
        separation=first.separation,
        columns=tuple(map(str, getattr(Z, "columns", [f"x{j}" for j in range(np.shape(Z)[1])]))),
        estimator=repr(model),
        before=name,
        adapted=name,
        alpha=float("nan"),
        has_rule=False,
        rank=0,
        outside_energy=0.0,
        findings=sort_by_severity(
            [*findings, *_describe_unseen(first.unseen), *([describe_moved(first.moved)] if first.moved else [])]
        ),
        outputs=tuple(inspected),
        assumption=ASSUMPTION,
    )


def name_labels(y: Any, n_outputs: int) -> list[str]:
    """Return the names of labels: those of a series or frame, otherwise "y" or "y0", "y1" and so on."""
    names = getattr(y, "columns", None)
    if names is None:
        name = getattr(y, "name", None)
        names = [name] if isinstance(name, str) else None
    if names is not None and len(names) == n_outputs:
        return [str(name) for name in names]
    return ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]


def _judge(name: str, found: RegressorForecast, errors: SquaredErrors) -> Judgement:
    columns = list_some(found.unseen, 3)
    is_serious = any(share >= SERIOUS_SHARE for share in found.unseen.values())
    return Judgement(
        forecasts={name: found.forecast},
        home=found.home,
        before=name,
        adapted=name,
        separation=found.separation,
        kind="any",
        n_target=found.n_target,
        gap=f"many target rows have categories that do not occur in the source ({columns})" if is_serious else "",
        uncovered=f"The forecast does not cover rows with unseen categories ({columns})." if found.unseen else "",
        evidence={name: weigh_evidence(errors, found.home)} if errors.n else {},
    )


def _describe_unseen(unseen: dict[str, float]) -> list[Finding]:
    if not unseen:
        return []
    is_serious = max(unseen.values()) >= SERIOUS_SHARE
    listed = "; ".join(f"{column!r} in {format_percent(share)} of the rows" for column, share in unseen.items())
    return [
        Finding(
            "SPAR014",
            "serious" if is_serious else "warning",
            f"Target rows have categories that do not occur in the source: {listed}. The labels carry no information "
            "about these categories, and the forecasts do not cover these rows.",
            "Label some of these rows first, or handle them with a separate model.",
        )
    ]
