"""Ten seeds of the paper's network on SkillCraft: trained as one computation, and one after another.

Both run on one thread, and seconds are of its processor time, so that a shared machine does not blur them. The ratio
comes from short runs that take turns; the seconds of a whole training from one run as long as the paper's.
"""

from __future__ import annotations

import argparse
import statistics
import time

SEEDS = range(10)


def processor_seconds(way, *given) -> float:
    start = time.process_time()
    way(*given)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5, help="of the runs that are compared")
    parser.add_argument("--full-epochs", type=int, default=100, help="of the run whose seconds are told")
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    import torch

    from benchmarks.measure import keep, machine, show
    from pyspar.paper import ERM, MLP, CMixup, TrainConfig, train, train_seeds
    from pyspar.paper.data import load

    torch.set_num_threads(1)
    task = load("skillcraft")
    width = task.train.X.shape[1]

    def built(seed):
        torch.manual_seed(seed)
        return MLP(width)

    def config(epochs):
        return TrainConfig(epochs=epochs, batch_size=32, lr=1e-2, device="cpu")

    def as_one(objective, epochs):
        return train_seeds(built, objective, task, config(epochs), SEEDS)

    def in_turn(objective, epochs):
        return [train(built(seed), objective, task, config(epochs), seed) for seed in SEEDS]

    found = {}
    for objective in (ERM(), CMixup(5e-4)):
        times = {as_one: [], in_turn: []}
        for turn in range(args.turns + 1):  # the first turn does not count
            for way, spent in times.items():
                seconds = processor_seconds(way, objective, args.epochs)
                spent += [seconds] if turn else []
        one, turns = (statistics.median(spent) for spent in times.values())
        full = processor_seconds(as_one, objective, args.full_epochs)
        found[objective.name] = {"as one": one, "one by one": turns, "ratio": turns / one, "full": full}
    header = ["objective", "as one", "one by one", "ratio", f"{args.full_epochs} epochs as one"]
    show(f"ten seeds, {args.epochs} epochs of SkillCraft, processor seconds on one thread", header,
         [[name, *row.values()] for name, row in found.items()])  # fmt: skip
    about = {**machine(), "torch": torch.__version__}
    keep("seeds", found, machine=about, epochs=args.epochs, full_epochs=args.full_epochs, turns=args.turns)


if __name__ == "__main__":
    main()
