"""Every measured number of the README follows from the records in ``benchmarks/results``."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks.evidence", reason="the benchmarks are not part of an installed package")

from benchmarks.align.page import DEVELOP
from benchmarks.evidence import part_of
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
    records = records[(records["method"] == OURS) & (records["set"].map(part_of) == "test")].dropna(subset="ratio")
    assert f"derived features: mean {change(records[records['map'] != 'raw']['ratio'])};" in README
    assert abs(np.log(records[records["map"] == "raw"]["ratio"]).mean()) < 0.01, "raw columns: usually no effect"


def test_align(align):
    mapped = align[align["method"] == "columns mapped"]
    ridge = mapped[(mapped["part"] == "instruments") & (mapped["model"] == "ridge")]
    corn, tablets = (change(ridge[ridge["shift"].str.startswith(name)]["ratio"]) for name in ("corn", "tablets"))
    assert f"spectrometers, around ridge: {corn} (corn), {tablets} (tablets)" in README
    images = align[(align["model"] == "batch") & (align["method"] == "aligned") & (align["severity"] > 0)]
    images = images[~images["shift"].isin(DEVELOP)]
    assert f"images with BatchNorm: {change(images['ratio'])}" in README
    natural = mapped[mapped["shift"].str.startswith("natural") & (mapped["part"] == "tables")]
    assert 4.5 < natural["ratio"].max() < 5.5
    assert "can grow fivefold" in README


def test_ten_labels(labels):
    one = labels[labels["method"] == "TargetCorrection"].set_index("n")
    ten, thirty = (change(one.loc[n]["ratio"]) for n in (10, 30))
    assert f"mean {ten} with ten labels, {thirty} with thirty, around boosting" in README


def test_the_harm_of_single_draws(labels):
    ten = labels[labels["n"] == 10].groupby("method")
    worse = ten["worse"].mean()["TargetCorrection"]
    assert f"makes boosting worse in {100 * worse:.0f} % of cases" in README
    one, two = (
        100 * ten["worst"].max()[name] - 100 for name in ("TargetCorrection", "TargetCorrection, two candidates")
    )
    assert re.search(rf"adds {one:.0f} %, and {two:.0f} %\s+with two candidates", README)


def test_the_width_of_forecasts():
    table = (RESULTS / "forecasts.md").read_text(encoding="utf-8").partition("## test\n")[2]
    header, row = (
        next(line for line in table.splitlines() if key in line) for key in ("high / low", "| shift, linear |")
    )
    cells = dict(zip((c.strip() for c in header.split("|")), (c.strip() for c in row.split("|")), strict=True))
    assert 4.5 < float(cells["high / low"]) < 5.5
    assert "about five times the lower" in README
