"""Suites: one TOML file for each table or figure of the paper, and the RunSpecs that it describes.

Names of data sets and methods occur in these files only, not in the code of this package.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from pyspar.errors import InputError
from pyspar.paper.parameters import check_name
from pyspar.paper.runs.spec import HEADS, NETWORKS, OBJECTIVES, RunSpec


@dataclass(frozen=True)
class Block:
    """A data set, a network, and the methods that train it. The first of ``tasks`` that is available is used.
    ``published_task`` is its name in the published table. The values of the option "fold" are assigned to the seeds in
    turn. ``methods`` has the arguments of each method; "config" in them overrides the config of the block.
    """

    tasks: tuple[str, ...]
    published_task: str
    network: str
    config: dict[str, Any]
    methods: dict[str, dict[str, Any]]
    network_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    folds: tuple[str, ...] = ()

    @property
    def uses_images(self) -> bool:
        """Whether the network is trained on images, which is slow without a GPU."""
        return self.network != "mlp"

    def specs(self, method: str, n_seeds: int, device: str, task: str) -> Iterator[RunSpec]:
        params = dict(self.methods[method])
        config = {**self.config, **params.pop("config", {})}
        for seed in range(n_seeds):
            fold = {"fold": self.folds[seed % len(self.folds)]} if self.folds else {}
            options = {**self.options, **fold}
            yield RunSpec(task, self.network, method, seed, options, dict(self.network_options), params, config, device)


@dataclass(frozen=True)
class Suite:
    """One table or figure of the paper, as described by its TOML file.

    Attributes
    ----------
    kind : which module runs it; see ``pyspar.paper.experiments.reproduce.KINDS``
    published : the name of the published table in ``published.toml``
    adapt_to : "test", or "unlabeled" for a separate pool of rows
    recorded_seeds : how many seeds the committed records have, 0 if the suite was not run; None for ``seeds``
    difference, differs : the main difference from the setting of the paper in a few words, and all differences
    verdicts : a sentence on each method of a table without published numbers; the gains beside it are from the records
    extra : settings of the kind
    """

    name: str
    title: str
    kind: str
    about: str
    seeds: int
    published: str = ""
    metrics: tuple[str, ...] = ()
    heads: tuple[str, ...] = ("trained",)
    adapt_to: str = "test"
    recorded_seeds: int | None = None
    difference: str = ""
    differs: tuple[str, ...] = ()
    verdicts: dict[str, str] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def published_task(self, task: str) -> str:
        return {name: block.published_task for block in self.blocks for name in block.tasks}.get(task, task)

    def specs(self, n_seeds: int, device: str, choose: Callable[[tuple[str, ...]], str]) -> list[RunSpec]:
        """Return the specs in the order of the table: one for each data set, method and seed."""
        return [
            spec
            for block in self.blocks
            for method in block.methods
            for spec in block.specs(method, n_seeds, device, choose(block.tasks))
        ]


def list_suite_names() -> list[str]:
    """Return the names of all suites in the order of the paper."""
    files = resources.files("pyspar.paper").joinpath("suites").iterdir()
    names = [f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")]
    return sorted(names, key=lambda name: (_read_toml(name).get("place", 99), name))


def read_suite(name: str) -> Suite:
    """Read a suite by its name."""
    return parse_suite(check_name("suite", name, list_suite_names()), _read_toml(name))


def parse_suite(name: str, raw: dict[str, Any]) -> Suite:
    """Return the suite of the values in its file. Raise ``InputError`` for a wrong name or entry."""
    fields: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in raw.items() if key not in ("place", "block")
    }
    for head in raw.get("heads", ()):
        check_name(f"head in suite {name}", head, HEADS)
    try:
        return Suite(name=name, blocks=tuple(_parse_block(name, b) for b in raw.get("block", ())), **fields)
    except (KeyError, TypeError) as error:
        raise InputError(f"suite {name}: missing or unknown entries: {error}.") from error


def _parse_block(suite: str, raw: dict[str, Any]) -> Block:
    tasks = (raw["task"],) if isinstance(raw["task"], str) else tuple(raw["task"])
    check_name(f"network in suite {suite}", raw["network"], NETWORKS)
    for method in raw["methods"]:
        check_name(f"method in suite {suite}", method, OBJECTIVES)
    fields = {key: tuple(v) if key == "folds" else v for key, v in raw.items() if key != "task"}
    return Block(tasks=tasks, **{"published_task": tasks[0], **fields})


def _read_toml(name: str) -> dict[str, Any]:
    text = resources.files("pyspar.paper").joinpath("suites", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


Cells = dict[str, dict[str, tuple[str, str]]]


@dataclass(frozen=True)
class PublishedTable:
    """One table of the paper for one metric: ``cells[task][method] = (mean, spread)``, as printed. ``n`` is the number
    of runs in a mean.
    """

    cells: Cells
    n: int = 10


def published(name: str, metric: str | None = None) -> PublishedTable:
    """Return a published table by its name in ``published.toml``, for one metric or for its first one."""
    entry = _entry(name)
    metrics = entry.get("metrics", [metric])
    column = 2 * metrics.index(check_name("metric", metric or metrics[0], metrics))
    cells = {
        task: {method: (numbers[column], numbers[column + 1]) for method, numbers in rows.items()}
        for task, rows in entry["cells"].items()
    }
    return PublishedTable(cells, entry.get("n", 10))


def published_cells(name: str, metric: str, task: str) -> dict[str, tuple[str, str]]:
    """Return the published cells of a data set by method; empty if the table does not contain it."""
    if not name or metric not in _entry(name)["metrics"]:
        return {}
    return published(name, metric).cells.get(task, {})


def tuned_hyperparameters() -> dict[str, dict[str, dict[str, float]]]:
    """Return the hyperparameters that the paper's search selected, by task and method."""
    values: dict[str, dict[str, dict[str, float]]] = _entry("tuned-hyperparameters")
    return values


def _entry(name: str) -> Any:
    tables = _read_file()
    return tables[check_name("published table", name, tables)]


@cache
def _read_file() -> dict[str, Any]:
    text = resources.files("pyspar.paper").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
