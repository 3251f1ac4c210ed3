"""The verb ``spar reproduce``: which suites, how many seeds, where to; the work is done by ``pyspar.paper``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pyspar.cli import show
from pyspar.cli import show_paper as show_bench


class Device(StrEnum):
    """Where networks are trained."""

    cpu = "cpu"
    cuda = "cuda"


class Kept(StrEnum):
    """Whether the features of trained networks stay on disk."""

    keep = "keep"
    drop = "drop"


EPILOG = "Example: spar reproduce tabular alpha --jobs 2"

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Suites, or all. Without a name they are listed.", show_default=False),
]
Seeds = Annotated[int | None, typer.Option(help="How many seeds; as the paper without it.", show_default=False)]


def reproduce(
    names: Names = None,
    seeds: Seeds = None,
    device: Annotated[Device, typer.Option(help="Where to train networks.")] = Device.cpu,
    out: Annotated[Path, typer.Option(help="Folder for runs, records, tables and figures.")] = Path("reproduction"),
    jobs: Annotated[int, typer.Option(help="How many runs side by side, each with one thread.")] = 1,
    data: Annotated[Path | None, typer.Option(help="Folder with data sets.", show_default=False)] = None,
    features: Annotated[
        Kept, typer.Option(help="Keep the networks' features, so that other heads need no training, or save disk.")
    ] = Kept.keep,
    mini: Annotated[bool, typer.Option("--mini", hidden=True)] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
) -> None:
    """Run experiments of the paper and print the published numbers beside ours.

    Each suite writes records.jsonl (one number a line), table.md, table.csv and its figures into OUT/NAME. Trained
    networks are kept in OUT/runs, so suites share them, a stopped call goes on where it was, and nothing is done twice.
    """
    with show.guard(debug=debug, stopped="stopped; the same command goes on from here"):
        from pyspar.paper.experiments.reproduce import cautions, chosen_suites, listing
        from pyspar.paper.experiments.reproduce import reproduce as run_suite
        from pyspar.paper.runs.run_suite import Options

        if not names:
            show_bench.suites(listing(data))
            return
        options = Options(out, seeds, device.value, jobs, data, features is Kept.keep, mini)
        troubles = 0
        suites = chosen_suites(names)
        for caution in cautions(suites, options):
            show_bench.caution(caution)
        for suite in suites:
            with show_bench.progress(suite.name) as watching:
                result = run_suite(suite, options, watching)
            show_bench.reproduction(result)
            troubles += len(result.troubles)
        if troubles:
            raise typer.Exit(1)
