"""Train what is missing from the records, then write ``docs/when-spar-helps.md``. Ten minutes on one core."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.when_spar_helps.page import PAGE, summarise, write_page
from benchmarks.when_spar_helps.run import RECORDS, choose_sets, read_records, run
from pyspar.terminal import LineProgress


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.when_spar_helps", description=__doc__)
    parser.add_argument("--records", type=Path, default=RECORDS, help="another file of records; writes no page")
    parser.add_argument("--no-run", action="store_true", help="only write the page from the records")
    args = parser.parse_args(arguments)
    if not args.no_run:
        run(choose_sets(), args.records, LineProgress(lambda line: print(line, flush=True), lines=36))
    records = list(read_records(args.records).values())
    if not records:
        parser.error(f"there are no records in {args.records}; run without --no-run")
    print("\n".join(summarise(records)))
    if args.records == RECORDS:
        write_page(records)
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
