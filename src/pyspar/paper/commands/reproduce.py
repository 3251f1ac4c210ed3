"""The command ``spar reproduce``: run experiments, and print published numbers next to ours."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspar.paper.commands import handle_errors, print_json, print_table

if TYPE_CHECKING:
    from pyspar.paper.output.tables import Result

Device = StrEnum("Device", ["cpu", "cuda"])
Retention = StrEnum("Retention", ["keep", "drop"])
EPILOG = "Example: spar reproduce tabular alpha --jobs 2"


def _option(text: str, *names: str, **options: Any) -> Any:
    return typer.Option(*names, help=text, show_default=False, **options)


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME", help="Names of suites, or all. Without a name, the suites are listed.", show_default=False
    ),
]


def reproduce(
    names: Names = None,
    seeds: Annotated[int | None, _option("Number of seeds; by default as in the paper.")] = None,
    device: Annotated[Device, typer.Option(help="Device that trains networks.")] = Device.cpu,
    out: Annotated[Path, typer.Option(help="Folder for runs, records, tables and figures.")] = Path("reproduction"),
    jobs: Annotated[
        int | None, _option("Networks at a time, each with one thread; by default one per core, and one on a GPU.")
    ] = None,
    data: Annotated[Path | None, _option("Folder with data sets.")] = None,
    methods: Annotated[
        list[str] | None, _option("A training method to run, such as ERM; may be repeated. The default is all.")
    ] = None,
    eval_batch: Annotated[
        int, typer.Option(help="Rows per batch where no gradient is needed; lower it if memory runs out.")
    ] = 256,
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

    Each suite writes records.jsonl (one number per line), table.md and its figures into OUT/NAME. Results of
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
                rows = [(name, state, about) for name, about, state in suites]
                print_table(_make_table("spar reproduce NAME... | all", ("name", "state", "description"), rows))
            return
        options = Options(
            out, seeds, device.value, jobs, data, features is Retention.keep, mini, tuple(methods or ()), eval_batch,
            show=True,
        )  # fmt: skip
        selected = paper.select_suites(names)
        for caution in paper.find_cautions(selected, options):
            typer.secho(f"note: {caution}", fg="yellow", err=True)
        done = []
        for suite in selected:
            done.append(paper.reproduce(suite, options))
            if not json:
                print_result(done[-1])
        if json:
            print_json([asdict(result) for result in done])
        if any(result.failures for result in done):
            raise typer.Exit(1)


def _check(results: Path, names: list[str] | None, *, json: bool) -> None:
    """Print every record that is stale, missing or orphaned, and exit with status 1 if there is one."""
    from pyspar.paper.experiments.check import check_results
    from pyspar.paper.experiments.reproduce import select_suites
    from pyspar.paper.output.page import PAGE, is_current

    chosen = [suite.name for suite in select_suites(names)] if names and "all" not in names else None
    problems = [str(problem) for problem in check_results(results, chosen)]
    page = results.parent / PAGE
    if chosen is None and page.is_file() and not is_current(page, results):
        problems.append(f"stale: {page} does not follow from the records; run: python -m pyspar.paper.output.page")
    if json:
        print_json({"problems": problems})
    else:
        for problem in problems:
            typer.secho(problem, fg="red", err=True)
        counted = f"{len(problems)} problem{'s' * (len(problems) != 1)}" if problems else ""
        typer.echo(counted or "every record is current", err=bool(problems))
    if problems:
        raise typer.Exit(1)


def print_result(result: Result) -> None:
    """Print the tables and remarks of a suite, the failures, and the paths of the written files."""
    console = Console(highlight=False)
    console.print(Text(result.title, style="bold"))
    for sheet in result.sheets:
        print_table(_make_table(sheet.title, sheet.header, sheet.rows))
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


def _make_table(title: str, header: tuple[str, ...], rows: Any) -> Table:
    table = Table(title=Text(title), title_style="", title_justify="left")
    for name in header:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
