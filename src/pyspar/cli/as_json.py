"""The results of the commands as plain data, which ``--json`` prints. docs/command-line.md lists the fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspar import __version__
from pyspar.cli.show import choose_next_step

if TYPE_CHECKING:
    from pyspar.tables.adapt import AdaptAccount
    from pyspar.tables.inputs import DataAccount
    from pyspar.tables.label import LabelAccount
    from pyspar.tables.predict import PredictAccount
    from pyspar.tables.summarize import SummaryAccount

_ERRORS = ("rmse", "interval80", "interval95")
_SENTENCES = ("outcome", "severity", "headline", "comparison", "not_covered", "experience", "base_rate", "recommended")


def describe_adapt(account: AdaptAccount) -> dict[str, Any]:
    """Return the result of ``spar adapt``."""
    judgement, scored, correction = account.judgement, account.scored, account.correction
    true = corrected = None
    if scored is not None:
        true = {"rows": scored.model.n, "least_squares": scored.least_squares.rmse, "model": scored.model.rmse}
    if correction is not None:
        corrected = {
            "labels": correction.n_labels,
            "before": correction.expected.rmse_uncorrected,
            "after": _select(correction.expected, *_ERRORS),
            "relation_p_value": correction.p_value,
        }
    return _finish(
        "adapt",
        data=_describe_data(account.data),
        method=account.method,
        alpha=account.alpha if account.method == "spar" else None,
        settings=account.chosen,
        rank=account.rank,
        **_select(judgement, *_SENTENCES),
        next_step=choose_next_step(account),
        **_select(judgement, "home", "home_is_of_groups"),
        expected={"least_squares": _select(account.before, *_ERRORS), "model": _select(account.after, *_ERRORS)},
        noise=account.after.noise**0.5,
        separation=_select(judgement.separation, "auc", "p_value"),
        directions={
            "target": account.directions.total,
            **_select(account.directions, "removed", "shrunk"),
            "outside_share": judgement.outside,
        },
        true=true,
        corrected=corrected,
        findings=[_select(finding, "code", "severity", "text", "advice") for finding in account.findings],
        **_select(account, "notes", "output"),
        model_file=account.save,
    )


def describe_summarize(account: SummaryAccount) -> dict[str, Any]:
    """Return the result of ``spar summarize``."""
    return _finish(
        "summarize",
        **_select(account, "rows", "features", "label", "ignored", "notes"),
        bytes_read=account.n_bytes_in,
        bytes_written=account.n_bytes_out,
        output=account.output,
    )


def describe_label(account: LabelAccount) -> dict[str, Any]:
    """Return the result of ``spar label``."""
    rows = account.choice.rows
    chosen = zip(rows, account.ids or [None] * len(rows), account.choice.reasons, strict=True)
    return _finish(
        "label",
        data=None if account.data is None else _describe_data(account.data),
        rows_with_label=account.n_known,
        rows=[{"row": row, "id": identity, "reason": reason} for row, identity, reason in chosen],
        **_select(account, "notes", "output"),
    )


def describe_predict(account: PredictAccount) -> dict[str, Any]:
    """Return the result of ``spar predict``."""
    errors = account.errors
    true = None if errors is None else {"rows": errors.n, "model": errors.rmse}
    return _finish("predict", **_select(account, "rows", "level"), true=true, **_select(account, "notes", "output"))


def _finish(command: str, /, **result: Any) -> dict[str, Any]:
    return {"command": command, "version": __version__, **_to_plain(**result)}


def _to_plain(**result: Any) -> dict[str, Any]:
    from pyspar.inspection.results import to_plain  # here, because it imports scikit-learn, which --help does not need

    return dict(to_plain(result))


def _select(account: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(account, name) for name in names}


def _describe_data(data: DataAccount) -> dict[str, Any]:
    return {
        "label": data.label,
        "source_rows": data.n_source,
        "target_rows": data.n_target,
        "columns": {"numeric": data.n_numeric, "categorical": data.n_categorical, "date": data.n_date},
        "features": data.n_encoded,
        **_select(data, "imputed", "ignored"),
        "unseen": data.unseen.columns,
    }
