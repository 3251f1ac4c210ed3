"""Compare committed records with the current methods: ``spar reproduce --check``.

A record is current if the suite still asks for it, with the same settings, and its head has the current recipe. Every
other record, and every number that has no record, is a problem with the command that solves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspar.errors import InputError
from pyspar.paper.data.registry import DATASETS
from pyspar.paper.experiments.reproduce import import_kind
from pyspar.paper.experiments.suite import Suite, list_suite_names, published, read_suite
from pyspar.paper.runs.records import Record, read_suite_records
from pyspar.paper.runs.spec import canonical_json
from pyspar.text import list_some

COLLECT = "python -m pyspar.paper.output.page --collect reproduction"
"""The command that copies new records into ``results`` and writes the page."""


@dataclass(frozen=True)
class Problem:
    """Rows of a suite that are "stale", "missing" or "orphaned", and what solves it."""

    suite: str
    kind: str
    rows: str
    reason: str
    command: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.suite}, {self.rows}: {self.reason}; run: {self.command}"


def check_results(results: Path, names: Iterable[str] | None = None) -> list[Problem]:
    """Return the problems of the records in a folder such as ``results``, by default of all suites."""
    if not results.is_dir():
        raise InputError(f"folder not found: {str(results)!r}; --check compares the records of a source checkout.")
    known = list_suite_names()
    suites = [read_suite(name) for name in names or known]
    problems = [p for suite in suites for p in check_suite(suite, read_suite_records(results, suite.name))]
    if names is None:
        problems += [
            Problem(path.name, "orphaned", "all rows", "there is no such suite", f"git rm -r {path}")
            for path in sorted(results.iterdir())
            if path.is_dir() and path.name not in known
        ]
    return problems


def check_suite(suite: Suite, records: list[Record]) -> list[Problem]:
    """Return the problems of the records of one suite."""
    n_seeds = suite.seeds if suite.recorded_seeds is None else suite.recorded_seeds
    if not records and not n_seeds:
        return []
    expected, actual = _group_settings(_expected_records(suite, records, n_seeds)), _group_settings(records)
    problems: dict[tuple[Any, ...], list[int]] = {}
    for cell in expected.keys() | actual.keys():
        problem = _judge_cell(expected.get(cell, []), actual.get(cell, []))
        if problem is not None:
            problems.setdefault((problem[0], cell[:2], problem[1]), []).append(cell[2])
    for row in _unmeasured_cells(suite):
        problems.setdefault(("missing", row, "published, and the suite does not measure it"), [])
    device = next((record.spec["device"] for record in records if "device" in record.spec), "cpu")
    command = _renewal(suite, n_seeds, device)
    found = []
    for (kind, row, reason), seeds in sorted(problems.items()):
        which = f" (seeds {list_some(sorted(set(seeds)))})" if seeds else ""
        found.append(Problem(suite.name, kind, ", ".join(row) + which, reason, command))
    return found


def _group_settings(records: Iterable[Record]) -> dict[tuple[Any, ...], list[tuple[int, str]]]:
    settings: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for record in records:
        cell = record.task, record.method, record.seed, record.metric, record.at
        spec = {name: value for name, value in record.spec.items() if name != "device"}
        settings.setdefault(cell, []).append((record.recipe, canonical_json(spec)))
    return settings


def _judge_cell(expected: list[tuple[int, str]], actual: list[tuple[int, str]]) -> tuple[str, str] | None:
    """Return the kind of problem and its reason, or None if the records have the expected settings."""
    absent, unexpected = set(expected) - set(actual), set(actual) - set(expected)
    if absent and unexpected:
        recipe, current = min(unexpected)[0], min(absent)[0]
        changed = f"recipe {recipe}, the current one is {current}" if recipe != current else ""
        return "stale", changed or "the settings of the suite changed"
    if absent:
        return "missing", "no record"
    if unexpected:
        return "orphaned", "the suite does not include this record"
    return ("orphaned", "several records of one number") if len(actual) > len(set(expected)) else None


def _expected_records(suite: Suite, records: list[Record], n_seeds: int) -> list[Record]:
    tasks = {record.task for record in records}
    trained = {(record.method.partition(" + ")[0], record.seed) for record in records}
    limit = max(suite.seeds, n_seeds)
    specs = suite.specs(limit, "cpu", lambda names: next((name for name in names if name in tasks), names[0]))
    specs = [spec for spec in specs if spec.seed < n_seeds or (spec.objective, spec.seed) in trained]
    return import_kind(suite).expect(suite, specs, records)  # type: ignore[no-any-return]


def _unmeasured_cells(suite: Suite) -> list[tuple[str, str]]:
    cells = published(suite.published).cells if suite.published and suite.metrics else {}
    return [
        (block.published_task, method)
        for block in suite.blocks
        for method in cells.get(block.published_task, {})
        if method.partition(" + ")[0] not in block.methods
    ]


def _renewal(suite: Suite, n_seeds: int, device: str) -> str:
    words = ["spar", "reproduce", suite.name]
    words += ["--seeds", str(n_seeds)] if n_seeds not in (0, suite.seeds) else []
    words += ["--device", device] if device != "cpu" else []
    needs_folder = any(all(DATASETS[task].obtain for task in block.tasks) for block in suite.blocks)
    return f"{' '.join(words + ['--data', 'FOLDER'] * needs_folder)} && {COLLECT}"
