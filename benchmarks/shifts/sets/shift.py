"""A data set with its split into source and target, and the encoding of columns as numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

Loaded = tuple[pd.DataFrame, pd.Series, Any]
"""The features, y, and a mask of the target rows; the other rows are the source."""

MOST_ROWS = 5000  # of source and of target; more rows are sampled with a fixed seed
MIN_LEVEL_ROWS = 10  # a level of a category is a column if it has at least this many source rows


@dataclass(frozen=True)
class Shift:
    """One data set, and the rule that splits it into source and target."""

    name: str
    y: str
    rule: str
    origin: str
    licence: str
    load: Callable[[], Loaded]
    part: str

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str]]:
        """Return X, y, Z, the labels of the target, and the names of the columns."""
        frame, y, target = self.load()
        known = np.isfinite(np.asarray(y, dtype=float))
        target = np.asarray(target, dtype=bool)
        source, target = np.flatnonzero(known & ~target), np.flatnonzero(known & target)
        rng = np.random.default_rng(0)
        source, target = _sample_rows(source, rng), _sample_rows(target, rng)
        columns = as_numbers(frame.iloc[np.r_[source, target]].reset_index(drop=True), len(source))
        values, labels = columns.to_numpy(dtype=float), np.asarray(y, dtype=float)
        return values[: len(source)], labels[source], values[len(source) :], labels[target], list(columns.columns)


def last_third(values: pd.Series) -> pd.Series:
    """Return a mask of the upper third, for quantities without a natural break between source and target."""
    return values > values.quantile(2 / 3)


def as_numbers(frame: pd.DataFrame, n_source: int) -> pd.DataFrame:
    """Encode columns with rules that use only the source.

    Missing numbers are replaced by the median. A category has a column per level except the most frequent one. Columns
    that are constant in the source and rare levels are dropped.
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
            for level in sorted(counts.index[1:][counts.iloc[1:] >= MIN_LEVEL_ROWS]):
                parts[f"{name}={level}"] = (text == level).to_numpy(dtype=float)
    varies = {name: v for name, v in parts.items() if np.ptp(v[:n_source]) > 0.0}
    return pd.DataFrame(varies)


def _sample_rows(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= MOST_ROWS else np.sort(rng.choice(rows, MOST_ROWS, replace=False))
