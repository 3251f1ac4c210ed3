"""A data set with the place where its source ends, as data: the register, its parts, the columns as numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

# y and the rows that are target; every other row is source.
Loaded = tuple[pd.DataFrame, pd.Series, Any]

MOST_ROWS = 5000  # of either side; larger sides are sampled with a fixed seed
FEWEST_OF_A_LEVEL = 10  # a level of a category is a column if the source has this many of it

REGISTER: dict[str, Shift] = {}


@dataclass(frozen=True)
class Shift:
    """One data set, and its rule from source to target."""

    name: str
    y: str
    rule: str
    origin: str
    licence: str
    load: Callable[[], Loaded]
    part: str | None = None

    @property
    def half(self) -> str:
        """Say to which part the set belongs: the part it came with, else a half by the parity of its name's hash.

        The hash knows nothing of any result, and a set that comes later moves no other.
        """
        if self.part is not None:
            return self.part
        return "design" if hashlib.sha256(self.name.encode()).digest()[0] % 2 == 0 else "held-back"

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str]]:
        """Return X, y, Z, y of the target, and the names of the columns."""
        frame, y, target = self.load()
        known = np.isfinite(np.asarray(y, dtype=float))
        target = np.asarray(target, dtype=bool)
        source, target = np.flatnonzero(known & ~target), np.flatnonzero(known & target)
        rng = np.random.default_rng(0)
        source, target = _at_most(source, rng), _at_most(target, rng)
        columns = as_numbers(frame.iloc[np.r_[source, target]].reset_index(drop=True), len(source))
        values, labels = columns.to_numpy(dtype=float), np.asarray(y, dtype=float)
        return values[: len(source)], labels[source], values[len(source) :], labels[target], list(columns.columns)


def shift(
    name: str, *, y: str, rule: str, origin: str, licence: str, part: str | None = None
) -> Callable[[Callable[[], Loaded]], Shift]:
    """Register the function below as the loader of a set."""

    def register(load: Callable[[], Loaded]) -> Shift:
        if name in REGISTER:
            raise ValueError(f"a set's name must be its own. Got {name!r} twice instead.")
        REGISTER[name] = Shift(name, y, rule, origin, licence, load, part)
        return REGISTER[name]

    return register


# Sets collected after both halves had been opened.
fresh = partial(shift, part="fresh")


def last_third(clock: pd.Series) -> pd.Series:
    """Mark the upper third of a quantity: where the source ends if nature draws no line of its own."""
    return clock > clock.quantile(2 / 3)


def as_numbers(frame: pd.DataFrame, n_source: int) -> pd.DataFrame:
    """Encode by rules that see the source only: medians for what is missing, a column per level but the commonest.

    Columns that do not vary in the source are left out, as are levels that it hardly has.
    """
    parts: dict[str, np.ndarray] = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            numbers = column.astype(float).replace([np.inf, -np.inf], np.nan)
            parts[str(name)] = numbers.fillna(numbers[:n_source].median()).to_numpy()
        else:
            text = column.astype(object).where(column.notna(), "missing").astype(str)
            counts = text[:n_source].value_counts()
            for level in sorted(counts.index[1:][counts.iloc[1:] >= FEWEST_OF_A_LEVEL]):
                parts[f"{name}={level}"] = (text == level).to_numpy(dtype=float)
    varies = {name: v for name, v in parts.items() if np.ptp(v[:n_source]) > 0.0}
    return pd.DataFrame(varies)


def _at_most(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= MOST_ROWS else np.sort(rng.choice(rows, MOST_ROWS, replace=False))
