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
from benchmarks.report import table
from benchmarks.shifts.sets import REGISTER

PAGE = Path(__file__).parents[2] / "docs" / "networks-evidence.md"
JUDGED = "bayes"
"""The method to which the requirement applies."""
HIGHEST_MEAN = 1.005
HIGHEST_RATIO = 1.03
LOWER = 0.995
UNCHANGED = 1e-6
"""A ratio that differs from one by less than this is counted as an unchanged network."""

INTRO = """# Networks: evidence

This page shows whether `pyspar.nn.adapt_head` helps or harms networks that are already well trained. Each number is
the target RMSE of the repaired network divided by the target RMSE of the trained network. **Below one, the repair
helps; above one, it harms.** No method uses a label of the target.

The requirement for `method="{judged}"` with {networks} small networks on each of {sets} real shifts: a geometric mean
of at most {mean}, and no single ratio above {worst}.

"""

SETTING = """## How it was measured

**Data.** The data sets come from the part `last` of the [evidence on linear models](evidence.md). The rule uses no
result: at least {n:,} source rows, {m} target rows and {d} columns; all {sets} sets that qualify. Variants of the
repair were compared on the first 12 in the order of the SHA-256 hash of the name, and made no difference there; the
others were run once, with the final rule. Columns are standardised by the source.

**Networks.** {networks}. Every head has a bias. 70 % of the source rows train the network, 20 % decide when to stop,
and 10 % are held out. Labels are standardised by the training rows. Adam minimises the squared error until the
validation error has not improved for {patience} epochs, and the best epoch is restored. There is one seed per network.
On the held-out source rows the trained networks have a median RMSE of {home:.2f} standard deviations of the labels
({best:.2f} to {worst:.2f}). A value near one means that the network predicts little more than the mean. Such networks
are kept, because the rule uses no result.

**Repairs.** `adapt_head(model, source_loader, target_loader, method=...)` with its other defaults. The source loader
has the training rows in the first variant and the validation rows in the second. "Unchanged" in the tables counts the
networks whose target RMSE is the same to six digits. A method that never changes a head would meet the requirement, so
read the other columns together with this one. "Source" is the RMSE on the held-out source rows after the repair divided
by that before it, as a geometric mean. "Seconds" is the median time of a repair on one thread.

**Records.** `benchmarks/results/networks.jsonl`, written by `make networks`. Trained networks are cached.
`python -m benchmarks.networks --again bayes` scores one method again and rewrites this page.
"""

HEADER = [
    "method", "networks", "geometric mean", "worst", f"above {HIGHEST_MEAN:g}", f"above {HIGHEST_RATIO:g}",
    f"below {LOWER:g}", "unchanged", "source", "seconds",
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
        above, far_above = (sum(r > limit for r in self.ratios) for limit in (HIGHEST_MEAN, HIGHEST_RATIO))
        source = geometric_mean(r["home_after"] / r["home_before"] for r in self.records)
        seconds = median(r["seconds"] for r in self.records)
        below, unchanged = sum(r < LOWER for r in self.ratios), sum(abs(r - 1.0) < UNCHANGED for r in self.ratios)
        mean, worst, source_cell = (f"{value:.3f}" for value in (self.geometric_mean, self.worst, source))
        counts = [above, far_above, below, unchanged]
        return [self.method, len(self.records), mean, worst, *counts, source_cell, f"{seconds:.2f}"]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def summaries(records: dict[Key, Record], names: Sequence[str], networks: Sequence[str], rows: str) -> list[Summary]:
    """Return a summary for each method that has records; repairs that failed are left out."""
    found = []
    for method in METHODS:
        keys = [(name, network, rows, method) for name in names for network in networks]
        kept = [records[key] for key in keys if key in records and records[key]["ratio"] is not None]
        if kept:
            found.append(Summary(method, kept))
    return found


def fell_short(records: dict[Key, Record], names: Sequence[str]) -> list[str]:
    """Return one sentence for each part of the requirement that is not met, and for each kind of failure."""
    said = []
    for rows in ROWS:
        for one in summaries(records, names, REQUIRED, rows):
            if one.method != JUDGED:
                continue
            if one.geometric_mean > HIGHEST_MEAN:
                said.append(f"Refitted on {rows}, the geometric mean is {one.geometric_mean:.4f}.")
            if high := [r for r in one.records if r["ratio"] > HIGHEST_RATIO]:
                high.sort(key=lambda r: -r["ratio"])
                listed = ", ".join(f"{r['set']} ({r['network']}) {r['ratio']:.3f}" for r in high)
                count = f"{len(high)} of {len(one.records)}"
                said.append(f"Refitted on {rows}, ratios above {HIGHEST_RATIO:g} ({count}): {listed}.")
    expected = [(name, network, rows) for name in names for network in NETWORKS for rows in ROWS]
    for method in METHODS:
        absent = sum((*key, method) not in records for key in expected)
        failed = [r for key in expected if (r := records.get((*key, method))) and r["ratio"] is None]
        if absent:
            said.append(f"`{method}` has no record of {absent} repairs.")
        if failed:
            said.append(f"`{method}` failed on {len(failed)} networks: {failed[0]['note']}.")
    return said


def shifts_above(records: dict[Key, Record], names: Sequence[str], networks: Sequence[str], rows: str) -> list[str]:
    """Return a line for each method with the shifts on which a ratio is above the limit, and the largest ratio."""
    lines = []
    for one in summaries(records, names, networks, rows):
        worst: dict[str, float] = {}
        for record in one.records:
            worst[record["set"]] = max(record["ratio"], worst.get(record["set"], 0.0))
        high = sorted(((ratio, name) for name, ratio in worst.items() if ratio > HIGHEST_RATIO), reverse=True)
        listed = ", ".join(f"{name} {ratio:.3f}" for ratio, name in high)
        lines.append(f"- `{one.method}`: {listed or 'none'}")
    return lines


def result_parts(path: Path, names: Sequence[str]) -> list[str]:
    """Return the tables as Markdown: what fell short, one section per variant, then the ratios of each network."""
    records = read(path)
    short = [f"- {sentence}" for sentence in fell_short(records, names)]
    parts = ["## What fell short\n", "\n".join(short) if short else "Nothing: the requirement is met.", ""]
    wide = [network for network in NETWORKS if network not in REQUIRED]
    for rows in ROWS:
        for networks, title in ((REQUIRED, f"Refitted on {rows}"), (wide, f"Refitted on {rows}: wide network")):
            found = summaries(records, names, networks, rows)
            if not found:
                continue
            parts += [f"## {title}\n", table(HEADER, [one.cells() for one in found])]
            parts += [f"Shifts with a ratio above {HIGHEST_RATIO:g}, with the largest ratio:\n"]
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
    return ["## Each network\n", table(header, rows)] if rows else []


def print_tables(path: Path, names: Sequence[str]) -> None:
    """Print what fell short and the tables."""
    print("\n".join(result_parts(path, names)))


def write_page(path: Path, names: Sequence[str]) -> None:
    """Write the page."""
    records = [r for r in read(path).values() if r["set"] in names]
    home = [r["home_before"] for r in records]
    intro = INTRO.format(judged=JUDGED, networks=len(REQUIRED), sets=len(names), mean=HIGHEST_MEAN, worst=HIGHEST_RATIO)
    setting = SETTING.format(
        n=choice.FEWEST_SOURCE_ROWS, m=choice.FEWEST_TARGET_ROWS, d=choice.FEWEST_COLUMNS, sets=len(names),
        networks=f"Small: {'; '.join(REQUIRED)}. Wide: {'; '.join(n for n in NETWORKS if n not in REQUIRED)}",
        patience=PATIENCE, home=median(home), best=min(home), worst=max(home),
    )  # fmt: skip
    page = "\n".join([intro + "\n".join(result_parts(path, names)), setting, *_sets(records, names)])
    PAGE.write_text(page.rstrip() + "\n", encoding="utf-8")
    print(f"wrote {PAGE}")


def _sets(records: list[Record], names: Sequence[str]) -> list[str]:
    rows = []
    for name in names:
        of_set = {record["rows"]: record for record in records if record["set"] == name}
        if not of_set:
            continue
        sizes = [str(of_set[variant]["n"]) if variant in of_set else "" for variant in ROWS]
        any_record = next(iter(of_set.values()))
        shift = REGISTER[name]
        rows.append([name, shift.y, shift.rule, *sizes, any_record["m"], any_record["d"]])
    return ["## The sets\n", table(["set", "y", "source → target", *ROWS, "target rows", "columns"], rows)]
