"""Inject every fault, store the counts and write the table of docs/reliability.md: ``python -m benchmarks.faults``."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.faults.trials import COPY_FAULT, Row
from benchmarks.measure import RESULTS
from pyspar.io.atomic import whole_file

RECORDS = RESULTS / "faults.json"
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- table: python -m benchmarks.faults -->", "<!-- end of table -->"


def _kills(scale: float) -> Iterator[Row]:
    from benchmarks.faults.kills import kill_commands

    return kill_commands(round(40 * scale))


def _resumed(scale: float) -> Iterator[Row]:
    from benchmarks.faults.kills import kill_long_commands

    return kill_long_commands(max(1, round(20 * scale)))


def _signals(scale: float) -> Iterator[Row]:
    from benchmarks.faults.signals import stop_all

    return stop_all(max(2, round(10 * scale)))


def _disks(scale: float) -> Iterator[Row]:
    from benchmarks.faults.disks import fail_mounted_disks

    return fail_mounted_disks(max(1, round(10 * scale)))


def _renames(scale: float) -> Iterator[Row]:
    from benchmarks.faults.disks import fail_renames_and_power

    return fail_renames_and_power(max(1, round(10 * scale)))


def _writers(scale: float) -> Iterator[Row]:
    from benchmarks.faults.disks import fail_writers

    return fail_writers(max(1, round(10 * scale)))


def _clocks(scale: float) -> Iterator[Row]:
    from benchmarks.faults.clocks import turn_clocks_back

    return turn_clocks_back(max(1, round(5 * scale)))


def _damage(scale: float) -> Iterator[Row]:
    from benchmarks.faults.damage import damage_files

    return damage_files(round(1000 * scale))


def _clusters(scale: float) -> Iterator[Row]:
    from benchmarks.faults.clusters import fail_clusters

    return fail_clusters(max(1, round(20 * scale)))


GROUPS: dict[str, Callable[[float], Iterator[Row]]] = {
    "kills": _kills,
    "resumed": _resumed,
    "signals": _signals,
    "disks": _disks,
    "renames": _renames,
    "writers": _writers,
    "clocks": _clocks,
    "damage": _damage,
    "clusters": _clusters,
}


def main() -> int:
    """Run groups of faults. The exit code is 1 if a result was lost or corrupted that should not be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=tuple(GROUPS), default=tuple(GROUPS), help="groups of faults")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of trials (default 1)")
    parser.add_argument("--no-run", action="store_true", help="only write the page from the stored counts")
    args = parser.parse_args()
    for group in () if args.no_run else args.only:
        run_group(group, args.scale)
    records = read_records()
    write_page(PAGE, records)
    return int(any(row["lost"] and row["fault"] != COPY_FAULT for rows in records.values() for row in rows))


def run_group(group: str, scale: float) -> None:
    """Inject the faults of a group, and store each row as soon as it is measured.

    If the group is interrupted, the rows that it did not reach stay as they were.
    """
    measured: dict[tuple[str, str], dict[str, str | int]] = {}
    for row in GROUPS[group](scale):
        print(f"{row.fault} | {row.where} | {row.trials} | {row.lost} | {row.outcome} | {row.message}", flush=True)
        measured[row.fault, row.where] = asdict(row)
        _store_rows(group, measured, keep_others=True)
    _store_rows(group, measured, keep_others=False)


def _store_rows(group: str, rows: Mapping[tuple[str, str], dict[str, str | int]], *, keep_others: bool) -> None:
    handle = os.open(RECORDS.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # several groups may run at the same time
        records = read_records()
        others = {(str(old["fault"]), str(old["where"])): old for old in records.get(group, []) if keep_others}
        records[group] = list((others | rows).values())
        with whole_file(RECORDS) as temporary:
            temporary.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    finally:
        os.close(handle)


def read_records() -> dict[str, list[dict[str, str | int]]]:
    """Return the stored counts by group."""
    return json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.is_file() else {}


def write_page(page: Path, records: dict[str, list[dict[str, str | int]]]) -> None:
    """Replace the table of the page."""
    text = page.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{format_table(records)}\n{END}{after}", encoding="utf-8")


def format_table(records: dict[str, list[dict[str, str | int]]]) -> str:
    """Return the counts as a table in Markdown."""
    lines = ["| fault | where | trials | lost or corrupted | outcome | message |", "|---|---|---:|---:|---|---|"]
    for group in GROUPS:
        for row in records.get(group, []):
            message = f"`{row['message']}`" if row["message"] else ""
            cells = [row["fault"], row["where"], f"{row['trials']:,}", f"{row['lost']:,}", row["outcome"], message]
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
