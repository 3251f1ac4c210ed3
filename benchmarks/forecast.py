"""Least squares' error, forecast and actual, in 256 dimensions: the paper's spectrum, rotated, 20 draws."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measure import keep, show
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
        found = est.expected_rmse(Z)
        pairs.append((found.rmse_noiseless**2, float(np.mean((est.predict(Z) - truth) ** 2))))
    expected, actual = np.mean(pairs, axis=0)
    rows = [["mean over draws", f"{expected:.1f}", f"{actual:.1f}", f"{expected / actual:.3f}"]]
    show("target MSE of least squares", ["", "forecast", "actual", "ratio"], rows)
    keep("forecast", {"forecast": float(expected), "actual": float(actual)}, rows=args.rows, draws=args.draws)


if __name__ == "__main__":
    main()
