"""How much must the spread of one column change for a shift to be found? ``python -m benchmarks.spreads``."""

from __future__ import annotations

import numpy as np

from pyspar import Moments
from pyspar.core.separation import measure_separation

SIZES = ((1000, 1000, 10), (300, 200, 10), (100, 100, 10), (100, 1000, 10), (50, 50, 5), (30, 30, 5))
FACTORS = (1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 10.0, 20.0, 50.0)
DRAWS = 50


def smallest_factor(n: int, m: int, d: int) -> float:
    """Return the smallest growth of one of d normal columns that is found in at least half of the draws."""
    rng = np.random.default_rng(0)
    for factor in FACTORS:
        found = 0
        for _ in range(DRAWS):
            X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
            Z[:, 0] *= factor
            found += measure_separation(Moments.of(X), Moments.of(Z)).found
        if 2 * found >= DRAWS:
            return factor
    return float("inf")


if __name__ == "__main__":
    for n, m, d in SIZES:
        print(f"{n} source rows, {m} target rows, {d} columns: factor {smallest_factor(n, m, d):g}")
