"""Ours beside theirs: a table of published cells next to measured ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pyspar.paper.experiments.published import PublishedTable
from pyspar.paper.runs.records import Record


@dataclass(frozen=True)
class Cell:
    """One cell of a published table and our measurement of it, printed in the published style."""

    task: str
    method: str
    published: tuple[str, str]
    ours: tuple[str, str]
    draws: int = 1

    @property
    def verdict(self) -> str:
        """``same`` where every printed digit agrees, else the difference of the means in joint standard errors.

        The published table has as many draws as ours.
        """
        if self.ours == self.published:
            return "same"
        (theirs, spread), (mean, own) = (map(float, pair) for pair in (self.published, self.ours))
        error = math.hypot(spread, own) / math.sqrt(self.draws)
        return f"{(mean - theirs) / error:+.1f} SE" if error > 0.0 and self.draws > 1 else "differs"


def scientific(value: float) -> str:
    """Print as the paper's synthetic table does: two decimals, and an exponent that is never negative.

    >>> scientific(2_540_000), scientific(0.771), scientific(9.999)
    ('2.54e6', '0.77e0', '1.00e1')
    """
    exponent = max(0, math.floor(math.log10(abs(value)))) if value else 0
    if round(abs(value) / 10**exponent, 2) >= 10:
        exponent += 1
    return f"{value / 10**exponent:.2f}e{exponent}"


def whole(value: float) -> str:
    """Print as a whole number.

    >>> whole(8737.6)
    '8738'
    """
    return f"{value:.0f}"


def compare(table: PublishedTable, records: Iterable[Record], style: Callable[[float], str]) -> list[Cell]:
    """Return the cells of a published table with our mean and spread over seeds."""
    values: dict[tuple[str, str], list[float]] = {}
    for record in records:
        values.setdefault((record.task, record.method), []).append(record.value)
    cells = []
    for task, methods in table.cells.items():
        for method, printed in methods.items():
            ours = values[task, method]
            # Authors: the spread is np.std, that is with the divisor n.
            mine = style(float(np.mean(ours))), style(float(np.std(ours)))
            cells.append(Cell(task, method, printed, mine, len(ours)))
    return cells
