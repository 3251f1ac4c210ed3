"""``spar inspect --report --json``: both files or neither, from rows and from summaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_the_reports_are_written_and_the_terminal_tells_the_same(spar, files, source, target, tmp_path):
    html, data = tmp_path / "report.html", tmp_path / "report.json"
    result = spar(
        "inspect", *files(source, target), "--label", "price", "--id", "home", "--report", html, "--json", data
    )
    assert result.exit_code == 0, result.output
    found = json.loads(data.read_text(encoding="utf-8"))
    output = found["outputs"][0]
    assert output["name"] == "price"
    assert output["verdict"] in result.stdout
    for forecast in output["forecasts"]:
        assert f"{forecast['rmse']:.4g} RMSE" in result.stdout
    assert output["findings"] == [each for each in found["findings"] if each["output"] == "price"]
    for finding in found["findings"]:
        assert finding["code"] in result.stdout
    assert output["verdict"].replace(" %", "\N{NO-BREAK SPACE}%") in html.read_text(encoding="utf-8")
    assert found["command"] == (
        "spar inspect source.csv target.csv --label price --id home --report report.html --json report.json"
    )
    assert str(tmp_path) not in html.read_text(encoding="utf-8") + data.read_text(encoding="utf-8")
    # Encoded features are told of by their raw columns.
    assert set(found["columns"]) == {"area", "garden", "lift", "town", "sold"}


def test_summaries_give_the_report_of_their_rows_without_predictions(spar, files, source, target, tmp_path):
    numbers = ["area", "garden", "price"]
    paths = files(source[numbers], target[numbers])
    for path, name, label in zip(paths, ("x", "z"), (["--label", "price"], ["--drop", "price"])):
        assert spar("summarize", path, *label, "-o", tmp_path / f"{name}.npz").exit_code == 0
    found = []
    for given in (paths, (tmp_path / "x.npz", tmp_path / "z.npz")):
        out = tmp_path / "report.json"
        result = spar("inspect", *given, "--label", "price", "--json", out, "--report", tmp_path / "r.html")
        assert result.exit_code == 0, result.output
        found.append(json.loads(out.read_text(encoding="utf-8"))["outputs"][0])
    rows, summaries = found
    assert summaries["predictions"] is None
    assert rows["predictions"] is not None
    for one, other in zip(rows["forecasts"][:3], summaries["forecasts"][:3], strict=True):
        # float64 sums in another order.
        assert one["rmse"] == pytest.approx(other["rmse"], rel=1e-6)


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("--report", "report.pdf", "expected the suffix .html"),
        ("--json", "report.html", "expected the suffix .json"),
        ("--report", "nowhere/report.html", "expected a folder that exists"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_reading(spar, tmp_path, option, name, why):
    result = spar("inspect", "no-source.csv", "no-target.csv", "--label", "y", option, tmp_path / name)
    assert result.exit_code == 2
    assert why in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_if_one_report_cannot_be_written_neither_is(spar, files, source, target, tmp_path, monkeypatch):
    paths = files(source, target)
    before = {path.name for path in tmp_path.iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    original = Path.write_text
    monkeypatch.setattr(Path, "write_text", lambda p, *a, **k: full() if p.suffix == ".json" else original(p, *a, **k))
    result = spar("inspect", *paths, "--label", "price", "--report", tmp_path / "r.html", "--json", tmp_path / "r.json")
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == before


def test_unseen_categories_are_a_finding_on_every_page_and_in_the_verdict(spar, files, source, target, tmp_path):
    html, data = tmp_path / "report.html", tmp_path / "report.json"
    target.loc[:29, "town"] = "Hof"
    target.loc[30, "town"] = "Jena"
    result = spar("inspect", *files(source, target), "--label", "price", "--report", html, "--json", data)
    assert result.exit_code == 0, result.output
    found = json.loads(data.read_text(encoding="utf-8"))
    (told,) = [each for each in found["findings"] if each["code"] == "SPAR014"]
    assert told["severity"] == "serious"
    assert "31 of 80 target rows (38.8 %)" in told["text"]
    assert "town 'Hof', 'Jena'" in told["text"]
    assert "31 of 80 target rows" in found["outputs"][0]["verdict"]
    assert f"SPAR014 serious: {told['text']}" in result.stdout
    assert "town: 31 target rows in 2 new categories ('Hof', 'Jena')" in found["notes"]
    page = html.read_text(encoding="utf-8")
    card = page[page.index('<section class="first') : page.index("Expected error on the target")]
    assert "SPAR014" in card
    assert "Hof" in card
    shown = spar("adapt", *files(source, target), "--label", "price").stdout
    assert "the forecast says nothing about 31 target rows in unseen categories" in shown
