"""The page of results: ``python -m pyspar.paper.output.page`` writes it from the committed records.

``--collect DIR`` first copies the records of ``spar reproduce --out DIR`` that the tables use. The page depends on
``results/*/records.jsonl`` only.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspar.errors import InputError
from pyspar.paper.data.catalogue import DATASETS
from pyspar.paper.experiments.reproduce import make_result
from pyspar.paper.experiments.suite import Suite, list_suite_names, read_suite
from pyspar.paper.output.tables import Sheet, format_result, format_sheet, write_text
from pyspar.paper.runs.records import Record, read_records, write_records
from pyspar.paper.runs.run_suite import Options

HEAD = """# Reproduction

The tables and figures of the paper's experiments, with the published numbers beside ours. The first table shows which
experiments were run. `python -m pyspar.paper.output.page` writes this page from the records in `results`, which come
from `spar reproduce NAME`. Each record contains its configuration, versions and machine. A difference is the difference
of the means, in joint standard errors over seeds.
"""


def collect(source: Path, results: Path) -> list[str]:
    """Copy the newest records of every suite that was run, and return the names of these suites."""
    names = []
    for name in list_suite_names():
        file = source / name / "records.jsonl"
        if file.is_file():
            (results / name).mkdir(parents=True, exist_ok=True)
            write_records(results / name / "records.jsonl", select_newest(read_records(file), read_suite(name)))
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


def render_page(results: Path, figures: Path, link: str) -> str:
    """Return the text of the page, and draw its figures. Suites without records show their requirements."""
    parts = [HEAD, f"\n{format_sheet(_status_sheet(results))}"]
    for name in list_suite_names():
        suite = read_suite(name)
        parts.append(f"\n## {suite.title}\n\n`spar reproduce {name}`: {suite.about}.\n")
        file = results / name / "records.jsonl"
        if not file.is_file():
            parts.append(f"\nNot run here: {_requirements(suite)}.\n")
            continue
        records = read_records(file)
        result = make_result(suite, records, figures)
        result = replace(result, remarks=[*result.remarks, *suite.found])  # they are about these records
        parts.append(f"\n{format_result(result)}")
        parts += [f"\n![{suite.title}]({link}/{path.name})\n" for path in result.files]
        parts.append(f"\nMeasured on {'; '.join(_devices(records))}.\n")
    return "".join(parts)


def _status_sheet(results: Path) -> Sheet:
    """Return a table of all suites: whether each was run, and on which machine, or its requirements."""
    rows = []
    for name in list_suite_names():
        file = results / name / "records.jsonl"
        if file.is_file():
            records = read_records(file)
            n = len({r.seed for r in records})
            rows.append((f"`{name}`", f"yes, {n} seed{'s' * (n > 1)}", "; ".join(_devices(records))))
        else:
            rows.append((f"`{name}`", "no", _requirements(read_suite(name))))
    return Sheet("", ("suite", "run here", "machine or requirements"), rows)


def _requirements(suite: Suite) -> str:
    """Return what a suite requires: data that has to be obtained, and a GPU for images."""
    needs = []
    for block in suite.blocks:
        obtain = [DATASETS[task].obtain for task in block.tasks]
        if all(obtain):
            needs.append(" or ".join(obtain))
        if block.options.get("unlabeled"):
            needs.append("its unlabelled images, 173 GB")
        if block.uses_images:
            needs.append("a GPU")
    return f"needs {', '.join(dict.fromkeys(needs))}" if needs else "needs only time"


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
    parser.add_argument("--page", type=Path, default=Path("docs/reproduction.md"))
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
