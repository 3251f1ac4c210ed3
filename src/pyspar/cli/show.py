"""Print the accounts of the commands as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import filesize
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspar.terminal import printable
from pyspar.wording import (
    describe_new_categories,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    replace_powers,
    shorten,
)

if TYPE_CHECKING:
    from pyspar.inspection import Inspection, OutputInspection
    from pyspar.inspection.findings import Finding
    from pyspar.inspection.judgement import Judgement
    from pyspar.tables.adapt import AdaptAccount
    from pyspar.tables.inputs import DataAccount
    from pyspar.tables.inspect import InspectAccount
    from pyspar.tables.label import LabelAccount
    from pyspar.tables.predict import PredictAccount
    from pyspar.tables.summarize import SummaryAccount

_MIN_OUTSIDE = 0.001
"""The smallest share of the target outside the source that is printed."""
_STYLES = {"good": "green", "info": "", "warning": "yellow", "serious": "red"}
"""The style of the outcome. Green is for labels that confirm it."""
_CORRECTED_STEP = "Use the corrected predictions. More labels (spar label chooses rows) make them more certain."
"""The next step if the labels of the target have corrected the model."""
_MAX_LINES = 8
"""The largest number of lines with the same label."""


def choose_next_step(account: AdaptAccount) -> str:
    """Return the next step of ``spar adapt``."""
    if not account.correction:
        return account.judgement.next_step
    doubts = [each.code for each in account.findings if each.severity == "serious" or each.code == "SPAR019"]
    if doubts:
        unit = " Compare the units of both label columns." if "SPAR019" in doubts else ""
        return f"Check these findings before you use the corrected predictions ({', '.join(doubts)}).{unit}"
    return _CORRECTED_STEP


def print_adapt(account: AdaptAccount) -> None:
    """Print the result of ``spar adapt``."""
    lines = Lines()
    _add_data(lines, account.data, account.rank)
    lines.add("method", _describe_method(account))
    _add_judgement(lines, account.judgement, choose_next_step(account))
    _add_expected(lines, account)
    _add_labels(lines, account)
    if account.judgement.outside >= _MIN_OUTSIDE:
        lines.add(
            "outside",
            f"{format_percent(account.judgement.outside)} of the target's variation is in directions that never occur "
            "in the source, so the labels carry no information about them",
        )
    lines.add_all("findings", [_describe_finding(finding) for finding in account.findings])
    _add_notes(lines, account.data, account.notes)
    if account.output is not None:
        wrote = f"{account.output} ({_count_noun(account.data.n_target, 'prediction')})"
    elif account.has_rows:
        wrote = "no predictions; use -o predictions.csv to write them"
    else:
        wrote = "no predictions, because the target is a summary without rows"
    lines.add("wrote", wrote)
    if account.save is not None:
        lines.add("saved", f"{account.save} (preprocessing and regressor; read it with pyspar.load)")
    lines.show()


def _add_labels(lines: Lines, account: AdaptAccount) -> None:
    """Add what the labels of the target show: the measured error, and the correction."""
    scored, correction = account.scored, account.correction
    if scored is not None:
        before = "" if account.method == "ols" else f"{format_number(scored.least_squares.rmse)} (least squares) → "
        lines.add(
            "measured",
            f"{before}{format_number(scored.model.rmse)} ({account.method}) RMSE on the "
            f"{_count_noun(scored.model.n, 'target row')} with a label; "
            + ("before the correction" if correction else "the labels did not change the predictions"),
        )
    if correction is not None:
        after, show = correction.expected, "show" if correction.p_value < 0.05 else "do not show"
        lines.add(
            "corrected",
            f"{format_number(after.rmse_uncorrected)} ({account.method}) → {format_number(after.rmse)} (corrected; "
            f"95 %: {format_interval(after.interval95)}) RMSE expected on the target, given its "
            f"{_count_noun(correction.n_labels, 'label')}; the labels {show} that the relation between features and "
            f"label has changed ({format_p_value(correction.p_value)})",
        )


def print_summarize(account: SummaryAccount) -> None:
    """Print the result of ``spar summarize``."""
    lines = Lines()
    lines.add("rows", f"{account.rows:,}")
    label = "no label (a target)" if account.label is None else f"label {account.label!r}"
    lines.add("features", f"{account.features:,} numeric; {label}")
    lines.add_all("ignored", [f"{column.column}: {column.reason}" for column in account.ignored])
    lines.add_all("note", list(account.notes))
    sizes = f"{filesize.decimal(account.n_bytes_out)} from {filesize.decimal(account.n_bytes_in)} of rows"
    lines.add("wrote", f"{account.output} ({sizes}); adapt and inspect accept it in place of the rows")
    lines.show()


def print_inspect(account: InspectAccount) -> None:
    """Print the result of ``spar inspect``. All numbers are those of the inspection, as in the reports."""
    inspection, (output,) = account.inspection, account.inspection.outputs
    lines = Lines()
    _add_data(lines, account.data, inspection.rank)
    _add_judgement(lines, output)
    lines.add("at home", f"{format_number(output.home)} RMSE{output.on_groups}")
    lines.add_all("on target", forecast_lines(inspection))
    lines.add("separation", _describe_separation(inspection))
    if inspection.has_rule:
        removed = sum(direction.goes for direction in output.directions)
        count = _count_noun(len(output.directions), "target direction")
        lines.add("rule", f"at alpha {inspection.alpha:g} it removes {removed:,} of {count}")
    findings = [finding for finding in inspection.findings if finding != output.findings[0]]  # printed as the outcome
    lines.add_all("findings", [_describe_finding(finding) for finding in findings])
    _add_notes(lines, account.data, account.notes)
    for path in account.written:
        lines.add("wrote", str(path))
    lines.show()
    _print_directions(output, account.top, has_rule=inspection.has_rule)


def print_label(account: LabelAccount) -> None:
    """Print the rows to label, and what to do with them."""
    lines = Lines()
    known = f"; {account.n_known:,} have a label already" if account.n_known else ""
    source = "" if account.data is None else f"{account.data.n_source:,} source, "
    lines.add("rows", f"{source}{account.n_target:,} target{known}")
    label = "label first"
    for row, reason in zip(account.choice.rows, account.choice.reasons):
        lines.add(label, f"row {row}: {reason}")
        label = ""
    _add_notes(lines, account.data, account.notes)
    if account.output is None:
        lines.add("wrote", "nothing; use -o to_label.csv to write these rows")
    else:
        rows = _count_noun(len(account.choice), "row")
        lines.add("wrote", f"{account.output} ({rows} with an empty column for the label; rows are counted from 0)")
        run = f"run spar adapt with --labels {account.output} --use-target-labels"
        if account.data is None:
            run += ", which needs the source file; without it, use pyspar.TargetCorrection(model) in Python"
        lines.add("next step", f"fill in {account.label!r}, and {run}")
    lines.show()


def print_predict(account: PredictAccount) -> None:
    """Print how many rows were predicted, and the error if the file has labels."""
    lines = Lines()
    lines.add("rows", f"{account.rows:,}")
    intervals = "no intervals" if account.level is None else f"intervals at level {account.level:g}"
    if account.errors is not None:
        rows = _count_noun(account.errors.n, "row")
        lines.add("measured", f"{format_number(account.errors.rmse)} RMSE on {rows} with a label")
    for note in account.notes:
        lines.add("note", note)
    lines.add("wrote", f"{account.output} ({_count_noun(account.rows, 'prediction')}, {intervals})")
    lines.show()


def _add_judgement(lines: Lines, judged: Judgement | OutputInspection, next_step: str | None = None) -> None:
    """Add the sentences of the judgement, which the reports have as well. ``next_step`` replaces its next step."""
    lines.add("outcome", judged.headline, style=_STYLES[judged.severity])
    texts = {"labels": judged.comparison, "not covered": judged.not_covered, "experience": judged.experience}
    for label, text in texts.items():
        if text:
            lines.add(label, text)
    lines.add("next step", next_step or judged.next_step)


def _describe_finding(finding: Finding) -> str:
    return f"{finding.code} {finding.severity}: {finding.text} {finding.advice}"


def _describe_separation(inspection: Inspection) -> str:
    separation = inspection.separation
    found = "found a shift" if separation.found else "found no shift"
    found += ", but matched rows" if separation.matched else ""
    return (
        f"the two-sample test {found} ({format_p_value(separation.p_value)}); the expected AUC of a linear "
        f"discriminant between source and target, computed from means and covariances, is {separation.auc:.2f}"
    )


def forecast_lines(inspection: Inspection) -> list[str]:
    """Return a line with the expected RMSE and its intervals for each set of weights."""
    lines = []
    for output in inspection.outputs:
        width = max(len(forecast.name) for forecast in output.forecasts)
        for forecast in output.forecasts:
            lines.append(
                f"{forecast.name:<{width}}  {format_number(forecast.rmse)} RMSE  "
                f"(80 %: {format_interval(forecast.interval80)}; 95 %: {format_interval(forecast.interval95)})"
            )
    return lines


class Lines:
    """Labelled lines. Their text is never interpreted as markup, because it contains names from files."""

    def __init__(self) -> None:
        self._grid = Table.grid(padding=(0, 2, 0, 0))
        self._grid.add_column(no_wrap=True, style="bold")
        self._grid.add_column(overflow="fold")

    def add(self, label: str, text: str, style: str = "") -> None:
        self._grid.add_row(Text(label), Text(_encodable(printable(shorten(text))), style=style))

    def add_all(self, label: str, texts: list[str]) -> None:
        for text in texts[:_MAX_LINES]:
            self.add(label, text)
            label = ""
        if len(texts) > _MAX_LINES:
            self.add("", f"and {len(texts) - _MAX_LINES} more")

    def show(self) -> None:
        Console(highlight=False).print(self._grid)


def _print_directions(output: OutputInspection, top: int, *, has_rule: bool) -> None:
    table = Table(
        title=f"the {_count_noun(len(output.directions), 'target direction')}, largest keep cost first",
        title_justify="left", title_style="bold", header_style="", box=None, pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for name in ("", "keep cost", "removal cost", "share", "removed"):
        table.add_column(name, justify="right", no_wrap=True)
    if has_rule:
        table.add_column("rule", no_wrap=True)
    table.add_column("columns", overflow="fold")
    total = sum(direction.keeping for direction in output.directions)
    for place, direction in enumerate(output.directions[:top], 1):
        loads = ", ".join(f"{name} {_whole_percent(share)}" for name, share in direction.loads[:3] if share >= 0.005)
        outside = f" ({_whole_percent(direction.outside)} outside the source)" if direction.outside >= 0.005 else ""
        share = direction.keeping / total if total > 0.0 else 0.0
        rule = [Text("remove" if direction.goes else "keep")] if has_rule else []
        table.add_row(
            str(place), *(Text(_encodable(format_number(cost))) for cost in (direction.keeping, direction.removing)),
            f"{100.0 * share:.1f} %", _whole_percent(direction.removed), *rule,
            Text(printable(shorten(loads + outside))),
        )  # fmt: skip
    console = Console(highlight=False)
    console.print()
    console.print(table)
    console.print()
    console.print(
        Text(
            "keep cost: variance per row of the weight along the direction; removal cost: estimated squared error per "
            "row if that weight is zero; share: of all keep costs; removed: share of the weight that adapting removes; "
            f"{'rule: the decision of the rule; ' if has_rule else ''}columns: those with the largest loadings.",
            style="dim",
        )
    )


def _add_data(lines: Lines, data: DataAccount, rank: int) -> None:
    lines.add("rows", f"{data.n_source:,} source, {data.n_target:,} target")
    counts = ((data.n_numeric, "numeric"), (data.n_categorical, "categorical"), (data.n_date, "date"))
    kinds = ", ".join(f"{count:,} {kind}" for count, kind in counts if count)
    lines.add("features", f"{kinds}; {data.n_encoded:,} after encoding, rank {rank:,}; label {data.label!r}")


def _describe_method(account: AdaptAccount) -> str:
    directions = account.directions
    removed = f"{directions.removed:,} of {_count_noun(directions.total, 'target direction')} removed"
    if account.method == "spar":
        return f"spar, alpha {account.alpha:g}: {removed}"
    if account.method == "bayes":
        return f"bayes, {account.chosen}: {removed}, {directions.shrunk:,} shrunk"
    names = {"ols": "least squares, not adapted", "ridge": "ridge regression", "pcr": "principal component regression"}
    return names[account.method] + (f": {account.chosen}" if account.chosen else "")


def _add_expected(lines: Lines, account: AdaptAccount) -> None:
    """Add the expected errors of least squares and of the weights that predict, on noisy labels."""
    before, after, method = account.before, account.after, account.method
    if not (math.isfinite(before.rmse) and math.isfinite(after.rmse)):
        lines.add("expected", "unknown; the error is too large to compute")
        return
    least_squares = "" if method == "ols" else f"{format_number(before.rmse)} (least squares) → "
    unused = "without the target's labels: " if account.correction else ""
    interval = format_interval(after.interval95)
    lines.add(
        "expected",
        f"{unused}{least_squares}{format_number(after.rmse)} ({method}; 95 %: {interval}) RMSE on the target, "
        f"{format_number(account.judgement.home)} at home{account.judgement.on_groups}",
    )
    included = "'expected' and 'measured' include it" if account.scored else "'expected' includes it"
    lines.add("noise", f"{format_number(math.sqrt(after.noise))} in each label, estimated on the source; {included}")


def _add_notes(lines: Lines, data: DataAccount | None, notes: tuple[str, ...]) -> None:
    """Add what was imputed, unseen and ignored, and the notes."""
    if data is not None:
        imputed = [
            f"{column.column}: {column.source:,} source, {column.target:,} target, with {column.value}"
            for column in data.imputed
        ]
        unseen = [f"{c.column}: {describe_new_categories(c.rows, c.categories)}" for c in data.unseen.columns]
        lines.add_all("imputed", imputed)
        lines.add_all("unseen", unseen)
        lines.add_all("ignored", [f"{column.column}: {column.reason}" for column in data.ignored])
    for note in notes:
        lines.add("note", note)


def _count_noun(n: int, noun: str) -> str:
    """Return a number and a noun in singular or plural."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"


def _whole_percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _encodable(text: str) -> str:
    """Return a text without superscripts if the terminal cannot show it."""
    try:
        text.encode(Console().encoding)
    except (UnicodeEncodeError, LookupError):
        return replace_powers(text)
    return text
