"""Compare committed records with the current methods: ``spar reproduce --check``.

A record is current if the suite still asks for it, with the same settings, and its head has the current recipe. Every
other record, and every number that has no record, is a problem with the command that solves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pyspar.errors import InputError
from pyspar.paper.data.catalogue import DATASETS
from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.reproduce import import_kind
from pyspar.paper.experiments.suite import Suite, list_suite_names, read_suite
from pyspar.paper.runs.records import Record, read_records
from pyspar.paper.runs.spec import RunSpec, canonical_json
from pyspar.paper.runs.summary import FILE
from pyspar.wording import list_some

COLLECT = "python -m pyspar.paper.output.page --collect reproduction"
"""The command that copies new records into ``results`` and writes the page."""


@dataclass(frozen=True)
class Problem:
    """Rows of a suite that are stale, missing or orphaned, and the command that solves it."""

    suite: str
    kind: Literal["stale", "missing", "orphaned"]
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
    problems = [
        problem for name in names or known for problem in check_suite(read_suite(name), _read(results, name), results)
    ]
    if names is None:
        problems += [
            Problem(path.name, "orphaned", "all rows", "there is no such suite", f"git rm -r {path}")
            for path in sorted(results.iterdir())
            if path.is_dir() and path.name not in known
        ]
    return problems


def check_suite(suite: Suite, records: list[Record], results: Path) -> list[Problem]:
    """Return the problems of the records of one suite."""
    n_seeds = suite.seeds if suite.recorded_seeds is None else suite.recorded_seeds
    if not records and not n_seeds:
        return []
    expected, actual = _group_settings(_expected_records(suite, records, n_seeds)), _group_settings(records)
    problems: dict[tuple[Any, ...], list[int]] = {}
    for cell in expected.keys() | actual.keys():
        problem = _judge_cell(expected.get(cell, []), actual.get(cell, []))
        if problem is not None:
            kind, reason = problem
            problems.setdefault((kind, cell[:2], reason), []).append(cell[2])
    for row in _unmeasured_cells(suite):
        problems.setdefault(("missing", row, "published, and the suite does not measure it"), [])
    only_recipes = all(kind == "stale" and reason.startswith("recipe") for kind, _, reason in problems)
    device = next((record.spec["device"] for record in records if "device" in record.spec), "cpu")
    command = _renewal(suite, n_seeds, device, rescore=only_recipes and (results / suite.name / FILE).is_file())
    return [
        Problem(suite.name, kind, _describe_row(row, seeds), reason, command)
        for (kind, row, reason), seeds in sorted(problems.items())
    ]


def _group_settings(records: Iterable[Record]) -> dict[tuple[Any, ...], list[tuple[int, str]]]:
    """Return the recipes and settings of records by data set, method, seed, metric and position.

    A search has several settings for one number. Seeds may be trained in several batches, and on any device.
    """
    settings: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for record in records:
        cell = record.task, record.method, record.seed, record.metric, record.at
        spec = {name: value for name, value in record.spec.items() if name not in ("seeds", "device")}
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
    """Return the records that the suite asks for, for the recorded seeds and any further ones that have records."""
    tasks = {record.task for record in records}
    limit = max(suite.seeds, n_seeds)
    seeds = set(range(n_seeds)) | {record.seed for record in records if record.seed < limit}

    def choose(names: tuple[str, ...]) -> str:
        return next((name for name in names if name in tasks), names[0])

    specs = [_keep_seeds(spec, seeds) for spec in suite.specs(limit, "cpu", choose)]
    return import_kind(suite).expect(suite, [spec for spec in specs if spec.seeds], records)


def _keep_seeds(spec: RunSpec, seeds: set[int]) -> RunSpec:
    return replace(spec, seeds=tuple(seed for seed in spec.seeds if seed in seeds))


def _unmeasured_cells(suite: Suite) -> list[tuple[str, str]]:
    """Return the published cells of the suite's data sets and heads whose training method the suite does not have."""
    if not suite.published or not suite.metrics:
        return []
    cells = published(suite.published).cells
    return [
        (block.published_task, method)
        for block in suite.blocks
        for method in cells.get(block.published_task, {})
        if method.partition(" + ")[0] not in block.methods
    ]


def _describe_row(row: tuple[str, str], seeds: list[int]) -> str:
    task, method = row
    which = list_some(sorted(set(seeds)))
    return f"{task}, {method}" + (f" (seeds {which})" if seeds else "")


def _renewal(suite: Suite, n_seeds: int, device: str, *, rescore: bool) -> str:
    """Return the commands that renew the records of a suite."""
    if rescore:
        return f"python -m pyspar.paper.runs.summary results/{suite.name}"
    words = ["spar", "reproduce", suite.name]
    if n_seeds not in (0, suite.seeds):
        words += ["--seeds", str(n_seeds)]
    if device != "cpu":
        words += ["--device", device]
    if any(all(DATASETS[task].obtain for task in block.tasks) for block in suite.blocks):
        words += ["--data", "FOLDER"]
    return f"{' '.join(words)} && {COLLECT}"


def _read(results: Path, name: str) -> list[Record]:
    file = results / name / "records.jsonl"
    return read_records(file) if file.is_file() else []
