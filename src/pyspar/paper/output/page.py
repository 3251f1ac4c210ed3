"""The page of results: ``python -m pyspar.paper.output.page`` writes it from the committed records.

``--collect DIR`` first copies the records of ``spar reproduce --out DIR`` that the tables use. The page depends on
``results/*/records.jsonl`` only.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError
from pyspar.paper.experiments.methods import compare_methods, describe_gain, sign_of
from pyspar.paper.experiments.reproduce import make_result
from pyspar.paper.experiments.suite import Suite, list_suite_names, published, read_suite
from pyspar.paper.output.overview import IMAGES, TABLES, judge_gains, make_claims, make_overview
from pyspar.paper.output.tables import NO_VALUE, Sheet, format_sheet, write_text
from pyspar.paper.runs.heads import metric_title
from pyspar.paper.runs.records import Record, read_records, read_suite_records, write_records
from pyspar.paper.runs.run_suite import Options
from pyspar.paper.runs.store import RunFolder
from pyspar.paper.runs.summary import FILE, Summary, read_summaries, summarise, write_summaries

PAGE = Path("docs/reproduction.md")
WIDTH = 120
SUMMARISED_SEEDS = 5
"""How many networks of each method on images have a committed summary, from which a new head can be scored."""
DRAWN = ("table1", "tabular", "alpha", "spectral-inflation")
"""The suites whose figures are on the page."""
SHOWN = (
    *(*DRAWN, "tabular-tuned", "rcf-mnist", "rcf-mnist-pretrained"),
    *("chair-angles", "povertymap-angola"),
)
"""The suites whose numbers or figures are on the page."""

HEAD = """# Reproduction

You will be able to compare each table, figure and statement of the paper with ours.

**Does SpAR improve the trained head?** A cell is one method, data set and metric:

| data | the head with SpAR |
|---|---|
| tables | {tables} |
| images | {images} |

The 13 GB of PovertyMap-WILDS could not be obtained, so the paper's tables and figure on it are not verified.
`python -m pyspar.paper.output.page` writes this page from the records in `results`, which come from
`spar reproduce NAME`. `spar reproduce --check` verifies that each record is of the current methods and settings.

## Each table and figure
"""

CLAIMS = """
## Statement by statement

"Significantly" is a two-sided 95 % interval of Student's t over seeds.
"""

DETAILS = """
## The numbers

Mean ± standard deviation over seeds. A difference of means is in joint standard errors (SE): the root of the sum of
both squared standard errors. Gains have standard errors. Further rows are in the files of `spar reproduce NAME`.
"""


def collect(source: Path, results: Path) -> list[str]:
    """Copy the newest records of every suite that was run, and summaries of networks on images; return the names."""
    names = []
    for name in list_suite_names():
        file = source / name / "records.jsonl"
        if file.is_file():
            suite = read_suite(name)
            records = select_newest(read_records(file), suite)
            (results / name).mkdir(parents=True, exist_ok=True)
            write_records(results / name / "records.jsonl", records)
            if any(block.uses_images for block in suite.blocks):
                _update_summaries(results / name / FILE, source, records)
            names.append(name)
    return names


def _update_summaries(file: Path, source: Path, records: list[Record]) -> None:
    summaries: dict[tuple[str, int], Summary] = read_summaries(file) if file.is_file() else {}
    for record in records:
        network = record.method.partition(" + ")[0], record.seed
        features = RunFolder(source / "runs" / record.run).read_features() if record.seed < SUMMARISED_SEEDS else None
        if features is not None and network == (record.method, record.seed):
            summaries[network] = summarise(features)
    if summaries:
        write_summaries(file, summaries)


def select_newest(records: list[Record], suite: Suite) -> list[Record]:
    """Return the records of the settings that were added last, for each data set, method and seed. If a head was scored
    again because its rule changed, these are the newer scores. All settings of a search are kept.
    """

    def cell(r: Record) -> tuple[Any, ...]:
        searched = suite.kind == "search" and r.metric not in suite.metrics
        return r.task, r.method, r.seed, r.metric, r.at, r.run if searched else ""

    newest = {cell(r): (r.run, r.recipe) for r in records}
    return [r for r in records if newest[cell(r)] == (r.run, r.recipe)]


def render_page(results: Path, figures: Path | None, link: str) -> str:
    """Return the text of the page, and draw its figures unless ``figures`` is None."""
    tables, images = (judge_gains(results, names)[1] for names in (TABLES, IMAGES))
    parts = [
        HEAD.format(tables=tables, images=images),
        f"\n{format_sheet(make_overview(results))}",
        CLAIMS,
        f"\n{format_sheet(make_claims(results))}",
        DETAILS,
    ]
    for name in list_suite_names():
        suite, records = read_suite(name), read_suite_records(results, name)
        if not records or name not in SHOWN:
            continue
        files = make_result(suite, records, figures if name in DRAWN else None).files
        parts.append(f"\n### {suite.title}\n")
        if name not in ("table1", "alpha", "spectral-inflation"):  # the tables above have their results
            parts.append(f"\n{format_sheet(make_numbers(suite, records))}")
        parts += [f"\n![{suite.title}]({link}/{path.name})\n" for path in files]
        parts += ["\n", *(f"- {line}\n" for line in suite.differs)]
    return "\n".join(map(_wrap, "".join(parts).split("\n")))


def make_numbers(suite: Suite, records: list[Record]) -> Sheet:
    """Return one table with the published cells of a suite next to ours, all metrics side by side."""
    if suite.kind == "synthetic":
        return make_result(suite, records, None).sheets[0]
    if suite.verdicts:
        return make_verdicts(suite, records)
    cells = {(c.task, c.method, c.metric): c for c in compare_methods(suite, records)}
    metrics = [m for m in suite.metrics if any(c.published for key, c in cells.items() if key[2] == m)]
    several = len({key[0] for key in cells}) > 1
    header = ["data", "method"][not several :]
    for metric in metrics:
        header += [f"{metric_title(metric)}, published", "ours", "difference"]
    rows = []
    for task, method in dict.fromkeys(key[:2] for key in cells):
        row = [task, method][not several :]
        for metric in metrics:
            cell = cells[task, method, metric]
            if cell.published is None:
                break
            judged = NO_VALUE if cell.difference is None else f"{cell.difference:+.1f} SE"
            if suite.published_task(task) != task:
                judged = "other data"
            row += [" ± ".join(cell.published), " ± ".join(cell.ours), judged]
        else:
            rows.append(tuple(row))
    return Sheet("", tuple(header), rows)


def make_verdicts(suite: Suite, records: list[Record]) -> Sheet:
    """Return the value of each method, its gain over the first one, seed by seed, the gain in the published table of
    the same methods, and the verdict of the suite.
    """
    metric, first = suite.metrics[0], next(iter(suite.verdicts))
    cells = {cell.method: cell for cell in compare_methods(suite, records) if cell.metric == metric}
    ours = {(r.method, r.seed): sign_of(metric) * r.value for r in records if r.metric == metric}
    (printed,) = published(suite.extra["methods_of"], metric).cells.values()
    rows = []
    for method, verdict in suite.verdicts.items():
        gain = np.array([ours[first, seed] - value for (name, seed), value in ours.items() if name == method])
        theirs = sign_of(metric) * (float(printed[first][0]) - float(printed[method][0]))
        text, _, judged = describe_gain(gain)
        compared = (f"{text}, {judged}", f"{theirs + 0.0:+.2f}") if method != first else (NO_VALUE, NO_VALUE)
        rows.append((method, " ± ".join(cells[method].ours), *compared, verdict))
    header = ("method", metric_title(metric), f"gain over {first}", "published gain", "verdict")
    return Sheet("", header, rows)


def _wrap(line: str) -> str:
    if len(line) <= WIDTH or line.startswith(("|", "#", "!")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def is_current(page: Path, results: Path) -> bool:
    """Return whether the text of the page follows from the records and from the published numbers. Figures are not
    drawn, so the lines that show them are not compared.
    """
    if not page.is_file():
        return False
    texts = page.read_text(encoding="utf-8"), render_page(results, None, "figures")
    old, new = ([line for line in text.splitlines() if line and not line.startswith("![")] for text in texts)
    return old == new


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
