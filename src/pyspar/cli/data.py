"""The commands of ``spar data``: list the data sets, print where they are, and check their files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyspar.cli import show, show_data
from pyspar.errors import InputError
from pyspar.progress import show_progress
from pyspar.wording import list_some, suggest_name

app = typer.Typer(
    name="data",
    help="List the data sets of the experiments, print where each is, and check its files.",
    no_args_is_help=True,
    epilog="Example: spar data check skillcraft --data ~/datasets",
)

Folder = Annotated[
    Path | None,
    # readable=False turns off the check of typer; the error of the data set names the fix.
    typer.Option(
        "--data",
        help="The folder that is searched first; the default is PYSPAR_DATA.",
        show_default=False,
        readable=False,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.command("list", epilog="Example: spar data list")
def list_sets(data: Folder = None, debug: Debug = False) -> None:
    """List all data sets with the number of rows, the shape of a row, the licence and the status."""
    with show.handle_errors(debug=debug):
        from pyspar.paper.data.entries import ENTRIES
        from pyspar.paper.data.files import require_places
        from pyspar.paper.data.registry import state_of
        from pyspar.paper.data.registry import where as find

        require_places(data)  # one error for all data sets
        states = {name: state_of(name, data) for name in ENTRIES}
        show_data.print_list([(entry, states[name]) for name, entry in ENTRIES.items()])
        for name in (name for name, state in states.items() if state == "unreadable"):
            try:
                find(name, data)
            except InputError as error:
                typer.echo(show.printable(f"{name}: {error}"), err=True)


@app.command(epilog="Example: spar data where rcf-mnist")
def where(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A data set of spar data list; the default is all.", show_default=False),
    ] = None,
    data: Folder = None,
    debug: Debug = False,
) -> None:
    """Print the path of a data set, or exit with code 2 and print how to get it.

    Without a name, print the path or the status of each data set.
    """
    with show.handle_errors(debug=debug):
        from pyspar.paper.data.entries import ENTRIES
        from pyspar.paper.data.files import require_places
        from pyspar.paper.data.registry import state_of
        from pyspar.paper.data.registry import where as find

        if name is not None:
            show_data.print_path(find(name, data))
            return
        require_places(data)
        states = {entry: state_of(entry, data) for entry in ENTRIES}
        show_data.print_paths(
            [
                (entry, find(entry, data).path if state in ("found", "incomplete") else None, state)
                for entry, state in states.items()
            ]
        )


@app.command(epilog="Example: spar data check skillcraft communities-and-crime")
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Data sets; the default is all.", show_default=False)
    ] = None,
    data: Folder = None,
    debug: Debug = False,
) -> None:
    """Check the checksums, rows and shapes of data sets.

    The exit code is 1 if a check fails, or if a data set that you name is missing. Without names, missing data sets
    are only listed. Data sets that are generated are generated once.
    """
    with show.handle_errors(debug=debug):
        from pyspar.paper.data.check import checked
        from pyspar.paper.data.entries import ENTRIES
        from pyspar.paper.data.files import require_places

        require_places(data)
        unknown = [name for name in names or () if name not in ENTRIES]
        if unknown:
            hint = suggest_name(unknown[0], ENTRIES) or f"the data sets are {list_some(ENTRIES, len(ENTRIES))}"
            raise InputError(f"no data set named {unknown[0]!r}; {hint}")
        failed = False
        for name in names or ENTRIES:
            with show_progress() as progress:
                progress.start(name, f"checking {name}")
                result = checked(name, data)
            show_data.print_check(result)
            failed |= result.state == "wrong" or (result.state == "missing" and bool(names))
        if failed:
            raise typer.Exit(1)
