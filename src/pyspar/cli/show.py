"""What the command line prints: errors with exit codes, JSON, and lines with labels."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspar.errors import InputError, MissingExtraError
from pyspar.text import count_noun, format_interval, format_number, printable

EXIT_CODES = (
    "Exit codes: 0 success; 1 internal error, or a failed run or check; 2 invalid input, and nothing was written; "
    "130 stopped by Ctrl-C or SIGTERM, and no unfinished file was left."
)
_MAX_LINES, _MAX_LENGTH = 8, 2000


@contextmanager
def handle_errors(*, debug: bool = False, stopped: str = "stopped; no unfinished file was left") -> Iterator[None]:
    """Turn exceptions into a message on stderr and an exit code. ``debug`` adds the traceback."""
    try:
        yield
    except (InputError, MissingExtraError) as error:
        _fail(f"error: {error}", 2, debug)
    except KeyboardInterrupt:
        _fail(stopped, 130, debug)
    except MemoryError:
        _fail("error: the tables do not fit into memory; use fewer rows or columns, or --stream", 2, debug)
    except typer.Exit:
        raise
    except BrokenPipeError:  # the reader of the output ended; all files are written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
        _fail(f"error: cannot read or write {error.filename or 'a file'}: {reason}", 2, debug)
    except Exception as error:  # noqa: BLE001 - the last resort; --debug shows the traceback
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:  # a library turned the exception into its own
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


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print labels and texts. No text is markup, because it contains names from files."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for label, text in lines:
        cell = Text(printable(text))
        cell.truncate(_MAX_LENGTH, overflow="ellipsis")  # a column may have a very long name
        grid.add_row(Text(label), cell)
    print_table(grid)


def list_result(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the result of a command, in the order in which a reader needs them."""
    data = result.get("data") or {}
    yield from _list_first("findings", result.get("findings", ()))
    if data:
        yield "rows", f"{data['source_rows']:,} source, {data['target_rows']:,} target"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in data["columns"].items() if count)
        yield "features", f"{kinds}; label {data['label']!r}"
    elif "rows" in result:
        yield "rows", f"{result['rows']:,}"
    if "method" in result:
        yield "method", f"{result['method']}; assumes that the {result['assumes']} stays the same"
    if forecast := result.get("expected"):
        before = f"{format_number(forecast['before'])} before adapting, " if forecast.get("before") else ""
        source = (
            f"; {format_number(forecast['source_rmse'])} on source rows"
            if forecast.get("source_rmse", 0.0) > 0.0
            else ""
        )
        interval = f" (95 %: {format_interval(forecast['interval95'])})" if forecast.get("interval95") else ""
        yield "expected", f"{before}{format_number(forecast['rmse'])}{interval} RMSE on the target{source}"
    if measured := result.get("measured"):
        before = f"{format_number(measured['before'])} before adapting, " if measured.get("before") is not None else ""
        rows = count_noun(measured["rows"], "target row")
        yield "measured", f"{before}{format_number(measured['rmse'])} RMSE on the {rows} with a label"
    if correction := result.get("correction"):
        text = f"with {count_noun(correction['labels'], 'target label')}"
        if correction.get("chosen"):
            errors = ", ".join(f"{name} {format_number(error)}" for name, error in correction["candidates"].items())
            text += f"; chosen assumption: {correction['chosen']} (RMSE on the labels before the correction: {errors})"
        yield "corrected", text
    chosen = [f"{each['name']}: {each['reason']}" for each in result.get("label_rows", ())]
    yield from _list_first("label first", chosen, len(chosen))
    for label in ("imputed", "ignored", "note"):
        texts = result.get("notes" if label == "note" else label) or data.get(label) or ()
        texts = [f"{name}: {text}" for name, text in texts.items()] if isinstance(texts, dict) else texts
        yield from _list_first(label, texts)
    for label in ("wrote", "saved", "next step"):
        if result.get(label):
            yield label, result[label]


def _list_first(label: str, texts: Iterable[str], limit: int = _MAX_LINES) -> Iterator[tuple[str, str]]:
    """Yield the first lines with a label, and the number of the others."""
    texts = list(texts)
    more = [f"and {len(texts) - limit:,} more (--json lists all)"] if len(texts) > limit else []
    for number, text in enumerate([*texts[:limit], *more]):
        yield ("" if number else label), text
