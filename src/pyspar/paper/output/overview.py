"""The first tables of the page of results: published tables and figures, and the paper's statements."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pyspar.paper.data.registry import DATASETS
from pyspar.paper.experiments.cost import BASE
from pyspar.paper.experiments.inflation import INSIDE, OUTSIDE
from pyspar.paper.experiments.methods import compare_methods, compute_gains, judge_gain, published_gain
from pyspar.paper.experiments.suite import Suite, list_suite_names, published, read_suite
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
    f"{AGREES:.0%} of its cells agree, and partly from {PARTLY:.0%}. "
    "*SpAR's sign in 6 of 8*: in 6 of the 8 cells with SpAR, our gain over the trained head has the published sign."
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
    cells = [(task, method) for task, method, _ in group_values(records, "task", "method", "seed")]
    n = " or ".join(map(str, sorted({cells.count(cell) for cell in cells})))
    return f"{n} seed{'s' * (n != '1')}, {', '.join(sorted(gpus)) or 'CPU'}"


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
    cells = compare_methods(suite, records)
    if any(suite.published_task(cell.task) != cell.task for cell in cells):
        return "not comparable (re-created data)"
    differences = [d for cell in cells if (d := cell.difference) is not None]
    if not differences:
        return "too few seeds"
    near = sum(abs(difference) <= LIMIT for difference in differences)
    share = near / len(differences)
    word = "agrees" if share >= AGREES else "partly agrees" if share >= PARTLY else "differs"
    lower, higher = (sum(sign * difference > LIMIT for difference in differences) for sign in (-1, 1))
    others = [f"{count} {name}" for count, name in ((lower, "lower"), (higher, "higher")) if count]
    outside = f" ({', '.join(others)})" if others else ""
    same, gains = count_signs(suite, records)
    signs = f"; SpAR's sign in {same} of {gains}" if gains else ""
    return f"{word}: {near} of {len(differences)} cells{outside}{signs}"


def count_signs(suite: Suite, records: list[Record]) -> tuple[int, int]:
    """Return how many gains of SpAR over the trained head have the published sign, and how many are published."""
    signs = [
        math.copysign(1.0, gain.mean()) == math.copysign(1.0, theirs)
        for (task, metric, method, other), gain in compute_gains(suite, records).items()
        if method == f"{other} + SpAR" and (theirs := published_gain(suite, task, metric, method, other)) is not None
    ]
    return sum(signs), len(signs)


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


TABLES = ("tabular", "tabular-tuned")
IMAGES = ("rcf-mnist", "rcf-mnist-pretrained", "chair-angles", "chair-angles-pretrained")
Answer = tuple[str, str]
UNKNOWN: Answer = ("not verified", "no records")


def make_claims(results: Path) -> Sheet:
    """Return one row for each statement: the answer, and the figures it rests on."""
    rows = [
        ("Theorems 1 to 3, Proposition 1, Lemma 1", "yes", "simulated in `tests/theory`"),
        ("Table 1: SpAR beats least squares under inflation, and PCR without", *_judge_table1(results)),
        ("SpAR beats the trained head on tables", *judge_gains(results, TABLES)),
        ("SpAR beats least squares on tables", *judge_gains(results, TABLES, " + OLS")),
        ("SpAR consistently improves every method on images", *judge_gains(results, IMAGES)),
        (
            "The projection, not the refit, gives the gain on images (the paper has no OLS row)",
            *judge_gains(results, IMAGES, " + OLS"),
        ),
        ("A higher alpha could give a better worst group on Communities and Crime", *_judge_higher_alpha(results)),
        ("Alpha too close to 1 gives a poor worst group on SkillCraft", *_judge_alpha_near_one(results)),
        ("Test directions are inflated where training directions are not", *_judge_inflation(results)),
        ("SpAR adds little time", *_judge_cost(results)),
        (
            "SpAR improves the worst group of PovertyMap, also with unlabelled data",
            "not verified",
            "one country: see below",
        ),
    ]
    return Sheet("", ("statement", "answer", "figures"), rows)


def _judge_table1(results: Path) -> Answer:
    records = read_suite_records(results, "table1")
    verdict = judge(read_suite("table1"), records)
    return ("yes" if verdict.startswith("same") else "no", verdict) if records else UNKNOWN


def judge_gains(results: Path, names: Iterable[str], other_head: str = "") -> Answer:
    """Return whether SpAR is better than another head of the same networks, and in how many cells."""
    gains = []
    for name in names:
        suite = read_suite(name)
        for (_, _, method, other), gain in compute_gains(suite, read_suite_records(results, name)).items():
            base = method.removesuffix(" + SpAR")
            if base != method and other == base + other_head:
                gains.append(gain)
    if not gains:
        return UNKNOWN
    verdicts = [judge_gain(gain) for gain in gains]
    lower, better, worse = sum(gain.mean() > 0 for gain in gains), verdicts.count("better"), verdicts.count("worse")
    answer = "yes" if lower >= 0.9 * len(gains) and not worse else "partly" if better > worse else "no"
    return answer, f"better in {lower} of {len(gains)} cells, significantly in {better}; significantly worse in {worse}"


def _worst_group_by_alpha(results: Path, task: str) -> dict[float, float]:
    records = read_suite_records(results, "alpha")
    chosen = (r for r in records if r.task == task and r.metric == "worst-group rmse" and r.at is not None)
    return {at: float(np.mean(numbers)) for (at,), numbers in group_values(chosen, "at").items()}


def _judge_higher_alpha(results: Path) -> Answer:
    means = _worst_group_by_alpha(results, "communities-and-crime")
    higher = {at: mean for at, mean in means.items() if at > 0.999}
    if 0.999 not in means or not higher:
        return UNKNOWN
    best = min(higher, key=lambda at: higher[at])
    gain = means[0.999] - higher[best]
    answer = "yes" if gain > 0.01 * means[0.999] else "partly" if gain > 0 else "no"
    return answer, f"{means[0.999]:.4f} at 0.999, {higher[best]:.4f} at {best:.10g}"


def _judge_alpha_near_one(results: Path) -> Answer:
    means = _worst_group_by_alpha(results, "skillcraft")
    if not {0.999, 1.0} <= means.keys():
        return UNKNOWN
    below = max(at for at in means if at < 1)
    answer = "yes" if means[below] > 1.5 * means[0.999] else "partly"
    return answer, f"{means[0.999]:.2f} at 0.999, {means[below]:.2f} at {below:.10g}, {means[1.0]:.2f} at 1"


def _judge_inflation(results: Path) -> Answer:
    records = read_suite_records(results, "spectral-inflation")
    if not records:
        return UNKNOWN
    ratios = inflation_ratios(records)
    figures = " and ".join(f"{ratio:.3g}" for ratio in ratios)
    return "yes, on tables" if min(ratios) > 1 else "no", f"largest value {figures} times as large on the target"


def _judge_cost(results: Path) -> Answer:
    records = read_suite_records(results, "cost")
    if not records:
        return UNKNOWN
    ours, theirs = cost_ratios(records)
    return "yes, on tables" if ours < 1.5 else "no", f"{ours:.2f} times the time of ERM; published {theirs:.2f}"
