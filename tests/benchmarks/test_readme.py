"""Every measured number of the README and of the guide follows from the records in ``benchmarks/results``."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks.evidence", reason="the benchmarks are not part of an installed package")

from benchmarks.align.page import DEVELOP
from benchmarks.evidence import TUNED, part_of
from benchmarks.records import RESULTS, read
from benchmarks.shifts.methods import OURS

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


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
    assert f"squares: mean {squares}; random Fourier features: mean {cosines}; most data sets" in README
    assert (ours.median() - 1.0).abs().max() < 0.01, "most data sets: no effect"
    assert abs(np.log(ours.get_group("raw")).mean()) < 0.01, "raw columns: no effect"
    spar = records[records["method"] == "SpAR 0.999"].groupby("map")["ratio"]
    assert f"mean error of the default is {change(spar.get_group('poly2'))[1:]} above that of ridge" in README
    assert (spar.get_group("fourier") > 5.0).mean() > 0.25, "often many times worse higher on random Fourier features"


def test_the_papers_heads():
    records = read(RESULTS / "networks.csv.gz")
    ratio = records[records["method"] == "spar"].groupby("rows")["ratio"]
    assert (np.log(ratio.apply(lambda r: np.exp(np.log(r).mean()))) > 0.05).all(), "increases the mean error"


def test_align(align, labels):
    mapped = align[align["method"] == "columns mapped"]
    ridge = mapped[(mapped["part"] == "instruments") & (mapped["model"] == "ridge")]
    corn, tablets = (ridge[ridge["shift"].str.startswith(name)]["ratio"] for name in ("corn", "tablets"))
    worse = f"{(corn > 1.0).sum()} of {len(corn)} pairs got worse"
    assert f"| tablets: {change(tablets)}; corn: {change(corn)}, where {worse} |" in README
    images = align[(align["method"] == "aligned") & (align["severity"] >= 3) & ~align["shift"].isin(TUNED)]
    ratios = {model: group["ratio"] for model, group in images[images["part"] == "garments"].groupby("model")}
    changes = (f"{model.title()}Norm: {change(ratios[model])}" for model in ("batch", "group", "layer"))
    assert f"| {'; '.join(changes)} |" in README
    natural = labels[(labels["method"] == "columns mapped") & (labels["n"] == 10)]["ratio"]
    assert f"| mean {change(natural)}, at worst {natural.max():.1f} times the error |" in README


def test_ten_labels(labels):
    ten = {name: group["ratio"] for name, group in labels[labels["n"] == 10].groupby("method")}
    one, three = ten["TargetCorrection"], ten["TargetCorrection, three candidates"]
    medians = (f"{100 * r.median() - 100:.0f} %".replace("-", "\N{MINUS SIGN}") for r in (one, three))
    first, second = (f"mean {change(r)}, median {median}" for r, median in zip((one, three), medians, strict=True))
    assert f"| {first}; with SpAR and `align` as candidates: {second} |" in README


def test_the_harm_of_single_draws(labels):
    ten = labels[labels["n"] == 10].groupby("method")
    worse, worst = 100 * ten["worse"].mean(), 100 * ten["worst"].max() - 100
    one, three = "TargetCorrection", "TargetCorrection, three candidates"
    text = " ".join(README.split())
    assert f"makes boosting worse in {worse[one]:.0f} % of cases, at worst by {worst[one]:.0f} %." in text
    assert f"as candidates, {worse[three]:.0f} % of draws are worse, at worst by {worst[three]:.0f} %." in text


def page(name):
    """Return a page with single spaces."""
    return " ".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split())


def test_what_a_wrong_assumption_costs(labels):
    shifts = read(RESULTS / "shifts.csv.gz")
    ours = shifts[(shifts["method"] == OURS) & (shifts["set"].map(part_of) == "test")]["ratio"].max()
    records = read(RESULTS / "labels.csv.gz")
    mapped = records[(records["method"] == "columns mapped") & (records["shift"] == "natural") & (records["n"] == 10)]
    worst = mapped.groupby("part")["ratio"].max()
    mean = change(mapped[mapped["part"] == "test"]["ratio"])
    text = page("what-stays-the-same")
    assert f"`BayesSpARRegressor`: at worst +{100 * ours - 100:.0f} % on the test sets" in text
    assert f"mean {mean}, at worst {worst['test']:.1f} times the error" in text
    assert f"and {worst['validate']:.0f} times on other sets" in text


def test_the_numbers_of_the_page_on_labels(labels):
    records = read(RESULTS / "labels.csv.gz")
    ten = records[(records["part"] == "test") & (records["shift"] == "natural") & (records["n"] == 10)]
    worse = 100 * ten[ten["method"] == "TargetCorrection"].groupby("model")["worse"].mean()
    assert f"the error rises in {worse.min():.0f} to {worse.max():.0f} % of draws" in page("labels")
    boosting = labels[labels["n"] == 10].groupby("method")["ratio"]
    one, three = (change(boosting.get_group(f"TargetCorrection{k}")) for k in ("", ", three candidates"))
    assert f"reduce the mean error by {one[1:]}. With `align`" in page("labels")
    assert f"they reduce it by {three[1:]}, and fewer" in page("labels")


def test_the_corruptions_of_the_tuning():
    assert TUNED == DEVELOP


def test_the_width_of_forecasts():
    table = (RESULTS / "forecasts.md").read_text(encoding="utf-8").partition("## test\n")[2]
    header, row = (
        next(line for line in table.splitlines() if key in line) for key in ("high / low", "| shift, linear |")
    )
    cells = dict(zip((c.strip() for c in header.split("|")), (c.strip() for c in row.split("|")), strict=True))
    assert float(cells["high / low"]) > 4.5, "wide"
    narrow = [line.split("|") for line in table.splitlines() if "none found" in line]
    inside = sorted(int(line[7].strip(" %")) for line in narrow)
    assert inside[-1] < 90, "too narrow if no shift is found"
    assert f"contained only {inside[0]} to {inside[-1]} % of" in page("forecasts")
