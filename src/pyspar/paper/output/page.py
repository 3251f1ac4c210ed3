"""The page of results: ``python -m pyspar.paper.output.page`` writes it from the records that are committed.

``--collect DIR`` first takes over what ``spar reproduce --out DIR`` recorded: of each suite the lines that its table
rests on, as they are. The page itself is made from ``results/*/records.jsonl`` and from nothing else.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspar.errors import InputError
from pyspar.paper.data.catalogue import DATASETS
from pyspar.paper.experiments.reproduce import shown
from pyspar.paper.experiments.suite import Suite, images, suite_named, suite_names
from pyspar.paper.output.tables import Sheet, result_markdown, sheet_markdown, write_text
from pyspar.paper.runs.records import Record, read_records, write_records
from pyspar.paper.runs.run_suite import Options

HEAD = """# Reproduction

The tables and figures of the paper's experiments, published numbers beside ours, as far as they were run; the first
table says which. This page is written by `python -m pyspar.paper.output.page` from the records in `results`, which
`spar reproduce NAME` makes; each record carries its configuration, versions and machine. A difference is that of the
means, in joint standard errors over seeds.
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
    """Return the records of the newest runs: of each data set and method, the run that was added last.

    Of a head that was scored again because its rule changed, these are the newer scores.

    Several runs belong together where folds or single seeds are trained alone, and where a search tries settings.
    """

    def place(r: Record) -> tuple[Any, ...]:
        if suite.kind == "search" and r.metric not in suite.metrics:
            return r.task, r.method, r.metric, r.run
        fold = r.spec.get("options", {}).get("fold")
        return r.task, r.method, "", fold, r.seed if suite.kind == "cost" else None

    newest = {place(r): (r.run, r.recipe) for r in records}
    return [r for r in records if newest[place(r)] == (r.run, r.recipe)]


def page(results: Path, figures: Path, link: str) -> str:
    """Return the page, and draw its figures into a folder; suites that have no records say how to run them."""
    parts = [HEAD, f"\n{sheet_markdown(_status(results))}"]
    for name in suite_names():
        suite = suite_named(name)
        parts.append(f"\n## {suite.title}\n\n`spar reproduce {name}`: {suite.about}.\n")
        file = results / name / "records.jsonl"
        if not file.is_file():
            parts.append(f"\nNot run here: {_needs(suite)}.\n")
            continue
        records = read_records(file)
        result = shown(suite, records, figures)
        result = replace(result, remarks=[*result.remarks, *suite.found])  # it is of these records that they speak
        parts.append(f"\n{result_markdown(result)}")
        parts += [f"\n![{suite.title}]({link}/{path.name})\n" for path in result.files]
        parts.append(f"\n{_measured_on(records)}\n")
    return "".join(parts)


def _status(results: Path) -> Sheet:
    """Say of each suite whether it was run, and on what or why not."""
    rows = []
    for name in suite_names():
        file = results / name / "records.jsonl"
        if file.is_file():
            records = read_records(file)
            n = len({r.seed for r in records})
            rows.append((f"`{name}`", f"yes, {n} seed{'s' * (n > 1)}", "; ".join(_devices(records))))
        else:
            rows.append((f"`{name}`", "no", _needs(suite_named(name))))
    return Sheet("", ("suite", "run here", "on what, or what it needs"), rows)


def _needs(suite: Suite) -> str:
    """Say what it takes to run a suite: data that nobody ships, and a GPU for images."""
    wanted = []
    for block in suite.blocks:
        obtain = [DATASETS[task].obtain for task in block.tasks]
        if all(obtain):
            wanted.append(" or ".join(obtain))
        if block.options.get("unlabeled"):
            wanted.append("its unlabelled images, 173 GB")
        if images(block):
            wanted.append("a GPU")
    return f"needs {', '.join(dict.fromkeys(wanted))}" if wanted else "needs only time"


def _measured_on(records: list[Record]) -> str:
    return f"Measured on {'; '.join(_devices(records))}."


def _devices(records: list[Record]) -> list[str]:
    kinds = dict.fromkeys(
        (r.machine.get("gpu") or f"{r.machine.get('processor')}, one thread", r.versions.get("torch", ""))
        for r in records
    )
    return [f"{device}{f', torch {torch}' if torch else ''}" for device, torch in kinds]


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser("python -m pyspar.paper.output.page", description="Write the page of results.")
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
