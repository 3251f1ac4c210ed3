"""The commands of ``spar``: arguments, help texts, and a call of the function that does the work."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from pyspar import __version__
from pyspar.cli import as_json, options, show
from pyspar.cli.options import FILES
from pyspar.errors import need
from pyspar.paper.commands import data as paper_data
from pyspar.paper.commands import reproduce as paper_reproduce
from pyspar.terminal import EXIT_CODES, Progress, handle_errors, print_json, show_progress

_UsageError: Any = typer.BadParameter.__base__
"""The base of all errors in arguments. Its module depends on the version of typer."""


class _Commands(TyperGroup):
    """The commands. An error in their arguments is one line, as every other error."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except _UsageError as error:
            code = error.exit_code
            if "\n" in error.message:  # the help, because there are no arguments
                error.show()
            else:
                show.print_line(f"error: {_describe_usage_error(error)}", stderr=True)
        sys.exit(code)


app = typer.Typer(
    name="spar",
    cls=_Commands,
    help="Adapt a linear regression to a table of unlabelled rows: the Spectral Adapted Regressor.",
    no_args_is_help=True,
    rich_markup_mode=None,  # the tables of rich cut off long names of options in a narrow terminal
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
app.add_typer(paper_data.app, short_help="List, find and check the data sets of the paper.")


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
    help=f"Fit on SOURCE, adapt to TARGET, and predict its rows.\n\n{FILES}",
    epilog="Example: spar adapt homes-2019.csv homes-2024.csv --label price --id listing -o predictions.csv "
    "--save model.skops",
)
def adapt(
    source: options.Source,
    target: options.Target,
    label: options.Label = None,
    method: Annotated[
        options.Method,
        typer.Option(
            help="bayes (ridge, with features in units of their larger spread over source and target) or spar (the "
            "paper's method); the others ignore the target."
        ),
    ] = options.Method.bayes,
    alpha: options.Alpha = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Predictions: .csv, .tsv, .parquet, or .npy (without ids).")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="The fitted pipeline as .skops; read it with pyspar.load.")] = None,
    features: options.Columns = options.Features.all,
    identity: options.Identity = None,
    drop: options.Drop = None,
    categories: options.Category = None,
    bad_cells: options.Cells = options.BadCells.stop,
    drop_unlabelled: options.DropUnlabelled = False,
    groups: options.Groups = None,
    use_target_labels: Annotated[
        bool,
        typer.Option(
            "--use-target-labels",
            help="Correct the model with the labels of TARGET, which may be partly empty. By default they only score "
            "the predictions.",
        ),
    ] = False,
    labels: options.LabelFile = None,
    level: options.Level = 0.9,
    intervals: options.Intervals = True,
    safe_csv: options.SafeCsv = False,
    stream: options.Stream = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Fit on SOURCE, adapt to TARGET, and predict its rows."""
    given = locals()

    def work(tables: Any, progress: Progress) -> Any:
        return tables.adapt_files(
            _make_request(tables, given), method=method, save=save, use_target_labels=use_target_labels,
            output=tables.Output(output, level if intervals else None, safe_csv), progress=progress,
        )  # fmt: skip

    _run("adapt", work, json=json, debug=debug)


@app.command(
    short_help="Forecast the error on TARGET, and say what to do.",
    help="Forecast the error on TARGET of a fit on SOURCE, and say what to do. Labels in TARGET do not change the "
    f"forecast; what they show comes first.\n\n{FILES}",
    epilog="Example: spar inspect homes-2019.csv homes-2024.csv --label price --report report.html",
)
def inspect(
    source: options.Source,
    target: options.Target,
    label: options.Label = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(help="Write the report: .html (one self-contained page) or .json (the numbers); may be repeated."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the report.")] = None,
    alpha: options.Alpha = None,
    features: options.Columns = options.Features.all,
    identity: options.Identity = None,
    drop: options.Drop = None,
    categories: options.Category = None,
    bad_cells: options.Cells = options.BadCells.stop,
    drop_unlabelled: options.DropUnlabelled = False,
    groups: options.Groups = None,
    labels: options.LabelFile = None,
    stream: options.Stream = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Forecast the error on TARGET of a fit on SOURCE, and say what to do."""
    given = locals()

    def work(tables: Any, progress: Progress) -> Any:
        request = _make_request(tables, given)
        return tables.inspect_files(request, reports=tuple(report or ()), title=title, progress=progress)

    _run("inspect", work, json=json, debug=debug, writes=bool(report))


@app.command(
    short_help="Reduce rows to the Moments that adapt and inspect need.",
    help="Reduce the numeric columns of SOURCE to the Moments that adapt and inspect need. SOURCE is read once in "
    "constant memory. Without --label the result is the summary of a target.\n\n"
    "Files: .parquet (also a folder of them), .csv and .tsv (also .gz), .npy; .npz and .xlsx are read as a whole.",
    epilog="Example: spar summarize sales-2019.parquet --label price -o sales-2019.npz",
)
def summarize(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Rows.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The summary as .npz.")],
    label: Annotated[str | None, typer.Option(help="The label column.")] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="The columns to use, separated by commas or repeated. The default is all numeric columns."),
    ] = None,
    drop: options.Drop = None,
    bad_cells: options.Cells = options.BadCells.stop,
    drop_unlabelled: options.DropUnlabelled = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Reduce the rows of SOURCE to the Moments that adapt and inspect need."""

    def work(tables: Any, progress: Progress) -> Any:
        return tables.summarize_file(
            source, output, label=label, features=features or (), drop=tuple(drop or ()),
            bad_cells=bad_cells, drop_unlabelled=drop_unlabelled, progress=progress,
        )  # fmt: skip

    _run("summarize", work, json=json, debug=debug)


@app.command(
    short_help="Choose rows of TARGET to label.",
    help="Choose rows of TARGET that cover the range of the predictions, and write them with an empty label column.\n\n"
    f"{FILES}",
    epilog="Example: spar label homes-2019.csv homes-2024.csv --label price --rows 10 -o to_label.csv",
)
def label(
    source: options.ModelOrSource,
    target: options.Target,
    label: options.Label = None,
    rows: Annotated[int, typer.Option(min=1, help="The number of rows to label.")] = 10,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The rows to label: .csv, .tsv or .parquet.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="A column of TARGET with groups, over which the rows are spread.")
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help="A column of TARGET with the cost of each label. Cheaper rows are preferred, rows without a cost are "
            "not chosen."
        ),
    ] = None,
    labels: options.LabelFile = None,
    features: options.Columns = options.Features.all,
    identity: options.Identity = None,
    drop: options.Drop = None,
    categories: options.Category = None,
    bad_cells: options.Cells = options.BadCells.stop,
    drop_unlabelled: options.DropUnlabelled = False,
    safe_csv: options.SafeCsv = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Choose rows of TARGET to label."""
    given = locals()

    def work(tables: Any, progress: Progress) -> Any:
        request = _make_request(tables, given)
        return tables.label_files(request, n=rows, output=tables.Output(output, None, safe_csv), progress=progress)

    _run("label", work, json=json, debug=debug, writes=output is not None)


@app.command(
    help="Predict the rows of FILE with a saved MODEL, with intervals.\n\n" + FILES,
    epilog="Example: spar predict model.skops homes-2025.csv --id listing -o predictions.csv",
)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .skops file of spar adapt --save.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows to predict.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Predictions: .csv, .tsv, .parquet, or .npy (without ids and intervals)."),
    ],
    label: Annotated[str | None, typer.Option(help="A column with labels to score the predictions.")] = None,
    identity: options.Identity = None,
    bad_cells: options.Cells = options.BadCells.stop,
    level: options.Level = 0.9,
    intervals: options.Intervals = True,
    safe_csv: options.SafeCsv = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict the rows of FILE with a saved MODEL."""

    def work(tables: Any, progress: Progress) -> Any:
        return tables.predict_file(
            model, file, tables.Output(output, level if intervals else None, safe_csv), label=label,
            identity=identity, bad_cells=bad_cells, progress=progress,
        )  # fmt: skip

    _run("predict", work, json=json, debug=debug)


app.command(epilog=paper_reproduce.EPILOG, short_help="Run the experiments of the paper.")(paper_reproduce.reproduce)


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # in every locale
    app(prog_name="spar")


def _make_request(tables: Any, given: dict[str, Any]) -> Any:
    """Return the Request of a command. Its fields have the names of the parameters of the commands."""
    values = {name: value for name, value in given.items() if name in tables.Request.__dataclass_fields__}
    lists = {name: tuple(values[name] or ()) for name in ("drop", "categories")}
    return tables.Request(**{**values, **lists})


def _run(command: str, work: Callable[[Any, Progress], Any], *, json: bool, debug: bool, writes: bool = True) -> None:
    """Do the work of a command with its module of ``tables``, and print its account as text or as JSON."""
    with handle_errors(debug=debug), show_progress() as progress:
        # Imported when a command runs, so that --help is fast and a missing package is named.
        account = work(need(f"pyspar.tables.{command}", "cli"), progress)
    with handle_errors(debug=debug, stopped=f"stopped; {'everything' if writes else 'nothing'} was written"):
        list_lines, describe = _ACCOUNTS[command]
        if json:
            print_json(describe(account))
        else:
            show.print_lines(list_lines(account))


_ACCOUNTS: dict[str, tuple[Callable[[Any], show.Lines], Callable[[Any], dict[str, Any]]]] = {
    "adapt": (show.list_adapt, as_json.describe_adapt),
    "inspect": (show.list_inspect, lambda account: account.document.as_dict()),
    "summarize": (show.list_summarize, as_json.describe_summarize),
    "label": (show.list_label, as_json.describe_label),
    "predict": (show.list_predict, as_json.describe_predict),
}
"""How the account of each command is printed as text, and described as JSON."""


def _describe_usage_error(error: Any) -> str:
    """Return what is wrong with an argument, its value, and the help to read."""
    text = error.format_message().replace("Value error, ", "").rstrip(".")
    checked = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []  # by pydantic, without the value
    text += "".join(f", got {each['input']!r}" for each in checked if repr(each["input"]) not in text)
    command = "spar" if error.ctx is None else error.ctx.command_path
    return f"{text[0].lower()}{text[1:]}; see {command} --help"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spar {__version__}")
        raise typer.Exit
