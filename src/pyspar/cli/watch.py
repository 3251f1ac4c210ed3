"""The command ``spar watch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from pyspar.cli.options import Debug, Drop, Groups, Identity
from pyspar.errors import need
from pyspar.terminal import handle_errors, print_json, printable
from pyspar.wording import count_noun, format_interval, format_number

if TYPE_CHECKING:
    from pyspar.tables.watch import WatchAccount

ALARM = 3
"""The exit code if the last batch raises the alarm."""
EPILOG = (
    "Exit codes: 0 no alarm, 3 the last batch raised the alarm, 2 error, 130 stopped. "
    "Example: spar watch model.skops incoming/ --once"
)


def watch(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL_OR_SOURCE",
            help="A .skops file of spar adapt --save, saved without --use-target-labels, or labelled rows.",
        ),
    ],
    paths: Annotated[list[Path], typer.Argument(metavar="FOLDER_OR_FILES", help="The target: each file is one batch.")],
    label: Annotated[
        str | None,
        typer.Option(
            help="The label column of the source, and of batches with labels. The default is the label of the model."
        ),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(help="The largest tolerable RMSE. The default is the error at home.")
    ] = None,
    window: Annotated[int, typer.Option(help="The number of recent batches that are judged together.")] = 1,
    once: Annotated[bool, typer.Option("--once", help="Read the files that exist, and stop.")] = False,
    seconds: Annotated[float, typer.Option(help="The time between two readings of a folder.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for each batch.")] = False,
    identity: Identity = None,
    drop: Drop = None,
    groups: Groups = None,
    debug: Debug = False,
) -> None:
    """Watch a target that arrives in files, and raise an alarm if the error is too large.

    There is an alarm if the lower end of the 95 % interval of the RMSE exceeds the limit. Labels in a batch measure the
    RMSE; otherwise it is a forecast.
    """
    is_alarm, failed = False, False
    with handle_errors(debug=debug, stopped="stopped"):
        watching: Any = need("pyspar.tables.watch", "cli")
        request = watching.WatchRequest(
            model, tuple(paths), label, limit, window, once, seconds, identity, tuple(drop or ()), groups
        )
        if note := watching.describe_empty_folders(request):
            Console(highlight=False, soft_wrap=True, stderr=True).print(Text(printable(note)))
        for account in watching.watch_files(request):
            _print_batch(account, as_json=json)
            failed = failed or account.state is None
            is_alarm = account.state.alarm if account.state is not None else is_alarm
    if is_alarm:
        raise typer.Exit(ALARM)
    if failed:
        raise typer.Exit(2)


def _print_batch(account: WatchAccount, *, as_json: bool) -> None:
    if as_json:
        print_json(account.as_dict(), indent=None)
        return
    state = account.state
    console = Console(highlight=False, soft_wrap=True, stderr=state is None)
    if state is None:
        console.print(Text(printable(f"error: {account.path.name}: {account.error}")))
        return
    after = state.adapted[0]
    text = (
        f"{state.verdict:<8} {account.path.name}: expected RMSE {format_number(after.rmse)} (95 %: "
        f"{format_interval(after.interval95)}), limit {format_number(state.limits[0])}, "
        f"{count_noun(round(state.rows), 'row')}"
    )
    text = "; ".join(filter(None, [text, state.describe_labels(), *account.notes]))
    console.print(Text(printable(text), style="red" if state.alarm else "yellow" if state.above_limit else ""))
