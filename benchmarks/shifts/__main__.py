"""Run every method on real shifts, and print the ratio of its RMSE to that of RidgeCV."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.evidence import summarise_shifts
from benchmarks.measure import print_table
from benchmarks.records import read
from benchmarks.shifts.features import MAPS
from benchmarks.shifts.methods import METHODS
from benchmarks.shifts.peers import PEERS
from benchmarks.shifts.run import RECORDS, run
from benchmarks.shifts.sets import PARTS, tasks


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shifts", description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="one part (default: all)")
    parser.add_argument("--maps", nargs="+", choices=tuple(MAPS), default=tuple(MAPS), help="feature maps")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help=f"of {', '.join([*METHODS, *PEERS])}")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="data sets by name")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes, with one thread each (default 2)")
    parser.add_argument("--limit", type=int, default=120, help="seconds that a method may take (default 120)")
    parser.add_argument("--again", action="store_true", help="replace existing records")
    parser.add_argument("--no-run", action="store_true", help="only print the existing records")
    parser.add_argument("--records", type=Path, default=RECORDS, help="another file of records")
    args = parser.parse_args(arguments)
    methods = args.methods or list(METHODS)
    if unknown := [m for m in methods if m not in {**METHODS, **PEERS}]:
        parser.error(f"unknown methods {unknown}; choose from {[*METHODS, *PEERS]}")
    chosen = list(tasks(args.part, tuple(args.maps)))
    if unknown := sorted(set(args.sets or ()) - {t.shift.name for t in chosen}):
        parser.error(f"no sets {unknown} in {args.part or 'any part'}; choose from {sorted(t.name for t in chosen)}")
    if not args.no_run:
        chosen = [t for t in chosen if not args.sets or t.shift.name in args.sets]
        run(chosen, methods, args.records, jobs=args.jobs, limit=args.limit, again=args.again)
    header, rows = summarise_shifts(read(args.records), args.part)
    print_table("Ratio of the target RMSE to that of RidgeCV on the same features", header, rows)


if __name__ == "__main__":
    main()
