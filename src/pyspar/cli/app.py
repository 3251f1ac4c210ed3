"""The commands of ``spar``: arguments and help texts. ``pyspar.cli.commands`` does the work."""

# mypy: disable-error-code="valid-type"

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pyspar import __version__
from pyspar.cli.show import EXIT_CODES, list_result, print_lines
from pyspar.errors import InputError, need
from pyspar.paper.commands import data as paper_data
from pyspar.paper.commands import handle_errors, print_json
from pyspar.paper.commands import reproduce as paper_reproduce
from pyspar.text import printable

FILES = (
    "Files: .csv and .tsv (also .gz), .parquet (also a folder of them), .xlsx (the first sheet), .npy (a 2-D array "
    "with columns x0, x1, ...). Dates: YYYY-MM-DD, YYYY-MM, YYYY/MM/DD or DD.MM.YYYY."
)
Method = StrEnum("Method", ["bayes", "spar"])
Assumption = StrEnum("Assumption", ["relation", "measurement"])
BadCells = StrEnum("BadCells", ["stop", "impute"])
DecimalMark = StrEnum("DecimalMark", {"point": ".", "comma": ","})


def _option(type_: Any, help: str, *names: str, **settings: Any) -> Any:
    return Annotated[type_, typer.Option(*names, help=help, **settings)]


Source = Annotated[Path, typer.Argument(metavar="SOURCE", help="Labelled rows.")]
Target = Annotated[Path, typer.Argument(metavar="TARGET", help="Rows to predict, which need no labels.")]
Label = _option(str | None, "The label column.")
Identity = _option(str | None, "A column with the ids of the rows. It is not used as a feature.", "--id")
Drop = _option(list[str] | None, "A column to ignore; may be repeated.")
Category = _option(list[str] | None, "A column of categories even if it contains numbers; may be repeated.")
Groups = _option(str | None, "A column with groups of rows, such as patients, that cross-validation keeps together.")
Labels = _option(Path | None, "Known labels of TARGET rows: the file of spar label, filled in.")
UseLabels = _option(
    bool, "Correct with the label column of TARGET, which otherwise only scores.", "--use-target-labels"
)
MethodOption = _option(Method, "bayes (ridge regression, adapted) or spar (least squares, adapted as in the paper).")
Assume = _option(
    Assumption | None,
    "What stays the same: the relation of features and label (the weights are adapted), or only the population, after "
    "a change of the measurement (the columns are aligned). By default the relation; with target labels, these choose.",
)
Alpha = _option(float | None, "Confidence of the paper's rule, by default 0.999 for --method spar.", min=0, max=1)
Level = _option(float, "The probability that a row's label is between low and high.", min=0.001, max=0.999)
Sep = _option(str | None, "The separator of text files, such as ; or tab. By default it is found from the header.")
Decimal = _option(DecimalMark | None, "The decimal mark of text: a point by default, or a comma.")
Na = _option(list[str] | None, "A text that means missing, besides NA, -, ? and the like; may be repeated.")
Cells = _option(BadCells, "Text among numbers: stop and name the cells, or treat them as missing.")
Unlabelled = _option(bool, "Ignore rows of SOURCE without a label.", "--drop-unlabelled")
Stream = _option(bool, "Read the files in batches, and use numbers, dates and Boolean values only.", "--stream")
Predictions = _option(Path | None, "Predictions: .csv, .tsv or .parquet.", "--output", "-o")
SaveModel = _option(Path | None, "The model as .skops, for spar predict and pyspar.load.", "--save-model")
Html = _option(Path | None, "Write the report as one self-contained page.")
RowsToLabel = _option(int, "The number of rows to label.", "--rows", min=1)
LabelOutput = _option(Path | None, "The rows to label: .csv, .tsv or .parquet.", "--output", "-o")
Json = _option(bool, "Print the result as JSON on stdout, and nothing else. Errors go to stderr.", "--json")
Debug = _option(bool, "Show the traceback of an error.", "--debug")


app = typer.Typer(
    name="spar",
    no_args_is_help=True,
    rich_markup_mode=None,  # the tables of rich cut off long names of options in a narrow terminal
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog=EXIT_CODES,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spar {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: _option(bool, "Show the version.", "--version", is_eager=True, callback=_print_version) = False,
) -> None:
    """Fit on one table and predict another: adapt to it, forecast the error, and correct with a few labels."""


@app.command(
    help=f"Fit on SOURCE, adapt to TARGET, and predict its rows.\n\n{FILES}",
    epilog="Example: spar adapt homes-2019.csv homes-2024.csv --label price --id listing -o predictions.csv",
)
def adapt(
    source: Source, target: Target, label: Label = None, output: Predictions = None, save_model: SaveModel = None,
    method: MethodOption = Method.bayes, assume: Assume = None, alpha: Alpha = None, identity: Identity = None,
    drop: Drop = None, category: Category = None, groups: Groups = None, labels: Labels = None,
    use_target_labels: UseLabels = False, level: Level = 0.9, sep: Sep = None, decimal: Decimal = None, na: Na = None,
    bad_cells: Cells = BadCells.stop, drop_unlabelled: Unlabelled = False, stream: Stream = False, json: Json = False,
    debug: Debug = False,
) -> None:  # fmt: skip
    """Fit on SOURCE, adapt to TARGET, and predict its rows."""
    _run(
        "adapt", locals(), method=method, alpha=alpha, assume=assume, level=level, output=output, save_model=save_model,
        use_labels=use_target_labels or labels is not None,
    )  # fmt: skip


@app.command(
    short_help="Forecast the error on TARGET, and say what to do.",
    help="Forecast the error on TARGET of a fit on SOURCE, and say what to do. Labels in TARGET do not change the "
    f"forecast; they show whether it holds.\n\n{FILES}",
    epilog="Example: spar inspect homes-2019.csv homes-2024.csv --label price --html report.html",
)
def inspect(
    source: Source, target: Target, label: Label = None, html: Html = None, alpha: Alpha = None,
    identity: Identity = None, drop: Drop = None, category: Category = None, groups: Groups = None,
    labels: Labels = None, sep: Sep = None, decimal: Decimal = None, na: Na = None, bad_cells: Cells = BadCells.stop,
    drop_unlabelled: Unlabelled = False, stream: Stream = False, json: Json = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Forecast the error on TARGET of a fit on SOURCE, and say what to do."""
    _run("inspect", locals(), alpha=alpha, html=html)


@app.command(
    short_help="Choose rows of TARGET to label.",
    help="Choose rows of TARGET that cover the range of the predictions, and write them with an empty label column. "
    f"Fill it in, and pass the file to spar adapt --labels.\n\n{FILES}",
    epilog="Example: spar label homes-2019.csv homes-2024.csv --label price --rows 10 -o to_label.csv",
)
def label(
    source: Source, target: Target, label: Label = None, rows: RowsToLabel = 10, output: LabelOutput = None,
    identity: Identity = None, drop: Drop = None, category: Category = None,
    labels: Labels = None, sep: Sep = None, decimal: Decimal = None, na: Na = None, bad_cells: Cells = BadCells.stop,
    drop_unlabelled: Unlabelled = False, json: Json = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Choose rows of TARGET to label."""
    _run("label", locals(), rows=rows, output=output)


@app.command(
    help=f"Predict the rows of FILE with a saved MODEL, with intervals. FILE is read as the source was.\n\n{FILES}",
    epilog="Example: spar predict model.skops homes-2025.csv --id listing -o predictions.csv",
)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .skops file of spar adapt --save-model.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows to predict.")],
    output: _option(Path, "Predictions: .csv, .tsv or .parquet.", "--output", "-o"),
    label: _option(str | None, "A column with labels to score the predictions.") = None,
    identity: Identity = None, level: Level = 0.9, sep: Sep = None, decimal: Decimal = None, na: Na = None,
    bad_cells: Cells = BadCells.stop, json: Json = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Predict the rows of FILE with a saved MODEL."""
    _run("predict", {**locals(), "source": model, "target": file}, output=output, level=level)


app.add_typer(paper_data.app, short_help="List, find and check the data sets of the paper.")
app.command(epilog=paper_reproduce.EPILOG, short_help="Run the experiments of the paper.")(paper_reproduce.reproduce)


def run() -> None:
    """Run the command line."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell
            setattr(sys, name, io.StringIO())
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # in every locale
    try:
        app(prog_name="spar")
    except OSError as error:  # of help texts; the commands handle their own errors
        sys.exit(f"error: cannot print the result: {str(error.strerror).lower()}")


def _run(command: str, given: dict[str, Any], **own: Any) -> None:
    """Do the work of a command, and print its result as text or as JSON.

    Of the ``given`` options, those that are fields of the Request are passed in it. The command's ``own`` are arguments
    of its work.
    """
    with handle_errors(debug=given["debug"]):
        # Imported when a command runs, so that --help is fast and a missing package is named.
        commands = need("pyspar.cli.commands", "cli")
        sep = {"tab": "\t", "\\t": "\t"}.get(given["sep"] or "", given["sep"])
        if sep is not None and len(sep) != 1:
            raise InputError(f"--sep must be one character or tab, got {sep!r}")
        options = commands.files.ReadOptions(sep, given["decimal"] and str(given["decimal"]), tuple(given["na"] or ()))
        values = {**given, "options": options, "impute": given["bad_cells"] == "impute"}
        known = commands.Request.__dataclass_fields__
        request = commands.Request(**{name: value for name, value in values.items() if name in known and value})
        result = getattr(commands, command)(request, **own)
        report, next_step = result.pop("report", None), result.pop("next step", None)
        try:
            if given["json"]:
                plain = {name: value for name, value in result.items() if name not in ("wrote", "saved")}
                print_json({"version": __version__, **plain, **({} if report is None else report.to_dict())})
                return
            if report is not None:
                sys.stdout.write(f"{printable(str(report))}\n\n")
            print_lines(list_result(result))
            if next_step:  # not in the table, so that the command can be copied
                typer.echo(f"\nNext, {printable(next_step)}")
        except OSError as error:
            error.filename = "stdout"
            raise
