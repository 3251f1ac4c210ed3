"""Predictions of some of the target's rows, before and after: enough to see what adapting changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.sources.kinds import kind_of

ROWS = 2000


@dataclass(frozen=True)
class Predictions:
    """What least squares and the adapted weights predict for the same rows.

    Attributes
    ----------
    rows : tuple of int
        Their places in the target: all of them, or some at even distances.
    before, after : tuples of float
    """

    rows: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


def chosen_rows(n: int, limit: int = ROWS) -> np.ndarray:
    """Return the places of at most ``limit`` rows, at even distances.

    >>> chosen_rows(10, 4)
    array([0, 3, 6, 9])
    """
    return np.unique(np.linspace(0, n - 1, min(n, limit)).round().astype(np.int64))


def predictions_of(
    Z: Any, before: tuple[Matrix, Vector], after: tuple[Matrix, Vector]
) -> tuple[Predictions, ...] | None:
    """Predict some rows with two pairs of weights (D, K) and intercepts (K,), or None for what has no rows at hand."""
    if isinstance(Z, Moments) or kind_of(Z) not in ("rows", "sparse"):
        return None
    Z = Z if hasattr(Z, "shape") else np.asarray(Z)
    places = chosen_rows(Z.shape[0])
    rows = _taken(Z, places)
    found = [rows @ coef + intercept for coef, intercept in (before, after)]
    if not all(np.isfinite(each).all() for each in found):
        return None
    return tuple(
        Predictions(tuple(map(int, places)), *(tuple(map(float, each[:, k])) for each in found))
        for k in range(found[0].shape[1])
    )


def _taken(Z: Any, places: np.ndarray) -> Matrix:
    if hasattr(Z, "iloc"):
        return np.asarray(Z.iloc[places], dtype=np.float64)
    if kind_of(Z) == "sparse":
        return np.asarray(Z.tocsr()[places].toarray(), dtype=np.float64)
    return np.asarray(np.asarray(Z)[places], dtype=np.float64)
