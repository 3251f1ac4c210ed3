"""Write ``docs/evidence.md`` from the records: three tables and one figure. Run ``python -m benchmarks.evidence``.

The records are those of ``benchmarks.shifts``, ``align`` and ``labels``. The tables of heads and of forecasts are in
the pages ``networks.md`` and ``forecasts.md``; their records are those of ``networks``, ``when_spar_helps`` and
``forecasts``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import markdown_table, replace_section, wrap
from benchmarks.records import RESULTS, read
from benchmarks.shifts.methods import METHODS, OURS, REFERENCE
from benchmarks.shifts.sets import PARTS, REGISTER

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
NETWORKS, FORECASTS = (PAGE.with_name(f"{name}.md") for name in ("networks", "forecasts"))
SECTION = "evidence"
FIGURE = PAGE.parent / "figures" / "evidence.png"
MAPS = {"raw": "raw columns", "poly2": "squares and products", "fourier": "random Fourier features"}
LOW, TAIL = 0.90, 1.10
SHOWN = (OURS, "SpAR 0.999", "OLS", "LassoCV", "BayesianRidge", "HistGradientBoosting")
LABEL_METHODS = (
    "TargetCorrection", "TargetCorrection, two candidates", "TargetCorrection, three candidates",
    "chosen_, three candidates", "offset", "ridge on the residual",
)  # fmt: skip
SHORT = {"HistGradientBoosting": "boosting"}
TUNED = ("gaussian noise", "contrast", "brightness")  # ``DEVELOP`` of benchmarks.align.page, which needs torch
MOST_WORDS = 1200

Table = tuple[list[str], list[list[Any]]]


def summarise_shifts(records: pd.DataFrame, part: str | None = None) -> Table:
    """Return a row per method: the geometric mean and the worst of its ratios to RidgeCV, by feature map and part."""
    parts = [part] if part else [p for p in reversed(PARTS) if (records["set"].map(part_of) == p).any()]
    header = ["method", *(f"{title}, `{p}`" for title in MAPS.values() for p in parts)]
    records = records[records["ratio"].notna()].assign(part=records["set"].map(part_of))
    order = [m for m in METHODS if m in set(records["method"])]
    rows = []
    for method in [*order, *sorted(set(records["method"]) - set(order))]:
        groups = dict(list(records[records["method"] == method].groupby(["map", "part"])["ratio"]))
        cells = [groups.get((m, p), pd.Series(dtype=float)) for m in MAPS for p in parts]
        rows.append([method, *(f"{mean(c)} ({figure(c.max())})" if len(c) else "-" for c in cells)])
    return header, rows


def summarise_networks(records: pd.DataFrame) -> Table:
    """Return a row per part, source rows and method: how the target RMSE of trained networks changes."""
    header = ["part", "source rows", "method", "networks", "unchanged", "mean", "best", "worst", "above 1.03"]
    records = records.assign(part=records["set"].map(part_of))
    rows = []
    for (part, source, method), group in records.groupby(["part", "rows", "method"]):
        ratio = group["ratio"]
        unchanged = int(((ratio - 1.0).abs() < 1e-6).sum())
        rows.append([part, source, method, len(ratio), unchanged, mean(ratio), figure(ratio.min()), figure(ratio.max()),
                     int((ratio > 1.03).sum())])  # fmt: skip
    return header, rows


def part_of(name: str) -> str:
    return REGISTER[name].part if name in REGISTER else "develop"


def mean(ratios: pd.Series) -> str:
    return figure(float(np.exp(np.log(ratios).mean())))


def figure(value: float) -> str:
    """Return a ratio with three digits, or a bound if it is huge."""
    return "> 10,000" if value >= 1e4 else f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def write_page() -> str:
    """Return the text of the page."""
    shifts, labels = read(RESULTS / "shifts.csv.gz"), read(RESULTS / "labels.csv.gz")
    counts = pd.Series([s.part for s in REGISTER.values()]).value_counts()
    header, rows = summarise_shifts(shifts[shifts["method"].isin(SHOWN)])
    ours = shifts[(shifts["method"] == OURS) & shifts["ratio"].notna()]
    ours = ours.assign(part=ours["set"].map(part_of))
    n_develop = ours.loc[ours["part"] == "develop", "set"].nunique()
    rows += _distribution(ours, [p for p in reversed(PARTS) if (ours["part"] == p).any()])
    text = [
        "# Evidence\n",
        wrap(
            "You will be able to look up what each method gains and loses on real data, on average and at worst. There "
            f"are {len(REGISTER)} data sets, each with a natural shift: the target has other years, places, groups or "
            "sizes than the source. All numbers come from the records in `benchmarks/results`, and `make evidence` "
            "writes the page."
        ),
        wrap(
            f"**How the data are used.** Methods are chosen on `develop` ({counts['develop']} sets). Forecasts, heads "
            f"and corrections were also compared on `validate` ({counts['validate']} sets), or on parts of both. "
            f"Nothing is chosen on `test` ({counts['test']} sets), [with one "
            "exception](design.md#how-data-sets-were-used) for heads. All tables ship inside packages on PyPI. "
            "Labels, columns and splits were chosen from the description of a table, before any model was fitted to "
            "it. `benchmarks/shifts/sets` lists each set with its origin and licence."
        ),
        wrap(
            "**How to read the numbers.** A ratio is the target RMSE of a method divided by that of a reference. "
            "Below one, the method is better than the reference. *Mean* is the geometric mean over data sets, *worst* "
            "is the largest ratio. A cell such as 0.98 (1.16) is a mean and, in parentheses, the worst ratio."
        ),
        "## The relation stays the same: SpAR\n",
        wrap(
            "No method uses a label of the target. The reference is RidgeCV on the same features. *BayesSpAR* is "
            f"`BayesSpARRegressor()`, and *SpAR 0.999* is `SpARRegressor()`. The `develop` columns have {n_develop} "
            "sets; there are no records of `validate`. On random Fourier features, SpAR is often many times worse "
            "than ridge; use BayesSpAR there."
        ),
        markdown_table(header, rows),
        f"![Share of data sets below each ratio](figures/{FIGURE.name})\n",
        "*`develop` and `test` together. A curve further to the left is better.*\n",
        wrap(
            "`adapt_head` corrects the heads of networks. It changes few of them, and its gains are small: "
            "[networks](networks.md#how-much-heads-gain)."
        ),
        _peers(shifts),
        _alignment(read(RESULTS / "align.csv.gz"), labels),
        _labels(labels),
        "## Forecasts\n",
        wrap(
            "`expected_rmse` forecasts the error before there are labels. "
            "[Forecasts](forecasts.md#how-good-forecasts-are) has the share of errors on `test` that are "
            "in its intervals."
        ),
    ]
    return "\n".join(part for part in text if part)


def _distribution(ours: pd.DataFrame, parts: list[str]) -> list[list[Any]]:
    """Return two rows: the medians of the ratios of our method, and how many of them are far from one."""
    groups = [ours.loc[(ours["map"] == m) & (ours["part"] == p), "ratio"] for m in MAPS for p in parts]
    far = [f"{int((r < LOW).sum())}, {int((r > TAIL).sum())} of {len(r)}" for r in groups]
    name = "BayesSpAR"
    return [[f"{name}, median", *(figure(r.median()) for r in groups)],
            [f"{name}, sets below {LOW:.2f}, above {TAIL:.2f}", *far]]  # fmt: skip


def _peers(shifts: pd.DataFrame) -> str:
    """Return the comparison with other libraries, on the tasks that all of their methods finished."""
    peers = shifts[shifts["method"].str.startswith(("skada", "ADAPT")) & shifts["ratio"].notna()]
    table = peers.pivot(index=["set", "map"], columns="method", values="ratio")
    same = table.dropna()
    means = np.exp(np.log(same).mean()).sort_values()
    ours = shifts[shifts["method"] == OURS].set_index(["set", "map"])["ratio"].loc[same.index]
    finished = table.notna().sum()
    return wrap(
        f"**Other libraries.** The {means.size} methods of skada and ADAPT around the same RidgeCV finished from "
        f"{finished.min()} to {finished.max()} tasks of `develop`. On the {len(same)} tasks that all of them finished, "
        f"`BayesSpARRegressor()` has the mean ratio {mean(ours)}. Theirs range from {means.iloc[0]:.2f} "
        f"({means.index[0]}) to {means.iloc[-1]:.2f} ({means.index[-1]})."
    )


def write_networks() -> str:
    """Return the section of the page on networks: trained networks and their corrected heads."""
    networks, helps = read(RESULTS / "networks.csv.gz"), read(RESULTS / "when-spar-helps.csv.gz")
    helps = helps[helps["training"] != "stopped"]
    early = networks.assign(training="with early stopping").groupby(["training", "rows"])
    header = ["training", "source rows", "networks", '`"bayes"`', "unchanged", '`"spar"`']
    rows: list[list[Any]] = []
    for (training, source), group in [*early, *helps.groupby(["training", "rows"])]:
        is_long = "method" in group
        columns = [group.loc[group["method"] == m, "ratio"] if is_long else group[m] for m in ("bayes", "spar")]
        unchanged = int(((columns[0] - 1.0).abs() < 1e-6).sum())
        cells = [f"{mean(c)} ({figure(c.max())})" for c in columns]
        rows.append([training, source, len(columns[0]), cells[0], unchanged, cells[1]])
    text = (
        "The table has the mean and, in parentheses, the largest ratio of the error on the target to that of the "
        f"trained network. The first two rows are networks for {networks['set'].nunique()} data sets, the others for "
        f"{helps['set'].nunique()} (`python -m benchmarks.when_spar_helps`). A refit can gain more if a network was "
        "trained too long and the source rows were held out. All results but those of 25 sets of `test` were known "
        "when the method was chosen."
    )
    return f"{wrap(text)}\n{markdown_table(header, rows)}"


def _alignment(records: pd.DataFrame, labels: pd.DataFrame) -> str:
    """Return the section on a population that is measured differently."""
    if records.empty:
        return ""
    records = records.assign(ratio=records["rmse"] / records["trained"])
    is_table = records["part"].isin(["tables", "instruments"])
    is_kept = (is_table & ~records["shift"].str.startswith("natural")) | records["severity"].ge(3)
    # In others, the population changes: benchmarks/results/align.md has all.
    records, is_table = records[is_kept], is_table[is_kept]
    header = ["data and model", "cases", "aligned", "matched one by one", "SpAR"]
    columns = (("columns mapped", "aligned"), ("quantiles mapped", "BatchNorm statistics"), ("SpAR", "SpAR head"))
    data = records["part"].where(records["part"] != "instruments", records["shift"].str.split(":").str[0])
    untuned = records[(records["part"] == "garments") & ~records["shift"].isin(TUNED)]
    untuned = untuned.assign(data=untuned["part"] + ", not used for tuning")
    rows: list[list[Any]] = []
    for (name, model), group in pd.concat([records.assign(data=data), untuned]).groupby(["data", "model"]):
        cells = [group.loc[group["method"].isin(names), "ratio"] for names in columns]
        shifts = len(group[["seed", "shift", "severity"]].drop_duplicates())
        model = f"{model.title()}Norm" if group["severity"].any() else model
        rows.append([f"{name}, {model}", shifts, *(f"{mean(c)} ({figure(c.max())})" if len(c) else "-" for c in cells)])
    text = (
        "`align` assumes that the same population is measured differently: by another instrument, sensor or camera. "
        "The reference is the model without alignment. Corn and tablets are spectra of real instruments. *Garments* "
        "are rotated images of Fashion-MNIST and *chairs* are rendered ones, with simulated corruptions of severity "
        "3 and 5. A case is one corruption, severity and network. *Tables* are test sets with simulated gains and "
        "offsets. *Matched one by one* maps each column by its quantiles, or replaces the statistics of batch "
        'normalisation. *SpAR* is `BayesSpARRegressor` for spectra, and the head `"spar"` for images. The steps were '
        "tuned on three corruptions of garments, which gain the most; the rows *not used for tuning* leave them out. "
        "The rules that leave a network unchanged were chosen on garments. Nothing was chosen on chairs, but a harm "
        "seen on them led to the second rule. The spectra of corn and tablets were used to choose means and spreads "
        "instead of quantiles. Around ridge, alignment is worse than no "
        f"alignment for {_count_worse(records, 'corn', 'ridge')} pairs of corn instruments."
    )
    wrong = labels[(labels["method"] == "columns mapped") & (labels["shift"] == "natural") & (labels["n"] == 10)]
    known = {part: group["ratio"] for part, group in wrong.groupby("part")}
    harm = "If the population itself changed, do not align. With boosting, mean and worst ratio are then " + ". ".join(
        f"{start}{mean(known[part])} and {figure(known[part].max())} on `{part}`"
        for start, part in (("", "test"), ("They are ", "validate"))
        if part in known
    )
    return "\n".join(
        ["## The population stays the same: align\n", wrap(text), markdown_table(header, rows), wrap(f"{harm}.")]
    )


def _count_worse(records: pd.DataFrame, sample: str, model: str) -> str:
    chosen = records["shift"].str.startswith(sample) & (records["model"] == model)
    ratio = records.loc[chosen & (records["method"] == "columns mapped"), "ratio"]
    return f"{int((ratio > 1.0).sum())} of {len(ratio)}"


def _labels(records: pd.DataFrame) -> str:
    """Return the section on a few labels of the target, on the last part that has records."""
    if records.empty:
        return ""
    part = next(p for p in reversed(PARTS) if (records["part"] == p).any())
    own = records[records["part"] == part]
    natural, simulated = (own.loc[own["shift"] == s, "set"].nunique() for s in ("natural", "measurement"))
    text = (
        "`TargetCorrection` corrects any model with a few labels of the target. The reference is the model without "
        f"labels, on {natural} sets of `{part}` ({simulated} in the rows *measurement*). The ratio of a set is the "
        "mean over several draws of the labelled rows. *Worst draw* is the largest ratio of a single draw, and "
        "*worse* the share of draws above 1. Around boosting, the second candidate has mapped columns (`align`), and "
        "the third is `BayesSpARRegressor`. *chosen_* is the candidate nearest to the corrected average, without a "
        "correction. In the rows *measurement*, the shift is simulated: a third of the source of a set is the target, "
        "with other gains and offsets of its columns."
    )
    title = "## You can label a few rows: TargetCorrection\n"
    return "\n".join([title, wrap(text), _label_table(own)])


def _label_table(own: pd.DataFrame) -> str:
    """Return a row per shift, model and method: its ratios with ten labels, and mean and worst with thirty."""
    header = ["shift, model", "method", "10 labels: mean", "median", "worst set", "worst draw", "worse",
              "30 labels: mean (worst)"]  # fmt: skip
    rows: list[list[Any]] = []
    cases = [(s, m) for s in ("natural", "measurement") for m in sorted(own["model"].unique())]
    for (shift, model), method in ((case, name) for case in cases for name in LABEL_METHODS):
        group = own[(own["shift"] == shift) & (own["model"] == model) & (own["method"] == method)]
        ten, thirty = (group[group["n"] == n] for n in (10, 30))
        if len(ten):
            worst, draw = figure(ten["ratio"].max()), figure(ten["worst"].max())
            more = f"{mean(thirty['ratio'])} ({figure(thirty['ratio'].max())})" if len(thirty) else "-"
            spread = figure(ten["ratio"].median()), worst, draw, f"{100 * ten['worse'].mean():.0f} %"
            rows.append([f"{shift}, {SHORT.get(model, model)}", method, mean(ten["ratio"]), *spread, more])
    return markdown_table(header, rows)


def write_forecasts() -> str:
    """Return the section of the page on forecasts, from the table of ``test`` that ``benchmarks.forecasts`` writes."""
    lines = (RESULTS / "forecasts.md").read_text(encoding="utf-8").partition("## test\n")[2].strip().splitlines()
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    cells = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    columns = ("data sets", "80 % interval", "95 % interval", "high / low")
    settings = {
        "natural shifts": "shift, linear",
        "random splits": "random split, linear",
        "natural shifts, none found": "shift, linear, none found",
        "natural shifts, none found, other regressors": "shift, regressor, none found",
        "natural shifts, none found, networks": "shift, network, none found",
    }
    shown = [[title, *(cells[key][name] for name in columns)] for title, key in settings.items()]
    text = (
        "The table has the share of errors on `test` that are in the forecast intervals, and the upper end of the 95 % "
        "interval divided by the lower one. The intervals are wide after a shift. Where no shift was found, they "
        "contained too few of the errors. 90 % intervals of rows contained "
        f"{100 * float(cells['shift, linear']['rows in 90 % interval']):.0f} % of the labels."
    )
    header = ["linear models, unless stated", "sets", "in 80 % interval", "in 95 % interval", "upper / lower end"]
    return f"{wrap(text)}\n{markdown_table(header, shown)}"


def count_words(text: str) -> int:
    return sum(any(c.isalnum() for c in word) for word in text.split())


def draw_figure(path: Path = FIGURE) -> None:
    """Draw the share of data sets whose ratio to RidgeCV is below each value, for three feature maps."""
    import matplotlib.pyplot as plt

    shifts = read(RESULTS / "shifts.csv.gz")
    fig, axes = plt.subplots(1, len(MAPS), figsize=(10, 3.2), sharey=True, layout="constrained")
    for ax, (feature_map, title) in zip(axes, MAPS.items(), strict=True):
        for method in SHOWN:
            chosen = shifts[(shifts["method"] == method) & (shifts["map"] == feature_map)]["ratio"].dropna()
            if len(chosen):
                values, wide = np.sort(chosen), 2.5 if method == OURS else 1.0
                ax.plot(values, np.arange(1, len(values) + 1) / len(values), lw=wide, label=method)
        ax.axvline(1.0, color="grey", lw=0.8, ls=":")
        ax.set(xscale="log", xlim=(0.4, 2.5), title=title, xlabel=f"target RMSE / RMSE of {REFERENCE}")
        ax.set_xticks([0.5, 0.7, 1.0, 1.5, 2.0], ["0.5", "0.7", "1", "1.5", "2"], minor=False)
        ax.xaxis.set_minor_formatter(lambda *_: "")
    axes[0].set_ylabel("share of data sets")
    axes[0].legend(fontsize=7, loc="upper left")
    fig.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(fig)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("--no-figure", action="store_true", help="only write the text")
    if not parser.parse_args(arguments).no_figure:
        draw_figure()
    text = write_page()
    if (words := count_words(text)) > MOST_WORDS:
        raise SystemExit(f"the page has {words} words, more than {MOST_WORDS}; shorten it")
    PAGE.write_text(text, encoding="utf-8")
    for page, section in ((NETWORKS, write_networks()), (FORECASTS, write_forecasts())):
        page.write_text(replace_section(page, SECTION, section), encoding="utf-8")
    print(f"wrote {PAGE} with {words} words, and a section of {NETWORKS.name} and {FORECASTS.name}")


if __name__ == "__main__":
    main()
