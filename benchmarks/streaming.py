"""Compare streaming a large Parquet file with only reading it and with only multiplying its rows.

The file has 20,000,000 x 64 float32 numbers (about 5 GB, generated once, uncompressed). The benchmark measures the peak
memory of the process, and its speed relative to the slower of reading and multiplying. Each of the three tasks runs in
its own process, and they take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import print_table, save_record

FEATURES = [f"x{i}" for i in range(64)]


def generate(path: Path, rows: int) -> None:
    """Write the file in groups of 131,072 rows, which limits the memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float32()) for name in [*FEATURES, "y"]])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, 131_072):
            n = min(131_072, rows - start)
            X = rng.standard_normal((64, n), dtype=np.float32)
            y = X[:8].sum(axis=0) + rng.standard_normal(n, dtype=np.float32)
            writer.write_table(pa.table([*X, y], schema=schema), row_group_size=n)


def run_task(task: str, path: str) -> None:
    """Run one of the three tasks, and print its seconds and the peak memory of the process."""
    import resource

    from pyspar import Moments
    from pyspar.sources.files import moments_of_file, open_rows

    start = time.perf_counter()
    if task == "stream":
        total = moments_of_file(path, features=FEATURES, label="y").rows
    elif task == "read":
        total = sum(len(batch.X) for batch in open_rows(path).read(FEATURES, label="y"))
    else:
        rng = np.random.default_rng(0)
        rows = open_rows(path).n_rows
        X = rng.standard_normal((131_072, 64), dtype=np.float32)
        y = rng.standard_normal(131_072, dtype=np.float32)
        start, total = time.perf_counter(), 0
        while total < rows:
            Moments.of(X, y)
            total += len(X)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    sys.stdout.write(json.dumps({"seconds": seconds, "peak_gb": peak, "rows": total}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--task", nargs=2, help="used by the benchmark itself")
    args = parser.parse_args()
    if args.task:
        run_task(*args.task)
        return
    path = args.folder / f"pyspar-stream-{args.rows}.parquet"
    if not path.exists():
        print(f"generating {path} ...")
        generate(path, args.rows)
    runs: dict[str, list[dict[str, float]]] = {"read": [], "multiply": [], "stream": []}
    for _ in range(args.turns):
        for task, results in runs.items():
            command = [sys.executable, "-m", "benchmarks.streaming", "--task", task, str(path)]
            results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    seconds = {task: statistics.median(r["seconds"] for r in results) for task, results in runs.items()}
    peak = max(r["peak_gb"] for r in runs["stream"])
    speed = max(seconds["read"], seconds["multiply"]) / seconds["stream"]
    size = path.stat().st_size / 1e9
    print_table(
        f"{args.rows:,} x 64 float32 Parquet, {size:.1f} GB",
        ["task", "seconds", "GB / s"],
        [[task, s, size / s] for task, s in seconds.items()],
    )
    print(f"speed relative to the slower of reading and multiplying: {speed:.0%}; peak memory {peak:.2f} GB")
    save_record("streaming", {"seconds": seconds, "speed": speed, "peak_gb": peak, "file_gb": size}, turns=args.turns)


if __name__ == "__main__":
    main()
