"""Learn experience from real shifts, check it, and write the tables: ``python -m benchmarks.trust``.

The parts in ``LEARNT_FROM`` are used to learn. Other parts are only checked, with ``--check PART``.
"""

from __future__ import annotations

import argparse

from benchmarks.measure import print_table
from benchmarks.shifts.sets import REGISTER
from benchmarks.trust.alternatives import stretch_rows, threshold_rows, variant_rows
from benchmarks.trust.check import NO_SHIFT, apply, leave_sets_out, summarise
from benchmarks.trust.learn import KINDS, learn
from benchmarks.trust.measure import read, run, separate_again, write
from benchmarks.trust.page import check_rows, factor_rows, rate_rows, write_tables
from pyspar.estimators.calibrated_forecasts import FILE

LEARNT_FROM = ("design", "held-back", "fresh", "sealed", "last", "new")
COMMAND = "python -m benchmarks.trust"


def main() -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    others = sorted({shift.half for shift in REGISTER.values()} - set(LEARNT_FROM))
    parser.add_argument("--check", choices=others, help="check the learnt experience on this part")
    parser.add_argument("--separate", action="store_true", help="measure the separation of all records again")
    parser.add_argument("--no-run", action="store_true", help="use the existing records only")
    parser.add_argument(
        "--alternatives", action="store_true", help="compare other classes and factors, with the existing records"
    )
    args = parser.parse_args()
    if args.alternatives:
        return compare_alternatives()
    parts = (args.check,) if args.check else LEARNT_FROM
    names = [name for name, shift in REGISTER.items() if shift.half in parts]
    if args.separate:
        separate_again()
    if not args.no_run:
        run(names)
    records = [r for r in read().values() if r["part"] in (*LEARNT_FROM, *parts)]
    known = [r for r in records if r["part"] in LEARNT_FROM]
    experience = {"command": COMMAND, "learnt_from": list(LEARNT_FROM), **learn(known)}
    if not args.check:
        write(FILE, experience)
    summaries, shifts = {}, {}
    for kind, regressors in KINDS.items():
        own = [r for r in records if r["regressor"] in regressors]
        if args.check:
            results = apply(experience[kind], [r for r in own if r["part"] == args.check])
        else:
            results = leave_sets_out(own)
        natural = [r for r in results if r["split"] == "shift"]
        summaries[kind, "shift"] = summarise(natural)
        summaries[kind, "shift, found"] = summarise([r for r in natural if r["class"] not in NO_SHIFT])
        summaries[kind, "shift, none found"] = summarise([r for r in natural if r["class"] == "none"])
        summaries[kind, "shift, matched"] = summarise([r for r in natural if r["class"] == "matched"])
        summaries[kind, "random"] = summarise([r for r in results if r["split"] == "random"])
        shifts[kind] = [r for r in own if r["part"] in parts and r["split"] == "shift" and r["home"] > 0.0]
    how = f"part {args.check}" if args.check else "leave data sets out"
    tables = {
        "factors": factor_rows(experience),
        f"check-{args.check or 'left-out'}": check_rows(summaries),
        f"rates-{args.check or 'left-out'}": rate_rows(experience, shifts),
    }
    for name, (header, rows) in tables.items():
        print_table(f"{name} ({how})", header, rows)
    write_tables(tables)


def compare_alternatives() -> None:
    """Print the tables of the alternatives, and write them to decision 18."""
    records = [r for r in read().values() if r["part"] in LEARNT_FROM]
    tables = {
        "alternatives": variant_rows(records),
        "stretches": stretch_rows(records),
        "thresholds": threshold_rows(records),
    }
    for name, (header, rows) in tables.items():
        print_table(f"{name} (leave data sets out)", header, rows)
    write_tables(tables)


if __name__ == "__main__":
    main()
