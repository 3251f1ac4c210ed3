"""Compare fit + adapt with fewer rows than features, for several kinds of rows, with the dense QR path."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import median_seconds, print_table, save_record
from pyspar import BayesSpARRegressor, SpARRegressor, SparWarning

SHAPES = ((200, 100, 2_048), (100, 50, 10_000), (500, 200, 100_000))
"""The rows of the source, the rows of the target, and the features."""
DENSITY = 0.01


HEADER = ("rows x features", "estimator", "turns", "dense QR path, s", "float64 / QR", "float32 / QR", "sparse / QR")


def main() -> None:
    warnings.simplefilter("ignore", SparWarning)  # least squares fits so few rows exactly
    rows = []
    for n, m, d in SHAPES:
        turns = 2 if n * d > 10_000_000 else 5  # the largest takes minutes
        for name, make in (("SpARRegressor", SpARRegressor), ("BayesSpARRegressor", BayesSpARRegressor)):
            kinds = _make_kinds(n, m, d)
            tasks = {kind: lambda data=data, make=make: _run(make, *data) for kind, data in kinds.items()}
            seconds = median_seconds(tasks, turns)
            qr = seconds["QR"]
            ratios = [seconds[kind] / qr if kind in seconds else "" for kind in ("float64", "float32", "sparse")]
            rows.append([f"{n:,} + {m:,} x {d:,}", name, turns, qr, *ratios])
            print(*rows[-1], flush=True)
            save_record("wide", [dict(zip(HEADER, row, strict=True)) for row in rows], turns=5)
    print_table("fit + adapt with few rows", HEADER, rows)


def _make_kinds(n: int, m: int, d: int) -> dict[str, tuple[str, Any, Any, Any]]:
    """Return the solver, X, y and Z of each kind of rows, with the same numbers."""
    rng = np.random.default_rng(0)
    X, Z = (sp.random_array((k, d), density=DENSITY, format="csr", rng=rng) for k in (n, m))
    y, dense = rng.normal(size=n), (X.toarray(), Z.toarray())
    kinds = {"QR": ("qr", dense[0], y, dense[1]), "sparse": ("auto", X, y, Z)}
    if n * d < 10_000_000:
        kinds["float64"] = ("auto", dense[0], y, dense[1])
        kinds["float32"] = ("auto", dense[0].astype(np.float32), y, dense[1].astype(np.float32))
    return kinds


def _run(make: Any, solver: str, X: Any, y: Any, Z: Any) -> None:
    make(solver=solver).fit(X, y).adapt(Z)


if __name__ == "__main__":
    main()
