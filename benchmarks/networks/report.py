"""Print the tables and write ``docs/networks-evidence.md`` from the records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.networks import choice
from benchmarks.networks.scoring import METHODS, ROWS, Key, Record, read
from benchmarks.networks.training import NETWORKS, PATIENCE, REQUIRED
from benchmarks.report import table, wrap, wrap_paragraph
from benchmarks.shifts.sets import REGISTER

PAGE = Path(__file__).parents[2] / "docs" / "networks-evidence.md"
REQUIRED_METHOD = "bayes"
"""The method to which the requirement applies."""
MAX_MEAN = 1.005
MAX_RATIO = 1.03
CLEAR_GAIN = 0.995
UNCHANGED_TOLERANCE = 1e-6
"""A ratio that differs from one by less than this is counted as an unchanged network."""

INTRO = """# Networks: evidence

This page shows whether `pyspar.nn.adapt_head` helps or harms networks that are already well trained. A ratio is the
target RMSE of the repaired network divided by that of the trained network. **Below one, the repair helps; above one, it
harms.** No method uses a label of the target.

The requirement for `method="{method}"` with {networks} small networks on each of {sets} real shifts is a geometric mean
of at most {mean} and no single ratio above {worst}.
"""

SETTING = """## Method of measurement

**Data.** The data sets come from the part `last` of the [evidence on linear models](evidence.md). All {sets} sets with
at least {n:,} source rows, {m} target rows and {d} columns are used, so no result influenced the choice of sets.
Variants of the repair were compared on the first 12 sets in the order of the SHA-256 hash of the name, and did not
differ on them. The other sets were run once, with the final rule. Columns are standardised by the source.

**Networks.** {networks}. Every head has a bias. 70 % of the source rows train the network, 20 % decide when to stop,
and 10 % are held out. Labels are standardised by the training rows. Adam minimises the squared error until the
validation error has not improved for {patience} epochs, and the best epoch is restored. There is one seed per network.
On the held-out source rows the trained networks have a median RMSE of {home:.2f} standard deviations of the labels
({best:.2f} to {worst:.2f}). A network with a value near one is not much better than the mean of the labels. Such
networks are kept, because no result may influence the choice.

**Repairs.** `adapt_head(model, source_loader, target_loader, method=...)` with its other defaults. The source loader
has the training rows in the first variant and the validation rows in the second. "Unchanged" in the tables counts the
networks whose target RMSE is the same to six digits. A method that never changes a head would also meet the
requirement, so read this column together with the others. "Source" is the RMSE on the held-out source rows after the
repair divided by that before it, as a geometric mean. "Seconds" is the median time of a repair on one thread.

**Records.** `make networks` writes `benchmarks/results/networks.jsonl`. Trained networks are cached.

`python -m benchmarks.networks --again bayes` scores one method again and rewrites this page.
"""

HEADER = [
    "method", "networks", "geometric mean", "worst", f"above {MAX_MEAN:g}", f"above {MAX_RATIO:g}",
    f"below {CLEAR_GAIN:g}", "unchanged", "source", "seconds",
]  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """The ratios of one method on several networks."""

    method: str
    records: list[Record]

    @property
    def ratios(self) -> list[float]:
        return [r["ratio"] for r in self.records]

    @property
    def geometric_mean(self) -> float:
        return geometric_mean(self.ratios)

    @property
    def worst(self) -> float:
        return max(self.ratios)

    def cells(self) -> list[object]:
        above_mean, above_limit = (sum(r > limit for r in self.ratios) for limit in (MAX_MEAN, MAX_RATIO))
        source = geometric_mean(r["home_after"] / r["home_before"] for r in self.records)
        seconds = median(r["seconds"] for r in self.records)
        below, unchanged = (
            sum(r < CLEAR_GAIN for r in self.ratios),
            sum(abs(r - 1.0) < UNCHANGED_TOLERANCE for r in self.ratios),
        )
        mean, worst, source_cell = (f"{value:.3f}" for value in (self.geometric_mean, self.worst, source))
        counts = [above_mean, above_limit, below, unchanged]
        return [self.method, len(self.records), mean, worst, *counts, source_cell, f"{seconds:.2f}"]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def summaries(records: dict[Key, Record], names: Sequence[str], networks: Sequence[str], rows: str) -> list[Summary]:
    """Return a summary for each method that has records; repairs that failed are left out."""
    result = []
    for method in METHODS:
        keys = [(name, network, rows, method) for name in names for network in networks]
        kept = [records[key] for key in keys if key in records and records[key]["ratio"] is not None]
        if kept:
            result.append(Summary(method, kept))
    return result


def unmet_requirements(records: dict[Key, Record], names: Sequence[str]) -> list[str]:
    """Return one sentence for each part of the requirement that is not met, and for each kind of failure."""
    sentences = []
    for rows in ROWS:
        for summary in summaries(records, names, REQUIRED, rows):
            if summary.method != REQUIRED_METHOD:
                continue
            if summary.geometric_mean > MAX_MEAN:
                sentences.append(f"Repaired with {rows}, the geometric mean is {summary.geometric_mean:.4f}.")
            if high := [r for r in summary.records if r["ratio"] > MAX_RATIO]:
                high.sort(key=lambda r: -r["ratio"])
                listed = ", ".join(f"{r['set']} ({r['network']}) {r['ratio']:.3f}" for r in high)
                count = f"{len(high)} of {len(summary.records)}"
                sentences.append(f"Repaired with {rows}, ratios above {MAX_RATIO:g} ({count}): {listed}.")
    expected = [(name, network, rows) for name in names for network in NETWORKS for rows in ROWS]
    for method in METHODS:
        absent = sum((*key, method) not in records for key in expected)
        failed = [r for key in expected if (r := records.get((*key, method))) and r["ratio"] is None]
        if absent:
            sentences.append(f"`{method}` has no record of {absent} repairs.")
        if failed:
            sentences.append(f"`{method}` failed on {len(failed)} networks: {failed[0]['note']}.")
    return sentences


def shifts_above(records: dict[Key, Record], names: Sequence[str], networks: Sequence[str], rows: str) -> list[str]:
    """Return a line for each method with the shifts on which a ratio is above the limit, and the largest ratio."""
    lines = []
    for summary in summaries(records, names, networks, rows):
        worst: dict[str, float] = {}
        for record in summary.records:
            worst[record["set"]] = max(record["ratio"], worst.get(record["set"], 0.0))
        high = sorted(((ratio, name) for name, ratio in worst.items() if ratio > MAX_RATIO), reverse=True)
        listed = ", ".join(f"{name} {ratio:.3f}" for ratio, name in high)
        lines.append(wrap_paragraph(f"- `{summary.method}`: {listed or 'none'}"))
    return lines


def result_parts(path: Path, names: Sequence[str]) -> list[str]:
    """Return the results as Markdown: unmet requirements, one section per variant, then the ratios of each network."""
    records = read(path)
    unmet = [f"- {sentence}" for sentence in unmet_requirements(records, names)]
    parts = ["## Unmet requirements\n", "\n".join(unmet) if unmet else "None. The requirement is met.", ""]
    wide = [network for network in NETWORKS if network not in REQUIRED]
    for rows in ROWS:
        for networks, title in ((REQUIRED, f"Repaired with {rows}"), (wide, f"Repaired with {rows}: wide network")):
            of_variant = summaries(records, names, networks, rows)
            if not of_variant:
                continue
            parts += [f"## {title}\n", table(HEADER, [summary.cells() for summary in of_variant])]
            parts += [f"Shifts with a ratio above {MAX_RATIO:g}, with the largest ratio:\n"]
            parts += ["\n".join(shifts_above(records, names, networks, rows)), ""]
    return [*parts, *_each_network(records, names)]


def _each_network(records: dict[Key, Record], names: Sequence[str]) -> list[str]:
    rows = []
    for name in names:
        for network in NETWORKS:
            kept = [records.get((name, network, variant, method)) for variant in ROWS for method in METHODS]
            first = next((record for record in kept if record), None)
            if first is None:
                continue
            ratios = [f"{r['ratio']:.3f}" if r and r["ratio"] is not None else "" for r in kept]
            trained = [f"{first['home_before']:.3f}", f"{first['trained']:.3f}"]
            rows.append([name, network, *trained, *ratios])
    methods = [f"{method}, {variant.split()[0]}" for variant in ROWS for method in METHODS]
    header = ["set", "network", "trained: source", "trained: target", *methods]
    return ["## Ratios of each network\n", table(header, rows)] if rows else []


def print_tables(path: Path, names: Sequence[str]) -> None:
    """Print the unmet requirements and the tables."""
    print("\n".join(result_parts(path, names)))


def write_page(path: Path, names: Sequence[str]) -> None:
    """Write the page."""
    records = [r for r in read(path).values() if r["set"] in names]
    home = [r["home_before"] for r in records]
    intro = INTRO.format(
        method=REQUIRED_METHOD, networks=len(REQUIRED), sets=len(names), mean=MAX_MEAN, worst=MAX_RATIO
    )
    setting = SETTING.format(
        n=choice.FEWEST_SOURCE_ROWS, m=choice.FEWEST_TARGET_ROWS, d=choice.FEWEST_COLUMNS, sets=len(names),
        networks=f"Small: {'; '.join(REQUIRED)}. Wide: {'; '.join(n for n in NETWORKS if n not in REQUIRED)}",
        patience=PATIENCE, home=median(home), best=min(home), worst=max(home),
    )  # fmt: skip
    page = "\n".join([wrap(intro), *result_parts(path, names), wrap(setting), *_sets(records, names)])
    PAGE.write_text(page.rstrip() + "\n", encoding="utf-8")
    print(f"wrote {PAGE}")


def _sets(records: list[Record], names: Sequence[str]) -> list[str]:
    rows = []
    for name in names:
        by_rows = {record["rows"]: record for record in records if record["set"] == name}
        if not by_rows:
            continue
        sizes = [str(by_rows[variant]["n"]) if variant in by_rows else "" for variant in ROWS]
        any_record = next(iter(by_rows.values()))
        shift = REGISTER[name]
        rows.append([name, shift.y, shift.rule, *sizes, any_record["m"], any_record["d"]])
    return ["## Data sets\n", table(["set", "y", "source → target", *ROWS, "target rows", "columns"], rows)]
