"""Compare Dask with two worker processes and local streaming of the same Parquet file."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import median_seconds, print_table, save_record
from benchmarks.streaming import FEATURES, generate
from pyspar import SpARRegressor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    args = parser.parse_args()
    import dask.dataframe as dd
    import pyarrow.parquet as pq
    from distributed import Client, LocalCluster

    from pyspar.sources.files import moments_of_file

    path = args.folder / f"pyspar-stream-{args.rows}.parquet"
    if not path.exists():
        generate(path, args.rows)
    table = pq.read_table(path)
    X = np.column_stack([table[name].to_numpy() for name in FEATURES])
    y = table["y"].to_numpy()
    del table
    in_memory = SpARRegressor().fit(X, y)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        frame = dd.read_parquet(path, columns=[*FEATURES, "y"], split_row_groups=4)

        def fit_on_cluster():
            return SpARRegressor().fit(frame[FEATURES], frame["y"])

        def fit_locally():
            return SpARRegressor().fit_moments(moments_of_file(path, features=FEATURES, label="y"))

        seconds = median_seconds({"local stream": fit_locally, "cluster": fit_on_cluster}, args.turns)
        difference = float(np.abs(fit_on_cluster().coef_ - in_memory.coef_).max() / np.abs(in_memory.coef_).max())
    ratio = seconds["cluster"] / seconds["local stream"]
    print_table(
        f"{args.rows:,} x 64 float32 Parquet, two worker processes",
        ["task", "seconds", "ratio"],
        [["local stream", seconds["local stream"], 1.0], ["cluster", seconds["cluster"], ratio]],
    )
    print(f"largest relative difference to in-memory: {difference:.1e}")
    save_record(
        "cluster", {"seconds": seconds, "ratio": ratio, "difference": difference}, turns=args.turns, rows=args.rows
    )


if __name__ == "__main__":
    main()
