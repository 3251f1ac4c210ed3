"""The first table of the page of results: each published table or figure, our records, and a verdict."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from pyspar.paper.data.catalogue import DATASETS
from pyspar.paper.experiments.cost import BASE
from pyspar.paper.experiments.inflation import INSIDE, OUTSIDE
from pyspar.paper.experiments.methods import Comparison, compare_methods, published_gain, sign_of
from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.suite import Suite, list_suite_names, read_suite
from pyspar.paper.experiments.table1 import compare_cells
from pyspar.paper.output.tables import Sheet
from pyspar.paper.runs.records import Record, group_values, read_suite_records

HEADER = ("experiment", "suite", "our records", "verdict")
LIMIT = 2.0
"""A cell agrees if the means differ by at most this many joint standard errors."""
AGREES, PARTLY = 0.9, 0.5
"""The shares of cells from which a table counts as agreeing, and as partly agreeing."""
NOTE = (
    f"A cell agrees if our mean is within {LIMIT:g} joint standard errors of the published one; a table if at least "
    f"{AGREES:.0%} of its cells agree, and partly from {PARTLY:.0%}. Rows of a former protocol are not judged."
)


def make_overview(results: Path) -> Sheet:
    """Return one row for each published table or figure, and for each of our own experiments."""
    rows = []
    for name in list_suite_names():
        suite, records = read_suite(name), read_suite_records(results, name)
        if records:
            difference = f"; {suite.difference}" if suite.difference else ""
            rows.append((suite.title, f"`{name}`", describe_records(records) + difference, judge(suite, records)))
        else:
            rows.append((suite.title, f"`{name}`", f"none; {list_requirements(suite)}", "not verified"))
    return Sheet("", HEADER, rows, (NOTE,))


def describe_records(records: list[Record]) -> str:
    """Return the number of seeds and the kind of machine of records."""
    gpus = {record.machine["gpu"].split()[-1] for record in records if "gpu" in record.machine}
    n = len({record.seed for record in records})
    return f"{n} seed{'s' * (n > 1)}, {', '.join(sorted(gpus)) or 'CPU'}"


def list_requirements(suite: Suite) -> str:
    """Return what a suite requires: data that has to be obtained, and a GPU for images."""
    needs = []
    for block in suite.blocks:
        obtain = [DATASETS[task].obtain for task in block.tasks]
        if all(obtain):
            needs.append(" or ".join(obtain))
        if block.options.get("unlabeled"):
            needs.append("its unlabelled images (173 GB)")
        if block.uses_images:
            needs.append("a GPU")
    return f"needs {', '.join(dict.fromkeys(needs))}" if needs else "needs only time"


def judge(suite: Suite, records: list[Record]) -> str:
    """Return the verdict on the records of a suite."""
    if suite.kind == "synthetic":
        cells = compare_cells(records)
        same = sum(cell.verdict == "same" for cell in cells)
        word = "same digits" if same == len(cells) else "differs"
        return f"{word}: {same} of {len(cells)} cells"
    if suite.kind == "cost":
        ours, theirs = cost_ratios(records)
        return f"not comparable (other data and machine): time with SpAR over ERM {ours:.2f}, published {theirs:.2f}"
    if suite.kind == "inflation":
        ratios = " and ".join(f"{ratio:.3g}" for ratio in inflation_ratios(records))
        return f"not comparable (other data): largest value {ratios} times as large on the target"
    return _judge_methods(suite, records) if suite.published and suite.metrics else "no published numbers"


def _judge_methods(suite: Suite, records: list[Record]) -> str:
    """Compare cells with the published ones. Cells of a former protocol, or of other data, are not judged."""
    cells = compare_methods(suite, records)
    current = [cell for cell in cells if not suite.is_former(cell.method)]
    former = f"; trained with the former protocol: {', '.join(suite.former)}" if len(current) < len(cells) else ""
    if any(suite.published_task(cell.task) != cell.task for cell in cells):
        return f"not comparable (re-created data){former}"
    differences = [d for cell in current if (d := cell.difference) is not None]
    if not differences:
        return f"too few seeds{former}"
    near = count_near(current)
    share = near / len(differences)
    word = "agrees" if share >= AGREES else "partly agrees" if share >= PARTLY else "differs"
    lower, higher = (sum(sign * difference > LIMIT for difference in differences) for sign in (-1, 1))
    others = [f"{count} {name}" for count, name in ((lower, "lower"), (higher, "higher")) if count]
    outside = f" ({', '.join(others)})" if others else ""
    same, gains = count_signs(suite, [r for r in records if not suite.is_former(r.method)])
    signs = f"; SpAR's sign in {same} of {gains}" if gains else ""
    return f"{word}: {near} of {len(differences)} cells{outside}{signs}{former}"


def count_near(cells: list[Comparison]) -> int:
    """Return how many cells agree with the published ones."""
    return sum(abs(d) <= LIMIT for cell in cells if (d := cell.difference) is not None)


def count_signs(suite: Suite, records: list[Record]) -> tuple[int, int]:
    """Return how many gains of SpAR over the trained head have the published sign, and how many are published."""
    values = group_values((r for r in records if r.metric in suite.metrics), "task", "metric", "method")
    same = gains = 0
    for (task, metric, method), adapted in values.items():
        base = method.removesuffix(" + SpAR")
        theirs = published_gain(suite, task, metric, method, base)
        if base != method and theirs is not None and (task, metric, base) in values:
            ours = sign_of(metric) * float(np.mean(values[task, metric, base]) - np.mean(adapted))
            gains += 1
            same += math.copysign(1.0, ours) == math.copysign(1.0, theirs)
    return same, gains


def cost_ratios(records: list[Record]) -> tuple[float, float]:
    """Return the time of ERM with SpAR as a ratio to ERM, ours and the published one."""
    (cells,) = published("cost").cells.values()
    method = f"{BASE} + SpAR"
    ours, base = (float(np.mean([r.value for r in records if r.method == name])) for name in (method, BASE))
    return ours / base, float(cells[method][0]) / float(cells[BASE][0])


def inflation_ratios(records: list[Record]) -> list[float]:
    """Return how much larger the largest inflation is outside of the distribution, for each data set."""
    largest = {key: max(values) for key, values in group_values(records, "task", "method").items()}
    return [largest[task, OUTSIDE] / largest[task, INSIDE] for task, method in largest if method == INSIDE]
