"""Suites: one TOML file for each table or figure of the paper, and the RunSpecs that it describes.

Names of data sets and methods occur in these files only, not in the code of this package.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from pyspar.errors import InputError
from pyspar.paper.parameters import check_name
from pyspar.paper.runs.registry import HEADS, NETWORKS, OBJECTIVES
from pyspar.paper.runs.spec import RunSpec


@dataclass(frozen=True)
class Block:
    """A data set, a network, and the methods that train it.

    Attributes
    ----------
    tasks : names of data sets; the first one that is available is used
    published_task : the name of the data set in the published table
    folds : the values of the option "fold", assigned to the seeds in turn; empty if a task has no folds
    methods : the arguments of each method; "config" in them overrides the config of the block
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


@dataclass(frozen=True)
class Suite:
    """One table or figure of the paper, as described by its TOML file.

    Attributes
    ----------
    kind : which module runs it; see ``pyspar.paper.experiments.reproduce.KINDS``
    published : the name of the published table in ``published.toml``
    adapt_to : "test", or "unlabeled" for a separate pool of rows
    recorded_seeds : how many seeds the committed records have, 0 if the suite was not run; None for ``seeds``
    difference : the main difference from the setting of the paper, in a few words
    differs : all differences from the setting of the paper
    found : remarks about the committed results, which hold for all seeds only
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
    found: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def published_task(self, task: str) -> str:
        """Return the name of a data set in the published table."""
        return {name: block.published_task for block in self.blocks for name in block.tasks}.get(task, task)

    def specs(self, n_seeds: int, device: str, choose: Callable[[tuple[str, ...]], str]) -> list[RunSpec]:
        """Return the specs in the order of the table."""
        return [
            spec
            for block in self.blocks
            for method in block.methods
            for spec in _block_specs(block, method, n_seeds, device, choose(block.tasks))
        ]


def _block_specs(block: Block, method: str, n_seeds: int, device: str, task: str) -> Iterator[RunSpec]:
    """Yield the specs of one method on one data set: one, or one for each fold that has a seed."""
    params = dict(block.methods[method])
    config = {**block.config, **params.pop("config", {})}
    groups: dict[str, list[int]] = {}
    for seed in range(n_seeds):
        groups.setdefault(block.folds[seed % len(block.folds)] if block.folds else "", []).append(seed)
    for fold, seeds in groups.items():
        options = {**block.options, "fold": fold} if fold else dict(block.options)
        yield RunSpec(
            task, block.network, method, tuple(seeds), options, dict(block.network_options), params, config, device
        )


def list_suite_names() -> list[str]:
    """Return the names of all suites in the order of the paper.

    >>> list_suite_names()[:2]
    ['table1', 'tabular']
    """
    files = resources.files("pyspar.paper").joinpath("suites").iterdir()
    names = [f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")]
    return sorted(names, key=lambda name: (_read_toml(name).get("place", 99), name))


def read_suite(name: str) -> Suite:
    """Read a suite by its name.

    >>> read_suite("tabular").published
    'tabular'
    """
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
    defaults = {"published_task": tasks[0], "folds": ()}
    fields = {key: tuple(v) if key == "folds" else v for key, v in raw.items() if key != "task"}
    return Block(tasks=tasks, **defaults | fields)


def _read_toml(name: str) -> dict[str, Any]:
    text = resources.files("pyspar.paper").joinpath("suites", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
