"""Write ``docs/evidence.md`` from the records: three tables and one figure. Run ``python -m benchmarks.evidence``.

The records are those of ``benchmarks.shifts``, ``networks``, ``when_spar_helps``, ``align``, ``labels`` and
``forecasts``. A section without records is left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import markdown_table, wrap
from benchmarks.records import RESULTS, read
from benchmarks.shifts.methods import METHODS, OURS, REFERENCE
from benchmarks.shifts.sets import PARTS, REGISTER

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
FIGURE = PAGE.parent / "figures" / "evidence.png"
MAPS = {"raw": "raw columns", "poly2": "squares and products", "fourier": "random cosines"}
TAIL = 1.10
SHOWN = (OURS, "SpAR 0.999", "OLS", "LassoCV", "BayesianRidge", "HistGradientBoosting", "RandomForest")
LABEL_METHODS = ("TargetCorrection", "offset", "ridge on the residual", "TargetCorrection, two candidates")
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
    shifts, networks = read(RESULTS / "shifts.csv.gz"), read(RESULTS / "networks.csv.gz")
    helps = read(RESULTS / "when-spar-helps.csv.gz")
    counts = pd.Series([s.part for s in REGISTER.values()]).value_counts()
    header, rows = summarise_shifts(shifts[shifts["method"].isin(SHOWN)])
    ours = shifts[(shifts["method"] == OURS) & shifts["ratio"].notna()]
    ours = ours[ours["set"].map(part_of) == "test"] if (ours["set"].map(part_of) == "test").any() else ours
    raw = ours[ours["map"] == "raw"]["ratio"]
    derived = ours[ours["map"] != "raw"]
    few = derived["set"].nunique()
    derived = derived["ratio"]
    text = [
        "# Evidence\n",
        wrap(
            f"pyspar is tested on {len(REGISTER)} real data sets, each with a natural shift: the target has other "
            "years, places, groups or sizes than the source. This page says what to expect. All numbers come from the "
            "records in `benchmarks/results`, and `make evidence` writes the page."
        ),
        wrap(
            f"**How the data are used.** Methods are chosen on `develop` ({counts['develop']} sets) and confirmed on "
            f"`validate` ({counts['validate']} sets). Nothing is chosen on `test` ({counts['test']} sets). All tables "
            "ship inside packages on PyPI. Labels, columns and splits were chosen from the description of a table, "
            "before any model was fitted to it. `benchmarks/shifts/sets` lists each set with its origin and licence."
        ),
        wrap(
            "**How to read the numbers.** A ratio is the target RMSE of a method divided by that of a reference. "
            "Below one, the method is better than the reference. *Mean* is the geometric mean over data sets, *worst* "
            "is the largest ratio."
        ),
        "## The relation stays the same: SpAR\n",
        wrap(
            "No method uses a label of the target. The reference is RidgeCV on the same features. On the raw columns "
            f"of {len(raw)} sets of `test`, `BayesSpARRegressor()` is as accurate as RidgeCV: the median ratio is "
            f"{raw.median():.2f}, {int((raw < 0.9).sum())} sets are below 0.90, and {int((raw > TAIL).sum())} above "
            f"{TAIL:.2f}. On derived features (of the first {few} sets by name), the mean ratio is "
            f"{np.exp(np.log(derived).mean()):.2f}, and {int((derived > TAIL).sum())} of {len(derived)} are above "
            f"{TAIL:.2f}. Each cell of the table is a mean and, in parentheses, the worst ratio."
        ),
        markdown_table(header, rows),
        f"![Share of data sets below each ratio](figures/{FIGURE.name})\n",
        _peers(shifts),
        "### Heads of networks\n",
        _networks(networks, helps),
        _alignment(read(RESULTS / "align.csv.gz")),
        _labels(read(RESULTS / "labels.csv.gz")),
        _forecasts(RESULTS / "forecasts.md"),
    ]
    return "\n".join(part for part in text if part)


def _peers(shifts: pd.DataFrame) -> str:
    peers = shifts[shifts["method"].str.startswith(("skada", "ADAPT")) & shifts["ratio"].notna()]
    means = peers.groupby("method")["ratio"].agg(lambda v: float(np.exp(np.log(v).mean()))).sort_values()
    reference = shifts[shifts["method"] == OURS].set_index(["set", "map"])["ratio"]
    same = reference.loc[list(set(peers[["set", "map"]].itertuples(index=False, name=None)))]
    return wrap(
        f"**Other libraries.** Ten methods of skada and ADAPT around the same RidgeCV, on {len(same)} of these tasks, "
        f"have mean ratios from {means.iloc[0]:.2f} ({means.index[0]}) to {means.iloc[-1]:.2f} ({means.index[-1]}). "
        f"`BayesSpARRegressor()` has {np.exp(np.log(same).mean()):.2f}."
    )


def _networks(networks: pd.DataFrame, helps: pd.DataFrame) -> str:
    ours = networks[networks["method"] == "bayes"]
    lines = []
    for rows, group in ours.groupby("rows"):
        unchanged = int(((group["ratio"] - 1.0).abs() < 1e-6).sum())
        lines.append(
            f"- With the {rows}, {unchanged} of {len(group)} networks are unchanged. The mean ratio is "
            f"{np.exp(np.log(group['ratio']).mean()):.3f}, the best {group['ratio'].min():.2f} and the worst "
            f"{group['ratio'].max():.2f}."
        )
    long = helps[helps["training"] == "long"].groupby("rows")[["spar", "bayes"]].agg(lambda v: np.exp(np.log(v).mean()))
    return wrap(
        f"`adapt_head` was run on {ours['set'].nunique()} data sets with networks that were trained with early "
        "stopping. Here the reference is the trained network. The source rows are those of the training or those that "
        "decided when to stop.\n\n"
        + "\n\n".join(lines)
        + "\n\nIts results on all parts but 25 sets of `test` were known when the present rule was chosen.\n\n"
        f"A refit can gain more if a network was trained too long and rows were held out: on {helps['set'].nunique()} "
        f"data sets the mean ratio of SpAR is then {long.loc['held-out rows', 'spar']:.2f}, and that of the default "
        f"{long.loc['held-out rows', 'bayes']:.2f}. On training rows it is {long.loc['training rows', 'spar']:.2f} and "
        f"{long.loc['training rows', 'bayes']:.2f} (`python -m benchmarks.when_spar_helps`)."
    )


def _alignment(records: pd.DataFrame) -> str:
    """Return the section on a population that is measured differently."""
    if records.empty:
        return ""
    records = records.assign(ratio=records["rmse"] / records["trained"])
    is_table = records["part"].isin(["tables", "instruments"])
    is_kept = (is_table & ~records["shift"].str.startswith("natural")) | records["severity"].ge(3)
    records = records[is_kept]  # in others, the population changes; benchmarks/results/align.md has all
    header = ["data and model", "shifts", "aligned", "matched one by one", "SpAR"]
    columns = (("columns mapped", "aligned"), ("quantiles mapped", "BatchNorm statistics"), ("SpAR", "SpAR head"))
    rows: list[list[Any]] = []
    for (part, model), group in records.groupby(["part", "model"]):
        cells = [group.loc[group["method"].isin(names), "ratio"] for names in columns]
        shifts = len(group[["seed", "shift", "severity"]].drop_duplicates())
        rows.append([f"{part}, {model}", shifts, *(f"{mean(c)} ({figure(c.max())})" if len(c) else "-" for c in cells)])
    text = (
        "`align` assumes that the same population is measured differently: by another instrument, sensor or camera. "
        "The reference is the model without alignment. *Matched one by one* maps each column by its quantiles, or "
        "replaces the statistics of batch normalisation. Some settings for images were tuned on three of these "
        "corruptions. If the population itself changed, do not align: the error of boosting then grows up to "
        "fivefold (`benchmarks/results/align.md`)."
    )
    return "\n".join(["## The population stays the same: align\n", wrap(text), markdown_table(header, rows)])


def _labels(records: pd.DataFrame) -> str:
    """Return the section on a few labels of the target, on the last part that has records."""
    if records.empty:
        return ""
    part = next(p for p in reversed(PARTS) if (records["part"] == p).any())
    own = records[(records["part"] == part) & (records["shift"] == "natural")]
    numbers = [n for n in (10, 30) if (own["n"] == n).any()]
    header = ["model and method", *(f"{n} labels: mean (worst set; worst draw)" for n in numbers)]
    rows: list[list[Any]] = []
    for (model, method), group in own[own["method"].isin(LABEL_METHODS)].groupby(["model", "method"]):
        cells = [group[group["n"] == n] for n in numbers]
        found = [f"{mean(c['ratio'])} ({figure(c['ratio'].max())}; {figure(c['worst'].max())})" for c in cells]
        rows.append([f"{model}, {method}", *found])
    text = (
        f"`TargetCorrection` corrects any model with a few labels of the target. The reference is the model without "
        f"labels, on {own['set'].nunique()} sets of `{part}`. Several draws of the labelled rows are averaged; a "
        "single draw can do more harm than the average. With candidates, the labels also choose between models."
    )
    return "\n".join(["## You can label a few rows: TargetCorrection\n", wrap(text), markdown_table(header, rows)])


def _forecasts(path: Path) -> str:
    """Return the section on forecasts, from the table of the part ``test`` that ``benchmarks.forecasts`` writes."""
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8").partition("## test\n")[2].strip().splitlines()
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    cells = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    linear, random, none = (cells[k] for k in ("shift, linear", "random split, linear", "shift, linear, none found"))
    text = (
        "`expected_rmse` forecasts the error on the target without any of its labels. On "
        f"{linear['data sets']} sets of `test`, its 95 % interval contained {linear['95 % interval']} of the errors, "
        f"and its 80 % interval {linear['80 % interval']}. The price is width: on average, the upper end is "
        f"{linear['high / low']} times the lower one. In random splits the shares are {random['95 % interval']} and "
        f"{random['80 % interval']}, with a factor of {random['high / low']}. A change of the relation alone cannot be "
        f"seen in the features: where no shift was found, the 95 % interval contained {none['95 % interval']} of "
        f"{none['tasks']} errors. 90 % intervals of rows held {100 * float(linear['rows in 90 % interval']):.0f} %."
    )
    return "\n".join(["## Forecasts\n", wrap(text)])


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
    print(f"wrote {PAGE} with {words} words")


if __name__ == "__main__":
    main()
