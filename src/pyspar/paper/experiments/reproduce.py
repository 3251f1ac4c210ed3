"""Reproduce suites: gather the records of a suite, then make its tables and figures from the records only.

The module for a kind of suite defines four functions. ``gather(suite, options)`` does the missing runs and returns a
``SuiteRecords``. ``expect(suite, specs, records)`` returns the records that specs lead to, with nan as their values.
``present(suite, records)`` returns tables and remarks, and ``draw_figures(suite, records, folder)``, if there
are any, the paths of figures.

``reproduce(read_suite("rcf-mnist"), Options(device="cuda"))`` does the same as the command ``spar reproduce`` on a
machine without the packages of the command line.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyspar.errors import MissingExtraError
from pyspar.paper.data.registry import state_of
from pyspar.paper.experiments.suite import Block, Suite, list_suite_names, read_suite
from pyspar.paper.output.tables import Result, format_result, write_text
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Options

KINDS = {"synthetic": "table1"} | {kind: kind for kind in ("methods", "search", "alpha", "inflation", "cost")}
"""The kinds of suites, and their modules."""


def import_kind(suite: Suite) -> Any:
    """Return the module for the kind of a suite."""
    return importlib.import_module(f"pyspar.paper.experiments.{KINDS[suite.kind]}")


def select_suites(names: list[str]) -> list[Suite]:
    """Return the named suites, or all of them for "all". Raise ``InputError`` for an unknown name."""
    suites = [read_suite(name) for name in dict.fromkeys(names) if name != "all"]
    return [read_suite(name) for name in list_suite_names()] if "all" in names else suites


def find_cautions(suites: list[Suite], options: Options) -> list[str]:
    """Return what to know before a run: which data are missing, and that images take very long on a CPU."""
    blocks = [] if options.mini else [(suite.name, block) for suite in suites for block in suite.blocks]
    missing = [(name, block.tasks[0], text) for name, block in blocks if (text := _missing_data(block, options.data))]
    cautions = dict.fromkeys(f"{name} {text}; how to get it: spar data where {task}" for name, task, text in missing)
    slow = dict.fromkeys(name for name, block in blocks if block.uses_images and options.device == "cpu")
    text = "training on images takes many hours on a CPU; use --device cuda if there is a GPU. You can interrupt the "
    return [*cautions, *[f"{', '.join(slow)}: {text}command at any time; the same command continues."] * bool(slow)]


def reproduce(suite: Suite, options: Options) -> Result:
    """Do the missing runs of a suite, and write its tables and figures into its folder."""
    suite = make_miniature(suite) if options.mini else suite
    folder = options.out / suite.name
    gathered = import_kind(suite).gather(suite, options)
    result = make_result(suite, gathered.records, folder)
    result = replace(result, failures=gathered.failures, notices=[*gathered.notices, *result.notices])
    files = [folder / "records.jsonl", write_text(folder / "table.md", format_result(result))]
    return replace(result, files=files + result.files)


def make_result(suite: Suite, records: list[Record], figures: Path | None) -> Result:
    """Make the tables of a suite from its records, and draw its figures into a folder, or none for None."""
    kind = import_kind(suite)
    sheets, remarks = kind.present(suite, records)
    if figures is None:
        return Result(suite.name, suite.title, sheets, remarks)
    try:
        files, notices = (kind.draw_figures(suite, records, figures) if hasattr(kind, "draw_figures") else []), []
    except MissingExtraError as error:
        files, notices = [], [f"no figures: {error}"]
    return Result(suite.name, suite.title, sheets, remarks, notices=notices, files=files)


def describe_suites(data: Path | None) -> list[tuple[str, str, str]]:
    """Return the name, the description and the state of each suite: "ready", or the missing packages and data."""
    rows = []
    for name in list_suite_names():
        suite = read_suite(name)
        missing = [f"needs pyspar[{extra}]" for extra in find_missing_extras(suite)]
        missing += [text for block in suite.blocks if (text := _missing_data(block, data))]
        rows.append((name, suite.about, ", ".join(dict.fromkeys(missing)) or "ready"))
    return rows


def find_missing_extras(suite: Suite) -> list[str]:
    """Return the extras of pyspar that a suite requires and that are not installed."""
    downloads = any(b.network.startswith("resnet") and b.network_options.get("pretrained") for b in suite.blocks)
    packages = {
        "torch": ("torch", bool(suite.blocks)),
        "torchvision": ("vision", downloads),
        "optuna": ("paper", suite.kind == "search"),
    }
    return [extra for package, (extra, needed) in packages.items() if needed and find_spec(package) is None]


def _missing_data(block: Block, data: Path | None) -> str:
    options = {"unlabeled": True} if block.options.get("unlabeled") else {}
    states = {task: state_of(task, data, **options) for task in block.tasks}
    if "found" in states.values():
        return ""
    damaged = [f"{state} {task}" for task, state in states.items() if state != "missing"]
    return " or ".join(damaged) if damaged else f"needs {' or '.join(block.tasks)}"


def make_miniature(suite: Suite) -> Suite:
    """Return a suite that does the same steps in seconds, with two seeds and two epochs on generated data."""
    pool = "pool" if suite.adapt_to == "unlabeled" else "yes"
    extra = {name: {"draws": 2, "alphas": [0.5, 0.999]}.get(name, value) for name, value in suite.extra.items()}
    return replace(suite, blocks=tuple(_shrink_block(block, pool) for block in suite.blocks), seeds=2, extra=extra)


def _shrink_block(block: Block, pool: str) -> Block:
    methods: dict[str, dict[str, Any]] = {}
    for name, params in block.methods.items():
        config = {**params.get("config", {}), "epochs": 2, "batch_size": 8}
        methods[name] = {**params, **({"pretrain": 1} if "pretrain" in params else {}), "config": config}
    options = {"mini": pool, **{key: value for key, value in block.options.items() if key == "hold_out"}}
    # A miniature needs no download of weights, and no enlarged images.
    network_options = {k: v for k, v in block.network_options.items() if k not in ("pretrained", "size")}
    changes = {"methods": methods, "options": options, "network_options": network_options}
    return replace(block, **changes, folds=block.folds[:2])  # type: ignore[arg-type]
