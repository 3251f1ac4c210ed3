"""Score the repairs that are missing from the records, print the tables and write ``docs/networks-evidence.md``."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.networks.choice import PARTS, by_part, chosen
from benchmarks.networks.report import print_tables, write_page
from benchmarks.networks.scoring import METHODS, RECORDS, read, run
from benchmarks.networks.training import NETWORKS
from benchmarks.shifts.sets import REGISTER


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="other sets than the rule selects; writes no page")
    parser.add_argument("--part", choices=PARTS, help="only the sets of one part; writes no page")
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=tuple(NETWORKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--again", nargs="+", choices=METHODS, default=(), help="score these methods once more")
    parser.add_argument("--no-run", action="store_true", help="only print and write what the records contain")
    parser.add_argument("--no-page", action="store_true", help="do not write docs/networks-evidence.md")
    parser.add_argument("--records", type=Path, default=RECORDS, help="another file of records; writes no page")
    args = parser.parse_args()
    if unknown := sorted(set(args.sets or ()) - set(REGISTER)):
        parser.error(f"there are no sets {unknown}; choose from those of benchmarks.shifts")
    wanted = (args.part,) if args.part else PARTS
    if args.sets:
        parts = by_part(args.sets)
    elif args.no_run:  # the packages that contain the data are not needed
        parts = by_part({name for name, *_ in read(args.records) if REGISTER[name].part in wanted})
    else:
        parts = chosen(wanted)
    if not args.no_run:
        names = [name for of_part in parts.values() for name in of_part]
        run(names, args.networks, sorted({*args.methods, *args.again}), args.records, again=args.again)
    print_tables(args.records, parts)
    if not (args.no_page or args.sets or args.part or args.records != RECORDS):
        write_page(args.records, parts)


if __name__ == "__main__":
    main()
