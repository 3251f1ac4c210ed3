"""The commands of ``spar`` that reproduce the paper: ``data`` and ``reproduce``. This module has what both need."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from pyspar.errors import InputError, MissingExtraError
from pyspar.text import printable

STOP_CODE = 130
"""The exit code of shells for Ctrl-C."""


@contextmanager
def handle_errors(*, debug: bool, stopped: str = "stopped") -> Iterator[None]:
    """Turn exceptions into a message on stderr and an exit code. ``debug`` adds the traceback."""
    try:
        yield
        return
    except typer.Exit:
        raise
    except (InputError, MissingExtraError) as error:
        text, code = f"error: {error}", 2
    except KeyboardInterrupt:
        text, code = stopped, STOP_CODE
    except OSError as error:
        path = error.filename or "a file"
        text, code = f"error: cannot read or write {path}: {(error.strerror or str(error)).lower()}", 2
    except Exception as error:  # noqa: BLE001 - the last resort; --debug shows the traceback
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        text, code = f"internal error: {reason}; run again with --debug for the traceback", 1
    if debug:
        sys.stderr.write(traceback.format_exc())
    typer.echo(printable(text), err=True)
    raise typer.Exit(code)


def print_json(result: Any) -> None:
    """Print plain data as JSON on stdout, with ASCII characters only. Paths become text."""
    typer.echo(json.dumps(result, allow_nan=False, default=str, indent=1))


def print_table(table: Any) -> None:
    """Print a table of rich on stdout, without its spaces at the ends of lines."""
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)
