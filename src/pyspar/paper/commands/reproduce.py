"""The command ``spar reproduce``."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pyspar.paper.commands import show_results
from pyspar.terminal import handle_errors, print_json, show_progress


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
                show_results.print_suites(suites)
            return
        options = Options(out, seeds, device.value, jobs, data, features is Retention.keep, mini)
        selected = paper.select_suites(names)
        for caution in paper.find_cautions(selected, options):
            show_results.print_caution(caution)
        failures, printed = 0, []
        for suite in selected:
            with show_progress(True) as progress:
                result = paper.reproduce(suite, options, progress)
            printed.append(asdict(result))
            if not json:
                show_results.print_result(result)
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
        show_results.print_check(problems)
    if problems:
        raise typer.Exit(1)
