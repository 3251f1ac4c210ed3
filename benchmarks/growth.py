"""Measure how the time of fit + adapt grows with the number of rows and of features."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import median_seconds, print_table, save_record, shifted_pair
from pyspar import SpARRegressor


def fit_exponent(sizes, seconds):
    """Return the slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main(turns: int = 5) -> None:
    results, rows = {}, []
    cases = {
        "rows at 128 features": [(n, 128) for n in (50_000, 100_000, 200_000, 400_000)],
        "features at 20,000 rows": [(20_000, d) for d in (128, 256, 512, 1024)],
    }
    for name, shapes in cases.items():
        seconds = []
        for n, d in shapes:
            X, y, Z = shifted_pair(n, d)
            seconds.append(
                median_seconds({"ours": lambda X=X, y=y, Z=Z: SpARRegressor().fit(X, y).adapt(Z)}, turns)["ours"]
            )
        sizes = [n if name.startswith("rows") else d for n, d in shapes]
        results[name] = {"sizes": sizes, "seconds": seconds, "exponent": fit_exponent(sizes, seconds)}
        rows.append([name, " ".join(f"{s:.3g}" for s in seconds), results[name]["exponent"]])
    print_table("growth of fit + adapt", ["varied", "seconds", "exponent"], rows)
    save_record("growth", results, turns=turns)


if __name__ == "__main__":
    main()
