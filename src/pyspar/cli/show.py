"""What the terminal sees: accounts as text, a status line while work goes on, failures as one message and a code."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from rich import filesize
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Exit

from pyspar.cli.show_inspection import finding_lines, forecast_lines, verdict
from pyspar.errors import InputError, MissingExtraError
from pyspar.interrupts import STOPPED
from pyspar.wording import describe_new_categories, format_interval, format_number, format_percent, replace_powers

if TYPE_CHECKING:
    from pyspar.inspection import OutputInspection
    from pyspar.tables.account import AdaptAccount, Expected, InspectAccount, SummaryAccount, Tables

_NOTICEABLE = 0.001
_LINES = 8
_BAD_INPUT, _INTERNAL = 2, 1


@contextmanager
def guard(*, debug: bool, stopped: str = "stopped; nothing was written") -> Iterator[None]:
    """Turn what goes wrong into a message on stderr and an exit code; the traceback only with ``debug``."""
    try:
        yield
    except (InputError, MissingExtraError) as error:
        _fail(f"error: {error}", _BAD_INPUT, debug)
    except KeyboardInterrupt:
        _fail(stopped, STOPPED, debug)
    except MemoryError:
        _fail(
            "error: expected the tables to fit into memory. Got more rows or columns than do; use fewer, or --stream.",
            _BAD_INPUT,
            debug,
        )
    except Exit:
        raise
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"error: expected to be able to write. Got: {error.strerror or error}{where}.", _BAD_INPUT, debug)
    except Exception as error:  # noqa: BLE001 - the last resort: reported with its class, and whole with --debug
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        _fail(f"internal error: {reason}; run again with --debug for the traceback", _INTERNAL, debug)


def adapt_account(account: AdaptAccount) -> None:
    """Print what ``spar adapt`` did."""
    rows = _Rows()
    _tables(rows, account.tables, account.rank)
    rows.add("method", _method(account))
    _expectation(rows, account.expected, account.method, scored=account.scored is not None)
    silent = account.tables.unseen.rows
    if silent:
        rows.add("but", f"the forecast says nothing about {_count(silent, 'target row')} in unseen categories")
    if account.scored is not None:
        least, score = account.scored.rmse_least_squares, account.scored
        change = "" if account.method == "ols" else f"{format_number(least)} (least squares) → "
        rows.add(
            "true",
            f"{change}{format_number(score.rmse)} ({account.method}) RMSE on the {_count(score.rows, 'target row')} "
            "with a label, which was used for nothing else",
        )
    if account.expected.outside >= _NOTICEABLE:
        outside = f"{format_percent(account.expected.outside)} of the target's energy is outside the source's span"
        rows.add("outside", f"{outside}; no label speaks of it")
    _surprises(rows, account.tables, account.notes)
    n = account.tables.n_target
    if account.output is not None:
        rows.add("wrote", f"{account.output} ({_count(n, 'prediction')})")
    elif not account.has_rows:
        rows.add("wrote", "no predictions; the target is a summary, without rows")
    else:
        rows.add("wrote", "no predictions; add -o predictions.csv to keep them")
    if account.save is not None:
        rows.add("saved", f"{account.save} (preprocessing and regressor; read it with pyspar.load)")
    rows.show()


def summary_account(account: SummaryAccount) -> None:
    """Print what ``spar summarize`` wrote."""
    rows = _Rows()
    rows.add("rows", f"{account.rows:,}")
    label = "no label (a target)" if account.label is None else f"label {account.label!r}"
    rows.add("features", f"{account.features:,} numeric; {label}")
    rows.several("ignored", [f"{i.column}: {i.why}" for i in account.ignored])
    sizes = f"{filesize.decimal(account.n_bytes_out)}, from {filesize.decimal(account.n_bytes_in)} of rows"
    rows.add("wrote", f"{account.output} ({sizes}); give it to adapt or inspect in place of the rows")
    rows.show()


def inspect_account(account: InspectAccount) -> None:
    """Print what ``spar inspect`` found; every number is one of the inspection that the reports show."""
    found, (output,) = account.inspection, account.inspection.outputs
    rows = _Rows()
    _tables(rows, account.tables, found.rank)
    gone = sum(direction.goes for direction in output.directions)
    count = _count(len(output.directions), "target direction")
    rows.add("rule", f"the paper's, at alpha {found.alpha:g}, would remove {gone:,} of {count}")
    rows.several("forecast", forecast_lines(found))
    rows.add("verdict", verdict(found))
    rows.several("findings", finding_lines(found))
    _surprises(rows, account.tables, account.notes)
    for path in account.written:
        rows.add("wrote", str(path))
    rows.show()
    _directions(output, account.top)


def _directions(output: OutputInspection, top: int) -> None:
    table = Table(
        title=f"the costliest of the {_count(len(output.directions), 'target direction')}",
        title_justify="left", title_style="bold", header_style="", box=None, pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for name in ("", "keeping", "removing", "share", "taken"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("rule", no_wrap=True)
    table.add_column("loads on", overflow="fold")
    total = sum(direction.keeping for direction in output.directions)
    for place, direction in enumerate(output.directions[:top], 1):
        loads = ", ".join(f"{name} {_whole(share)}" for name, share in direction.loads[:3] if share >= 0.005)
        outside = f" ({_whole(direction.outside)} outside the source)" if direction.outside >= 0.005 else ""
        share = direction.keeping / total if total > 0.0 else 0.0
        table.add_row(
            str(place), *(Text(_legible(format_number(cost))) for cost in (direction.keeping, direction.removing)),
            f"{100.0 * share:.1f} %", _whole(direction.removed), Text("remove" if direction.goes else "keep"),
            Text(printable(loads + outside)),
        )  # fmt: skip
    console = Console(highlight=False)
    console.print()
    console.print(table)
    console.print()
    console.print(
        Text(
            "keeping is the squared error per row that label noise makes of a direction's weight, removing what "
            "setting it to zero would cost, as estimated; share is of all keeping; taken is what bayes takes of its "
            "weight.",
            style="dim",
        )
    )


_IF = "if the labels are linear in these features"


class _Rows:
    """Lines of a name and a text; text is never read as markup, since it holds names from files."""

    def __init__(self) -> None:
        self._grid = Table.grid(padding=(0, 2, 0, 0))
        self._grid.add_column(no_wrap=True, style="bold")
        self._grid.add_column(overflow="fold")

    def add(self, name: str, text: str) -> None:
        self._grid.add_row(Text(name), Text(_legible(printable(text))))

    def several(self, name: str, texts: list[str]) -> None:
        for text in texts[:_LINES]:
            self.add(name, text)
            name = ""
        if len(texts) > _LINES:
            self.add("", f"and {len(texts) - _LINES} more")

    def show(self) -> None:
        Console(highlight=False).print(self._grid)


def _tables(rows: _Rows, tables: Tables, rank: int) -> None:
    rows.add("rows", f"{tables.n_source:,} source, {tables.n_target:,} target")
    kinds = [
        f"{count:,} {kind}"
        for count, kind in (
            (tables.n_numeric, "numeric"),
            (tables.n_categorical, "categorical"),
            (tables.n_date, "date"),
        )
        if count
    ]
    rows.add(
        "features", f"{', '.join(kinds)}; {tables.n_encoded:,} after encoding, of rank {rank:,}; label {tables.label!r}"
    )


def _method(account: AdaptAccount) -> str:
    found = account.expected
    removed = f"{found.removed:,} of {_count(found.directions, 'target direction')} removed"
    if account.method == "spar":
        return f"spar, alpha {account.alpha:g}: {removed}"
    if account.method == "bayes":
        return f"bayes, {account.chosen}: {removed}, {found.shrunk:,} shrunk"
    names = {"ols": "least squares, not adapted", "ridge": "ridge regression", "pcr": "principal component regression"}
    return names[account.method] + (f": {account.chosen}" if account.chosen else "")


def _expectation(rows: _Rows, expected: Expected, method: str, *, scored: bool) -> None:
    """Say what error to expect, on labels as they come, of least squares and of the weights that predict."""
    before, after = expected.before, expected.after
    if not (math.isfinite(before.rmse) and math.isfinite(after.rmse)):
        rows.add("expected", "error unknown: it is larger than can be computed")
        return
    least = "" if method == "ols" else f"{format_number(before.rmse)} (least squares) → "
    rows.add(
        "expected",
        f"{least}{format_number(after.rmse)} ({method}; 95 %: {format_interval(after.interval95)}) RMSE; {_IF}",
    )
    beside = "; 'expected' and 'true' include it" if scored else ", which 'expected' includes"
    rows.add("noise", f"{format_number(math.sqrt(after.noise))} in each label, as estimated on the source{beside}")


def _surprises(rows: _Rows, tables: Tables, notes: tuple[str, ...]) -> None:
    rows.several(
        "filled in",
        [f"{f.column}: {f.source:,} source, {f.target:,} target, by {f.by}" for f in tables.filled],
    )
    rows.several(
        "unseen", [f"{u.column}: {describe_new_categories(u.rows, u.categories)}" for u in tables.unseen.columns]
    )
    rows.several("ignored", [f"{i.column}: {i.why}" for i in tables.ignored])
    for note in notes:
        rows.add("note", note)


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _whole(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _legible(text: str) -> str:
    """Return a text whose numbers the terminal can show: an arrow may become a question mark, a power must not."""
    try:
        text.encode(Console().encoding)
    except (UnicodeEncodeError, LookupError):
        return replace_powers(text)
    return text


def printable(text: str) -> str:
    """Return a text in which control characters are spelt out: names come from files, and a terminal obeys them."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _fail(text: str, code: int, debug: bool) -> NoReturn:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if debug:
        console.print(Text(traceback.format_exc()))
    console.print(Text(printable(text)))
    raise Exit(code)
