"""The commands of ``spar data``: list the data sets of the paper, find them and check them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from pyspar.paper.commands import handle_errors, print_json, print_table
from pyspar.text import printable

_COLOURS = {"good": "green", "missing": "yellow", "wrong": "red"}

app = typer.Typer(
    name="data",
    help="List the data sets of the paper's experiments, print their locations, and check them.",
    no_args_is_help=True,
    epilog="Example: spar data check skillcraft --data ~/datasets",
)

# readable=False: typer does not check the permission, because the error of pyspar.paper.data has more information.
_FOLDER = typer.Option(
    "--data", help="The folder to search first. Defaults to PYSPAR_DATA.", show_default=False, readable=False
)
Folder = Annotated[Path | None, _FOLDER]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set, as in spar data list.")]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Data sets. Defaults to all.", show_default=False)
]


@app.command("list", epilog="Example: spar data list")
def list_sets(data: Folder = None, json: Json = False, debug: Debug = False) -> None:
    """List all data sets with the number of rows, the shape of a row, the licence and the state."""
    with handle_errors(debug=debug):
        from pyspar.paper.data.registry import DATASETS

        entries = [(DATASETS[name], state) for name, state in _find_states(data).items()]
        if json:
            fields = ("name", "parts", "shape", "licence", "about", "obtain")
            print_json([{f: getattr(entry, f) for f in fields} | {"state": state} for entry, state in entries])
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for name in ("name", "train/val/test", "a row", "licence", "status"):
            table.add_column(name, overflow="fold")
        for entry, state in entries:
            rows = "/".join(map(str, entry.parts)) or "depends"
            table.add_row(entry.name, rows, "x".join(map(str, entry.shape)), entry.licence, state)
        print_table(table)


@app.command(epilog="Example: spar data where rcf-mnist")
def where(name: Name, data: Folder = None, json: Json = False, debug: Debug = False) -> None:
    """Print the path of a data set. If it is missing, print how to get it and exit with 2."""
    with handle_errors(debug=debug):
        from pyspar.paper.data.registry import where as find

        location = find(name, data)
        if json:
            print_json({"name": name, "path": location.path, "missing": location.missing or None})
            return
        typer.echo(printable(str(location.path)))  # for pipes; the kind of place is on stderr
        incomplete = f"; incomplete: {location.missing}" if location.missing else ""
        typer.echo(f"in {location.place}{incomplete}", err=True)


@app.command(epilog="Example: spar data check skillcraft communities-and-crime")
def check(names: Names = None, data: Folder = None, json: Json = False, debug: Debug = False) -> None:
    """Check the checksums, rows and shapes of data sets.

    Exits with 1 if a data set is wrong, or if a data set that you name is missing. Without names, missing data sets are
    only listed. Data sets that pyspar builds are built and cached.
    """
    with handle_errors(debug=debug):
        from pyspar.paper.data.files import named_folder
        from pyspar.paper.data.registry import DATASETS, check_dataset
        from pyspar.paper.parameters import check_name

        named_folder(data)
        for name in names or ():
            check_name("data set", name, DATASETS)
        failed, results = False, []
        for name in names or DATASETS:
            result = check_dataset(name, data)
            results.append(asdict(result))
            if not json:
                state = typer.style(f"{result.state:8}", fg=_COLOURS[result.state])
                typer.echo(f"{state}{result.name}: {printable(result.detail)}")
            failed |= result.state == "wrong" or (result.state == "missing" and bool(names))
        if json:
            print_json(results)
        if failed:
            raise typer.Exit(1)


def _find_states(data: Path | None) -> dict[str, str]:
    from pyspar.paper.data.files import named_folder
    from pyspar.paper.data.registry import names, state_of

    named_folder(data)  # raises once, instead of once per data set
    return {name: state_of(name, data) for name in names()}
