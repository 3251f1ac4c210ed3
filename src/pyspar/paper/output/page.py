"""The page of results: ``python -m pyspar.paper.output.page`` writes it from the committed records.

``--collect DIR`` first copies the records of ``spar reproduce --out DIR`` that the tables use. The page depends on
``results/*/records.jsonl`` only.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspar.errors import InputError
from pyspar.paper.experiments.reproduce import make_result
from pyspar.paper.experiments.suite import Suite, list_suite_names, read_suite
from pyspar.paper.output.overview import list_requirements, make_overview
from pyspar.paper.output.tables import format_result, format_sheet, write_text
from pyspar.paper.runs.records import Record, read_records, write_records
from pyspar.paper.runs.run_suite import Options
from pyspar.paper.runs.summary import FILE, update_summaries

PAGE = Path("docs/reproduction.md")
WIDTH = 120

HEAD = """# Reproduction

The table lists each published table or figure of the paper with our records, the main difference of the setting, and a
verdict. `python -m pyspar.paper.output.page` writes this page from the records in `results`, which come from
`spar reproduce NAME`. `spar reproduce --check` verifies that every record is of the current methods and settings.
"""

DETAILS = """
The sections below show the numbers. A difference is the difference of the means, in joint standard errors over seeds.
Each record contains its configuration, versions and machine. [When SpAR helps](evidence.md) shows in a
factorial experiment why refitting a head helps some networks and harms others.
"""


def collect(source: Path, results: Path) -> list[str]:
    """Copy the newest records of every suite that was run, and return the names of these suites.

    Networks on images are slow to train again, so their summaries are copied too.
    """
    names = []
    for name in list_suite_names():
        file = source / name / "records.jsonl"
        if file.is_file():
            suite = read_suite(name)
            records = select_newest(read_records(file), suite)
            (results / name).mkdir(parents=True, exist_ok=True)
            write_records(results / name / "records.jsonl", records)
            if any(block.uses_images for block in suite.blocks) and any((source / "runs").glob("*/summary-*.npz")):
                update_summaries(results / name / FILE, source / "runs", records)
            names.append(name)
    return names


def select_newest(records: list[Record], suite: Suite) -> list[Record]:
    """Return the records of the run that was added last, for each data set and method.

    If a head was scored again because its rule changed, these are the newer scores. All runs are kept that belong
    together: folds, seeds that are trained alone, and the settings of a search.
    """

    def cell(r: Record) -> tuple[Any, ...]:
        if suite.kind == "search" and r.metric not in suite.metrics:
            return r.task, r.method, r.metric, r.run
        fold = r.spec.get("options", {}).get("fold")
        return r.task, r.method, "", fold, r.seed if suite.kind == "cost" else None

    newest = {cell(r): (r.run, r.recipe) for r in records}
    return [r for r in records if newest[cell(r)] == (r.run, r.recipe)]


def render_page(results: Path, figures: Path | None, link: str) -> str:
    """Return the text of the page, and draw its figures unless ``figures`` is None.

    Suites without records show their requirements.
    """
    parts = [HEAD, f"\n{format_sheet(make_overview(results))}", DETAILS]
    for name in list_suite_names():
        suite = read_suite(name)
        parts.append(f"\n## {suite.title}\n\n`spar reproduce {name}`: {suite.about}.\n")
        file = results / name / "records.jsonl"
        if not file.is_file():
            parts.append(f"\nNot run here: {list_requirements(suite)}.\n")
            continue
        records = read_records(file)
        result = make_result(suite, records, figures)
        result = replace(result, remarks=[*result.remarks, *suite.found])  # they are about these records
        parts.append(f"\n{format_result(result)}")
        parts += [f"\n![{suite.title}]({link}/{path.name})\n" for path in result.files]
        parts.append(f"\nMeasured on {'; '.join(_devices(records))}.\n")
    return "\n".join(map(_wrap, "".join(parts).split("\n")))


def _wrap(line: str) -> str:
    """Wrap a line of text or an item of a list. Tables, headings and images stay on one line."""
    if len(line) <= WIDTH or line.startswith(("|", "#", "!")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def is_current(page: Path, results: Path) -> bool:
    """Return whether the text of the page follows from the records and from the published numbers.

    Figures are not drawn, so the lines that show them are not compared.
    """
    if not page.is_file():
        return False
    texts = page.read_text(encoding="utf-8"), render_page(results, None, "figures")
    old, new = ([line for line in text.splitlines() if line and not line.startswith("![")] for text in texts)
    return old == new


def _devices(records: list[Record]) -> list[str]:
    """Return the processors or GPUs that produced records, with their versions of torch."""
    devices = dict.fromkeys(
        (r.machine.get("gpu") or f"{r.machine.get('processor')}, one thread", r.versions.get("torch", ""))
        for r in records
    )
    return [f"{device}{f', torch {torch}' if torch else ''}" for device, torch in devices]


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser("python -m pyspar.paper.output.page", description="Write the page of results.")
    parser.add_argument(
        "--collect", type=Path, metavar="DIR", help=f"first copy records from a folder such as {Options().out}"
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    try:
        if options.collect is not None:
            collect(options.collect, options.results)
        figures = options.page.parent / "figures"
        figures.mkdir(parents=True, exist_ok=True)
        write_text(options.page, render_page(options.results, figures, "figures"))
    except (InputError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
