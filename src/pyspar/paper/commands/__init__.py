"""The commands that reproduce the paper: ``data`` and ``reproduce``. This module has what all commands need."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console

from pyspar.errors import InputError, MissingExtraError
from pyspar.text import printable


@contextmanager
def handle_errors(*, debug: bool, stopped: str = "stopped; no unfinished file was left") -> Iterator[None]:
    """Turn exceptions into a message on stderr and an exit code. ``debug`` adds the traceback."""
    try:
        yield
    except (InputError, MissingExtraError) as error:
        _fail(f"error: {error}", 2, debug)
    except MemoryError:
        _fail("error: the tables do not fit into memory; use fewer rows or columns, or --stream", 2, debug)
    except typer.Exit:
        raise
    except BrokenPipeError:  # the reader of the output ended; all files are written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
        if error.filename == "stdout":  # after the work
            _fail(f"error: cannot print the result: {reason}; the files are complete", 1, debug)
        _fail(f"error: cannot read or write {error.filename or 'a file'}: {reason}", 2, debug)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort; --debug shows the traceback
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:  # a library may have turned the exception into its own
            _fail(stopped, 130, debug)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        _fail(f"internal error: {reason}; run again with --debug for the traceback", 1, debug)


def _fail(text: str, code: int, debug: bool) -> NoReturn:
    if debug:
        sys.stderr.write(printable(traceback.format_exc()))
    sys.stderr.write(f"{printable(text)}\n")
    raise typer.Exit(code)


def print_json(result: Any) -> None:
    """Print plain data as JSON on stdout, with ASCII characters only. Paths become text, NaN becomes null."""
    sys.stdout.write(json.dumps(_to_plain(result), allow_nan=False, default=str, indent=1) + "\n")
    sys.stdout.flush()


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _to_plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(each) for each in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def print_table(table: Any) -> None:
    """Print a table of rich on stdout, without spaces at the ends of lines."""
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
    sys.stdout.flush()
