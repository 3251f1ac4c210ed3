"""The lines with labels that the command line prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from pyspar.paper.commands import print_table
from pyspar.text import count_noun, format_number, printable

EXIT_CODES = (
    "Exit codes: 0 success; 1 internal error, a failed run or check, or a result that could not be printed; 2 invalid "
    "input, and nothing was written; 130 stopped by Ctrl-C or SIGTERM, and no unfinished file was left."
)
_MAX_LINES, _MAX_LENGTH = 8, 2000


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
    else:
        yield "rows", f"{result['rows']:,}"
    if "method" in result:
        is_chosen = (result.get("correction") or {}).get("chosen")
        known = f"assumes that the {result['assumes']} stays the same"
        yield "method", f"{result['method']}; {'target labels choose the assumption' if is_chosen else known}"
    if forecast := result.get("expected"):
        source = f"; {format_number(forecast['source_rmse'])} on source rows" if forecast["source_rmse"] > 0.0 else ""
        interval = " to ".join(map(format_number, forecast["interval95"]))
        rmse = _list_rmse(forecast, result.get("correction"))
        yield "expected", f"{rmse} (95 %: {interval}) RMSE on the target{source}"
    if measured := result.get("measured"):
        rows = count_noun(measured["rows"], "target row")
        yield "measured", f"{_list_rmse(measured)} RMSE on the {rows} with a label"
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
    for label in ("wrote", "saved"):
        if result.get(label):
            yield label, result[label]


def _list_rmse(errors: dict[str, Any], correction: Any = None) -> str:
    when = "without the correction" if correction else "before adapting"
    before = "" if errors["before"] is None else f"{format_number(errors['before'])} {when}, "
    return f"{before}{format_number(errors['rmse'])}"


def _list_first(label: str, texts: Iterable[str], limit: int = _MAX_LINES) -> Iterator[tuple[str, str]]:
    """Yield the first lines with a label, and the number of the others."""
    texts = list(texts)
    more = [f"and {len(texts) - limit:,} more (--json lists all)"] if len(texts) > limit else []
    for number, text in enumerate([*texts[:limit], *more]):
        yield ("" if number else label), text
