"""Published numbers, as strings so that "the same" means the same printed digits."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class PublishedTable:
    """One table of the paper: ``cells[task][method] = (mean, spread)``, as printed."""

    label: str
    what: str
    cells: dict[str, dict[str, tuple[str, str]]]


def published(name: str) -> PublishedTable:
    """Return a published table by its name in ``published.toml``.

    >>> published("synthetic").cells["experiment-2"]["PCR"]
    ('1.12e0', '0.77e0')
    """
    text = resources.files("pyspar.bench").joinpath("published.toml").read_text(encoding="utf-8")
    entry = tomllib.loads(text)[name]
    cells = {task: {m: (c[0], c[1]) for m, c in methods.items()} for task, methods in entry["cells"].items()}
    return PublishedTable(entry["label"], entry["what"], cells)
