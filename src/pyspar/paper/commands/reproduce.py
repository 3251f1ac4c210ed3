"""The command ``spar reproduce``: run experiments, and print published numbers next to ours."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspar.terminal import handle_errors, print_json, print_table, show_progress

if TYPE_CHECKING:
    from pyspar.paper.output.tables import Result, Sheet


class Device(StrEnum):
    """The device that trains networks."""

    cpu = "cpu"
    cuda = "cuda"


class Retention(StrEnum):
    """Whether the features of trained networks stay on disk."""

    keep = "keep"
    drop = "drop"


EPILOG = "Example: spar reproduce tabular alpha --jobs 2"

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME", help="Names of suites, or all. Without a name, the suites are listed.", show_default=False
    ),
]
Seeds = Annotated[int | None, typer.Option(help="Number of seeds; by default as in the paper.", show_default=False)]


def reproduce(
    names: Names = None,
    seeds: Seeds = None,
    device: Annotated[Device, typer.Option(help="Device that trains networks.")] = Device.cpu,
    out: Annotated[Path, typer.Option(help="Folder for runs, records, tables and figures.")] = Path("reproduction"),
    jobs: Annotated[int, typer.Option(help="Number of runs at a time, each with one thread.")] = 1,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets.", show_default=False)] = None,
    features: Annotated[
        Retention,
        typer.Option(help="Keep the features of networks, so that new heads require no training, or drop them."),
    ] = Retention.keep,
    check: Annotated[
        bool,
        typer.Option("--check", help="Run nothing; verify that the committed records are of the current methods."),
    ] = False,
    results: Annotated[Path, typer.Option(help="Folder with committed records, for --check.")] = Path("results"),
    json: Annotated[
        bool, typer.Option("--json", help="Print the suites or the results as JSON on stdout, and nothing else.")
    ] = False,
    mini: Annotated[bool, typer.Option("--mini", hidden=True)] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Run experiments of the paper and print the published numbers next to ours.

    Each suite writes records.jsonl (one number per line), table.md, table.csv and its figures into OUT/NAME. Results of
    trained networks are stored in OUT/runs. Suites share them, and an interrupted command continues from them.
    """
    with handle_errors(debug=debug, stopped="interrupted; run the same command again to continue"):
        from pyspar.paper.experiments import reproduce as paper
        from pyspar.paper.runs.run_suite import Options

        if check:
            _check(results, names, json=json)
            return
        if not names:
            suites = paper.describe_suites(data)
            if json:
                print_json([{"name": name, "about": about, "state": state} for name, about, state in suites])
            else:
                print_suites(suites)
            return
        options = Options(out, seeds, device.value, jobs, data, features is Retention.keep, mini)
        selected = paper.select_suites(names)
        for caution in paper.find_cautions(selected, options):
            typer.secho(f"note: {caution}", fg="yellow", err=True)
        failures, printed = 0, []
        for suite in selected:
            with show_progress(True) as progress:
                result = paper.reproduce(suite, options, progress)
            printed.append(asdict(result))
            if not json:
                print_result(result)
            failures += len(result.failures)
        if json:
            print_json(printed)
        if failures:
            raise typer.Exit(1)


def _check(results: Path, names: list[str] | None, *, json: bool) -> None:
    """Print every record that is stale, missing or orphaned, and exit with status 1 if there is one."""
    from pyspar.paper.experiments.check import check_results
    from pyspar.paper.experiments.reproduce import select_suites
    from pyspar.paper.output.page import PAGE, is_current

    with show_progress() as progress:
        progress.start("check", "comparing records")
        chosen = [suite.name for suite in select_suites(names)] if names and "all" not in names else None
        problems = list(map(str, check_results(results, chosen)))
        page = results.parent / PAGE
        if chosen is None and page.is_file() and not is_current(page, results):
            problems.append(f"stale: {page} does not follow from the records; run: python -m pyspar.paper.output.page")
    if json:
        print_json(problems)
    else:
        for problem in problems:
            typer.secho(problem, fg="red", err=True)
        summary = f"{len(problems)} problem{'s' * (len(problems) != 1)}" if problems else "every record is current"
        typer.echo(summary, err=bool(problems))
    if problems:
        raise typer.Exit(1)


def print_result(result: Result) -> None:
    """Print the tables and remarks of a suite, the failures, and the paths of the written files."""
    console = Console(highlight=False)
    console.print(Text(result.title, style="bold"))
    for sheet in result.sheets:
        print_table(_make_table(sheet, console.width))
        for note in sheet.notes:
            console.print(Text(note))
    for remark in result.remarks:
        console.print(Text(f"- {remark}"))
    for failure in result.failures:
        console.print(Text(f"not done: {failure}", style="red"))
    for notice in result.notices:
        typer.echo(f"notice: {notice}", err=True)
    for path in result.files:
        typer.echo(f"wrote {path}")


def print_suites(suites: list[tuple[str, str, str]]) -> None:
    """Print the name, state and description of each suite."""
    table = Table(title="spar reproduce NAME... | all", title_style="")
    header = ("name", "state", "description")
    rows = [(name, state, about) for name, about, state in suites]
    for name, width in zip(header, column_widths([header, *rows], Console().width)):
        table.add_column(name, width=width, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    print_table(table)


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
