"""Compare fit + adapt with the shallow regression methods of skada and ADAPT on one problem.

The problem has the paper's spectrum in 256 dimensions, rotated, with 20,000 rows each. One direction has almost no
variance in the source and much in the target. ``make peers`` runs this module in a separate environment, because the
other libraries install gigabytes.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks.measure import print_table, rest, save_record
from pyspar import SpARRegressor


def problem(n: int, d: int = 256, seed: int = 0):
    rng = np.random.default_rng(seed)
    rotate = np.linalg.qr(rng.standard_normal((d, d)))[0]
    source, target = np.full(d, np.sqrt(5.0)), np.ones(d)
    source[-1], target[-1] = np.sqrt(1e-5), np.sqrt(40.0)
    w = rotate[:, :-1] @ rng.standard_normal(d - 1)
    w /= np.linalg.norm(w)
    X = (rng.standard_normal((n, d)) * source) @ rotate.T
    Z = (rng.standard_normal((n, d)) * target) @ rotate.T
    return X, X @ w + rng.standard_normal(n), Z, Z @ w


def methods():
    """Return the methods; each takes X, y, Z and returns predictions for Z."""

    def skada(make):
        def run(X, y, Z):
            rows, labels = np.vstack([X, Z]), np.concatenate([y, np.full(len(Z), np.nan)])
            domain = np.concatenate([np.ones(len(X)), -2 * np.ones(len(Z))])
            return make().fit(rows, labels, sample_domain=domain).predict(Z, sample_domain=-2 * np.ones(len(Z)))

        return run

    def adapt(make):
        return lambda X, y, Z: np.ravel(make(Z).fit(X, y).predict(Z))

    functions = {
        "least squares": lambda X, y, Z: LinearRegression(fit_intercept=False).fit(X, y).predict(Z),
        "pyspar SpARRegressor": lambda X, y, Z: SpARRegressor(fit_intercept=False).fit(X, y).adapt(Z).predict(Z),
    }
    try:
        from skada import CORAL, LinearOTMapping, SubspaceAlignment

        functions["skada CORAL"] = skada(lambda: CORAL(LinearRegression()))
        functions["skada LinearOTMapping"] = skada(lambda: LinearOTMapping(LinearRegression()))
        functions["skada SubspaceAlignment"] = skada(lambda: SubspaceAlignment(LinearRegression(), n_components=128))
    except ImportError as error:
        functions["skada"] = _raise_later(error)
    try:
        from adapt.feature_based import CORAL as AdaptCORAL
        from adapt.feature_based import SA
        from adapt.instance_based import KLIEP

        functions["ADAPT CORAL"] = adapt(lambda Z: AdaptCORAL(LinearRegression(), Xt=Z, verbose=0))
        functions["ADAPT SA"] = adapt(lambda Z: SA(LinearRegression(), Xt=Z, n_components=128, verbose=0))
        functions["ADAPT KLIEP"] = adapt(lambda Z: KLIEP(LinearRegression(), Xt=Z, kernel="rbf", gamma=0.01, verbose=0))
    except ImportError as error:
        functions["ADAPT"] = _raise_later(error)
    return functions


def _raise_later(error):
    def run(X, y, Z):
        raise error

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    X, y, Z, truth = problem(args.rows)
    seconds: dict[str, list[float]] = {}
    errors: dict[str, float | str] = {}
    warnings.simplefilter("ignore")
    tasks = methods()
    for turn in range(args.turns + 1):
        for name, run in tasks.items():
            if isinstance(errors.get(name), str):
                continue
            rest()
            start = time.perf_counter()
            try:
                prediction = run(X, y, Z)
            except Exception as error:  # noqa: BLE001 - a method that fails is a row of the table with its reason
                errors[name] = f"failed: {type(error).__name__}: {str(error)[:60]}"
                continue
            if turn:
                seconds.setdefault(name, []).append(time.perf_counter() - start)
            errors[name] = float(np.mean((prediction - truth) ** 2))
    ours = float(np.median(seconds["pyspar SpARRegressor"]))
    rows = []
    for name, error in errors.items():
        median = float(np.median(seconds[name])) if name in seconds else float("nan")
        rows.append([name, median, median / ours, error])
    header = ["method", "fit + adapt + predict, s", "ratio to ours", "target MSE (label variance 1)"]
    print_table(f"256 dimensions, {args.rows:,} rows each", header, rows)
    save_record("peers", [dict(zip(header, row, strict=True)) for row in rows], turns=args.turns, rows=args.rows)


if __name__ == "__main__":
    main()
