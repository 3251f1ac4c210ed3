"""Published numbers, as strings so that "the same" means the same printed digits."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pyspar.paper.experiments.names import known

Cells = dict[str, dict[str, tuple[str, str]]]


@dataclass(frozen=True)
class PublishedTable:
    """One table of the paper, for one metric: ``cells[task][method] = (mean, spread)``, as printed."""

    label: str
    what: str
    cells: Cells
    n: int = 10
    """How many runs the mean is of."""


def published(name: str, metric: str | None = None) -> PublishedTable:
    """Return a published table by its name in ``published.toml``, for its first metric or the one named.

    >>> published("synthetic").cells["experiment-2"]["PCR"]
    ('1.12e0', '0.77e0')
    >>> published("tabular", "worst-group rmse").cells["skillcraft"]["ERM + SpAR"]
    ('8.317', '1.327')
    """
    entry = _entry(name)
    metrics = entry.get("metrics", [metric])
    at = 2 * metrics.index(known("metric", metric or metrics[0], metrics))
    cells = {task: {m: (c[at], c[at + 1]) for m, c in rows.items()} for task, rows in entry["cells"].items()}
    return PublishedTable(entry["label"], entry["what"], cells, entry.get("n", 10))


def printed_cells(name: str, metric: str, task: str) -> dict[str, tuple[str, str]]:
    """Return what is printed of a data set, by method; nothing where the table has not got it.

    >>> printed_cells("povertymap", "spearman", "povertymap"), printed_cells("", "rmse", "skillcraft")
    ({}, {})
    """
    if not name or metric not in _entry(name)["metrics"]:
        return {}
    return published(name, metric).cells.get(task, {})


def tuned_hyperparameters() -> dict[str, dict[str, dict[str, float]]]:
    """Return what the paper's search came to, by task and method.

    >>> tuned_hyperparameters()["skillcraft"]["ERM"]
    {'lr': 0.023276939100527687}
    """
    found: dict[str, dict[str, dict[str, float]]] = _entry("tuned-hyperparameters")
    return found


def _entry(name: str) -> Any:
    everything = _file()
    return everything[known("published table", name, everything)]


@cache
def _file() -> dict[str, Any]:
    text = resources.files("pyspar.paper").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
