"""The page of results: ``python -m pyspar.bench.report`` writes it from the records that are committed.

``--collect DIR`` first takes over what ``spar reproduce --out DIR`` recorded: of each suite the lines that its table
rests on, as they are. The page itself is made from ``results/*/records.jsonl`` and from nothing else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspar.bench.perform import Options
from pyspar.bench.records import Record, read_records, write_records
from pyspar.bench.reproduce import shown
from pyspar.bench.sheet import result_markdown, write_text
from pyspar.bench.suite import Suite, suite_named, suite_names
from pyspar.errors import InputError

HEAD = """# Reproduction

Every table and figure of the paper's experiments, published numbers beside ours. This page is written by
`python -m pyspar.bench.report` from the records in `results`, which `spar reproduce NAME` makes; each record carries
its configuration, versions and machine. A difference is that of the means, in joint standard errors over seeds.
"""


def collect(source: Path, results: Path) -> list[str]:
    """Take over the records of every suite that was run; return the suites' names."""
    found = []
    for name in suite_names():
        file = source / name / "records.jsonl"
        if file.is_file():
            (results / name).mkdir(parents=True, exist_ok=True)
            write_records(results / name / "records.jsonl", current(suite_named(name), read_records(file)))
            found.append(name)
    return found


def current(suite: Suite, records: list[Record]) -> list[Record]:
    """Return the newest records: of each data set, method and seed, the one that was added last."""
    last: dict[tuple[str, str, str, int, float | None], Record] = {}
    for record in records:
        # A search tries several settings with one seed; each is a number of its own.
        own = record.run if record.metric not in suite.metrics else ""
        last[record.task, record.method, record.metric + own, record.seed, record.at] = record
    return list(last.values())


def page(results: Path, figures: Path, link: str) -> str:
    """Return the page, and draw its figures into a folder; suites that have no records say how to run them."""
    parts = [HEAD]
    for name in suite_names():
        suite = suite_named(name)
        parts.append(f"\n## {suite.title}\n\n`spar reproduce {name}`: {suite.about}.\n")
        file = results / name / "records.jsonl"
        if not file.is_file():
            parts.append("\nNot run here.\n")
            continue
        records = read_records(file)
        result = shown(suite, records, figures)
        parts.append(f"\n{result_markdown(result)}")
        parts += [f"\n![{suite.title}]({link}/{path.name})\n" for path in result.files]
        parts.append(f"\n{_measured_on(records)}\n")
    return "".join(parts)


def _measured_on(records: list[Record]) -> str:
    kinds = dict.fromkeys(
        (r.machine.get("gpu") or f"{r.machine.get('processor')}, one thread", r.versions.get("torch", ""))
        for r in records
    )
    told = [f"{device}{f', torch {torch}' if torch else ''}" for device, torch in kinds]
    return f"Measured on {'; '.join(told)}."


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser("python -m pyspar.bench.report", description="Write the page of results.")
    parser.add_argument("--collect", type=Path, metavar="DIR", help=f"take over records, such as {Options().out}")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--page", type=Path, default=Path("docs/reproduction.md"))
    given = parser.parse_args(arguments)
    try:
        if given.collect is not None:
            collect(given.collect, given.results)
        figures = given.page.parent / "figures"
        figures.mkdir(parents=True, exist_ok=True)
        write_text(given.page, page(given.results, figures, "figures"))
    except (InputError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
