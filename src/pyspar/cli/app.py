"""The command ``spar``: verbs only. Each checks nothing and computes nothing; it asks a job and shows its account."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from pyspar import __version__
from pyspar.cli import data as cli_data
from pyspar.cli import reproduce as cli_reproduce
from pyspar.cli import show
from pyspar.cli import show_paper as show_bench
from pyspar.cli.progress import status
from pyspar.errors import need

app = typer.Typer(
    name="spar",
    help="Adapt a linear regression to a table of unlabelled rows: the Spectral Adapted Regressor.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(cli_data.app)

_FILES = (
    "Files: .csv and .tsv (also .gz), .parquet (also a folder of them), .npy (a 2-D array; its columns are x0, x1, "
    "...), .npz (a 2-D array X with columns x0, x1, ..., and 1-D arrays under their keys, such as y). "
    "Dates: YYYY-MM-DD, YYYY/MM/DD or DD.MM.YYYY."
)


class Method(StrEnum):
    """How to fit; all but bayes and spar ignore the target."""

    bayes = "bayes"
    spar = "spar"
    ols = "ols"
    ridge = "ridge"
    pcr = "pcr"


class Features(StrEnum):
    """Which columns to use."""

    all = "all"
    num = "num"


Source = Annotated[
    Path,
    typer.Argument(metavar="SOURCE", help="Labelled rows, or what summarize made of them.", show_default=False),
]
Target = Annotated[
    Path,
    typer.Argument(
        metavar="TARGET",
        help="Rows of the new world, which need no label, or what summarize made of them.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        help="The label's column; for .npy and .npz also its number, such as -1. Needed unless SOURCE is a summary.",
        show_default=False,
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        help="Confidence of the paper's rule in [0, 1]: 0 removes nothing, 1 every target direction. 0.999 for spar; "
        "bayes removes none unless it is given.",
        show_default=False,
    ),
]
Columns = Annotated[Features, typer.Option(help="Use all columns, or the numeric ones only.")]
Identity = Annotated[
    str | None, typer.Option("--id", help="A column that names the rows; it is not used as a feature.")
]
Drop = Annotated[list[str] | None, typer.Option(help="A column not to use; may be given again.", show_default=False)]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read in batches: numeric columns without missing values. By itself for files above a quarter of the "
        "free memory.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=lambda on: _version(on), help="Show the version.")
    ] = False,
) -> None:
    """Adapt a linear regression to a table of unlabelled rows: the Spectral Adapted Regressor."""


@app.command(
    help=f"Fit on SOURCE, adapt to TARGET, and predict its rows.\n\n{_FILES}",
    epilog="Example: spar adapt homes-2019.csv homes-2024.csv --label price --id listing -o predictions.csv "
    "--save model.skops",
)
def adapt(
    source: Source,
    target: Target,
    label: Label = None,
    method: Annotated[
        Method,
        typer.Option(
            help="bayes (ridge in units of the target), spar (the paper's), or one that ignores the target, to compare."
        ),
    ] = Method.bayes,
    alpha: Alpha = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Predictions: .csv, .tsv, .parquet, or .npy (the numbers alone)."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="The fitted pipeline, as .skops; read it with pyspar.load."),
    ] = None,
    features: Columns = Features.all,
    identity: Identity = None,
    drop: Drop = None,
    stream: Stream = False,
    debug: Debug = False,
) -> None:
    """Fit on SOURCE, adapt to TARGET, and predict its rows."""
    with show.guard(debug=debug):
        job = _job()
        request = job.Request(source, target, label, alpha, features.value, identity, tuple(drop or ()), stream)
        with status() as line:
            account = job.adapt_files(request, method=method.value, output=output, save=save, watch=line)
    with show.guard(debug=debug, stopped="stopped; everything was written"):
        show.adapt_account(account)


@app.command(
    help="Forecast the error on TARGET of a fit on SOURCE, and show in which directions it cannot be trusted.\n\n"
    f"{_FILES}",
    epilog="Example: spar inspect homes-2019.csv homes-2024.csv --label price --report report.html",
)
def inspect(
    source: Source,
    target: Target,
    label: Label = None,
    top: Annotated[int, typer.Option(min=1, help="How many directions to show.")] = 10,
    report: Annotated[
        Path | None, typer.Option(help="The report for people, one self-contained .html file.", show_default=False)
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="The same report for programs, as .json.", show_default=False)
    ] = None,
    alpha: Alpha = None,
    features: Columns = Features.all,
    identity: Identity = None,
    drop: Drop = None,
    stream: Stream = False,
    debug: Debug = False,
) -> None:
    """Forecast the error on TARGET of a fit on SOURCE, and show in which directions it cannot be trusted."""
    with show.guard(debug=debug):
        job = _job()
        request = job.Request(source, target, label, alpha, features.value, identity, tuple(drop or ()), stream)
        with status() as line:
            account = job.inspect_files(request, top=top, report=report, json=json, watch=line)
    written = "everything was written" if report or json else "nothing was written"
    with show.guard(debug=debug, stopped=f"stopped; {written}"):
        show.inspect_account(account)


@app.command(
    help="Reduce the numeric columns of SOURCE to the few numbers that adapt and inspect need of them, reading it "
    "once and in constant memory. Without --label the result is a target.\n\n"
    "Files: .parquet (also a folder of them), .csv and .tsv (also .gz), .npy.",
    epilog="Example: spar summarize sales-2019.parquet --label price -o sales-2019.npz",
)
def summarize(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Rows.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The summary, as .npz.", show_default=False)],
    label: Annotated[str | None, typer.Option(help="The label's column.", show_default=False)] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="The columns to use, with commas between or given again; all numeric ones without it.",
            show_default=False,
        ),
    ] = None,
    drop: Drop = None,
    debug: Debug = False,
) -> None:
    """Reduce the rows of SOURCE to the few numbers that adapt and inspect need of them."""
    with show.guard(debug=debug):
        need("pandas", "cli")
        from pyspar.tables.summarize import summarize_file

        with status() as line:
            account = summarize_file(
                source, output, label=label, features=features or (), drop=tuple(drop or ()), watch=line
            )
        show.summary_account(account)


app.command(epilog=cli_reproduce.EPILOG)(cli_reproduce.reproduce)


@app.command(epilog="Example: spar demo --out demo-output")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("demo-output"),
    debug: Debug = False,
) -> None:
    """Fit, adapt and compare five methods on a real data set with a natural shift between states."""
    with show.guard(debug=debug):
        need("matplotlib", "paper")
        from pyspar.paper.experiments import demo as story

        with status() as line:
            line("fitting and adapting")
            found = story.run(out)
        show_bench.demo(found)


def run() -> None:
    """Run the command line: the entry point of ``spar``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an arrow that the terminal cannot show is no failure
    app(prog_name="spar")


def _job() -> ModuleType:
    # Imported when a verb runs, so that help is fast and a missing package is named.
    need("pandas", "cli")
    from pyspar.tables import job

    return job


def _version(on: bool) -> None:
    if on:
        typer.echo(f"spar {__version__}")
        raise typer.Exit
