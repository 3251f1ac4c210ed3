"""Run the cells that are missing in the records: one row for each network or model, seed, shift and method."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.align import images, networks
from pyspar.nn import adapt_head, align, summarize
from pyspar.progress import progress_bar

SEVERITIES = (3, 5)
METHODS = ("aligned", "BatchNorm statistics", "aligned, 1 pass", "SpAR head", "Bayes head")


class Record(NamedTuple):
    """A row of the records. ``rmse`` and ``trained`` are errors on the target; ``outside`` and ``changed`` the gate."""

    part: str
    model: str
    seed: int
    shift: str
    severity: int
    method: str
    rmse: float
    trained: float
    outside: float
    changed: int


KINDS = (str, str, int, str, int, str, float, float, float, int)


class Records:
    """Records in a file to which every new one is appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Record] = []
        if path.exists():
            with path.open() as file:
                self.rows = [Record(*(k(v) for k, v in zip(KINDS, row, strict=True))) for row in csv.reader(file)]
        self._keys = {row[:6] for row in self.rows}

    def has(self, *key: Any) -> bool:
        return key in self._keys

    def add(self, record: Record) -> None:
        self.rows.append(record)
        self._keys.add(record[:6])
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow([f"{v:.5g}" if isinstance(v, float) else v for v in record])


@cache
def make_target(shift: str, severity: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return images of shape (n, 1, 32, 32) and angles of a target."""
    is_damaged = shift in images.CORRUPTIONS
    X, y = images.population("same distribution" if is_damaged else shift, seed)
    X = images.corrupt(X, shift, severity, seed) if is_damaged else X
    return torch.from_numpy(X)[:, None], torch.from_numpy(y)


@cache
def valid_rows(seed: int) -> list[tuple[Tensor, Tensor]]:
    X, y = map(torch.from_numpy, images.source_parts(seed)["valid"])
    return list(zip(X[:, None].split(250), y.split(250), strict=True))


@cache
def describe_source(kind: str, seed: int, folder: Path) -> tuple[nn.Module, Any]:
    """Return a trained network and the summary of its training rows."""
    model = networks.trained(kind, seed, folder)
    path = folder / f"summary-{kind}-{seed}.npz"
    if not path.exists():
        summarize(model, torch.from_numpy(images.source_parts(seed)["train"][0])[:, None]).save(path)
    return model, path


def run_image_cell(kind: str, seed: int, shift: str, severity: int, method: str, folder: Path) -> list[Record]:
    """Apply a method to a network and a target."""
    model, summary = describe_source(kind, seed, folder)
    X, y = make_target(shift, severity, seed)
    trained = networks.rmse(model, X, y)

    def record(name: str, result: nn.Module, outside: float = float("nan"), changed: bool = True) -> Record:
        error = networks.rmse(result, X, y) if changed else trained
        return Record("images", kind, seed, shift, severity, name, error, trained, outside, int(changed))

    if method.endswith("head"):
        head = adapt_head(model, valid_rows(seed), list(X.split(250)), method=method.split()[0].lower())
        return [record(method, head.model)]
    if method == "BatchNorm statistics":
        return [record(method, align(model, summary, X, passes=0, force=True).model)]
    result = align(model, summary, X, passes=1 if "1 pass" in method else 5)
    records = [record(method, result.model, result.outside, result.changed)]
    if method == "aligned" and not result.changed and shift in images.POPULATIONS:
        forced = align(model, summary, X, force=True)
        records.append(record("aligned without the gate", forced.model, result.outside))
    return records


def image_cells(seeds: int) -> Iterator[tuple[str, int, str, int, str]]:
    """Yield kind, seed, shift, severity and method; the most important cells first."""
    shifts = [(name, 0) for name in images.POPULATIONS]
    shifts += [(name, severity) for severity in SEVERITIES for name in images.CORRUPTIONS]
    for seed in range(seeds):
        for method in METHODS:
            for kind in networks.NORMS[:1] if method == "BatchNorm statistics" else networks.NORMS:
                for shift, severity in shifts:
                    yield kind, seed, shift, severity, method


def run(cells: list[tuple[Any, ...]], part: str, compute: Callable[..., list[Record]], records: Records) -> None:
    """Compute the cells that are not in the records."""
    missing = [cell for cell in cells if not records.has(part, *cell)]
    with progress_bar(part, total=len(missing), unit="cells", show=True) as advance:
        for done, cell in enumerate(missing, start=1):
            for record in compute(*cell):
                if not records.has(*record[:6]):
                    records.add(record)
            advance(done)
