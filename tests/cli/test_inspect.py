"""``spar inspect``: the printed forecasts, and the reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pyspar.tables.inputs import Request
from pyspar.tables.inspect import inspect_files

LABEL = ("--label", "price")


def test_the_output_has_the_expected_text(spar, files, source, target, tmp_path, monkeypatch, golden):
    monkeypatch.chdir(tmp_path)
    target.loc[:29, "town"] = "Hof"
    target.loc[:2, "area"] = np.nan
    files(source, target)
    arguments = ("source.csv", "target.csv", *LABEL, "--id", "home", "--report", "r.json")
    golden("cli-inspect", f"$ spar inspect {' '.join(arguments)}\n{spar('inspect', *arguments).stdout}")


def test_the_worst_direction_is_named_by_its_raw_column(spar, files, source, target):
    result = spar("inspect", *files(source, target), *LABEL, "--id", "home", "--json")
    assert result.exit_code == 0, result.output
    worst = json.loads(result.stdout)["outputs"][0]["directions"][0]
    assert worst["removed"] > 0.995
    (name, share), *_ = worst["loads"]
    assert name == "garden"
    assert share > 0.995
    assert result.stderr == ""


def test_directions_are_sorted_and_counted_alike_in_terminal_json_and_page(spar, files, source, target, tmp_path):
    html, data = tmp_path / "r.html", tmp_path / "r.json"
    result = spar("inspect", *files(source, target), *LABEL, "--alpha", 0.9, "--report", html, "--report", data)
    assert result.exit_code == 0, result.output
    directions = json.loads(data.read_text(encoding="utf-8"))["outputs"][0]["directions"]
    keeping = np.array([direction["keeping"] for direction in directions])
    assert (np.diff(keeping) <= 0).all()
    removed = sum(direction["goes"] for direction in directions)
    assert 0 < removed < len(directions)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("rule ")]
    assert f" {removed} of {len(directions)} " in line
    page = html.read_text(encoding="utf-8")
    assert f'<strong class="count">{removed}</strong> of {len(directions)} directions' in page


def test_a_method_without_a_rule_shows_no_rule(spar, files, source, target):
    out = spar("inspect", *files(source, target), *LABEL).stdout
    assert not [line for line in out.splitlines() if line.startswith("rule ")]


def test_labels_in_the_target_come_first_and_do_not_change_the_forecasts(spar, files, source, target, tmp_path):
    reports = {}
    for name, rows in (("with", target), ("without", target.drop(columns="price"))):
        data = tmp_path / f"{name}.json"
        result = spar("inspect", *files(source, rows), *LABEL, "--report", data)
        assert result.exit_code == 0, result.output
        reports[name] = json.loads(data.read_text(encoding="utf-8"))["outputs"][0], result.stdout
    (labelled, out), (unlabelled, _) = reports["with"], reports["without"]
    assert labelled["forecasts"] == unlabelled["forecasts"]
    assert unlabelled["labels"] is None
    assert labelled["labels"]["n"] == len(target)
    assert labelled["findings"][0]["code"] == "SPAR017"
    assert labelled["comparison"] in out
    assert out.index(labelled["headline"]) < out.index("on target")
    adapted = spar("adapt", *files(source, target), *LABEL).stdout
    assert labelled["headline"] in adapted
    assert labelled["comparison"] in adapted
    assert labelled["next_step"] in adapted


def test_a_streamed_target_shows_the_labels_as_well(spar, files, source, target, tmp_path):
    numbers, found = ["area", "garden", "price"], []
    for options in ((), ("--stream",)):
        data = tmp_path / "r.json"
        spar("inspect", *files(source[numbers], target[numbers]), *LABEL, "--report", data, *options)
        found.append(json.loads(data.read_text(encoding="utf-8"))["outputs"][0]["labels"])
    assert found[0]["n"] == found[1]["n"] == len(target)
    assert found[0]["interval"] == pytest.approx(found[1]["interval"], rel=1e-9)


def test_the_report_has_the_title_and_the_date(spar, files, source, target, tmp_path):
    data = tmp_path / "r.json"
    for options, title in (((), "price: source.csv → target.csv"), (("--title", "Homes"), "Homes")):
        assert spar("inspect", *files(source, target), *LABEL, "--report", data, *options).exit_code == 0
        report = json.loads(data.read_text(encoding="utf-8"))
        assert report["title"] == title
        assert ("--title Homes" in report["command"]) == bool(options)
        assert len(report["date"]) == len("2024-01-31")


@pytest.mark.parametrize("alpha", [None, 0.9])
def test_adapt_and_inspect_print_the_same_forecasts(spar, files, source, target, alpha):
    paths = files(source, target)
    output = inspect_files(Request(*map(Path, paths), "price", alpha=alpha)).inspection.outputs[0]
    options = () if alpha is None else ("--alpha", alpha)
    for command in ("adapt", "inspect"):
        out = spar(command, *paths, *LABEL, *options).stdout
        assert f"{output.forecast('OLS').rmse:.4g}" in out
        assert f"{output.forecast('Bayes-SpAR').rmse:.4g}" in out


def test_nothing_is_written_without_options(spar, files, source, target, tmp_path):
    paths = files(source, target)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert spar("inspect", *paths, *LABEL).exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_variation_outside_the_source_is_a_finding(spar, files, source, target):
    target["town"] = "Trier"
    out = spar("inspect", *files(source[["area", "town", "price"]], target), *LABEL).stdout
    assert out.count("SPAR003") == 1


@pytest.mark.parametrize("command", ["adapt", "inspect"])
def test_inspect_and_adapt_refuse_the_same_input(spar, files, source, target, command):
    result = spar(command, *files(source, target), "--label", "prize")
    assert result.exit_code == 2
    assert "'price'" in result.stderr


def test_the_reports_have_the_numbers_of_the_terminal(spar, files, source, target, tmp_path):
    html, data = tmp_path / "report.html", tmp_path / "report.json"
    result = spar("inspect", *files(source, target), *LABEL, "--id", "home", "--report", html, "--report", data)
    assert result.exit_code == 0, result.output
    report = json.loads(data.read_text(encoding="utf-8"))
    output = report["outputs"][0]
    assert output["name"] == "price"
    assert all(text in result.stdout for text in (output["headline"], output["experience"], output["next_step"]))
    for forecast in output["forecasts"]:
        assert f"{forecast['rmse']:.4g} RMSE" in result.stdout
    own = [finding for finding in report["findings"] if finding["output"] == "price"]
    assert sorted(own, key=str) == sorted(output["findings"], key=str)
    for finding in report["findings"]:
        assert finding["code"] in result.stdout or finding == output["findings"][0]
    assert output["headline"].replace(" %", "\N{NO-BREAK SPACE}%") in html.read_text(encoding="utf-8")
    assert report["command"] == (
        "spar inspect source.csv target.csv --label price --id home --report report.html --report report.json"
    )
    assert str(tmp_path) not in html.read_text(encoding="utf-8") + data.read_text(encoding="utf-8")
    assert set(report["columns"]) == {"area", "garden", "lift", "town", "sold"}  # raw columns, not encoded features


def test_the_command_in_the_report_has_every_option(spar, files, source, target, tmp_path):
    data = tmp_path / "r.json"
    options = ("--alpha", "0.9", "--features", "num", "--drop", "lift", "--stream", "--report", data)
    assert spar("inspect", *files(source, target), *LABEL, *options).exit_code == 0
    assert json.loads(data.read_text(encoding="utf-8"))["command"] == (
        "spar inspect source.csv target.csv --label price --alpha 0.9 --features num --drop lift --stream "
        "--report r.json"
    )


def test_summaries_give_the_report_of_their_rows_without_predictions(spar, files, source, target, tmp_path):
    numbers = ["area", "garden", "price"]
    paths = files(source[numbers], target[numbers])
    for path, name, label in zip(paths, ("x", "z"), (LABEL, ("--drop", "price"))):
        assert spar("summarize", path, *label, "-o", tmp_path / f"{name}.npz").exit_code == 0
    outputs = []
    for inputs in (paths, (tmp_path / "x.npz", tmp_path / "z.npz")):
        out = tmp_path / "report.json"
        result = spar("inspect", *inputs, *LABEL, "--report", out, "--report", tmp_path / "r.html")
        assert result.exit_code == 0, result.output
        outputs.append(json.loads(out.read_text(encoding="utf-8"))["outputs"][0])
    rows, summaries = outputs
    assert summaries["predictions"] is None
    assert rows["predictions"] is not None
    for one, other in zip(rows["forecasts"][:3], summaries["forecasts"][:3], strict=True):
        # The sums have another order.
        assert one["rmse"] == pytest.approx(other["rmse"], rel=1e-6)


@pytest.mark.parametrize(
    ("option", "name", "fix"),
    [
        ("--report", "report.pdf", ".html"),
        ("--report", "report.txt", ".json"),
        ("--report", "nowhere/report.html", "nowhere'"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_reading(spar, tmp_path, option, name, fix):
    result = spar("inspect", "no-source.csv", "no-target.csv", "--label", "y", option, tmp_path / name)
    assert result.exit_code == 2
    assert f"{option} '{tmp_path / name}'" in result.stderr
    assert fix in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_either_both_reports_are_written_or_none(spar, files, source, target, tmp_path, monkeypatch):
    paths = files(source, target)
    before = {path.name for path in tmp_path.iterdir()}

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    original = Path.write_text
    monkeypatch.setattr(Path, "write_text", lambda p, *a, **k: fail() if p.suffix == ".json" else original(p, *a, **k))
    result = spar("inspect", *paths, *LABEL, "--report", tmp_path / "r.html", "--report", tmp_path / "r.json")
    assert result.exit_code == 2
    assert "no space left on device" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == before


def test_unseen_categories_are_a_finding_in_the_page_and_in_the_verdict(spar, files, source, target, tmp_path):
    html, data = tmp_path / "report.html", tmp_path / "report.json"
    target.loc[:29, "town"] = "Hof"
    target.loc[30, "town"] = "Jena"
    result = spar("inspect", *files(source, target), *LABEL, "--report", html, "--report", data)
    assert result.exit_code == 0, result.output
    report = json.loads(data.read_text(encoding="utf-8"))
    (finding,) = [finding for finding in report["findings"] if finding["code"] == "SPAR014"]
    assert finding["severity"] == "serious"
    for part in ("31 of 80 target rows", "town", "'Hof'", "'Jena'"):
        assert part in finding["text"]
    assert report["outcome"] == "unverified"  # the labels of the target overrule the forecast
    assert "31 of 80" in report["outputs"][0]["not_covered"]
    assert report["outputs"][0]["not_covered"] in result.stdout
    assert f"SPAR014 serious: {finding['text']}" in result.stdout
    (note,) = [note for note in report["notes"] if note.startswith("town: 31 target rows")]
    assert "'Hof'" in note
    page = html.read_text(encoding="utf-8")
    assert "Hof" in page[page.index('<section class="first') : page.index('-findings-h"')]
    assert 'id="o0-SPAR014" class="serious"' in page


def test_long_names_of_columns_are_cut_in_the_terminal(spar, files, source, target):
    name = "x" * 10_000
    paths = files(source.rename(columns={"garden": name}), target.rename(columns={"garden": name}))
    out = spar("inspect", *paths, *LABEL, "--id", "home").stdout
    assert "xxx" in out
    assert len(out) < 10_000
