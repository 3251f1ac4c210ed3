"""Make the missing records, print the tables, and write tables and figure: ``python -m benchmarks.labels``."""

from __future__ import annotations

import argparse

from benchmarks.labels.methods import METHODS
from benchmarks.labels.peers import PEERS
from benchmarks.labels.run import CHOOSE_ROWS, PARTS, PEER_RECORDS, RECORDS, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="run one part only")
    names = (*METHODS, *CHOOSE_ROWS, *PEERS)
    parser.add_argument("--methods", nargs="+", metavar="METHOD", choices=names, help=f"of {', '.join(names)}")
    parser.add_argument("--peers", action="store_true", help="run ADAPT's methods, in an environment that has them")
    parser.add_argument("--again", action="store_true", help="replace existing records")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each, 1 by default")
    parser.add_argument("--no-run", action="store_true", help="only write the existing records")
    args = parser.parse_args()
    if not args.no_run:
        for part in (args.part,) if args.part else PARTS[::-1]:
            path = PEER_RECORDS if args.peers else RECORDS
            made = run(part, path, peers=args.peers, methods=args.methods, again=args.again, jobs=args.jobs)
            print(f"{part}: {made} new records")
    if not args.peers:
        from benchmarks.labels.report import write_page

        write_page()


if __name__ == "__main__":
    main()
