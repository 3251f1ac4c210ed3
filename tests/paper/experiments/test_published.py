"""The published numbers agree with the LaTeX source of the paper."""

import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from pyspar.paper.experiments.suite import published, tuned_hyperparameters

RAW = tomllib.loads(resources.files("pyspar.paper").joinpath("published.toml").read_text())
PAPER = Path(__file__).parents[4] / "shared" / "paper" / "out-of-the-ordinary.tex"
IN_THE_PAPER = [name for name, entry in RAW.items() if str(entry.get("label", "")).startswith("tab:")]


@pytest.mark.skipif(not PAPER.is_file(), reason="the source of the paper is not part of the project")
@pytest.mark.parametrize("name", [name for name in IN_THE_PAPER if name != "cost"])
def test_every_number_occurs_in_its_table_of_the_paper(name):
    text = PAPER.read_text()
    table = text[: text.index(f"\\label{{{RAW[name]['label']}}}")].rpartition("\\begin{table")[2]
    printed = re.findall(r"\d+\.\d+(?:e\d+)?", re.sub(r"\\resizebox.*", "", table))
    unused = list(printed)
    for methods in RAW[name]["cells"].values():
        for numbers in methods.values():
            for number in numbers:
                assert number in unused, f"{number} is not in {RAW[name]['label']}, or occurs too often"
                unused.remove(number)
    assert unused == []


def test_times_are_the_printed_hours_and_minutes():
    cells = published("cost").cells["povertymap"]
    assert cells["ERM"] == (str(3 * 60 + 22), "22")
    assert cells["C-Mixup"] == (str(14 * 60 + 58), "61")
    assert cells["SpAR alone"] == ("40", "18")


def test_tuned_hyperparameters_are_within_a_factor_of_ten_of_the_base():
    base = {"skillcraft": (1e-2, 5e-4), "communities-and-crime": (1e-3, 1.0), "povertymap": (1e-3, 0.5)}
    for task, methods in tuned_hyperparameters().items():
        for values in methods.values():
            assert base[task][0] / 10 <= values["lr"] <= base[task][0] * 10
            assert base[task][1] / 10 <= values.get("bandwidth", base[task][1]) <= base[task][1] * 10
