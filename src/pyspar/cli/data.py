"""The verbs of ``spar data``: what data sets there are, where they lie, whether they are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyspar.cli import show, show_data
from pyspar.errors import InputError
from pyspar.progress import show_progress

app = typer.Typer(
    name="data",
    help="List the data sets of the experiments, say where each lies, check that it is whole.",
    no_args_is_help=True,
    epilog="Example: spar data check skillcraft --data ~/datasets",
)

Folder = Annotated[
    Path | None,
    # readable=False: not "must not be read" but "do not ask here"; the data sets' own refusal says the cure.
    typer.Option(
        "--data", help="A folder to look in first; without it, PYSPAR_DATA.", show_default=False, readable=False
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]


@app.command("list", epilog="Example: spar data list")
def list_sets(data: Folder = None, debug: Debug = False) -> None:
    """List all data sets with their rows, the shape of a row, the licence, and whether they were found."""
    with show.guard(debug=debug):
        from pyspar.paper.data.entries import ENTRIES
        from pyspar.paper.data.files import require_places
        from pyspar.paper.data.registry import state_of
        from pyspar.paper.data.registry import where as find

        require_places(data)  # a path that is no folder is refused once, not told of every set
        states = {name: state_of(name, data) for name in ENTRIES}
        show_data.listing([(entry, states[name]) for name, entry in ENTRIES.items()])
        for name in (name for name, state in states.items() if state == "unreadable"):
            try:
                find(name, data)
            except InputError as error:  # one line each, beside the table: the path, and who can open it
                typer.echo(show.printable(f"{name}: {error}"), err=True)


@app.command(epilog="Example: spar data where rcf-mnist")
def where(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A data set, as in spar data list; all without it.", show_default=False),
    ] = None,
    data: Folder = None,
    debug: Debug = False,
) -> None:
    """Print where a data set lies, or how to get it; exit with 2 if it is missing.

    Without a name, print a line for each set: its path, or what there is of it.
    """
    with show.guard(debug=debug):
        from pyspar.paper.data.entries import ENTRIES
        from pyspar.paper.data.files import require_places
        from pyspar.paper.data.registry import state_of
        from pyspar.paper.data.registry import where as find

        if name is not None:
            show_data.place(find(name, data))
            return
        require_places(data)
        states = {each: state_of(each, data) for each in ENTRIES}
        show_data.places(
            [
                (each, find(each, data).path if state in ("found", "incomplete") else None, state)
                for each, state in states.items()
            ]
        )


@app.command(epilog="Example: spar data check skillcraft communities-and-crime")
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Data sets; all without it.", show_default=False)
    ] = None,
    data: Folder = None,
    debug: Debug = False,
) -> None:
    """Check sums, rows and shapes of data sets.

    Exits with 1 if anything is wrong, or if a set that you name is missing; without names, missing sets are only
    listed. What has to be built is built, once.
    """
    with show.guard(debug=debug):
        from pyspar.paper.data.check import checked
        from pyspar.paper.data.entries import ENTRIES
        from pyspar.paper.data.files import require_places

        require_places(data)
        unknown = [name for name in names or () if name not in ENTRIES]
        if unknown:
            raise InputError(f"there is no data set named {unknown[0]!r}. The names are {', '.join(ENTRIES)}.")
        failed = False
        for name in names or ENTRIES:
            with show_progress() as progress:
                progress.start(name, f"checking {name}")
                found = checked(name, data)
            show_data.verdict(found)
            failed |= found.state == "wrong" or (found.state == "missing" and bool(names))
        if failed:
            raise typer.Exit(1)
