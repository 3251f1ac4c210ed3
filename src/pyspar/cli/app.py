"""The commands of ``spar``: arguments, help texts, and a call of the function that does the work."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from pyspar import __version__
from pyspar.cli import show
from pyspar.cli import watch as watch_command
from pyspar.errors import need
from pyspar.paper.commands import data as paper_data
from pyspar.paper.commands import reproduce as paper_reproduce
from pyspar.progress import show_progress
from pyspar.terminal import handle_errors

app = typer.Typer(
    name="spar",
    help="Adapt a linear regression to a table of unlabelled rows: the Spectral Adapted Regressor.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(paper_data.app)

_FILES = (
    "Files: .csv and .tsv (also .gz), .parquet (also a folder of them), .npy (a 2-D array; its columns are x0, x1, "
    "...), .npz (a 2-D array X with columns x0, x1, ..., and 1-D arrays with the names of their keys, such as y). "
    "Dates: YYYY-MM-DD, YYYY/MM/DD or DD.MM.YYYY."
)


class Method(StrEnum):
    """The method; only bayes and spar use the target."""

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
    typer.Argument(metavar="SOURCE", help="Labelled rows, or their summary.", show_default=False),
]
Target = Annotated[
    Path,
    typer.Argument(
        metavar="TARGET",
        help="Rows to predict, which need no labels, or their summary.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        help="The label column; for .npy and .npz also its number, such as -1. Required unless SOURCE is a summary.",
        show_default=False,
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        help="Confidence of the paper's rule in [0, 1]: 0 removes no target direction, 1 removes all. The default is "
        "0.999 for spar; bayes uses the rule only with this option.",
        show_default=False,
    ),
]
Columns = Annotated[Features, typer.Option(help="Use all columns, or only numeric columns.")]
Identity = Annotated[
    str | None, typer.Option("--id", help="A column with the ids of the rows. It is not used as a feature.")
]
Drop = Annotated[list[str] | None, typer.Option(help="A column to ignore; may be repeated.", show_default=False)]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read in batches, and use only numeric columns. A missing value is an error. Automatic for files "
        "larger than a quarter of the free memory.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=lambda wanted: _print_version(wanted), help="Show the version."
        ),
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
            help="bayes (ridge, with features in units of their larger spread over source and target) or spar (the "
            "paper's method); the others ignore the target."
        ),
    ] = Method.bayes,
    alpha: Alpha = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Predictions: .csv, .tsv, .parquet, or .npy (without ids)."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="The fitted pipeline as .skops; read it with pyspar.load."),
    ] = None,
    features: Columns = Features.all,
    identity: Identity = None,
    drop: Drop = None,
    stream: Stream = False,
    debug: Debug = False,
) -> None:
    """Fit on SOURCE, adapt to TARGET, and predict its rows."""
    with handle_errors(debug=debug):
        jobs = _import_jobs()
        request = jobs.Request(source, target, label, alpha, features.value, identity, tuple(drop or ()), stream)
        with show_progress() as progress:
            account = jobs.adapt_files(request, method=method.value, output=output, save=save, progress=progress)
    with handle_errors(debug=debug, stopped="stopped; everything was written"):
        show.print_adapt(account)


@app.command(
    help="Forecast the error on TARGET of a fit on SOURCE, and say what to do. Labels in TARGET do not change the "
    f"forecast; what they show comes first.\n\n{_FILES}",
    epilog="Example: spar inspect homes-2019.csv homes-2024.csv --label price --report report.html",
)
def inspect(
    source: Source,
    target: Target,
    label: Label = None,
    top: Annotated[int, typer.Option(min=1, help="The number of directions to print.")] = 10,
    report: Annotated[
        Path | None, typer.Option(help="The report as one self-contained .html file.", show_default=False)
    ] = None,
    json: Annotated[Path | None, typer.Option(help="The same numbers as .json.", show_default=False)] = None,
    title: Annotated[str | None, typer.Option(help="The title of the report.", show_default=False)] = None,
    alpha: Alpha = None,
    features: Columns = Features.all,
    identity: Identity = None,
    drop: Drop = None,
    stream: Stream = False,
    debug: Debug = False,
) -> None:
    """Forecast the error on TARGET of a fit on SOURCE, and say what to do."""
    with handle_errors(debug=debug):
        jobs = _import_jobs()
        request = jobs.Request(source, target, label, alpha, features.value, identity, tuple(drop or ()), stream)
        with show_progress() as progress:
            account = jobs.inspect_files(request, top=top, report=report, json=json, title=title, progress=progress)
    written = "everything was written" if report or json else "nothing was written"
    with handle_errors(debug=debug, stopped=f"stopped; {written}"):
        show.print_inspect(account)


@app.command(
    help="Reduce the numeric columns of SOURCE to the Moments that adapt and inspect need. SOURCE is read once in "
    "constant memory. Without --label the result is the summary of a target.\n\n"
    "Files: .parquet (also a folder of them), .csv and .tsv (also .gz), .npy.",
    epilog="Example: spar summarize sales-2019.parquet --label price -o sales-2019.npz",
)
def summarize(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Rows.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The summary as .npz.", show_default=False)],
    label: Annotated[str | None, typer.Option(help="The label column.", show_default=False)] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="The columns to use, separated by commas or repeated. The default is all numeric columns.",
            show_default=False,
        ),
    ] = None,
    drop: Drop = None,
    debug: Debug = False,
) -> None:
    """Reduce the rows of SOURCE to the Moments that adapt and inspect need."""
    with handle_errors(debug=debug):
        jobs = _import_jobs()
        with show_progress() as progress:
            account = jobs.summarize_file(
                source, output, label=label, features=features or (), drop=tuple(drop or ()), progress=progress
            )
        show.print_summary(account)


app.command(epilog=watch_command.EPILOG)(watch_command.watch)
app.command(epilog=paper_reproduce.EPILOG)(paper_reproduce.reproduce)
app.command(epilog="Example: spar demo --out demo-output")(paper_reproduce.demo)


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without an arrow shows a question mark
    app(prog_name="spar")


def _import_jobs() -> ModuleType:
    # Imported when a command runs, so that --help is fast and a missing package is named.
    try:
        from pyspar.tables import jobs
    except ModuleNotFoundError as error:
        need(str(error.name), "cli")
        raise
    return jobs


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spar {__version__}")
        raise typer.Exit
