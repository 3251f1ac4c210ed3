"""Reproduce a suite: gather its records, then make its tables and figures from them and from nothing else."""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyspar.errors import MissingExtraError
from pyspar.paper.data.registry import state_of
from pyspar.paper.experiments.suite import Suite, images, suite_named, suite_names
from pyspar.paper.output.tables import Result, result_markdown, sheets_csv, write_text
from pyspar.paper.runs.parallel import Progress, Silent
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Gathered, Options
from pyspar.paper.runs.store import RunFolder

KINDS = {
    "synthetic": "pyspar.paper.experiments.table1",
    "methods": "pyspar.paper.experiments.methods",
    "search": "pyspar.paper.experiments.search",
    "alpha": "pyspar.paper.experiments.alpha",
    "inflation": "pyspar.paper.experiments.inflation",
    "cost": "pyspar.paper.experiments.cost",
}
"""What kinds of suites there are; each module has ``gather``, ``present`` and ``draw``."""


def chosen_suites(names: list[str]) -> list[Suite]:
    """Return the suites named, or all; a name that does not exist is refused before anything is done."""
    named = [suite_named(name) for name in dict.fromkeys(names) if name != "all"]
    return [suite_named(name) for name in suite_names()] if "all" in names else named


def cautions(suites: list[Suite], options: Options) -> list[str]:
    """Return what a person should know before waiting: which suites take very long on this device."""
    if options.device != "cpu" or options.mini:
        return []
    slow = [
        suite.name
        for suite in suites
        if any(images(block) for block in suite.blocks)
        and not all(RunFolder.of(options.out, spec).is_done for spec in options.specs(suite))
    ]
    if not slow:
        return []
    return [
        f"{', '.join(slow)}: training on images takes many hours on a CPU; --device cuda is for that. It can be "
        "stopped at any time, and the same command goes on from there."
    ]


def reproduce(suite: Suite, options: Options, progress: Progress | None = None) -> Result:
    """Do what is left of a suite, and write its tables and figures into its folder."""
    small = miniature(suite) if options.mini else suite
    gathered: Gathered = kind_of(suite).gather(small, options, progress or Silent())
    result = shown(small, gathered.records, options.out / suite.name)
    result = replace(result, remarks=[*result.remarks, *remarks_on(small, gathered.records)])
    troubles = [*result.troubles, *gathered.troubles]
    return written(
        replace(result, troubles=troubles, notices=[*gathered.notices, *result.notices]), options.out / suite.name
    )


def shown(suite: Suite, records: list[Record], folder: Path) -> Result:
    """Make a suite's tables from its records, and its figures into a folder."""
    kind = kind_of(suite)
    sheets, remarks = kind.present(suite, records)
    notices = []
    files: list[Path] = []
    try:
        files = kind.draw(suite, records, folder)
    except MissingExtraError as error:
        notices.append(f"no figures: {error}")
    return Result(suite.name, suite.title, sheets, remarks, notices=notices, files=files)


def remarks_on(suite: Suite, records: list[Record]) -> tuple[str, ...]:
    """Return what the suite says of its results: only where every method has as many seeds as that was said of."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for r in records:
        seeds.setdefault((r.task, r.method.partition(" + ")[0]), set()).add(r.seed)
    whole = all(
        any(len(seeds.get((task, method), ())) == suite.seeds for task in block.tasks)
        for block in suite.blocks
        for method in block.methods
    )
    return suite.found if whole else ()


def written(result: Result, folder: Path) -> Result:
    """Write a result's tables as Markdown and CSV."""
    files = [
        folder / "records.jsonl",
        write_text(folder / "table.md", result_markdown(result)),
        write_text(folder / "table.csv", sheets_csv(result.sheets)),
    ]
    return replace(result, files=files + result.files)


def kind_of(suite: Suite) -> Any:
    """Return the module that knows a suite's kind."""
    return importlib.import_module(KINDS[suite.kind])


def listing(data: Path | None) -> list[tuple[str, str, str]]:
    """Return for each suite its name, what it is, and what is missing: packages, or data not here, or not whole."""
    found = []
    for name in suite_names():
        suite = suite_named(name)
        troubles = [f"needs pyspar[{extra}]" for extra in missing_extras(suite)]
        troubles += [trouble for tasks in suite.tasks if (trouble := _trouble(tasks, data))]
        found.append((name, suite.about, ", ".join(dict.fromkeys(troubles)) or "ready"))
    return found


def missing_extras(suite: Suite) -> list[str]:
    """Return the extras that bring what a suite cannot be run without and what is not installed."""
    needed = {"torch": bool(suite.blocks), "optuna": suite.kind == "search"}
    brings = {"torch": "torch", "optuna": "paper"}
    return [brings[package] for package, wanted in needed.items() if wanted and find_spec(package) is None]


def _trouble(tasks: tuple[str, ...], data: Path | None) -> str:
    """Say what keeps a block from being run: nothing where one of its data sets is whole."""
    states = {task: state_of(task, data) for task in tasks}
    if "found" in states.values():
        return ""
    there = [f"{state} {task}" for task, state in states.items() if state != "missing"]
    return " or ".join(there) if there else f"needs {' or '.join(tasks)}"


def miniature(suite: Suite) -> Suite:
    """Return a suite that goes through all the same steps on generated data in seconds."""
    small: dict[str, Any] = {"epochs": 2, "batch_size": 8}
    pool = "pool" if suite.adapt_to == "unlabeled" else "yes"

    def method(given: dict[str, Any]) -> dict[str, Any]:
        short = {"pretrain": 1} if "pretrain" in given else {}
        return {**given, **short, "config": {**given.get("config", {}), **small}}

    def options(given: dict[str, Any]) -> dict[str, Any]:
        return {"mini": pool} | {k: v for k, v in given.items() if k == "hold_out"}

    blocks = tuple(
        replace(
            block,
            methods={name: method(given) for name, given in block.methods.items()},
            options=options(block.options),
            folds=block.folds[:2],
        )
        for block in suite.blocks
    )
    extra = {**suite.extra, "draws": 2, "alphas": [0.5, 0.999]}
    return replace(suite, blocks=blocks, seeds=2, extra=extra, found=())
