"""A head whose rule changed is scored again, without training, and its new numbers are those of the tables."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyspar.paper.experiments.reproduce import reproduce
from pyspar.paper.experiments.suite import suite_named
from pyspar.paper.output.page import current
from pyspar.paper.runs import heads, registry
from pyspar.paper.runs import run as stage
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.records import Record, append_records, read_records, write_records

RESULTS = Path(__file__).parents[3] / "results"


def test_only_a_rule_that_changed_has_its_version_in_the_key(monkeypatch):
    monkeypatch.setattr(registry, "RECIPES", {"Bayes-SpAR": 3})
    assert Head("OLS").key == '["OLS",{},"test"]'
    assert Head("SpAR, half cut", {"alpha": 0.9}).key == '["SpAR, half cut",{"alpha":0.9},"test"]'
    assert Head("Bayes-SpAR").key == '["Bayes-SpAR",{},"test",3]'
    monkeypatch.setattr(registry, "RECIPES", {"OLS": 2})
    assert Head("OLS, half cut").key == '["OLS, half cut",{},"test",2]'
    assert set(registry.RECIPES) <= set(registry.HEADS)


def test_the_first_version_leaves_no_trace_in_a_file_of_records(tmp_path):
    path = tmp_path / "r.jsonl"
    old, new = Record("t", "m", 1, "rmse", 1.0), Record("t", "m", 1, "rmse", 2.0, recipe=2)
    append_records(path, [old])
    assert "recipe" not in path.read_text()
    append_records(path, [new])
    assert read_records(path) == [old, new]
    assert current(suite_named("tabular"), read_records(path)) == [new]


def test_a_head_whose_rule_changed_is_scored_again_and_its_new_record_wins(mini, monkeypatch):
    pytest.importorskip("torch")
    suite = suite_named("tabular")
    file = mini.out / "tabular" / "records.jsonl"

    def by_method():
        found = {}
        for r in current(suite, read_records(file)):
            found.setdefault(r.method.partition(" + ")[2], []).append(r.value)
        return found

    reproduce(suite, mini)
    before, lines = by_method(), file.read_text().splitlines()
    changed = registry.RECIPES["Bayes-SpAR"] + 1
    monkeypatch.setitem(registry.RECIPES, "Bayes-SpAR", changed)
    fit_head = heads.fit_head

    def another_rule(source, target, method, **options):
        new = fit_head(source, target, method, **options)
        return replace(new, coef=new.coef + 1.0) if method == "bayes" else new

    monkeypatch.setattr(heads, "fit_head", another_rule)
    monkeypatch.setattr(stage, "train", lambda *_: pytest.fail("trained again"))
    found = reproduce(suite, mini)
    assert found.troubles == []
    after, new = by_method(), file.read_text().splitlines()[len(lines) :]
    assert file.read_text().splitlines()[: len(lines)] == lines  # a file of records only grows
    assert {(json.loads(line)["method"].partition(" + ")[2], json.loads(line)["recipe"]) for line in new} == {
        ("Bayes-SpAR", changed)
    }
    assert {name for name in before if before[name] != after[name]} == {"Bayes-SpAR"}
    assert all(a != b for a, b in zip(before["Bayes-SpAR"], after["Bayes-SpAR"], strict=True))
    # The table has the new numbers and none of the old: as many seeds as there are.
    assert "4 seeds" not in (mini.out / "tabular" / "table.md").read_text()
    table = (mini.out / "tabular" / "table.md").read_bytes()
    reproduce(suite, mini)
    assert (mini.out / "tabular" / "table.md").read_bytes() == table
    assert len(file.read_text().splitlines()) == len(lines) + len(new)


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the records are in the repository alone")
def test_committed_records_are_read_and_written_as_they_are(tmp_path):
    files = sorted(RESULTS.glob("*/records.jsonl"))
    assert files
    for file in files:
        records = read_records(file)
        write_records(tmp_path / "r.jsonl", records)
        assert (tmp_path / "r.jsonl").read_text() == file.read_text()
        assert current(suite_named(file.parent.name), records) == records
