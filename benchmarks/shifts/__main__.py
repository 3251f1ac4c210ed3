"""Make the missing records, print the tables and write the pages: ``python -m benchmarks.shifts``."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.shifts.features import MAPS
from benchmarks.shifts.methods import METHODS
from benchmarks.shifts.peers import PEERS
from benchmarks.shifts.records import NEW_PART, OWN
from benchmarks.shifts.records import PEERS as PEER_RECORDS
from benchmarks.shifts.sets import EVIDENCE_PARTS, NEW, tasks


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shifts", description=__doc__)
    parser.add_argument("--part", choices=(*EVIDENCE_PARTS, NEW), help="run and print one part only")
    parser.add_argument("--maps", nargs="+", choices=tuple(MAPS), default=tuple(MAPS), help="feature maps")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="data sets by name")
    parser.add_argument("--peers", action="store_true", help="run skada's and ADAPT's methods instead of ours")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes, with one thread each (default 2)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a method may take (default 120)")
    parser.add_argument("--again", action="store_true", help="replace existing records")
    parser.add_argument("--no-run", action="store_true", help="only print and write the existing records")
    parser.add_argument("--no-page", action="store_true", help="do not write docs/evidence.md")
    parser.add_argument("--records", type=Path, help="another file of records")
    args = parser.parse_args()
    known = PEERS if args.peers else METHODS
    methods = args.methods or list(known)
    if unknown := [m for m in methods if m not in known]:
        parser.error(f"unknown methods {unknown}; choose from {list(known)}")
    path = args.records or (NEW_PART if args.part == NEW else PEER_RECORDS if args.peers else OWN)
    of_part = list(tasks(args.part, tuple(args.maps)))
    if unknown_sets := sorted(set(args.sets or ()) - {t.shift.name for t in of_part}):
        known_sets = sorted({t.shift.name for t in of_part})
        parser.error(f"no sets {unknown_sets} in {args.part or 'any part'}; choose from {known_sets}")
    chosen = [t for t in of_part if not args.sets or t.shift.name in args.sets]
    if not args.no_run:
        from benchmarks.shifts.run import run

        run(chosen, methods, path, jobs=args.jobs, limit=args.limit, again=args.again)
    if args.peers:
        return
    from benchmarks.shifts.report import print_tables, write_page

    records = (path,) if args.records or args.part == NEW else (OWN, PEER_RECORDS)
    print_tables(records, args.part)
    if not (args.no_page or args.part or args.records):
        write_page(records)


if __name__ == "__main__":
    main()
