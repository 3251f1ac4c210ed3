"""Print the tables and write ``docs/evidence.md`` and ``docs/evidence-sets.md``. All numbers come from the records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.measure import print_table
from benchmarks.report import table, wrap
from benchmarks.shifts.calibration import Calibration
from benchmarks.shifts.features import MAPS
from benchmarks.shifts.methods import METHODS, ONLY_ON, OURS, REFERENCE, TREES
from benchmarks.shifts.peers import PEERS
from benchmarks.shifts.records import NEW_PART, RESULTS, Key, Record, ratio, read
from benchmarks.shifts.sets import BLIND, CHECK, EVIDENCE_PARTS, FINAL, NEW, NEWEST, REGISTER, RESERVE, UNSEEN
from benchmarks.shifts.tables import TAIL, Duel, Summary, against_raw, figure, in_tail, same_features, task_names
from benchmarks.shifts.text import (
    ABSOLUTE,
    FEATURES,
    FORECAST,
    HEAD_TO_HEAD,
    INTRO,
    OPENING,
    PARTS,
    PEERS_INTRO,
    SETS,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "evidence.md"
SETS_PAGE = DOCS / "evidence-sets.md"
FORECASTS = RESULTS / "trust.jsonl"

LAST = "last"
RIVALS = (REFERENCE, "LassoCV", "ElasticNetCV", "BayesianRidge", *TREES)
MANY_ROWS = 2000
"""Source rows from which a set counts as large."""

SAME_FEATURES = ["method", "geometric mean", "median", f"above {TAIL:.2f}", "worst"]

Records = dict[Key, Record]


def print_tables(paths: Sequence[Path], part: str | None = None) -> None:
    """Print the ratios on the same features, for each part and for all, or for one part."""
    records = read(*paths)
    for name in (part,) if part else (*EVIDENCE_PARTS, None):
        tasks = task_names(records, name)
        found = {m: same_features(records, m, tasks) for m in (*METHODS, *PEERS)}
        rows = [[_name(m, s), *_cells(s), s.recorded] for m, s in found.items() if s.recorded]
        if rows:
            title = f"{name or 'all'}: {len(tasks)} tasks, target RMSE relative to RidgeCV on the same features"
            print_table(title, [*SAME_FEATURES, "tasks"], rows)


def write_page(paths: Sequence[Path]) -> None:
    """Write both pages. The recommended method and the reference must have records."""
    records = read(*paths)
    if not any(method == OURS for _, method in records):
        raise SystemExit(f"no records of {OURS!r} in {', '.join(map(str, paths))}; the page needs them")
    sections = (opening, same_features_section, absolute, parts, head_to_head, peers, forecasts, choice)
    PAGE.write_text("\n".join(part for section in sections for part in section(records)), encoding="utf-8")
    SETS_PAGE.write_text(sets_page(records), encoding="utf-8")
    print(f"\nwrote {PAGE} and {SETS_PAGE}")


def opening(records: Records) -> list[str]:
    """Write the first paragraph and how to read the numbers."""
    tasks = task_names(records)
    ours, last = same_features(records, OURS, tasks), same_features(records, OURS, task_names(records, LAST))
    duel = Duel.of(records, task_names(records, LAST, "raw"), OURS, REFERENCE)
    maps = {m: same_features(records, OURS, task_names(records, feature_map=m)) for m in MAPS}
    on_raw = {m: against_raw(records, OURS, m) for m in MAPS}
    expanded = [on_raw[m].geometric_mean for m in MAPS if m != "raw"]
    trees, trees_last = ([against_raw(records, m, "raw", part) for m in TREES] for part in (None, LAST))
    text = OPENING.format(
        sets=len({records[t, REFERENCE]["set"] for t in tasks}),
        tasks=len(tasks),
        raw=figure(maps["raw"].geometric_mean),
        raw_median=figure(maps["raw"].median),
        raw_last=figure(duel.geometric_mean),
        raw_low=figure(duel.low),
        raw_high=figure(duel.high),
        raw_below=maps["raw"].below,
        raw_above=maps["raw"].above,
        raw_tasks=maps["raw"].answered,
        level="more accurate than" if duel.high < 1.0 else "less accurate than" if duel.low > 1.0 else "as accurate as",
        poly2=figure(maps["poly2"].geometric_mean),
        fourier=figure(maps["fourier"].geometric_mean),
        expanding="does not reduce the error" if min(expanded) >= 1.0 else "changes the error",
        poly2_raw=figure(on_raw["poly2"].geometric_mean),
        fourier_raw=figure(on_raw["fourier"].geometric_mean),
        trees=" and ".join(TREES),
        trees_mean=" and ".join(figure(s.geometric_mean) for s in trees),
        trees_last=" and ".join(figure(s.geometric_mean) for s in trees_last),
        trees_worst=" and ".join(figure(s.worst) for s in trees),
        above=ours.above,
        answered=ours.answered,
        worst=figure(ours.worst),
        last_above=last.above,
        last_tasks=last.answered,
        mean=figure(ours.geometric_mean),
        median=figure(ours.median),
        last_mean=figure(last.geometric_mean),
        below=ours.below,
        between=ours.answered - ours.below - ours.above,
        tail=f"{TAIL:.2f}",
    )
    return [wrap(text), INTRO]


def same_features_section(records: Records) -> list[str]:
    """Write Table 1 and the list of tasks in the tail."""
    groups = [task_names(records), task_names(records, LAST)]
    rows = []
    for method in (m for m in METHODS if m not in ONLY_ON):
        whole, last = (same_features(records, method, tasks) for tasks in groups)
        if whole.recorded:
            rows.append([_name(method, whole), *_cells(whole), *_cells(last)])
    header = ["method", *(f"{group}: {s}" for group in ("all", LAST) for s in SAME_FEATURES[1:])]
    tail = in_tail(records, groups[0])
    listed = [[r["set"], r["map"], r["part"], f"{r['n']} x {r['d']}", figure(q)] for q, r in tail]
    of_map = ", ".join(f"{sum(r['map'] == m for _, r in tail)} on `{m}`" for m in MAPS)
    return [
        f"## Table 1: ratio to RidgeCV on the same features ({len(groups[0])} tasks; `last`: {len(groups[1])})\n",
        table(header, rows),
        f"The ratio of `{OURS}` exceeds {TAIL:.2f} on {len(tail)} of {len(groups[0])} tasks ({of_map}):\n",
        table(["set", "map", "part", "source rows x columns", "ratio"], listed) if listed else "",
    ]


def absolute(records: Records) -> list[str]:
    """Write Table 2: every method and map against the reference on raw columns."""
    rows = []
    for method in METHODS:
        summaries = [against_raw(records, method, m, part) for part in (None, LAST) for m in MAPS]
        if any(s.recorded for s in summaries):
            rows.append([method, *(_mean_worst(s) for s in summaries)])
    header = ["method", *(f"{group}: {m}" for group in ("all", LAST) for m in MAPS)]
    whole, last = (task_names(records, part, "raw") for part in (None, LAST))
    large = [t for t in whole if records[t, REFERENCE]["n"] >= MANY_ROWS]
    text = ABSOLUTE.format(
        rows=round(median(records[t, REFERENCE]["n"] for t in whole)),
        large=len(large),
        many=MANY_ROWS,
        trees=" and ".join(TREES),
        trees_large=" and ".join(figure(same_features(records, m, large).geometric_mean) for m in TREES),
        worst=" and ".join(dict.fromkeys(_worst_set(records, m) for m in TREES)),
    )
    title = (
        f"## Table 2: ratio to RidgeCV on the raw columns of the same set ({len(whole)} sets; `last`: {len(last)})\n"
    )
    return [title, wrap(text), table(header, rows)]


def parts(records: Records) -> list[str]:
    """Write the table of the recommended method by part and map."""
    rows = []
    for part in (*EVIDENCE_PARTS, None):
        tasks = task_names(records, part)
        whole = same_features(records, OURS, tasks)
        if whole.recorded:
            of_map = (same_features(records, OURS, task_names(records, part, m)) for m in MAPS)
            rows.append([part or "all", len(tasks), *map(_mean_worst, of_map), _mean_worst(whole), whole.above])
    header = ["part", "tasks", *MAPS, "all maps", f"above {TAIL:.2f}"]
    title = f"## `{OURS}` by part and feature map\n"
    return [title, "Ratio to RidgeCV on the same features: geometric mean (worst).\n", table(header, rows)]


def head_to_head(records: Records) -> list[str]:
    """Write the comparison by sets with standard errors."""
    rows = []
    for other in RIVALS:
        duels = [Duel.of(records, task_names(records, part), OURS, other) for part in (None, LAST)]
        if duels[0].sets:
            cells = ((_between(d), f"{d.better} of {d.sets}") for d in duels)
            rows.append([other, *(cell for pair in cells for cell in pair)])
    header = ["against", "all: ratio", "all: sets better", f"{LAST}: ratio", f"{LAST}: sets better"]
    return ["## Head to head by sets\n", HEAD_TO_HEAD, table(header, rows)]


def peers(records: Records) -> list[str]:
    """Write the table of other libraries' methods, each next to ours on the same tasks."""
    rows = []
    for method in PEERS:
        tasks = [t for t in task_names(records) if (t, method) in records]
        summary = same_features(records, method, tasks)
        if summary.recorded:
            answered = [t for t in tasks if records[t, method]["rmse"] is not None]
            ours = same_features(records, OURS, answered)
            counts = [summary.answered, summary.recorded - summary.answered]
            rows.append([method, *counts, *_cells(summary), figure(ours.geometric_mean), ours.above])
    if not rows:
        return []
    header = ["method", "tasks", "no result", *SAME_FEATURES[1:], f"{OURS}: mean", f"{OURS}: above {TAIL:.2f}"]
    return ["## Other libraries\n", PEERS_INTRO, table(header, rows)]


def forecasts(records: Records) -> list[str]:
    """Write how often the 95 % interval that assumes a linear relation held."""
    rows = []
    for method in METHODS:
        whole, last = (Calibration.of(records, method, part) for part in (None, LAST))
        if whole.tasks:
            spread = f"{figure(whole.median)} ({figure(whole.low)} to {figure(whole.high)})"
            rows.append([method, whole.tasks, f"{whole.covered:.0%}", _percent(last), spread])
    if not rows:
        return []
    header = ["method", "tasks", "all: covered", f"{LAST}: covered", "actual / expected: median (95 % of tasks)"]
    return ["## Forecasts of the error\n", FORECAST, table(header, rows)]


def choice(records: Records) -> list[str]:
    """Write how the sets were chosen and the use of each part."""
    counts = Counter(shift.part for shift in REGISTER.values())
    rows = [[part, counts[part], PARTS[part]] for part in EVIDENCE_PARTS]
    return ["## Data sets, parts and feature maps\n", SETS, table(["part", "sets", "use"], rows), FEATURES]


def sets_page(records: Records) -> str:
    """Return the list of the data sets as a page."""
    of_all = [*_shift_records_of_forecasts(), *read(NEW_PART).values(), *records.values()]
    sizes = {r["set"]: r for r in of_all if r["map"] == "raw" and "n" in r}
    rows = []
    for name, shift in sorted(REGISTER.items()):
        size = f"{s['n']} → {s['m']}, {s['d']}" if (s := sizes.get(name)) else ""
        rows.append([name, shift.part, shift.y, shift.rule, size, f"{shift.origin}; {shift.licence}"])
    header = ["set", "part", "label", "source → target", "rows, columns", "origin; licence"]
    intro = (
        f"These are the {len(rows)} data sets of the evidence. Those of the parts `{NEW}`, `{NEWEST}`, `{FINAL}`, "
        f"`{RESERVE}`, `{CHECK}` and `{BLIND}` are not used in [the comparison without labels](evidence.md). "
        "[A few labels](labels.md#evidence) and "
        "[forecasts](forecasts.md#how-often-they-hold) describe how they were used. "
        f"The part `{UNSEEN}` is for [networks](networks-evidence.md), and no method has been evaluated on it yet. "
        "The numbers of rows are those of source and target after sampling. "
        "The number of columns is that of the `raw` feature map. `python -m benchmarks.shifts` writes this page."
    )
    return "\n".join(["# Data sets of the evidence\n", wrap(intro), table(header, rows)])


def _shift_records_of_forecasts() -> Iterator[Record]:
    """Yield the records of ``benchmarks.trust`` on the real shifts; they contain the sizes of all measured sets."""
    lines = FORECASTS.read_text(encoding="utf-8").splitlines() if FORECASTS.exists() else []
    yield from (r for r in map(json.loads, lines) if r["split"] == "shift")


def _cells(summary: Summary) -> list[str]:
    mean, median, worst = (figure(v) for v in (summary.geometric_mean, summary.median, summary.worst))
    return [mean, median, str(summary.above), worst]


def _name(method: str, summary: Summary) -> str:
    missing = summary.recorded - summary.answered
    return f"{method} ({missing} without a result)" if missing else method


def _mean_worst(summary: Summary) -> str:
    return f"{figure(summary.geometric_mean)} ({figure(summary.worst)})" if summary.answered else "-"


def _worst_set(records: Records, method: str) -> str:
    """Name the set with a method's largest ratio on raw columns, and the error of the reference on it."""
    tasks = [t for t in task_names(records, feature_map="raw") if (t, method) in records]
    task = max(tasks, key=lambda t: ratio(records[t, method], records) or 0.0, default=None)
    if task is None:
        return "-"
    best = records[task, REFERENCE]
    return f"`{best['set']}`, where the RMSE of RidgeCV is {figure(best['rmse'] / best['spread'])} label spreads"


def _between(duel: Duel) -> str:
    return f"{figure(duel.geometric_mean)} ({figure(duel.low)} to {figure(duel.high)})"


def _percent(calibration: Calibration) -> str:
    return f"{calibration.covered:.0%}" if calibration.tasks else "-"
