"""Write ``benchmarks/results/labels.md``: short tables of the records."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.labels.methods import CANDIDATES, CORRECTION, METHODS
from benchmarks.labels.run import BOOSTING, LABELS, MEASUREMENT, MODELS, NATURAL, RECORDS
from benchmarks.records import RESULTS, read

PAGE = RESULTS / "labels.md"
PARTS = ("develop", "validate", "test")


def write_page() -> str:
    """Write the tables and return them."""
    records = read(RECORDS)
    parts = [part for part in PARTS if (records["part"] == part).any()]
    lines = [
        "Geometric mean over data sets of RMSE / RMSE without labels; in brackets the worst set, the worst single draw "
        "of the labelled rows, and the share of draws that get worse.",
    ]
    natural = records[records["shift"] == NATURAL]
    for part in parts:
        for model in MODELS:
            lines += ["", f"**{part}, around {model}**", "", *_compare(natural, part, model, METHODS)]
    lines += ["", "**90 % intervals of rows, and the expected RMSE, after the correction**", ""]
    rows = [_honesty(natural, part, model, n) for part in parts for model in MODELS for n in LABELS]
    lines += _table(
        ["part, model, labels", "intervals of rows cover", "below 0.75", "median truth / expected", "80 %", "95 %",
         "a label has less weight", "named"],
        [row for row in rows if row],
    )  # fmt: skip
    for part in parts:
        for shift in (NATURAL, MEASUREMENT):
            kind = "natural shifts" if shift == NATURAL else "simulated changes of the measurement"
            chosen = records[records["shift"] == shift]
            title = f"**{part}, {kind}: candidates around {BOOSTING}**"
            lines += ["", title, "", *_compare(chosen, part, BOOSTING, (CORRECTION, *CANDIDATES))]
    text = "\n".join(lines) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    return text


def _compare(records: pd.DataFrame, part: str, model: str, methods: object) -> list[str]:
    own = records[(records["part"] == part) & (records["model"] == model)]
    numbers = [n for n in LABELS if (own["n"] == n).any()]
    sets = [f"{n} labels ({own[own['n'] == n]['set'].nunique()} sets)" for n in numbers]
    rows = []
    for method in methods:  # type: ignore[attr-defined]
        cells = [own[(own["method"] == method) & (own["n"] == n)] for n in numbers]
        rows.append([method, *(_cell(cell) for cell in cells)])
    return _table(["", *sets], rows)


def _cell(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "-"
    mean = np.exp(np.log(rows["ratio"]).mean())
    worse = np.average(rows["worse"], weights=rows["draws"])
    return f"{mean:.3f} ({rows['ratio'].max():.2f}, {rows['worst'].max():.2f}, {worse:.0%})"


def _honesty(records: pd.DataFrame, part: str, model: str, n: int) -> list[str] | None:
    rows = records[
        (records["part"] == part)
        & (records["model"] == model)
        & (records["n"] == n)
        & (records["method"] == CORRECTION)
    ]
    if not len(rows):
        return None
    means = [f"{np.average(rows[key], weights=rows['draws']):.2f}" for key in ("inside80", "inside95")]
    far, named = (np.average(rows[key], weights=rows["draws"]) for key in ("far_labels", "named_labels"))
    return [
        f"{part}, {model}, {n}", f"{rows['coverage'].mean():.3f}", f"{(rows['coverage'] < 0.75).mean():.0%}",
        f"{rows['actual_to_expected'].median():.2f}", *means, f"{far:.1%}", f"{named:.2%}",
    ]  # fmt: skip


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
