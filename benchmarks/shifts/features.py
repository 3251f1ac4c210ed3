"""Three feature maps. Each computes its constants from the source and applies them to the target."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np

MAX_COLUMNS = 800
N_COSINES = 400

Pair = tuple[np.ndarray, np.ndarray]


def raw(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Pair:
    """Return the columns standardised by the source."""
    return standardise(X, Z)


def poly2(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Pair:
    """Return the columns with their squares and products, at most 800 in all.

    If there would be more, products are limited to the columns that correlate most with y in the source. The square of
    a column with two values is redundant and dropped.
    """
    X, Z = standardise(X, Z)
    order = np.argsort(-np.abs(X.T @ (y - y.mean())), kind="stable")
    k = X.shape[1]
    while k > 1 and X.shape[1] + k * (k + 1) // 2 > MAX_COLUMNS:
        k -= 1
    chosen = np.sort(order[:k])
    binary = {j for j in chosen if len(np.unique(X[:, j])) == 2}
    pairs = [(i, j) for i, j in combinations_with_replacement(chosen, 2) if i != j or i not in binary]
    left, right = ([p[s] for p in pairs] for s in (0, 1))
    return standardise(np.hstack([X, X[:, left] * X[:, right]]), np.hstack([Z, Z[:, left] * Z[:, right]]))


def fourier(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Pair:
    """Return 400 random Fourier features; the width of the Gaussian kernel is the median distance of source rows."""
    X, Z = standardise(X, Z)
    rng = np.random.default_rng(0)
    sample = X[rng.choice(len(X), min(len(X), 1000), replace=False)]
    norms = (sample**2).sum(axis=1)
    distances = norms[:, None] + norms - 2.0 * sample @ sample.T
    width2 = np.median(distances[np.triu_indices(len(sample), 1)])
    directions = rng.standard_normal((X.shape[1], N_COSINES)) / np.sqrt(width2)
    phases = rng.uniform(0.0, 2.0 * np.pi, N_COSINES)
    return standardise(np.cos(X @ directions + phases), np.cos(Z @ directions + phases))


MAPS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Pair]] = {"raw": raw, "poly2": poly2, "fourier": fourier}


def standardise(X: np.ndarray, Z: np.ndarray) -> Pair:
    """Centre and scale by the source, and drop columns that are constant in the source up to rounding."""
    mean, spread = X.mean(axis=0), X.std(axis=0)
    keep = spread > 1e-9 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    return (X[:, keep] - mean[keep]) / spread[keep], (Z[:, keep] - mean[keep]) / spread[keep]
