"""Write the tables of ``docs/labels.md`` and the figure. All numbers come from the records."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.labels.bases import BASES, NETWORK, OURS
from benchmarks.labels.methods import CORRECTION, HEAD_CORRECTION, METHODS
from benchmarks.labels.peers import PEERS
from benchmarks.labels.run import CHOOSE_ROWS, FAST_BASES, LABELS, PEER_RECORDS, RECORDS, Key, Record, read
from benchmarks.report import table
from benchmarks.shifts.sets import BLIND, CHECK, EVIDENCE_PARTS, FINAL, NEW, NEWEST, RESERVE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "labels.md"
FIGURE = DOCS / "figures" / "labels.png"

PART_ORDER = (*EVIDENCE_PARTS, NEW, NEWEST, FINAL, RESERVE, CHECK, BLIND)
HELD_OUT = (RESERVE, CHECK)
"""Parts that were not used to choose between variants; results of an earlier version on them were known."""
SHOWN = (OURS, "HistGradientBoosting")
"""The models of the table of parts, and of the tables of the part ``blind``."""

HARM = 1.05
"""The ratio above which a set is counted as harmed."""

LARGE = 100
"""The worst ratio is shown as "> 100" if it is at least this large."""

Groups = dict[tuple[str, str, int], list[Record]]
"""Records by model, method and number of labels."""


@dataclass(frozen=True)
class Summary:
    """The ratios of a method's error to the error without labels, one per data set."""

    sets: int
    geometric_mean: float
    low: float
    median: float
    high: float
    worst: float

    @classmethod
    def of(cls, ratios: Iterable[float]) -> Summary:
        """Summarise ratios; ``low`` and ``high`` contain the middle 80 % of the sets."""
        values = np.array(list(ratios))
        if not len(values):
            return cls(0, *(math.nan,) * 5)
        low, median, high = np.quantile(values, [0.1, 0.5, 0.9])
        mean = float(np.exp(np.log(values).mean()))
        return cls(len(values), mean, float(low), float(median), float(high), float(values.max()))

    def __str__(self) -> str:
        worst = f"{self.worst:.2f}" if self.worst < LARGE else f"> {LARGE}"
        return f"{self.geometric_mean:.3f} ({worst})" if self.sets else "-"


def ratio(record: Record) -> float:
    """Return the mean RMSE over the draws divided by the mean RMSE of the model without labels, on the same rows."""
    return float(np.mean(record["rmse"]) / np.mean(record["without"]))


def list_draws(records: Iterable[Record]) -> np.ndarray:
    """Return the ratio of each single draw of the labelled rows."""
    return np.array([rmse / without for r in records for rmse, without in zip(r["rmse"], r["without"], strict=True)])


def is_harmed(record: Record) -> bool:
    return ratio(record) > HARM


def group(records: Iterable[Record]) -> Groups:
    """Return the records by model, method and number of labels."""
    found: Groups = {}
    for record in records:
        found.setdefault((record["base"], record["method"], record["n"]), []).append(record)
    return found


def split_records(records: dict[Key, Record]) -> tuple[Groups, Groups, Groups]:
    """Return the records of the parts that were held out, of the part ``blind``, and of the design data."""
    design = {r["part"] for r in records.values()} - {*HELD_OUT, BLIND}
    held_out, blind, others = (
        group(r for r in records.values() if r["part"] in parts) for parts in (HELD_OUT, (BLIND,), design)
    )
    return held_out, blind, others


def summarise(records: Groups, base: str, method: str, n: int) -> Summary:
    return Summary.of(ratio(r) for r in records.get((base, method, n), ()))


def compare_methods(records: Groups, n: int) -> str:
    """Return a table of methods by models for one number of labels."""
    names = [m for m in (*METHODS, *PEERS) if any((base, m, n) in records for base in BASES)]
    rows = [[m, *(str(summarise(records, base, m, n)) for base in BASES)] for m in names]
    return table([f"{n} labels", *BASES], rows)


def compare_numbers(records: Groups) -> str:
    """Return a table of models by numbers of labels, for the correction: geometric mean, median and worst."""
    rows = []
    for n in LABELS:
        found = [summarise(records, base, CORRECTION, n) for base in BASES]
        cells = [f"{s.geometric_mean:.3f}, {s.median:.3f} ({s.worst:.2f})" if s.sets else "-" for s in found]
        rows.append([str(n), str(max(s.sets for s in found)), *cells])
    return table(["labels", "sets", *BASES], rows)


def compare_curves(records: Groups, base: str) -> str:
    """Return a table of the methods that were run for all numbers of labels, around one model."""
    names = [m for m in (*METHODS, *PEERS) if (base, m, 5) in records]
    rows = [[m, *(str(summarise(records, base, m, n)) for n in LABELS)] for m in names]
    return table([f"around {base}", *(f"{n} labels" for n in LABELS)], rows)


def list_harm(records: Groups) -> str:
    """Return a table of the number of sets on which the correction increases the error, and the worst sets."""
    rows = []
    for base in BASES:
        for n in (10, 30):
            ratios = sorted(((ratio(r), r["set"]) for r in records.get((base, CORRECTION, n), ())), reverse=True)
            above = [sum(q > 1.0 for q, _ in ratios), sum(map(is_harmed, records.get((base, CORRECTION, n), ())))]
            worst = ", ".join(f"{name} {q:.2f}" for q, name in ratios[:3])
            draws = list_draws(records.get((base, CORRECTION, n), ()))
            shares = [f"{np.mean(draws > limit):.0%}" if len(draws) else "-" for limit in (1.0, HARM)]
            rows.append([base, n, len(ratios), *above, worst, *shares, f"{max(draws, default=math.nan):.2f}"])
    header = ["model", "labels", "sets", "above 1", f"above {HARM}", "worst three"]
    return table([*header, "draws above 1", f"draws above {HARM}", "worst draw"], rows)


def compare_rows(records: Groups) -> str:
    """Return a table of ways to choose the labelled rows: mean ratios, and how often a way is better than random."""
    rows = []
    for method in (CORRECTION, *CHOOSE_ROWS):
        cells = []
        for n in (10, 30):
            for base in FAST_BASES:
                random, chosen = (
                    {r["set"]: ratio(r) for r in records.get((base, m, n), ())} for m in (CORRECTION, method)
                )
                both = sorted(random.keys() & chosen.keys())
                better = f" ({np.mean([chosen[s] < random[s] for s in both]):.0%})" if method != CORRECTION else ""
                cells.append(f"{Summary.of(chosen[s] for s in both).geometric_mean:.3f}{better}" if both else "-")
        rows.append([method.removeprefix(f"{CORRECTION}, rows by ").replace(CORRECTION, "random"), *cells])
    return table(["rows", *(f"{n} labels, {base}" for n in (10, 30) for base in FAST_BASES)], rows)


def compare_coverage(records: Groups, bases: Iterable[str] = BASES) -> str:
    """Return a table of the shares of rows inside their 90 % interval, with ten and with 30 labels."""
    rows = []
    for base in bases:
        for n in (10, 30):
            found = [r for r in records.get((base, CORRECTION, n), ()) if r["coverage"]]
            if found:
                shares = np.array([np.mean(r["coverage"]) for r in found])
                low, high = np.quantile(shares, [0.1, 0.9])
                rows.append([base, n, len(shares), f"{shares.mean():.3f}", f"{low:.2f} to {high:.2f}"])
    return table(["model", "labels", "sets", "rows inside", "middle 80 % of the sets"], rows)


def tables(records: dict[Key, Record]) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    held_out, blind, design = split_records(records)
    found: dict[str, str] = {}
    for n in (10, 30):
        found[f"methods-{n}"] = compare_methods(held_out, n)
        found[f"design-{n}"] = compare_methods(design, n)
    for base in ("HistGradientBoosting", OURS, NETWORK):
        found[f"curves-{base}"] = compare_curves(held_out, base)
    for base in SHOWN:
        found[f"blind-{base}"] = compare_curves(blind, base)
    return found | {
        "blind-numbers": compare_numbers(blind),
        "blind-coverage": compare_coverage(blind, SHOWN),
        "harm": list_harm(held_out),
        "numbers": compare_numbers(held_out),
        "rows": compare_rows(held_out),
        "coverage": compare_coverage(held_out),
        "parts": compare_parts(records),
    }


def compare_parts(records: dict[Key, Record]) -> str:
    """Return a table of the correction in each part: the number of sets, and mean and worst ratios."""
    rows = []
    for part in dict.fromkeys(sorted((r["part"] for r in records.values()), key=PART_ORDER.index)):
        found = group(r for r in records.values() if r["part"] == part)
        cells = [summarise(found, base, CORRECTION, n) for base in SHOWN for n in (10, 30)]
        rows.append([part, max(cell.sets for cell in cells), *map(str, cells)])
    return table(["part", "sets", *(f"{base}, {n} labels" for base in SHOWN for n in (10, 30))], rows)


def write_page() -> None:
    """Replace the tables of the page, which are enclosed in comments, and draw the figure."""
    records = read(RECORDS, PEER_RECORDS)
    text = PAGE.read_text(encoding="utf-8")
    for name, content in tables(records).items():
        text, count = re.subn(
            rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", rf"\g<1>{content}\g<2>", text, flags=re.DOTALL
        )
        if not count:
            raise SystemExit(f"no place for the table {name!r} in {PAGE}; add <!-- table: {name} --> and <!-- end -->")
    PAGE.write_text(text, encoding="utf-8")
    draw_figure(split_records(records)[0], FIGURE)
    print(f"wrote {PAGE} and {FIGURE}")


HEAD_TITLE = ", head's features"
CURVES = {
    CORRECTION: ("#0b5394", "-", 2.4),
    "line": ("#cc6600", "--", 1.4),
    "offset": ("#888888", "--", 1.4),
    "target-only ridge": ("#38761d", ":", 1.6),
}


def draw_figure(records: Groups, path: Path) -> None:
    """Draw the error against the number of labels: median of the sets and, for the correction, the middle 80 %."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = [b for b in ("HistGradientBoosting", OURS, NETWORK) if any(b == base for base, _, _ in records)]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.7 * len(shown), 3.9), sharey=True, layout="constrained")
    for axis, base in zip(np.atleast_1d(axes), shown, strict=True):
        _draw_model(axis, records, base)
    first: Any = np.atleast_1d(axes)[0]
    first.set_ylabel("error relative to the model without labels")
    handles, names = first.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=9)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _draw_model(axis: Any, records: Groups, base: str) -> None:
    """Draw the curves of one model. More labels than all sets have are drawn apart, because fewer sets are left."""
    has_head = base == NETWORK and (base, HEAD_CORRECTION, 10) in records
    for method, (colour, style, width) in CURVES.items():
        name = HEAD_CORRECTION if has_head and method == CORRECTION else method
        points = [(n, s) for n in LABELS if (s := summarise(records, base, name, n)).sets]
        most = max((s.sets for _, s in points), default=0)
        joined = [(n, s) for n, s in points if s.sets == most]
        apart = [(n, s) for n, s in points if s.sets < most]
        numbers, medians = [n for n, _ in joined], [s.median for _, s in joined]
        axis.plot(numbers, medians, style, color=colour, lw=width, label=method, marker="o", ms=3)
        for n, s in apart:
            axis.plot(n, s.median, "o", color=colour, mfc="white", ms=5, zorder=3)
        if method == CORRECTION:
            band = ([s.low for _, s in joined], [s.high for _, s in joined])
            axis.fill_between(numbers, *band, color=colour, alpha=0.15, lw=0, label="80 % of the data sets")
            for n, s in apart:
                axis.plot([n, n], [s.low, s.high], color=colour, alpha=0.25, lw=6, solid_capstyle="butt", zorder=1)
    axis.axhline(1.0, color="black", lw=0.8)
    axis.set_xscale("log")
    axis.set_xticks(LABELS, [str(n) for n in LABELS])
    axis.minorticks_off()
    axis.set_xlabel("labels of the target")
    axis.set_title(f"around {base}{HEAD_TITLE if has_head else ''}", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
