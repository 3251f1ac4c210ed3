"""Print the tables and write ``docs/evidence.md``: the page says nothing that is not in the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import show
from benchmarks.report import table
from benchmarks.shifts.calibration import Calibration, draw
from benchmarks.shifts.features import MAPS
from benchmarks.shifts.methods import OURS
from benchmarks.shifts.records import Key, Record, read
from benchmarks.shifts.sets import HALVES, REGISTER
from benchmarks.shifts.tables import (
    BY_SET,
    DUEL,
    HEADER,
    against_spar,
    by_set,
    cells,
    figure,
    head_to_head,
    summary,
    task_names,
    worst_tasks,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "evidence.md"
PLOT = DOCS / "figures" / "evidence.png"

INTRO = """# Evidence

How the methods do on real shifts: {sets} data sets that packages ship, each with a source and a target that differ by
time, place, kind or size, each with three feature maps, {tasks} tasks in all. The number is the RMSE on the target
divided by that of scikit-learn's RidgeCV (41 penalties from 1e-4 to 1e6, chosen by its leave-one-out): **below one is
better**. No method sees a label of the target. `BayesSpAR auto` is what `BayesSpARRegressor()` does; `c=0` is its ridge
before any adaptation, `c=1` and `chi2` are fixed rules. The three tasks of a set are not independent: the tables head
to head count sets, too; the lasso and the elastic net, which the tables show to be strong, stand there beside ridge.

Made by `python -m benchmarks.shifts` from the records in `benchmarks/results/shifts.jsonl` (`make evidence` fetches the
data and fills what is missing; other libraries' methods run in an environment of their own, `make evidence-peers`).

**Five parts, opened one after another.** Judge by the *last*: {last} sets, chosen by a written rule
(`benchmarks/shifts/sets/sealed.py`) with nothing fitted to them, and run once the method was fixed; nothing was
changed after that. The other four have all served to choose something. Of the first {first} sets, each belongs to the
*design* half or the *held-back* half by the parity of a hash of its name; several hundred settings were compared on
the design half, and about 140 more on both after the held-back half had shown a defect and a long tail ([decision
9](decisions/0009-after-the-held-back-half.md)). The *fresh* part, {fresh} sets, was then run and had a long tail,
too; some 300 settings later ([decision 11](decisions/0011-no-further-than-tested.md)) so was the *sealed* part,
{sealed} sets, which showed two crashes and where the tail was still too long ([decision
12](decisions/0012-plain-ridge-to-start-from.md)). What each part gave when it was opened stands in those decisions;
the tables below are all of the method as it is now.

**Features.** Numbers as they are, missing ones the source's median, a column per level of a category; at most 5,000
rows of each side. `raw`: standardised by the source. `poly2`: with squares and products, at most 800 columns.
`fourier`: 400 random cosines, their width the median distance in the source. The rules use the source alone.
"""

FORECAST = """## The error expected before any label

Each point is a task: across, the RMSE that was forecast for the target without a label of it, divided by the noise
measured on the source; up, what it was. The forecast (`expected_rmse`) holds if the model is linear and stays the same:
it sees *variance* that a shift inflates, not a world that changed. Points far above the line are such worlds; points
far below it are adapted weights that gave up directions of which the source knew little, and which did not matter.

![expected against actual RMSE](figures/evidence.png)
"""


# As on the page: the part that nobody had looked at comes first.
SECTIONS = {
    "last": "The last part",
    "sealed": "The sealed part",
    "fresh": "The fresh part",
    "held-back": "The held-back half",
    "design": "The design half",
    None: "All",
}


def print_tables(paths: Sequence[Path], half: str | None = None) -> None:
    """Print a table for each part and for all, or for one part alone."""
    records = read(*paths)
    for name, chosen in _groups(half):
        names = task_names(records, chosen)
        if not names:
            continue
        show(
            f"{name}: {len(names)} tasks, RMSE relative to RidgeCV", HEADER, [cells(r) for r in summary(records, names)]
        )
        worse, of = against_spar(records, names)
        if of:
            print(f"{OURS}: more than 2 % worse than SpAR 0.999 on {worse} of {of} tasks")
        show(f"{name}: geometric mean (worst) per feature map", ["method", *MAPS], _per_map(records, chosen))
    for found in _calibrations(records, half):
        print(f"\n{found.method}: {found}. Furthest off:")
        for record, expected, actual in found.surprises[:5]:
            print(f"  {record['task']:<28} expected {figure(expected):>6}  actual {figure(actual):>6}")


def write_page(paths: Sequence[Path]) -> None:
    """Write the page and its figure."""
    records = read(*paths)
    names = task_names(records)
    of_part = Counter(shift.half for shift in REGISTER.values())
    sets = len({name.split("/")[0] for name in names})
    first = of_part["design"] + of_part["held-back"]
    later = {part: of_part[part] for part in ("fresh", "sealed", "last")}
    parts = [INTRO.format(sets=sets, tasks=len(names), first=first, **later)]
    for half, name in SECTIONS.items():
        chosen = task_names(records, half)
        if not chosen:
            continue
        parts += [f"## {name}: {len(chosen)} tasks\n", table(HEADER, [cells(r) for r in summary(records, chosen)])]
        worse, of = against_spar(records, chosen)
        if of:
            parts.append(f"`{OURS}` is more than 2 % worse than SpAR 0.999 on {worse} of {of} tasks.\n")
        parts += ["Over sets, each the geometric mean of its tasks:\n", table(BY_SET, by_set(records, chosen))]
        parts += ["Geometric mean (worst) per feature map:\n", table(["method", *MAPS], _per_map(records, half))]
        parts += [f"`{OURS}` head to head, its RMSE over the other's:\n", table(DUEL, head_to_head(records, chosen))]
    parts += _failures(records, names) + _forecasts(records) + _sets(records)
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"\nwrote {PAGE} and {PLOT}")


def _groups(half: str | None) -> list[tuple[str, str | None]]:
    return [(half, half)] if half else [*((name, name) for name in HALVES), ("all", None)]


def _per_map(records: dict[Key, Record], half: str | None) -> list[list[str]]:
    columns = [{r.method: r for r in summary(records, task_names(records, half, m))} for m in MAPS]
    methods = dict.fromkeys(method for column in columns for method in column)
    return [
        [m, *(f"{figure(c[m].geometric_mean)} ({figure(c[m].worst)})" if m in c else "-" for c in columns)]
        for m in methods
    ]


def _failures(records: dict[Key, Record], names: list[str]) -> list[str]:
    """List the tasks where our method loses most, and the methods that gave no answer, with their reasons."""
    parts = []
    if lost := worst_tasks(records, names, OURS, 12):
        rows = [[r["task"], r["half"], f"{r['n']} x {r['d']}", figure(q)] for q, r in lost]
        parts += [f"## Where `{OURS}` loses to RidgeCV, worst first\n",
                  table(["task", "part", "source", "ratio"], rows)]  # fmt: skip
    silent: dict[tuple[str, str], int] = {}
    for (_, method), record in sorted(records.items()):
        if record["rmse"] is None:
            reason = record["note"].split("\n")[0][:70].replace("|", "/")
            silent[method, reason] = silent.get((method, reason), 0) + 1
    if silent:
        rows = [[method, f"`{reason}`", count] for (method, reason), count in sorted(silent.items())]
        parts += ["## No answer\n", table(["method", "why", "tasks"], rows)]
    return parts


def _forecasts(records: dict[Key, Record]) -> list[str]:
    found = _calibrations(records, None)
    if not found:
        return []
    PLOT.parent.mkdir(exist_ok=True)
    draw(found, PLOT)
    parts = [FORECAST]
    for one in found:
        parts.append(f"**{one.method}**: {one}. Furthest off:\n")
        rows = [[r["task"], figure(e), figure(a), figure(a / e)] for r, e, a in one.surprises[:8]]
        parts.append(table(["task", "expected / noise", "actual / noise", "factor"], rows))
    return parts


def _calibrations(records: dict[Key, Record], half: str | None) -> list[Calibration]:
    found = (Calibration.of(records, method, half) for method in ("OLS", OURS))
    return [c for c in found if len(c.records) > 2]


def _sets(records: dict[Key, Record]) -> list[str]:
    rows = []
    for name, shift in sorted(REGISTER.items()):
        sizes = next((r for r in records.values() if r["set"] == name and r["map"] == "raw" and "n" in r), None)
        size = f"{sizes['n']} → {sizes['m']}, {sizes['d']}" if sizes else ""
        rows.append([name, shift.half, shift.y, shift.rule, size, f"{shift.origin}; {shift.licence}"])
    header = ["set", "part", "y", "source → target", "rows, columns", "from; licence"]
    return ["## The sets\n", table(header, rows)]
