"""The published numbers, as strings, so that they can be compared digit by digit."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pyspar.paper.parameters import check_name

Cells = dict[str, dict[str, tuple[str, str]]]


@dataclass(frozen=True)
class PublishedTable:
    """One table of the paper for one metric: ``cells[task][method] = (mean, spread)``, as printed.

    ``n`` is the number of runs in a mean.
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
