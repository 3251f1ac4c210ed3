"""Print the accounts of ``spar label`` and ``spar predict``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspar.cli.show import Lines, add_notes, count_noun
from pyspar.wording import format_number

if TYPE_CHECKING:
    from pyspar.tables.correct import LabelAccount
    from pyspar.tables.predict import PredictAccount


def print_label(account: LabelAccount) -> None:
    """Print the rows to label, the most useful first."""
    lines = Lines()
    known = f"; {account.n_known:,} have a label already" if account.n_known else ""
    lines.add("rows", f"{account.data.n_source:,} source, {account.data.n_target:,} target{known}")
    label = "label first"
    for row, reason in zip(account.choice.rows, account.choice.reasons):
        lines.add(label, f"row {row}: {reason}")
        label = ""
    add_notes(lines, account.data, account.notes)
    if account.output is None:
        lines.add("wrote", "nothing; use -o to_label.csv to write these rows")
    else:
        rows = count_noun(len(account.choice), "row")
        lines.add("wrote", f"{account.output} ({rows} with an empty column for the label; rows are counted from 0)")
        lines.add(
            "next step",
            f"fill in {account.data.label!r}, and run spar adapt with --labels {account.output} --use-target-labels",
        )
    lines.show()


def print_predict(account: PredictAccount) -> None:
    """Print how many rows were predicted, and the error if the file has labels."""
    lines = Lines()
    lines.add("rows", f"{account.rows:,}")
    intervals = "no intervals" if account.level is None else f"intervals at level {account.level:g}"
    if account.errors is not None:
        rows = count_noun(account.errors.n, "row")
        lines.add("true", f"{format_number(account.errors.rmse)} RMSE on {rows} with a label")
    for note in account.notes:
        lines.add("note", note)
    lines.add("wrote", f"{account.output} ({count_noun(account.rows, 'prediction')}, {intervals})")
    lines.show()
