"""Reproduce suites: gather the records of a suite, then make its tables and figures from the records only."""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast

from pyspar.errors import MissingExtraError
from pyspar.paper.data.registry import state_of
from pyspar.paper.experiments.suite import Block, Suite, list_suite_names, read_suite
from pyspar.paper.output.tables import Result, Sheet, format_csv, format_result, write_text
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Options, SuiteRecords
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import RunFolder
from pyspar.terminal import SILENT, Progress

KINDS = {
    "synthetic": "pyspar.paper.experiments.table1",
    "methods": "pyspar.paper.experiments.methods",
    "search": "pyspar.paper.experiments.search",
    "alpha": "pyspar.paper.experiments.alpha",
    "inflation": "pyspar.paper.experiments.inflation",
    "cost": "pyspar.paper.experiments.cost",
}
"""The kinds of suites, and the modules that define the functions of :class:`SuiteKind`."""


class SuiteKind(Protocol):
    """The functions that a module for a kind of suite defines.

    Tables and figures depend on the records only, so that they can be made again without running anything.
    """

    def gather(self, suite: Suite, options: Options, progress: Progress) -> SuiteRecords:
        """Do the missing runs of a suite, and return its records."""

    def expect(self, suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
        """Return the records that the specs of a suite lead to, with nan as their values.

        If the data determine what is measured, such as the best setting of a search, existing records are used.
        """

    def present(self, suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
        """Return the tables of a suite and remarks about them."""

    def draw_figures(self, suite: Suite, records: list[Record], folder: Path) -> list[Path]:
        """Draw the figures of a suite into a folder, and return their paths."""


def select_suites(names: list[str]) -> list[Suite]:
    """Return the named suites, or all of them for "all". Raise ``InputError`` for an unknown name."""
    suites = [read_suite(name) for name in dict.fromkeys(names) if name != "all"]
    return [read_suite(name) for name in list_suite_names()] if "all" in names else suites


def find_cautions(suites: list[Suite], options: Options) -> list[str]:
    """Return a warning if some suites would train on images on a CPU, which takes very long."""
    if options.device != "cpu" or options.mini:
        return []
    slow = [
        suite.name
        for suite in suites
        if any(block.uses_images for block in suite.blocks)
        and not all(RunFolder.of(options.out, spec).is_done for spec in options.specs(suite))
    ]
    if not slow:
        return []
    return [
        f"{', '.join(slow)}: training on images takes many hours on a CPU; use --device cuda if there is a GPU. You "
        "can interrupt the command at any time; the same command continues."
    ]


def reproduce(suite: Suite, options: Options, progress: Progress = SILENT) -> Result:
    """Do the missing runs of a suite, and write its tables and figures into its folder."""
    suite = make_miniature(suite) if options.mini else suite
    folder = options.out / suite.name
    gathered = import_kind(suite).gather(suite, options, progress)
    result = make_result(suite, gathered.records, folder)
    result = replace(
        result,
        remarks=[*result.remarks, *select_findings(suite, gathered.records)],
        failures=gathered.failures,
        notices=[*gathered.notices, *result.notices],
    )
    files = [
        folder / "records.jsonl",
        write_text(folder / "table.md", format_result(result)),
        write_text(folder / "table.csv", format_csv(result.sheets)),
    ]
    return replace(result, files=files + result.files)


def make_result(suite: Suite, records: list[Record], figures: Path | None) -> Result:
    """Make the tables of a suite from its records, and draw its figures into a folder, or none for None."""
    kind = import_kind(suite)
    sheets, remarks = kind.present(suite, records)
    if figures is None:
        return Result(suite.name, suite.title, sheets, remarks)
    try:
        files, notices = kind.draw_figures(suite, records, figures), []
    except MissingExtraError as error:
        files, notices = [], [f"no figures: {error}"]
    return Result(suite.name, suite.title, sheets, remarks, notices=notices, files=files)


def select_findings(suite: Suite, records: list[Record]) -> tuple[str, ...]:
    """Return the suite's remarks about its results if every method has exactly the suite's number of seeds."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for record in records:
        seeds.setdefault((record.task, record.method.partition(" + ")[0]), set()).add(record.seed)
    complete = all(
        any(len(seeds.get((task, method), ())) == suite.seeds for task in block.tasks)
        for block in suite.blocks
        for method in block.methods
    )
    return suite.found if complete else ()


def import_kind(suite: Suite) -> SuiteKind:
    """Return the module for the kind of a suite."""
    return cast(SuiteKind, importlib.import_module(KINDS[suite.kind]))


def describe_suites(data: Path | None) -> list[tuple[str, str, str]]:
    """Return the name, the description and the state of each suite: "ready", or the missing packages and data."""
    rows = []
    for name in list_suite_names():
        suite = read_suite(name)
        missing = [f"needs pyspar[{extra}]" for extra in find_missing_extras(suite)]
        missing += [text for block in suite.blocks if (text := _missing_data(block.tasks, data))]
        rows.append((name, suite.about, ", ".join(dict.fromkeys(missing)) or "ready"))
    return rows


def find_missing_extras(suite: Suite) -> list[str]:
    """Return the extras of pyspar that a suite requires and that are not installed."""
    packages = {"torch": ("torch", bool(suite.blocks)), "optuna": ("paper", suite.kind == "search")}
    return [extra for package, (extra, needed) in packages.items() if needed and find_spec(package) is None]


def _missing_data(tasks: tuple[str, ...], data: Path | None) -> str:
    """Return the state of the data sets of a block, or an empty string if one of them is available."""
    states = {task: state_of(task, data) for task in tasks}
    if "found" in states.values():
        return ""
    damaged = [f"{state} {task}" for task, state in states.items() if state != "missing"]
    return " or ".join(damaged) if damaged else f"needs {' or '.join(tasks)}"


def make_miniature(suite: Suite) -> Suite:
    """Return a suite that does the same steps in seconds, with two seeds and two epochs on generated data."""
    pool = "pool" if suite.adapt_to == "unlabeled" else "yes"
    blocks = tuple(_shrink_block(block, pool) for block in suite.blocks)
    extra = {name: {"draws": 2, "alphas": [0.5, 0.999]}.get(name, value) for name, value in suite.extra.items()}
    return replace(suite, blocks=blocks, seeds=2, extra=extra, found=())


def _shrink_block(block: Block, pool: str) -> Block:
    methods: dict[str, dict[str, Any]] = {}
    for name, params in block.methods.items():
        config = {**params.get("config", {}), "epochs": 2, "batch_size": 8}
        pretrain = {"pretrain": 1} if "pretrain" in params else {}
        methods[name] = {**params, **pretrain, "config": config}
    hold_out = {key: value for key, value in block.options.items() if key == "hold_out"}
    # A miniature needs no download of weights, and no enlarged images.
    network_options = {k: v for k, v in block.network_options.items() if k not in ("pretrained", "size")}
    return replace(
        block,
        methods=methods,
        options={"mini": pool, **hold_out},
        network_options=network_options,
        folds=block.folds[:2],
    )
