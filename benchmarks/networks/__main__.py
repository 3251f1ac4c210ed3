"""Train the networks, repair them and print the ratios of their target RMSE.

With ``--ablation``, the repair is repeated without each of its mechanisms, and nothing is recorded.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.evidence import summarise_networks
from benchmarks.measure import print_table
from benchmarks.networks.ablation import ablate
from benchmarks.networks.scoring import METHODS, RECORDS, choose_sets, run
from benchmarks.networks.training import NETWORKS, REQUIRED
from benchmarks.records import read
from benchmarks.shifts.sets import PARTS, REGISTER


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", help="data sets by name (default: all that are large enough)"
    )
    parser.add_argument("--part", choices=PARTS, default="develop", help="the data sets of one part (default: develop)")
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=REQUIRED)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--again", action="store_true", help="replace existing records")
    parser.add_argument("--no-run", action="store_true", help="only print what the records contain")
    parser.add_argument("--records", type=Path, default=RECORDS, help="another file of records")
    parser.add_argument("--ablation", action="store_true", help="repair without each mechanism; write no records")
    parser.add_argument("--epochs", type=int, help="with --ablation: stop the training after this number of epochs")
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.sets or ()) - set(REGISTER)):
        parser.error(f"there are no sets {unknown}; choose from those of benchmarks.shifts")
    if args.ablation:
        table = ablate(args.sets or choose_sets(args.part), args.networks, args.epochs)
        print_table("Ratio of the target RMSE of the repaired to that of the trained network", *table)
        return
    if not args.no_run:
        run(args.sets or choose_sets(args.part), args.networks, args.methods, args.records, again=args.again)
    header, rows = summarise_networks(read(args.records))
    print_table("Ratio of the target RMSE of the repaired to that of the trained network", header, rows)


if __name__ == "__main__":
    main()
