"""The report of two files: checked before any work, made from what was encoded, written whole or not at all."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspar.errors import need
from pyspar.inspection import build_inspection
from pyspar.inspection.compare import compare_weights
from pyspar.inspection.unseen_categories import add_unseen
from pyspar.io.atomic import whole_file
from pyspar.reporting import Report
from pyspar.tables.account import InspectAccount, Tables
from pyspar.tables.request import Request
from pyspar.tables.watch import Watch
from pyspar.tables.write import check_path, writing
from pyspar.wording import describe_new_categories


def check_reports(html: Path | None, json: Path | None, *, inputs: tuple[Path, ...]) -> None:
    """Refuse a report that cannot or must not be written."""
    if html is not None:
        check_path(html, "--report", (".html",), inputs)
        need("jinja2", "report")
        need("matplotlib", "report")
    if json is not None:
        check_path(json, "--json", (".json",), inputs)


def inspected(
    estimator: Any,
    Z: Any,
    request: Request,
    tables: Tables,
    columns: Sequence[str],
    *,
    top: int,
    notes: tuple[str, ...],
    html: Path | None,
    json: Path | None,
    watch: Watch,
) -> InspectAccount:
    """Inspect a fitted regressor on an encoded target, and write the reports asked for; the terminal shows the same."""
    watch("forecasting the error")
    target = estimator._target(Z, None)
    models = compare_weights(estimator, target, as_given=True)  # the units of ``spar adapt --method spar``
    built = build_inspection(models, Z, columns=columns, outputs=[tables.label], description=repr(estimator))
    found = Report(
        add_unseen(built, tables.unseen),
        f"{request.source.name} → {request.target.name}",
        command_of(request, tables.label, html=html, json=json),
        (*_notes(tables), *notes),
    )
    if html is not None or json is not None:
        watch("writing the report")
    return InspectAccount(tables, found.inspection, top, notes, write_reports(found, html, json))


def write_reports(report: Report, html: Path | None, json: Path | None) -> tuple[Path, ...]:
    """Write page and JSON, each where a path is given: both whole, or neither."""
    texts = [(html, report.html if html else None), (json, report.json if json else None)]
    asked = [(path, make()) for path, make in texts if path is not None and make is not None]
    with writing(html or json), ExitStack() as files:
        for path, text in asked:
            files.enter_context(whole_file(path)).write_text(text, encoding="utf-8")
    return tuple(path for path, _ in asked)


def command_of(request: Request, label: str, *, html: Path | None = None, json: Path | None = None) -> str:
    """Return the command line; a path from the root of the disk is named by its last part."""
    words = ["spar", "inspect", _shown(request.source), _shown(request.target), "--label", label]
    if request.alpha is not None:
        words += ["--alpha", f"{request.alpha:g}"]
    if request.features != "all":
        words += ["--features", request.features]
    if request.identity is not None:
        words += ["--id", request.identity]
    for name in request.drop:
        words += ["--drop", name]
    if request.stream:
        words.append("--stream")
    for option, path in (("--report", html), ("--json", json)):
        words += [option, _shown(path)] if path is not None else []
    return shlex.join(words)


def _shown(path: Path) -> str:
    return path.name if path.is_absolute() else str(path)


def _notes(tables: Tables) -> list[str]:
    notes = [f"{i.column}: {i.why}" for i in tables.ignored]
    notes += [
        f"{f.column}: {f.source:,} source and {f.target:,} target values filled in by {f.by}" for f in tables.filled
    ]
    notes += [f"{u.column}: {describe_new_categories(u.rows, u.categories)}" for u in tables.unseen.columns]
    return notes
