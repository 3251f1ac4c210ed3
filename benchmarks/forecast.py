"""Compare the forecast and the actual error of least squares in 256 dimensions, for the paper's spectrum."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measure import print_table, save_record
from benchmarks.peers import problem
from pyspar import SpARRegressor


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
    save_record("forecast", {"forecast": float(expected), "actual": float(actual)}, rows=args.rows, draws=args.draws)


if __name__ == "__main__":
    main()
