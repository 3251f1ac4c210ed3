"""fit and adapt of the Bayesian regressor, with a fixed rule and with the average chosen, against SpARRegressor's."""

from __future__ import annotations

from benchmarks.measure import interleaved, keep, shifted_pair, show
from pyspar import BayesSpARRegressor, SpARRegressor

SHAPES = ((500, 10), (2_000, 50), (5_000, 400), (20_000, 256), (50_000, 512))
SMALL = 1_000_000
"""Tasks of fewer numbers take milliseconds: five times as many turns, of which a busy machine spoils some."""


def main(turns: int = 5) -> None:
    rows = []
    for n, d in SHAPES:
        X, y, Z = shifted_pair(n, d)
        tasks = {
            "spar": lambda X=X, y=y, Z=Z: SpARRegressor().fit(X, y).adapt(Z),
            "fixed": lambda X=X, y=y, Z=Z: BayesSpARRegressor(rule="positive-part").fit(X, y).adapt(Z),
            "auto": lambda X=X, y=y, Z=Z: BayesSpARRegressor().fit(X, y).adapt(Z),
        }
        seconds = interleaved(tasks, 5 * turns if n * d < SMALL else turns)
        ratios = [seconds[name] / seconds["spar"] for name in ("fixed", "auto")]
        rows.append([f"{n:,} x {d}", seconds["spar"], *ratios])
    header = ["rows x features", "SpARRegressor, s", "fixed rule / SpAR", "auto / SpAR"]
    show("fit + adapt, float64", header, rows)
    keep("bayes", [dict(zip(header, row, strict=True)) for row in rows], turns=turns)


if __name__ == "__main__":
    main()
