"""Suites: one TOML file for each table or figure of the paper, read into plain values and then into RunSpecs.

The files hold every name of a data set or a method; nothing else in this package does.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from pyspar.errors import InputError
from pyspar.paper.experiments.names import known
from pyspar.paper.runs.registry import HEADS, NETWORKS, OBJECTIVES
from pyspar.paper.runs.spec import RunSpec


@dataclass(frozen=True)
class Block:
    """A data set, the network trained on it, and the methods that train it.

    Attributes
    ----------
    tasks : names of data sets; the first one that is at hand is used
    published_task : under which name the published table has it
    folds : the values of the option "fold", given to the seeds in turn; empty where a task has none
    methods : what each method is built with; "config" in it overrides the block's
    """

    tasks: tuple[str, ...]
    published_task: str
    network: str
    config: dict[str, Any]
    methods: dict[str, dict[str, Any]]
    network_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    folds: tuple[str, ...] = ()


def images(block: Block) -> bool:
    """Say whether a block trains on images, which is slow without a GPU."""
    return block.network != "mlp"


@dataclass(frozen=True)
class Suite:
    """What one table or figure of the paper takes, and what differs from its setting here."""

    name: str
    title: str
    kind: str
    about: str
    seeds: int
    published: str = ""
    metrics: tuple[str, ...] = ()
    heads: tuple[str, ...] = ("trained",)
    adapt_to: str = "test"
    differs: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    """What is to be said of the results with all seeds; see ``pyspar.paper.experiments.reproduce.remarks_on``."""
    blocks: tuple[Block, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[tuple[str, ...], ...]:
        """The data sets of each block."""
        return tuple(block.tasks for block in self.blocks)

    def specs(self, n_seeds: int, device: str, choose: Callable[[tuple[str, ...]], str]) -> list[RunSpec]:
        """Return the runs, in the order of the table."""
        return [
            spec
            for block in self.blocks
            for method in block.methods
            for spec in block_specs(block, method, n_seeds, device, choose(block.tasks))
        ]


def block_specs(block: Block, method: str, n_seeds: int, device: str, task: str) -> Iterator[RunSpec]:
    """Yield the runs of one method on one data set: one, or one for each fold that has a seed."""
    given = dict(block.methods[method])
    config = {**block.config, **given.pop("config", {})}
    groups: dict[str, list[int]] = {}
    for seed in range(n_seeds):
        groups.setdefault(block.folds[seed % len(block.folds)] if block.folds else "", []).append(seed)
    for fold, seeds in groups.items():
        options = {**block.options, "fold": fold} if fold else dict(block.options)
        yield RunSpec(
            task, block.network, method, tuple(seeds), options, dict(block.network_options), given, config, device
        )


def suite_names() -> list[str]:
    """Return the names of all suites, in the paper's order.

    >>> suite_names()[:2]
    ['table1', 'tabular']
    """
    files = resources.files("pyspar.paper").joinpath("suites").iterdir()
    names = [f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")]
    return sorted(names, key=lambda name: (_raw(name).get("place", 99), name))


def suite_named(name: str) -> Suite:
    """Read a suite by its name.

    >>> suite_named("tabular").published
    'tabular'
    """
    return parse_suite(known("suite", name, suite_names()), _raw(name))


def parse_suite(name: str, raw: dict[str, Any]) -> Suite:
    """Check the values of a suite's file, and return them."""
    raw = dict(raw)
    raw.pop("place", None)
    blocks = tuple(_block(name, b) for b in raw.pop("block", []))
    for head in raw.get("heads", ()):
        known(f"head in suite {name}", head, HEADS)
    try:
        lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
        return Suite(name=name, blocks=blocks, **lists)
    except TypeError as error:
        raise InputError(f"suite {name}: {str(error).replace('Suite.__init__() ', '')}; see another suite.") from error


def _block(suite: str, raw: dict[str, Any]) -> Block:
    raw = dict(raw)
    try:
        task = raw.pop("task")
        tasks = (task,) if isinstance(task, str) else tuple(task)
        raw["published_task"] = raw.get("published_task", tasks[0])
        raw["folds"] = tuple(raw.get("folds", ()))
        known(f"network in suite {suite}", raw["network"], NETWORKS)
        for method in raw["methods"]:
            known(f"method in suite {suite}", method, OBJECTIVES)
        return Block(tasks=tasks, **raw)
    except (KeyError, TypeError) as error:
        raise InputError(f"suite {suite}: a block has the wrong entries ({error}).") from error


def _raw(name: str) -> dict[str, Any]:
    text = resources.files("pyspar.paper").joinpath("suites", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
