"""The forecast and the actual error of least squares in 256 dimensions, and the cost of an inspection.

The spectrum is the paper's. The cost is that of ``inspect``, relative to ``fit`` and ``adapt`` on the same rows.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measure import median_seconds, print_table, save_record
from benchmarks.peers import problem
from pyspar import BayesSpARRegressor, SpARRegressor, inspect


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecast", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--draws", type=int, default=20)
    args = parser.parse_args()
    pairs = []
    for seed in range(args.draws):
        X, y, Z, truth = problem(args.rows, seed=seed)
        est = SpARRegressor(fit_intercept=False).fit(X, y)
        forecast = est.expected_rmse(Z)
        pairs.append((forecast.rmse_noiseless**2, float(np.mean((est.predict(Z) - truth) ** 2))))
    expected, actual = np.mean(pairs, axis=0)
    rows = [["mean over draws", f"{expected:.1f}", f"{actual:.1f}", f"{expected / actual:.3f}"]]
    print_table("target MSE of least squares", ["", "forecast", "actual", "ratio"], rows)
    cost = inspection_cost(args.rows)
    print_table("cost of inspect", ["", "fit + adapt"], [["inspect", f"{cost:.2f} x"]])
    results = {"forecast": float(expected), "actual": float(actual), "inspect / (fit + adapt)": round(cost, 2)}
    save_record("forecast", results, rows=args.rows, draws=args.draws)


def inspection_cost(rows: int) -> float:
    """Return the time of ``inspect`` divided by that of ``fit`` and ``adapt``."""
    X, y, Z, _ = problem(rows, seed=0)
    est = BayesSpARRegressor().fit(X, y)
    seconds = median_seconds(
        {"fit + adapt": lambda: BayesSpARRegressor().fit(X, y).adapt(Z), "inspect": lambda: inspect(est, Z)}
    )
    return seconds["inspect"] / seconds["fit + adapt"]


if __name__ == "__main__":
    main()
