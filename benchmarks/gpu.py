"""Measure fit + adapt of 1,000,000 x 2048 float32 rows on a GPU, and compare the weights with those of the CPU.

Run ``python -m benchmarks.gpu`` on a machine with a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--check-rows", type=int, default=100_000, help="rows of the comparison with the CPU")
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    import torch

    from benchmarks.measure import machine, print_table, save_record
    from pyspar import SpARRegressor

    device = torch.device("cuda")
    generator = torch.Generator(device=device).manual_seed(0)

    def draw(n):
        X = torch.randn((n, args.features), device=device, generator=generator)
        Z = torch.randn((n, args.features), device=device, generator=generator)
        Z *= torch.linspace(0.2, 5.0, args.features, device=device)
        w = torch.randn((args.features,), device=device, generator=generator)
        return X, X @ w + torch.randn((n,), device=device, generator=generator), Z

    X, y, Z = draw(args.rows)
    seconds = {"fit": [], "adapt": [], "two products": []}
    for turn in range(args.turns + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        est = SpARRegressor().fit(X, y)
        torch.cuda.synchronize()
        middle = time.perf_counter()
        est.adapt(Z)
        torch.cuda.synchronize()
        end = time.perf_counter()
        for rows in (X, Z):
            total = torch.zeros((args.features, args.features), dtype=torch.float64, device=device)
            for part in rows.split(32_768):
                wide = part.double()
                total.addmm_(wide.T, wide)
        torch.cuda.synchronize()
        if turn:
            seconds["fit"].append(middle - start)
            seconds["adapt"].append(end - middle)
            seconds["two products"].append(time.perf_counter() - end)
    median = {name: statistics.median(times) for name, times in seconds.items()}
    median["fit + adapt"] = median["fit"] + median["adapt"]
    n = args.check_rows
    on_gpu = SpARRegressor().fit(X[:n], y[:n]).adapt(Z[:n])
    on_cpu = SpARRegressor().fit(X[:n].cpu().numpy(), y[:n].cpu().numpy()).adapt(Z[:n].cpu().numpy())
    difference = float(np.abs(on_gpu.coef_ - on_cpu.coef_).max() / np.abs(on_cpu.coef_).max())
    rows = [[name, s] for name, s in median.items()] + [["largest relative difference to the CPU", difference]]
    print_table(f"{args.rows:,} x {args.features} float32 on {torch.cuda.get_device_name()}", ["task", "seconds"], rows)
    details = {**machine(), "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    save_record("gpu", {"seconds": median, "difference": difference, "removed": int(on_gpu.adaptation_.removed.sum())},
         machine=details, rows=args.rows, features=args.features, turns=args.turns)  # fmt: skip


if __name__ == "__main__":
    main()
