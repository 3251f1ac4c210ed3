"""Make the missing records and write the tables: ``python -m benchmarks.labels``."""

from __future__ import annotations

import argparse

from benchmarks.labels.report import PARTS, write_page
from benchmarks.labels.run import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="run one part only")
    parser.add_argument("--again", action="store_true", help="replace existing records")
    parser.add_argument("--no-run", action="store_true", help="only write the tables of existing records")
    args = parser.parse_args()
    if not args.no_run:
        for part in (args.part,) if args.part else PARTS:
            print(f"{part}: {run(part, again=args.again)} new records")
    print(write_page())


if __name__ == "__main__":
    main()
