"""Published cells of the synthetic tables next to the measured ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pyspar.paper.experiments.published import PublishedTable
from pyspar.paper.runs.records import Record


@dataclass(frozen=True)
class Cell:
    """A cell of a published table, and our measurement in the same number format."""

    task: str
    method: str
    published: tuple[str, str]
    ours: tuple[str, str]
    draws: int = 1

    @property
    def verdict(self) -> str:
        """``same`` if every printed digit agrees, otherwise the difference of the means in joint standard errors.

        The published table has the same number of draws.
        """
        if self.ours == self.published:
            return "same"
        published_mean, published_spread = map(float, self.published)
        mean, spread = map(float, self.ours)
        error = math.hypot(published_spread, spread) / math.sqrt(self.draws)
        return f"{(mean - published_mean) / error:+.1f} SE" if error > 0.0 and self.draws > 1 else "differs"


def format_scientific(value: float) -> str:
    """Format a number as in the paper's synthetic table: two decimals, and an exponent that is not negative.

    >>> format_scientific(2_540_000), format_scientific(0.771), format_scientific(9.999)
    ('2.54e6', '0.77e0', '1.00e1')
    """
    exponent = max(0, math.floor(math.log10(abs(value)))) if value else 0
    if round(abs(value) / 10**exponent, 2) >= 10:
        exponent += 1
    return f"{value / 10**exponent:.2f}e{exponent}"


def format_integer(value: float) -> str:
    """Round a number to an integer.

    >>> format_integer(8737.6)
    '8738'
    """
    return f"{value:.0f}"


def compare_cells(table: PublishedTable, records: Iterable[Record], format_value: Callable[[float], str]) -> list[Cell]:
    """Return the cells of a published table with our mean and spread over seeds."""
    values: dict[tuple[str, str], list[float]] = {}
    for record in records:
        values.setdefault((record.task, record.method), []).append(record.value)
    cells = []
    for task, methods in table.cells.items():
        for method, printed in methods.items():
            ours = values[task, method]
            # Authors: the spread is np.std, with the divisor n.
            formatted = format_value(float(np.mean(ours))), format_value(float(np.std(ours)))
            cells.append(Cell(task, method, printed, formatted, len(ours)))
    return cells
