"""The results of the commands as plain data, which ``--json`` prints. docs/command-line.md lists the fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspar import __version__
from pyspar.cli.show import choose_next_step

if TYPE_CHECKING:
    from pyspar.tables.adapt import AdaptAccount
    from pyspar.tables.inputs import DataAccount
    from pyspar.tables.inspect import InspectAccount
    from pyspar.tables.label import LabelAccount
    from pyspar.tables.predict import PredictAccount
    from pyspar.tables.summarize import SummaryAccount


def describe_adapt(account: AdaptAccount) -> dict[str, Any]:
    """Return the result of ``spar adapt``."""
    judgement, scored, correction = account.judgement, account.scored, account.correction
    return _finish(
        "adapt",
        {
            "data": _describe_data(account.data),
            "method": account.method,
            "alpha": account.alpha if account.method == "spar" else None,
            "settings": account.chosen,
            "rank": account.rank,
            "outcome": judgement.outcome,
            "severity": judgement.severity,
            "headline": judgement.headline,
            "comparison": judgement.comparison,
            "not_covered": judgement.not_covered,
            "experience": judgement.experience,
            "base_rate": judgement.base_rate,
            "recommended": judgement.recommended,
            "next_step": choose_next_step(account),
            "home": judgement.home,
            "home_is_of_groups": judgement.home_is_of_groups,
            "expected": {
                "least_squares": _describe_forecast(account.before),
                "model": _describe_forecast(account.after),
            },
            "noise": account.after.noise**0.5,
            "separation": {name: getattr(judgement.separation, name) for name in ("auc", "p_value", "spread_limit")},
            "directions": {
                "target": account.directions.total,
                "removed": account.directions.removed,
                "shrunk": account.directions.shrunk,
                "outside_share": judgement.outside,
            },
            "true": None
            if scored is None
            else {"rows": scored.model.n, "least_squares": scored.least_squares.rmse, "model": scored.model.rmse},
            "corrected": None
            if correction is None
            else {
                "labels": correction.n_labels,
                "before": correction.expected.rmse_uncorrected,
                "after": _describe_forecast(correction.expected),
                "relation_p_value": correction.p_value,
            },
            "findings": [
                {"code": finding.code, "severity": finding.severity, "text": finding.text, "advice": finding.advice}
                for finding in account.findings
            ],
            "notes": account.notes,
            "output": account.output,
            "model_file": account.save,
        },
    )


def describe_inspect(account: InspectAccount) -> dict[str, Any]:
    """Return the result of ``spar inspect``: the content of its JSON report."""
    return account.document.as_dict()


def describe_summarize(account: SummaryAccount) -> dict[str, Any]:
    """Return the result of ``spar summarize``."""
    return _finish(
        "summarize",
        {
            "rows": account.rows,
            "features": account.features,
            "label": account.label,
            "ignored": [vars(column) for column in account.ignored],
            "notes": account.notes,
            "bytes_read": account.n_bytes_in,
            "bytes_written": account.n_bytes_out,
            "output": account.output,
        },
    )


def describe_label(account: LabelAccount) -> dict[str, Any]:
    """Return the result of ``spar label``."""
    chosen = zip(account.choice.rows, account.choice.reasons, strict=True)
    return _finish(
        "label",
        {
            "data": None if account.data is None else _describe_data(account.data),
            "rows_with_label": account.n_known,
            "rows": [{"row": row, "reason": reason} for row, reason in chosen],
            "notes": account.notes,
            "output": account.output,
        },
    )


def describe_predict(account: PredictAccount) -> dict[str, Any]:
    """Return the result of ``spar predict``."""
    errors = account.errors
    return _finish(
        "predict",
        {
            "rows": account.rows,
            "level": account.level,
            "true": None if errors is None else {"rows": errors.n, "model": errors.rmse},
            "notes": account.notes,
            "output": account.output,
        },
    )


def _finish(command: str, result: dict[str, Any]) -> dict[str, Any]:
    from pyspar.inspection.results import to_plain  # here, because it imports scikit-learn, which --help does not need

    return {"command": command, "version": __version__, **to_plain(result)}


def _describe_forecast(forecast: Any) -> dict[str, Any]:
    return {"rmse": forecast.rmse, "interval80": forecast.interval80, "interval95": forecast.interval95}


def _describe_data(data: DataAccount) -> dict[str, Any]:
    return {
        "label": data.label,
        "source_rows": data.n_source,
        "target_rows": data.n_target,
        "columns": {"numeric": data.n_numeric, "categorical": data.n_categorical, "date": data.n_date},
        "features": data.n_encoded,
        "imputed": [vars(column) for column in data.imputed],
        "ignored": [vars(column) for column in data.ignored],
        "unseen": [vars(column) for column in data.unseen.columns],
    }
