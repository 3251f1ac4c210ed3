"""Terminal output of the experiments: tables of published numbers next to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pyspar.paper.output.tables import Result, Sheet


def print_caution(text: str) -> None:
    """Print a warning before a long computation."""
    Console(stderr=True, highlight=False).print(Text(f"note: {text}", style="yellow"), soft_wrap=True)


def print_result(result: Result) -> None:
    """Print the tables and remarks of a suite, the failures, and the paths of the written files."""
    console = Console(highlight=False)
    console.print(Text(result.title, style="bold"))
    for sheet in result.sheets:
        console.print(_make_table(sheet, console.width))
        for note in sheet.notes:
            console.print(Text(note))
    for remark in result.remarks:
        console.print(Text(f"- {remark}"))
    for failure in result.failures:
        console.print(Text(f"not done: {failure}", style="red"))
    for notice in result.notices:
        Console(stderr=True, highlight=False).print(Text(f"notice: {notice}"), soft_wrap=True)
    for path in result.files:
        console.print(Text(f"wrote {path}"), soft_wrap=True)


def print_check(problems: list[str]) -> None:
    """Print the problems of the committed records, or that there are none."""
    console = Console(stderr=bool(problems), highlight=False)
    for problem in problems:
        console.print(Text(problem, style="red"), soft_wrap=True)
    summary = f"{len(problems)} problem{'s' * (len(problems) != 1)}" if problems else "every record is current"
    console.print(Text(summary))


def print_suites(suites: list[tuple[str, str, str]]) -> None:
    """Print the name, state and description of each suite."""
    table = Table(title="spar reproduce NAME... | all", title_style="")
    header = ("name", "state", "description")
    rows = [(name, state, about) for name, about, state in suites]
    console = Console(highlight=False)
    for name, width in zip(header, column_widths([header, *rows], console.width)):
        table.add_column(name, width=width, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def column_widths(rows: list[tuple[str, ...]], total: int) -> list[int]:
    """Return the widths of columns in a terminal with a total width.

    If the table is too wide, the widest columns are reduced first, down to their longest word. A mean with its spread
    counts as one word. Words are broken only if the table would still be too wide.

    >>> column_widths([("method", "mean"), ("ERM + SpAR", "1.0 ± 0.1")], 80)
    [10, 9]
    >>> column_widths([("method", "mean"), ("ERM + SpAR", "1.0 ± 0.1")], 24), column_widths([("method", "mean")], 10)
    ([8, 9], [2, 1])
    """
    columns = list(zip(*rows))
    widths = [max(1, *map(cell_len, column)) for column in columns]
    longest_words = [max(1, *(cell_len(word) for cell in column for word in _split_words(cell))) for column in columns]
    available = total - 3 * len(columns) - 1  # without borders and padding
    for limits in (longest_words, [1] * len(columns)):
        while sum(widths) > available and widths != limits:
            width, widest = max((width, i) for i, width in enumerate(widths) if width > limits[i])
            widths[widest] = width - 1
    return widths


def _split_words(cell: str) -> list[str]:
    """Return the parts of a cell that should stay on one line."""
    return [cell] if "±" in cell and "(" not in cell else cell.split() or [cell]


def _make_table(sheet: Sheet, width: int) -> Table:
    table = Table(title=Text(sheet.title), title_style="", title_justify="left")
    for name, column_width in zip(sheet.header, column_widths([sheet.header, *sheet.rows], width)):
        table.add_column(Text(name), width=column_width, overflow="fold")
    has_sections = len({row[0] for row in sheet.rows}) < len(sheet.rows)
    section = None
    for row in sheet.rows:
        if has_sections and section not in (None, row[0]):
            table.add_section()
        table.add_row(*(Text(cell) for cell in row))
        section = row[0]
    return table
