"""The commands of ``spar data``: list the data sets of the paper, find them and check them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pyspar.paper.commands import show_data
from pyspar.terminal import handle_errors, print_json, show_progress

app = typer.Typer(
    name="data",
    help="List the data sets of the paper's experiments, print their locations, and check them.",
    no_args_is_help=True,
    epilog="Example: spar data check skillcraft --data ~/datasets",
)

Folder = Annotated[
    Path | None,
    # readable=False: typer does not check the permission, because the error of pyspar.paper.data has more information.
    typer.Option(
        "--data", help="The folder to search first. Defaults to PYSPAR_DATA.", show_default=False, readable=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.command("list", epilog="Example: spar data list")
def list_sets(data: Folder = None, json: Json = False, debug: Debug = False) -> None:
    """List all data sets with the number of rows, the shape of a row, the licence and the state."""
    with handle_errors(debug=debug):
        from pyspar.paper.data.catalogue import DATASETS

        states = _find_states(data)
        if json:
            print_json([show_data.describe_dataset(DATASETS[name], state) for name, state in states.items()])
        else:
            show_data.print_datasets([(DATASETS[name], state) for name, state in states.items()])


@app.command(epilog="Example: spar data where rcf-mnist")
def where(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A data set, as in spar data list. Defaults to all.", show_default=False),
    ] = None,
    data: Folder = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the path of a data set. If it is missing, print how to get it and exit with 2.

    Without a name, print one line per data set with its path or its state.
    """
    with handle_errors(debug=debug):
        from pyspar.paper.data.registry import where as find

        if name is not None:
            location = find(name, data)
            if json:
                print_json({"name": name, "path": location.path, "missing": location.missing or None})
            else:
                show_data.print_location(location)
            return
        locations = [
            (dataset, find(dataset, data).path if state in ("found", "incomplete") else None, state)
            for dataset, state in _find_states(data).items()
        ]
        if json:
            print_json([{"name": dataset, "path": path, "state": state} for dataset, path, state in locations])
        else:
            show_data.print_locations(locations)


@app.command(epilog="Example: spar data check skillcraft communities-and-crime")
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Data sets. Defaults to all.", show_default=False)
    ] = None,
    data: Folder = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Check the checksums, rows and shapes of data sets.

    Exits with 1 if a data set is wrong, or if a data set that you name is missing. Without names, missing data sets are
    only listed. Data sets that pyspar builds are built and cached.
    """
    with handle_errors(debug=debug):
        from pyspar.paper.data.catalogue import DATASETS
        from pyspar.paper.data.check import check_dataset
        from pyspar.paper.data.files import named_folder
        from pyspar.paper.data.registry import check_name

        named_folder(data)
        for name in names or ():
            check_name(name)
        failed, results = False, []
        for name in names or DATASETS:
            with show_progress() as progress:
                progress.start(name, f"checking {name}")
                result = check_dataset(name, data)
            results.append(asdict(result))
            if not json:
                show_data.print_check(result)
            failed |= result.state == "wrong" or (result.state == "missing" and bool(names))
        if json:
            print_json(results)
        if failed:
            raise typer.Exit(1)


def _find_states(data: Path | None) -> dict[str, str]:
    """Return the state of every data set."""
    from pyspar.paper.data.files import named_folder
    from pyspar.paper.data.registry import names, state_of

    named_folder(data)  # raises once, instead of once per data set
    return {name: state_of(name, data) for name in names()}
