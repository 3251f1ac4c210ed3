"""How the cost of fit + adapt grows with the rows and with the features."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import interleaved, keep, shifted_pair, show
from pyspar import SpARRegressor


def exponent(sizes, seconds):
    """The slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main(turns: int = 5) -> None:
    found, rows = {}, []
    cases = {
        "rows at 128 features": [(n, 128) for n in (50_000, 100_000, 200_000, 400_000)],
        "features at 20,000 rows": [(20_000, d) for d in (128, 256, 512, 1024)],
    }
    for name, shapes in cases.items():
        seconds = []
        for n, d in shapes:
            X, y, Z = shifted_pair(n, d)
            seconds.append(
                interleaved({"ours": lambda X=X, y=y, Z=Z: SpARRegressor().fit(X, y).adapt(Z)}, turns)["ours"]
            )
        sizes = [n if name.startswith("rows") else d for n, d in shapes]
        found[name] = {"sizes": sizes, "seconds": seconds, "exponent": exponent(sizes, seconds)}
        rows.append([name, " ".join(f"{s:.3g}" for s in seconds), found[name]["exponent"]])
    show("growth of fit + adapt", ["growing", "seconds", "exponent"], rows)
    keep("growth", found, turns=turns)


if __name__ == "__main__":
    main()
