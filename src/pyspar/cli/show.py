"""The accounts of the commands as text: lines with labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich import filesize
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspar.terminal import print_table, printable
from pyspar.wording import (
    count_noun,
    describe_new_categories,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
)

if TYPE_CHECKING:
    from pyspar.inspection.findings import Finding
    from pyspar.inspection.judgement import Judgement
    from pyspar.tables.adapt import AdaptAccount
    from pyspar.tables.inputs import DataAccount
    from pyspar.tables.inspect import InspectAccount
    from pyspar.tables.label import LabelAccount
    from pyspar.tables.predict import PredictAccount
    from pyspar.tables.summarize import SummaryAccount

Lines = Iterator[tuple[str, ...]]
"""The label of each line, which is empty if it is that of the line before, its text, and its style if it has one."""
_MIN_OUTSIDE = 0.001
"""The smallest share of the target outside the source that is printed."""
_STYLES = {"good": "green", "info": "", "warning": "yellow", "serious": "red"}
"""The style of the outcome. Green is for labels that confirm it."""
_CORRECTED_STEP = "Use the corrected predictions. More labels (spar label chooses rows) make them more certain."
"""The next step if the labels of the target have corrected the model."""
_MAX_LENGTH = 2000
_MAX_LINES = 8
"""The largest number of lines with the same label."""
_METHODS = {"ols": "least squares, not adapted", "ridge": "ridge regression"}


def choose_next_step(account: AdaptAccount) -> str:
    """Return the next step of ``spar adapt``."""
    if not account.correction:
        return account.judgement.next_step
    doubts = [each.code for each in account.findings if each.severity == "serious" or each.code == "SPAR019"]
    if doubts:
        unit = " Compare the units of both label columns." if "SPAR019" in doubts else ""
        return f"Check these findings before you use the corrected predictions ({', '.join(doubts)}).{unit}"
    return _CORRECTED_STEP


def print_lines(lines: Iterable[tuple[str, ...]]) -> None:
    """Print labels, texts and their styles if any. No text is markup, because it contains names from files."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for label, text, *style in lines:
        cell = Text(printable(text), style="".join(style))
        cell.truncate(_MAX_LENGTH, overflow="ellipsis")  # a column may have a very long name
        grid.add_row(Text(label), cell)
    print_table(grid)


def list_adapt(account: AdaptAccount) -> Lines:
    """Yield the lines of ``spar adapt``."""
    judgement = account.judgement
    yield from _list_data(account.data, account.rank)
    yield "method", _describe_method(account)
    yield from _list_judgement(judgement, choose_next_step(account))
    yield from _list_expected(account)
    yield from _list_labels(account)
    if judgement.outside >= _MIN_OUTSIDE:
        yield (
            "outside",
            f"{format_percent(judgement.outside)} of the target's variation is in directions that never occur in the "
            "source, so the labels carry no information about them",
        )
    yield from _list_first("findings", map(_describe_finding, account.findings))
    yield from _list_notes(account.data, account.notes)
    if account.output is not None:
        yield "wrote", f"{account.output} ({count_noun(account.data.n_target, 'prediction')})"
    elif account.has_rows:
        yield "wrote", "no predictions; use -o predictions.csv to write them"
    else:
        yield "wrote", "no predictions, because the target is a summary without rows"
    if account.save is not None:
        yield "saved", f"{account.save} (preprocessing and regressor; read it with pyspar.load)"


def _list_expected(account: AdaptAccount) -> Lines:
    """Yield the expected errors of least squares and of the weights that predict, on noisy labels."""
    before, after, method = account.before, account.after, account.method
    if not (math.isfinite(before.rmse) and math.isfinite(after.rmse)):
        yield "expected", "unknown; the error is too large to compute"
        return
    unused = "without the target's labels: " if account.correction else ""
    yield (
        "expected",
        f"{unused}{_show_least_squares(method, before.rmse)}{format_number(after.rmse)} ({method}; 95 %: "
        f"{format_interval(after.interval95)}) RMSE on the target, {format_number(account.judgement.home)} at home"
        f"{account.judgement.on_groups}",
    )
    included = "'expected' and 'measured' include it" if account.scored else "'expected' includes it"
    yield "noise", f"{format_number(math.sqrt(after.noise))} in each label, estimated on the source; {included}"


def _list_labels(account: AdaptAccount) -> Lines:
    """Yield what the labels of the target show: the measured error, and the correction."""
    scored, correction = account.scored, account.correction
    if scored is not None:
        used = "before the correction" if correction else "the labels did not change the predictions"
        yield (
            "measured",
            f"{_show_least_squares(account.method, scored.least_squares.rmse)}{format_number(scored.model.rmse)} "
            f"({account.method}) RMSE on the {count_noun(scored.model.n, 'target row')} with a label; {used}",
        )
    if correction is not None:
        after, show = correction.expected, "show" if correction.p_value < 0.05 else "do not show"
        yield (
            "corrected",
            f"{format_number(after.rmse_uncorrected)} ({account.method}) → {format_number(after.rmse)} (corrected; "
            f"95 %: {format_interval(after.interval95)}) RMSE expected on the target, given its "
            f"{count_noun(correction.n_labels, 'label')}; the labels {show} that the relation between features and "
            f"label has changed ({format_p_value(correction.p_value)})",
        )


def _show_least_squares(method: str, rmse: float) -> str:
    return "" if method == "ols" else f"{format_number(rmse)} (least squares) → "


def list_summarize(account: SummaryAccount) -> Lines:
    """Yield the lines of ``spar summarize``."""
    yield "rows", f"{account.rows:,}"
    label = "no label (a target)" if account.label is None else f"label {account.label!r}"
    yield "features", f"{account.features:,} numeric; {label}"
    yield from _list_first("ignored", [f"{column.column}: {column.reason}" for column in account.ignored])
    yield from _list_first("note", account.notes)
    sizes = f"{filesize.decimal(account.n_bytes_out)} from {filesize.decimal(account.n_bytes_in)} of rows"
    yield "wrote", f"{account.output} ({sizes}); adapt and inspect accept it in place of the rows"


def list_inspect(account: InspectAccount) -> Lines:
    """Yield the lines of ``spar inspect``. All numbers are those of the inspection, as in the reports."""
    inspection, (output,) = account.inspection, account.inspection.outputs
    yield from _list_data(account.data, inspection.rank)
    yield from _list_judgement(output, output.next_step)
    yield "at home", f"{format_number(output.home)} RMSE{output.on_groups}"
    width = max(len(forecast.name) for forecast in output.forecasts)
    forecasts = [
        f"{forecast.name:<{width}}  {format_number(forecast.rmse)} RMSE  "
        f"(80 %: {format_interval(forecast.interval80)}; 95 %: {format_interval(forecast.interval95)})"
        for forecast in output.forecasts
    ]
    yield from _list_first("on target", forecasts)
    separation = inspection.separation
    found = "found a shift" if separation.found else "found no shift"
    found += ", but matched rows" if separation.matched else ""
    yield (
        "separation",
        f"the two-sample test {found} ({format_p_value(separation.p_value)}); the expected AUC of a linear "
        f"discriminant between source and target, computed from means and covariances, is {separation.auc:.2f}",
    )
    if inspection.has_rule:
        removed = sum(direction.goes for direction in output.directions)
        count = count_noun(len(output.directions), "target direction")
        yield "rule", f"at alpha {inspection.alpha:g} it removes {removed:,} of {count}"
    findings = [finding for finding in inspection.findings if finding != output.findings[0]]  # printed as the outcome
    yield from _list_first("findings", map(_describe_finding, findings))
    yield from _list_notes(account.data, account.notes)
    for path in account.written:
        yield "wrote", str(path)


def list_label(account: LabelAccount) -> Lines:
    """Yield the rows to label, and what to do with them."""
    known = f"; {account.n_known:,} have a label already" if account.n_known else ""
    source = "" if account.data is None else f"{account.data.n_source:,} source, "
    yield "rows", f"{source}{account.n_target:,} target{known}"
    name, ids = account.identity or "row", account.ids or account.choice.rows
    chosen = [f"{name} {each}: {reason}" for each, reason in zip(ids, account.choice.reasons)]
    yield from _list_first("label first", chosen, len(chosen))
    yield from _list_notes(account.data, account.notes)
    if account.output is None:
        yield "wrote", "nothing; use -o to_label.csv to write these rows"
        return
    rows = count_noun(len(account.choice), "row")
    yield "wrote", f"{account.output} ({rows} with an empty column for the label; rows are counted from 0)"
    run = f"run spar adapt with --labels {account.output} --use-target-labels"
    if account.data is None:
        run += ", which needs the source file; without it, use pyspar.TargetCorrection(model) in Python"
    yield "next step", f"fill in {account.label!r}, and {run}"


def list_predict(account: PredictAccount) -> Lines:
    """Yield how many rows were predicted, and the error if the file has labels."""
    yield "rows", f"{account.rows:,}"
    if account.errors is not None:
        rows = count_noun(account.errors.n, "row")
        yield "measured", f"{format_number(account.errors.rmse)} RMSE on {rows} with a label"
    yield from _list_notes(None, account.notes)
    intervals = "no intervals" if account.level is None else f"intervals at level {account.level:g}"
    yield "wrote", f"{account.output} ({count_noun(account.rows, 'prediction')}, {intervals})"


def print_line(text: str, *, style: str = "", stderr: bool = False) -> None:
    """Print a text as one line, which a terminal may wrap."""
    Console(highlight=False, soft_wrap=True, stderr=stderr).print(Text(printable(text), style=style))


def _list_judgement(judged: Judgement, next_step: str) -> Lines:
    """Yield the sentences of the judgement, which the reports have as well, and the next step."""
    yield "outcome", judged.headline, _STYLES[judged.severity]
    texts = {"labels": judged.comparison, "not covered": judged.not_covered, "experience": judged.experience}
    yield from ((label, text) for label, text in texts.items() if text)
    yield "next step", next_step


def _describe_finding(finding: Finding) -> str:
    return f"{finding.code} {finding.severity}: {finding.text} {finding.advice}"


def _list_first(label: str, texts: Iterable[str], limit: int = _MAX_LINES) -> Lines:
    """Yield the first lines with a label, and the number of the others."""
    texts = list(texts)
    more = [f"and {len(texts) - limit} more"] if len(texts) > limit else []
    yield from zip([label, *[""] * limit], [*texts[:limit], *more])


def _list_data(data: DataAccount, rank: int) -> Lines:
    yield "rows", f"{data.n_source:,} source, {data.n_target:,} target"
    counts = ((data.n_numeric, "numeric"), (data.n_categorical, "categorical"), (data.n_date, "date"))
    kinds = ", ".join(f"{count:,} {kind}" for count, kind in counts if count)
    yield "features", f"{kinds}; {data.n_encoded:,} after encoding, rank {rank:,}; label {data.label!r}"


def _describe_method(account: AdaptAccount) -> str:
    directions = account.directions
    removed = f"{directions.removed:,} of {count_noun(directions.total, 'target direction')} removed"
    if account.method == "spar":
        return f"spar, alpha {account.alpha:g}: {removed}"
    if account.method == "bayes":
        return f"bayes, {account.chosen}: {removed}, {directions.shrunk:,} shrunk"
    return _METHODS[account.method] + (f": {account.chosen}" if account.chosen else "")


def _list_notes(data: DataAccount | None, notes: tuple[str, ...]) -> Lines:
    """Yield what was imputed, unseen and ignored, and the notes."""
    if data is not None:
        imputed = [f"{c.column}: {c.source:,} source, {c.target:,} target, with {c.value}" for c in data.imputed]
        unseen = [f"{c.column}: {describe_new_categories(c.rows, c.categories)}" for c in data.unseen.columns]
        yield from _list_first("imputed", imputed)
        yield from _list_first("unseen", unseen)
        yield from _list_first("ignored", [f"{c.column}: {c.reason}" for c in data.ignored])
    yield from (("note", note) for note in notes)
