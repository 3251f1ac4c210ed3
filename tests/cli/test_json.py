"""``--json``: every command prints one JSON value and nothing else on stdout, with the numbers of its text."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
import typer

from pyspar.cli.app import app
from pyspar.wording import format_number

LABEL = ("--label", "price")


@pytest.fixture
def run_json(spar):
    def run(*arguments, code=0):
        result = spar(*arguments, "--json")
        assert result.exit_code == code, result.output
        assert result.stderr == ""
        return json.loads(result.stdout)

    return run


def test_every_command_has_the_option():
    def walk(command, name):
        for child, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{name} {child}".strip())
        if not hasattr(command, "commands"):
            yield name, {option for parameter in command.params for option in parameter.opts}

    commands = dict(walk(typer.main.get_command(app), ""))
    without = {name for name, options in commands.items() if "--json" not in options}
    assert without == set()
    assert len(commands) >= 10


def test_adapt_has_the_numbers_of_its_text_and_writes_its_files(run_json, spar, files, source, target, tmp_path):
    paths, out = files(source, target), tmp_path / "p.csv"
    found = run_json("adapt", *paths, *LABEL, "--id", "home", "-o", out)
    text = spar("adapt", *paths, *LABEL, "--id", "home").stdout
    for number in (found["expected"]["model"]["rmse"], found["home"], found["true"]["model"], found["noise"]):
        assert format_number(number) in text
    assert found["headline"] in text
    assert all(found[name] in text for name in ("next_step", "comparison"))
    assert found["data"]["source_rows"] == len(source)
    assert found["data"]["target_rows"] == found["true"]["rows"] == len(target)
    assert found["output"] == str(out)
    written = pd.read_csv(out)
    assert np.sqrt(np.mean((written["prediction"] - target["price"]) ** 2)) == pytest.approx(found["true"]["model"])
    low, high = found["expected"]["model"]["interval95"]
    assert low < found["expected"]["model"]["rmse"] < high


def test_adapt_without_labels_has_the_base_rate_of_its_outcome(run_json, spar, files, source, target):
    arguments = "adapt", *files(source, target.drop(columns="price")), *LABEL, "--id", "home"
    found, text = run_json(*arguments), spar(*arguments).stdout
    assert found["experience"] in text
    assert found["base_rate"] is not None
    assert found["recommended"]


def test_labels_predictions_and_summaries(run_json, files, source, target, tmp_path):
    paths = files(source, target.drop(columns="price"))
    chosen = run_json("label", *paths, *LABEL, "--rows", 4, "-o", tmp_path / "l.csv")
    table = pd.read_csv(tmp_path / "l.csv")
    assert [row["row"] for row in chosen["rows"]] == table["row"].tolist()
    assert [row["reason"] for row in chosen["rows"]] == table["reason"].tolist()
    table["price"] = target["price"].to_numpy()[table["row"]]
    table.to_csv(tmp_path / "l.csv", index=False)
    options = ("--labels", tmp_path / "l.csv")
    corrected = run_json("adapt", *paths, *LABEL, *options, "--use-target-labels", "--save", tmp_path / "m.skops")
    assert corrected["corrected"]["labels"] == 4
    assert 0.0 <= corrected["corrected"]["relation_p_value"] <= 1.0
    inspected = run_json("inspect", *paths, *LABEL, *options)
    assert inspected["outputs"][0]["labels"]["n"] == 4
    assert f"--labels {tmp_path.name}" not in inspected["command"]
    assert "--labels l.csv" in inspected["command"]
    target.to_csv(tmp_path / "new.csv", index=False)
    predicted = run_json("predict", tmp_path / "m.skops", tmp_path / "new.csv", *LABEL, "-o", tmp_path / "p.parquet")
    assert (predicted["rows"], predicted["level"], predicted["true"]["rows"]) == (len(target), 0.9, len(target))
    summary = run_json("summarize", paths[0], *LABEL, "-o", tmp_path / "s.npz")
    assert summary["bytes_written"] == (tmp_path / "s.npz").stat().st_size
    assert {column["column"] for column in summary["ignored"]} >= {"town"}


def test_inspect_prints_the_json_of_its_report(run_json, files, source, target, tmp_path):
    data = tmp_path / "r.json"
    found = run_json("inspect", *files(source, target), *LABEL, "--report", data, "--title", "Homes")
    assert found == json.loads(data.read_text(encoding="utf-8"))
    assert found["title"] == "Homes"


@pytest.mark.parametrize(("arguments", "key"), [(("reproduce",), "state"), (("data", "list"), "licence")])
def test_the_lists_of_suites_and_data_sets(run_json, arguments, key):
    found = run_json(*arguments)
    assert len({entry["name"] for entry in found}) == len(found) > 3
    assert all(entry[key] for entry in found)


def test_an_error_leaves_stdout_empty(spar, files, source, target):
    result = spar("adapt", *files(source, target), "--label", "prize", "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "'price'" in result.stderr


def test_the_same_report_twice_is_refused(spar, files, source, target, tmp_path):
    twice = ("--report", tmp_path / "r.json") * 2
    result = spar("inspect", *files(source, target), *LABEL, *twice)
    assert result.exit_code == 2
    assert re.search(r"r\.json.*twice", result.stderr)
