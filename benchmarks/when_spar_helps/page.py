"""Write ``docs/when-spar-helps.md`` and its figure from the records. Every number and every verdict is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.report import table, wrap, write_list
from benchmarks.shifts.sets import REGISTER
from benchmarks.when_spar_helps import run
from benchmarks.when_spar_helps.analysis import (
    CONFIDENCE,
    FACTORS,
    NAMES,
    Effect,
    conditions,
    format_p,
    judge_hypotheses,
    measure_effect,
    where,
)
from benchmarks.when_spar_helps.run import METHODS, ROWS, WIDTHS, Record

PAGE = Path(__file__).parents[2] / "docs" / "when-spar-helps.md"
FIGURE = "when-spar-helps.png"

INTRO = """# When does SpAR help a network?

SpAR replaces the linear head of a trained network. The new head helps some networks and harms others. This page
measures which networks it helps, in a factorial experiment with three factors: how long the network was trained, how
wide it is, and which labelled source rows are used to refit its head. `python -m benchmarks.when_spar_helps` repeats
the experiment and writes this page. Every number and every verdict on this page is computed from the records.

A ratio is the target RMSE with the new head divided by that of the trained head: **below one, the new head helps.**
Target labels are used only to compute this ratio. "Ours" is `method="bayes"` of `adapt_head`, whose prior is centred on
the trained head.
"""

SETTING = """## Setting

**Data.** {sets} real shifts: the first {shifts} sets of the [evidence on linear models](evidence.md) with {low:,} to
{high:,} source rows, at least {target} target rows and {columns} columns, in the order of the SHA-256 hash of their
names, and the paper's two tabular data sets. No result influenced the choice. The second test of the default method
was compared with alternatives on these networks ([decision 27](decisions/0027-the-refit-is-tested.md)), so the results
of this method are not independent of its design.

**Networks.** The paper's network for tables: two hidden layers of equal width with LeakyReLU, and a head without bias.
Columns and labels are standardised with the mean and spread of the training rows. The networks are trained on
{share:.0%} of the source rows with Adam (learning rate {rate:g}, batches of {batch}). The same number of other rows is
held out for the refit, so both kinds of refit use the same number of rows. The remaining rows are the validation rows
for early stopping. There are {seeds} seeds with different splits.

**Training.** Each network is trained for {long:,} steps. "Short" is the network after {short} steps, "stopped" the one
with the lowest validation error (checked every {check} steps), and "long" the one after the last step.

**Statistics.** Each data set counts once, with the mean of its log ratios over widths and seeds. Intervals of the
geometric mean are {confidence:.0%} intervals of Student's t over the {sets} sets. A few sets with ratios around two
widen them, so the verdicts "helps" and "harms" use the signed-rank test of Wilcoxon over the sets (p below
{level:.2f}). This test replaced the intervals after a first look at the records. The p-values are not corrected for
the number of comparisons.

**Limits.** The experiment covers networks on tables with at most {most} training rows, one architecture and one
optimiser, without weight decay.
"""


def write_page(records: Sequence[Record], page: Path = PAGE) -> None:
    """Write the page and draw its figure."""
    page.write_text(render_page(records), encoding="utf-8")
    figures = page.parent / "figures"
    figures.mkdir(exist_ok=True)
    draw_figure(records, figures / FIGURE)


def render_page(records: Sequence[Record]) -> str:
    """Return the text of the page."""
    sets = list(dict.fromkeys(r["set"] for r in records))
    setting = SETTING.format(
        sets=len(sets), shifts=run.N_SHIFTS, low=run.SOURCE_ROWS[0], high=run.SOURCE_ROWS[1],
        target=run.FEWEST_TARGET_ROWS, columns=run.FEWEST_COLUMNS, share=run.TRAIN_SHARE, rate=run.LEARNING_RATE,
        batch=run.BATCH, seeds=len({r["seed"] for r in records}), long=run.LONG_STEPS, short=run.SHORT_STEPS,
        check=run.CHECK_STEPS, confidence=CONFIDENCE, level=1 - CONFIDENCE, most=f"{max(r['n'] for r in records):,}",
    )  # fmt: skip
    parts = [
        wrap(INTRO),
        "## In short\n",
        write_list(answer_shortly(records)),
        "## Conditions\n",
        write_list(summarise(records)),
        "## Training and rows of the refit\n",
        table(["training", "rows", *(f"{NAMES[m]}: ratio" for m in METHODS), *(f"{NAMES[m]}" for m in METHODS)],
              _condition_rows(records)),
        "Ratios: median over the sets; geometric mean with its interval. The last three columns are the verdicts.\n",
        f"![Ratios of each data set by method and condition](figures/{FIGURE})\n",
        "## Main effects\n",
        table(["factor", "level", *(NAMES[m] for m in METHODS)], _main_effects(records)),
        "## Hypotheses\n",
        table(["stated", "hypothesis", "result", "verdict"],
              [[f.stated, f.hypothesis, f.result, f.decision] for f in judge_hypotheses(records)]),
        'Hypotheses marked "after" were stated after looking at the records. Only other data can confirm them.\n',
        "## Each data set\n",
        table(["set", "source → target", *(f"{t}, {r.split()[0]}" for t, r in conditions())], _set_rows(records, sets)),
        f"Geometric means over widths and seeds: SpAR / {NAMES['bayes']}.\n",
        wrap(setting),
    ]  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


def answer_shortly(records: Sequence[Record]) -> list[str]:
    """Return the answer in four sentences. A test compares their words with the effects."""

    def effect(method: str, **levels: object) -> Effect:
        return measure_effect(records, method, where(**levels))

    stopped, stopped_ours = (effect(m, training="stopped") for m in ("spar", "bayes"))
    fresh, fresh_ours = (effect(m, training="long", rows=ROWS[1]) for m in ("spar", "bayes"))
    seen, seen_ours = (effect(m, training="long", rows=ROWS[0]) for m in ("spar", "bayes"))
    wide = {m: measure_effect(records, m, where(width=WIDTHS[-1]), where(width=WIDTHS[0])) for m in METHODS}
    papers = effect("spar", training="stopped", rows=ROWS[0])
    worst = max(records, key=lambda r: r["bayes"])
    worst_stopped = max(filter(where(training="stopped"), records), key=lambda r: r["bayes"])
    return [
        f"**A network that was stopped early needs no new head.** SpAR makes {stopped.sets - stopped.better} of "
        f"{stopped.sets} shifts worse (median ratio {stopped.median:.2f}); ours changes little "
        f"({stopped_ours.median:.2f}). The paper's tables use early stopping and training rows. In this setting "
        f"the median ratio of SpAR is {papers.median:.2f}.",
        "**A network that was trained too long gains from a new head on held-out rows**: ours "
        f"{fresh_ours.median:.2f}, better on {fresh_ours.better} of {fresh_ours.sets} shifts; SpAR {fresh.median:.2f}, "
        f"better on {fresh.better}, p {format_p(fresh.p_value)}. With the training rows there is no gain "
        f"(ours {seen_ours.median:.2f}, SpAR {seen.median:.2f}).",
        f"**Wide layers need the default method.** From width {WIDTHS[0]} to {WIDTHS[-1]} the ratio of least "
        f"squares grows by a factor of {wide['ols'].median:.2f}, that of SpAR by {wide['spar'].median:.2f}, ours by "
        f"{wide['bayes'].median:.2f} (medians). At width {WIDTHS[-1]}, the ratio of ours is "
        f"{effect('bayes', width=WIDTHS[-1]).median:.2f}.",
        f"**No method is safe on every shift.** The largest ratio of ours is {worst['bayes']:.2f} ({worst['set']}, "
        f"width {worst['width']}, {worst['training']}, {worst['rows']}). Among networks that were stopped early it is "
        f"{worst_stopped['bayes']:.2f} ({worst_stopped['set']}, width {worst_stopped['width']}, "
        f"{worst_stopped['rows']}).",
    ]


def summarise(records: Sequence[Record]) -> list[str]:
    """Return the conclusions as sentences, with words that follow from the verdicts."""
    best = where(training="long", rows=ROWS[1])
    lines = []
    for title, select in (
        ("Trained too long, refitted on **held-out** rows", best),
        ("Trained too long, refitted on **training** rows", where(training="long", rows=ROWS[0])),
        ("Early stopping, either kind of rows", where(training="stopped")),
        ("Short training, either kind of rows", where(training="short")),
    ):
        effects = {method: measure_effect(records, method, select) for method in METHODS}
        lines.append(f"{title}: {'; '.join(_describe(NAMES[m], effect) for m, effect in effects.items())}.")
    worst = {m: max(records, key=lambda r, m=m: r[m]) for m in METHODS}
    lines.append(
        "Largest ratios of a single network: "
        + "; ".join(f"{NAMES[m]} {r[m]:.2f} ({r['set']}, width {r['width']})" for m, r in worst.items())
        + "."
    )
    return lines


def _describe(name: str, effect: Effect) -> str:
    return f"{name} {effect.median:.2f} ({effect.verdict}, better on {effect.better} of {effect.sets} sets)"


def _condition_rows(records: Sequence[Record]) -> list[list[object]]:
    rows: list[list[object]] = []
    for training, kind in conditions():
        effects = [measure_effect(records, m, where(training=training, rows=kind)) for m in METHODS]
        rows.append([training, kind, *map(str, effects), *(effect.verdict for effect in effects)])
    return rows


def _main_effects(records: Sequence[Record]) -> list[list[object]]:
    return [
        [factor, level, *(str(measure_effect(records, m, where(**{factor: level}))) for m in METHODS)]
        for factor, levels in FACTORS.items()
        for level in levels
    ]


def _set_rows(records: Sequence[Record], sets: list[str]) -> list[list[object]]:
    rows: list[list[object]] = []
    for name in sets:
        cells = []
        for training, kind in conditions():
            select = where(set=name, training=training, rows=kind)
            cells.append(" / ".join(f"{_geometric_mean(records, m, select):.2f}" for m in ("spar", "bayes")))
        rule = REGISTER[name].rule if name in REGISTER and name not in run.PAPER_SETS else "the paper's split"
        rows.append([name, rule, *cells])
    return rows


def _geometric_mean(records: Sequence[Record], method: str, select: object) -> float:
    return float(np.exp(np.mean([math.log(r[method]) for r in records if select(r)])))  # type: ignore[operator]


def draw_figure(records: Sequence[Record], path: Path) -> None:
    """Draw the ratio of each data set, by method and condition."""
    from matplotlib.figure import Figure

    low, high = 0.5, 4.0
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    axes = figure.subplots(1, len(METHODS), sharey=True)
    sets = list(dict.fromkeys(r["set"] for r in records))
    labels = [f"{training},\n{rows.split()[0]}" for training, rows in conditions()]
    for axis, method in zip(axes, METHODS, strict=True):
        axis.axhline(1.0, color="0.6", linewidth=1)
        for x, (training, rows) in enumerate(conditions()):
            select = [where(set=name, training=training, rows=rows) for name in sets]
            values = np.clip([_geometric_mean(records, method, s) for s in select], low, high)
            jitter = np.linspace(-0.18, 0.18, len(values))
            axis.plot(x + jitter, values, "o", markersize=4, alpha=0.6, color="C0" if rows == ROWS[0] else "C1")
            mean = measure_effect(records, method, where(training=training, rows=rows)).median
            axis.plot([x - 0.3, x + 0.3], [mean, mean], color="black", linewidth=2)
        axis.set(title=NAMES[method], yscale="log", ylim=(low * 0.95, high * 1.05))
        axis.set_xticks(range(len(labels)), labels, rotation=60, fontsize=8)
        axis.set_yticks([0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0], ["0.5", "0.7", "1", "1.5", "2", "3", "4 or more"])
        axis.minorticks_off()
    axes[0].set_ylabel("target RMSE / trained head")
    figure.savefig(path, dpi=110)
