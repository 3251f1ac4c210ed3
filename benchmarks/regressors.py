"""Compare the time of fit with that of scikit-learn's linear models on the same rows."""

from __future__ import annotations

from sklearn.linear_model import LinearRegression, Ridge

from benchmarks.measure import SHAPES, median_seconds, print_table, save_record, shifted_pair
from pyspar import SpARRegressor


def main(turns: int = 5) -> None:
    rows = []
    for n, d in SHAPES:
        X, y, _ = shifted_pair(n, d)
        tasks = {
            "ours": lambda X=X, y=y: SpARRegressor().fit(X, y),
            "LinearRegression": lambda X=X, y=y: LinearRegression().fit(X, y),
            "Ridge, cholesky": lambda X=X, y=y: Ridge(solver="cholesky").fit(X, y),
        }
        seconds = median_seconds(tasks, turns)
        ratios = [seconds[name] / seconds["ours"] for name in list(tasks)[1:]]
        rows.append([f"{n:,} x {d}", seconds["ours"], *ratios])
    header = ["rows x features", "ours, s", "LinearRegression / ours", "Ridge(cholesky) / ours"]
    print_table("fit alone, float64", header, rows)
    save_record("regressors", [dict(zip(header, row, strict=True)) for row in rows], turns=turns)


if __name__ == "__main__":
    main()
