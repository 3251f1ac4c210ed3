"""Learn experience from real shifts, check it, and write the tables: ``python -m benchmarks.trust``.

The factors are learnt from all parts except ``reserve``, ``check`` and ``blind``. Cross-validation leaves out a tenth
of the data sets at a time. ``--check PART`` leaves this part out as well, and checks the result on it. Missing records
are measured first. An interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.measure import print_table
from benchmarks.shifts.sets import BLIND, CHECK, EVIDENCE_PARTS, FINAL, NEW, NEWEST, REGISTER, RESERVE
from benchmarks.trust.alternatives import ratio_rows, stretch_rows, threshold_rows, variant_rows
from benchmarks.trust.check import apply, leave_sets_out, summarise_groups
from benchmarks.trust.learn import KINDS, learn
from benchmarks.trust.measure import Key, list_tasks, read, run, separate_again, write
from benchmarks.trust.page import check_rows, describe_rates, factor_rows, power_rows, rate_rows, write_tables
from pyspar.estimators.calibrated_forecasts import FILE

PARTS = (*EVIDENCE_PARTS, NEW, NEWEST, FINAL)
HELD_OUT = (RESERVE, CHECK, BLIND)
"""Parts from which nothing is learnt."""
RANDOM_SPLITS = {FINAL: 5, RESERVE: 5, CHECK: 5, BLIND: 5}
"""Random splits per data set, if there is more than one."""
COMMAND = "python -m benchmarks.trust"


def main() -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    help_of_check = "learn from the other parts and check the result on this part"
    parser.add_argument("--check", choices=(*PARTS, *HELD_OUT), help=help_of_check)
    parser.add_argument("--separate", action="store_true", help="measure the separation of all records again")
    parser.add_argument("--no-run", action="store_true", help="use the existing records only")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each, 1 by default")
    parser.add_argument(
        "--alternatives", action="store_true", help="compare other classes and factors, with the existing records"
    )
    args = parser.parse_args()
    if args.alternatives:
        return compare_alternatives()
    parts = (args.check,) if args.check else PARTS
    used = dict.fromkeys((*PARTS, *parts))
    if args.separate:
        separate_again(args.jobs)
    failed = [] if args.no_run else run(list_part_tasks(list(used)), args.jobs)
    if failed:
        raise SystemExit(f"{len(failed)} tasks failed; repair them, or use the other records with --no-run")
    records = [r for r in read().values() if r["part"] in used]
    learnt_from = [part for part in PARTS if part != args.check]
    known = [r for r in records if r["part"] in learnt_from]
    experience = {"command": COMMAND, "learnt_from": learnt_from, **learn(known)}
    if not args.check:
        write(FILE, experience)
    summaries, shifts = {}, {}
    for kind, regressors in KINDS.items():
        own = [r for r in records if r["regressor"] in regressors and r["part"] in parts]
        results = apply(experience[kind], own) if args.check else leave_sets_out(own)
        summaries |= {(kind, group): summary for group, summary in summarise_groups(results).items()}
        shifts[kind] = [r for r in own if r["split"] == "shift" and r["home"] > 0.0]
    name, how = (args.check, f"part {args.check}") if args.check else ("left-out", "leave data sets out")
    tables = {f"check-{name}": check_rows(summaries)}
    if not args.check:
        tables = {"factors": factor_rows(experience), "powers": power_rows(experience), **tables}
    else:
        tables[f"rates-{name}"] = rate_rows(experience, shifts)
    for title, (header, rows) in tables.items():
        print_table(f"{title} ({how})", header, rows)
    if args.check:
        print(describe_rates(tables[f"rates-{name}"][1]))
    write_tables(tables)


def list_part_tasks(parts: Sequence[str]) -> list[Key]:
    """Return the tasks of parts, with the number of random splits that each part has."""
    tasks = []
    for part in parts:
        names = [name for name, shift in REGISTER.items() if shift.part == part]
        tasks += list_tasks(names, RANDOM_SPLITS.get(part, 1))
    return tasks


def compare_alternatives() -> None:
    """Print the tables of the alternatives, and write them to decision 18."""
    records = [r for r in read().values() if r["part"] in PARTS]
    tables = {
        "alternatives": variant_rows(records),
        "ratios": ratio_rows(records),
        "stretches": stretch_rows(records),
        "thresholds": threshold_rows(records),
    }
    for name, (header, rows) in tables.items():
        print_table(f"{name} (leave data sets out)", header, rows)
    write_tables(tables)


if __name__ == "__main__":
    main()
