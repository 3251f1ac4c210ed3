"""What the terminal sees of experiments: progress bars, published cells beside ours, the demo's story."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pyspar.bench.demo import Demo
    from pyspar.bench.table1 import Table1


def track(items: Iterable[Any], *, label: str, total: int) -> Iterable[Any]:
    """Show a progress bar on stderr while the items are used, if a person may be looking."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield from progress.track(items, total=total, description=label)


def reproduction(found: Table1) -> None:
    """Print published cells beside ours, and where everything was written."""
    console = Console(highlight=False)
    table = Table(title="squared error summed over the target, mean ± standard deviation over draws", title_style="")
    for name in ("task", "method", "published", "ours", ""):
        table.add_column(name, justify="right" if name in ("published", "ours") else "left", no_wrap=True)
    task = None
    for cell in found.cells:
        if task not in (None, cell.task):
            table.add_section()
        first = cell.task if cell.task != task else ""
        table.add_row(first, cell.method, " ± ".join(cell.published), " ± ".join(cell.ours), cell.verdict)
        task = cell.task
    console.print(table)
    same = sum(cell.verdict == "same" for cell in found.cells)
    console.print(f"{same} of {len(found.cells)} cells print the published digits, mean and spread.")
    for path in found.files:
        console.print(Text(f"wrote {path}"), soft_wrap=True)


def demo(found: Demo) -> None:
    """Tell what the demo did, and what came of it."""
    console = Console(highlight=False)
    task, adaptation = found.task, found.adaptation
    kind = task.group_kind
    console.print(
        f"[bold]Communities and Crime[/bold]: predict violent crime per population from "
        f"{len(task.feature_names)} census figures. Learn from {len(task.train):,} communities in some {kind}s, be "
        f"judged on {len(task.test):,} in others, whose labels are used for the score alone.\n"
    )
    table = Table()
    table.add_column("method")
    table.add_column("target RMSE", justify="right")
    table.add_column(f"worst {kind}", justify="right")
    table.add_column("")
    notes = {
        "OLS": "least squares",
        "ridge": "penalty by leave-one-out on the source",
        "PCR": "components by GCV on the source",
        "SpAR": "adapted to the unlabelled target",
    }
    best = [min(pair[k] for pair in found.errors.values()) for k in (0, 1)]
    for name, pair in found.errors.items():
        cells = [f"[bold]{v:.4f} *[/bold]" if v == b else f"{v:.4f}  " for v, b in zip(pair, best, strict=True)]
        table.add_row(name, *cells, notes[name])
    console.print(table)
    console.print(
        f"* best. SpAR took {int(adaptation.removed.sum())} of {adaptation.z.rank} target directions out of the "
        "weights: an insurance against directions that the source knows little of. It pays where the worlds differ "
        "most, and may cost a little elsewhere."
    )
    console.print(Text(f"\nfigure: {found.figure}"), soft_wrap=True)
