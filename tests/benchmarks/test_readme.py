"""Every measured number of the README follows from the records in ``benchmarks/results``."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks.evidence", reason="the benchmarks are not part of an installed package")

from benchmarks.align.page import DEVELOP
from benchmarks.evidence import TUNED, part_of
from benchmarks.records import RESULTS, read
from benchmarks.shifts.methods import OURS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def change(ratios):
    """Return the change of the geometric mean as the README writes it, such as −4 %."""
    return f"{100 * np.exp(np.log(ratios).mean()) - 100:+.0f} %".replace("-", "\N{MINUS SIGN}").replace("+0", "0")


@pytest.fixture(scope="module")
def labels():
    records = read(RESULTS / "labels.csv.gz")
    boosting = (records["part"] == "test") & (records["model"] == "HistGradientBoosting")
    return records[boosting & (records["shift"] == "natural")]


@pytest.fixture(scope="module")
def align():
    records = read(RESULTS / "align.csv.gz")
    return records.assign(ratio=records["rmse"] / records["trained"])


def test_spar_on_derived_features():
    records = read(RESULTS / "shifts.csv.gz")
    records = records[records["set"].map(part_of) == "test"].dropna(subset="ratio")
    ours = records[records["method"] == OURS].groupby("map")["ratio"]
    squares, cosines = (change(ours.get_group(name)) for name in ("poly2", "fourier"))
    assert f"squares: mean {squares}; random cosines: mean {cosines}; most data sets" in README
    assert (ours.median() - 1.0).abs().max() < 0.01, "most data sets: no effect"
    assert abs(np.log(ours.get_group("raw")).mean()) < 0.01, "raw columns: no effect"
    spar = records[records["method"] == "SpAR 0.999"].groupby("map")["ratio"]
    assert f"on average {change(spar.get_group('poly2'))[1:]} worse than ridge on squares" in README
    assert (spar.get_group("fourier") > 5.0).mean() > 0.25, "often many times worse on random cosines"


def test_the_papers_heads():
    records = read(RESULTS / "networks.csv.gz")
    ratio = records[records["method"] == "spar"].groupby("rows")["ratio"]
    training, validation = (change(ratio.get_group(f"{rows} rows"))[1:] for rows in ("training", "validation"))
    assert f"by {training} on average with their training rows, {validation} with validation" in README


def test_align(align, labels):
    mapped = align[align["method"] == "columns mapped"]
    ridge = mapped[(mapped["part"] == "instruments") & (mapped["model"] == "ridge")]
    corn, tablets = (ridge[ridge["shift"].str.startswith(name)]["ratio"] for name in ("corn", "tablets"))
    worse = f"{(corn > 1.0).sum()} of {len(corn)} pairs got worse"
    assert f"spectrometers, around ridge: {change(tablets)} (tablets), {change(corn)} (corn, where {worse})" in README
    images = align[(align["method"] == "aligned") & (align["severity"] > 0) & ~align["shift"].isin(TUNED)]
    ratios = {model: group["ratio"] for model, group in images.groupby("model")}
    changes = (f"{change(ratios[model])} ({model.title()}Norm)" for model in ("batch", "group", "layer"))
    assert f"images: {', '.join(changes)}" in README
    natural = labels[(labels["method"] == "columns mapped") & (labels["n"] == 10)]["ratio"]
    assert f"mean {change(natural)}, at worst {natural.max():.1f} times the error" in README


def test_ten_labels(labels):
    one = labels[labels["method"] == "TargetCorrection"].set_index("n")
    ten, thirty = (change(one.loc[n]["ratio"]) for n in (10, 30))
    median = f"{100 * one.loc[10]['ratio'].median() - 100:.0f} %".replace("-", "\N{MINUS SIGN}")
    assert f"around boosting: mean {ten}, median {median} with ten labels; mean {thirty} with thirty" in README


def test_the_harm_of_single_draws(labels):
    ten = labels[labels["n"] == 10].groupby("method")
    worse = ten["worse"].mean()["TargetCorrection"]
    assert f"makes boosting worse in {100 * worse:.0f} % of cases" in README
    one, two = (
        100 * ten["worst"].max()[name] - 100 for name in ("TargetCorrection", "TargetCorrection, two candidates")
    )
    assert re.search(rf"adds {one:.0f} %, and {two:.0f} %\s+with two candidates", README)


def test_the_corruptions_of_the_tuning():
    assert TUNED == DEVELOP


def test_the_width_of_forecasts():
    table = (RESULTS / "forecasts.md").read_text(encoding="utf-8").partition("## test\n")[2]
    header, row = (
        next(line for line in table.splitlines() if key in line) for key in ("high / low", "| shift, linear |")
    )
    cells = dict(zip((c.strip() for c in header.split("|")), (c.strip() for c in row.split("|")), strict=True))
    assert 4.5 < float(cells["high / low"]) < 5.5
    assert "about five times the lower" in README
    narrow = [line.split("|") for line in table.splitlines() if "none found" in line]
    shares = [int(cells[7].strip(" %")) for cells in narrow]
    assert f"there it contained only {min(shares)} to {max(shares)} % of the errors" in README
