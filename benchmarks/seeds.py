"""Compare training ten seeds of the paper's network on SkillCraft as one computation and one after another.

Both run on one thread, and processor time is measured, which depends less on other processes. The ratio comes from
short runs that take turns. The time of a full training comes from one run with the number of epochs of the paper.
"""

from __future__ import annotations

import argparse
import statistics
import time

SEEDS = range(10)


def processor_seconds(function, *arguments) -> float:
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5, help="epochs of the compared runs")
    parser.add_argument("--full-epochs", type=int, default=100, help="epochs of the full run")
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    import torch

    from benchmarks.measure import machine, print_table, save_record
    from pyspar.paper import ERM, MLP, CMixup, TrainConfig, train, train_seeds
    from pyspar.paper.data import load

    torch.set_num_threads(1)
    task = load("skillcraft")
    width = task.train.X.shape[1]

    def build(seed):
        torch.manual_seed(seed)
        return MLP(width)

    def config(epochs):
        return TrainConfig(epochs=epochs, batch_size=32, lr=1e-2, device="cpu")

    def train_together(objective, epochs):
        return train_seeds(build, objective, task, config(epochs), SEEDS)

    def train_one_by_one(objective, epochs):
        return [train(build(seed), objective, task, config(epochs), seed) for seed in SEEDS]

    results = {}
    for objective in (ERM(), CMixup(5e-4)):
        times = {train_together: [], train_one_by_one: []}
        for turn in range(args.turns + 1):  # the first turn does not count
            for function, measured in times.items():
                seconds = processor_seconds(function, objective, args.epochs)
                measured += [seconds] if turn else []
        together, one_by_one = (statistics.median(measured) for measured in times.values())
        full = processor_seconds(train_together, objective, args.full_epochs)
        results[objective.name] = {
            "as one": together,
            "one by one": one_by_one,
            "ratio": one_by_one / together,
            "full": full,
        }
    header = ["objective", "together", "one by one", "ratio", f"{args.full_epochs} epochs together"]
    print_table(f"ten seeds, {args.epochs} epochs of SkillCraft, processor seconds on one thread", header,
         [[name, *row.values()] for name, row in results.items()])  # fmt: skip
    details = {**machine(), "torch": torch.__version__}
    save_record("seeds", results, machine=details, epochs=args.epochs, full_epochs=args.full_epochs, turns=args.turns)


if __name__ == "__main__":
    main()
