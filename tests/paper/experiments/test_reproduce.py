"""Every suite runs end to end on generated data: runs, features, heads, records, tables, figures."""

import sys
from dataclasses import replace

import pytest

from pyspar.paper.experiments.reproduce import describe_suites, reproduce
from pyspar.paper.experiments.suite import list_suite_names, read_suite
from pyspar.paper.runs.records import read_records

NETWORK_SUITES = [name for name in list_suite_names() if name != "table1"]
TWO_SEEDS = ("tabular", "tabular-search", "alpha", "cost", "rcf-mnist")


FAST_SUITES = {"tabular", "tabular-search", "alpha", "cost", "spectral-inflation", "povertymap-tuned", "rank-cut"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in FAST_SUITES)) for name in NETWORK_SUITES]
)
def test_a_miniature_of_every_suite_runs_end_to_end(name, mini):
    pytest.importorskip("torch")
    pytest.importorskip("optuna")
    suite = read_suite(name)
    result = reproduce(suite, mini if name in TWO_SEEDS else replace(mini, seeds=1))
    assert result.failures == []
    assert all(path.is_file() for path in result.files)
    assert {path.name for path in result.files} >= {"records.jsonl", "table.md"}
    assert all(sheet.rows for sheet in result.sheets)
    records = read_records(mini.out / name / "records.jsonl")
    assert all(r.spec["task"] == r.task and r.versions["torch"] and r.machine["processor"] for r in records)
    assert {r.spec["objective"] for r in records} == {method for block in suite.blocks for method in block.methods}
    text = (mini.out / name / "table.md").read_text()
    assert all(note in text for note in suite.differs)


def test_a_suite_with_missing_packages_is_not_ready(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "optuna", None)
    states = {name: state for name, _, state in describe_suites(None)}
    assert states["table1"] == "ready"
    assert "pyspar[torch]" in states["tabular"]
    assert "pyspar[paper]" not in states["tabular"]
    assert "pyspar[torch]" in states["tabular-search"]
    assert "pyspar[paper]" in states["tabular-search"]
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert "pyspar[vision]" in {name: state for name, _, state in describe_suites(None)}["rcf-mnist-imagenet"]


def test_a_suite_whose_pool_is_missing_is_not_ready(tmp_path):
    folder = tmp_path / "poverty_v1.1"
    (folder / "images").mkdir(parents=True)
    (folder / "dhs_metadata.csv").write_text("wealthpooled,country,urban\n")
    states = {name: state for name, _, state in describe_suites(tmp_path)}
    assert states["povertymap"] == "ready"
    assert states["povertymap-unlabeled"] == "incomplete povertymap"
