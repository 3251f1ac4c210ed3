"""Compare the time of fit + adapt of BayesSpARRegressor, with both rules, with that of SpARRegressor."""

from __future__ import annotations

from benchmarks.measure import median_seconds, print_table, save_record, shifted_pair
from pyspar import BayesSpARRegressor, SpARRegressor

SHAPES = ((500, 10), (2_000, 50), (5_000, 400), (20_000, 256), (50_000, 512))
SMALL_SIZE = 1_000_000
"""Tasks with fewer entries take milliseconds, so they are repeated five times as often."""


def main(turns: int = 5) -> None:
    rows = []
    for n, d in SHAPES:
        X, y, Z = shifted_pair(n, d)
        tasks = {
            "spar": lambda X=X, y=y, Z=Z: SpARRegressor().fit(X, y).adapt(Z),
            "keep": lambda X=X, y=y, Z=Z: BayesSpARRegressor().fit(X, y).adapt(Z),
            "chi2": lambda X=X, y=y, Z=Z: BayesSpARRegressor(rule="chi2").fit(X, y).adapt(Z),
        }
        seconds = median_seconds(tasks, 5 * turns if n * d < SMALL_SIZE else turns)
        ratios = [seconds[name] / seconds["spar"] for name in ("keep", "chi2")]
        rows.append([f"{n:,} x {d}", seconds["spar"], *ratios])
    header = ["rows x features", "SpARRegressor, s", "BayesSpARRegressor / SpAR", "with the rule chi2 / SpAR"]
    print_table("fit + adapt, float64", header, rows)
    save_record("bayes", [dict(zip(header, row, strict=True)) for row in rows], turns=turns)


if __name__ == "__main__":
    main()
