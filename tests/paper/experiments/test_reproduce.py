"""Every suite runs end to end on generated data: runs, features, heads, records, tables, figures."""

import sys
from dataclasses import replace

import pytest

from pyspar.paper.experiments.reproduce import (
    describe_suites,
    find_cautions,
    make_miniature,
    reproduce,
    select_findings,
    select_suites,
)
from pyspar.paper.experiments.suite import list_suite_names, read_suite
from pyspar.paper.runs import run as run_module
from pyspar.paper.runs.records import Record, read_records
from pyspar.paper.runs.run_suite import Options

NETWORK_SUITES = [name for name in list_suite_names() if name != "table1"]
ONE_SEED = {
    "chair-angles",
    "chair-angles-pretrained",
    "rcf-mnist-pretrained",
    "povertymap-unlabeled",
}  # the largest suites; rcf-mnist and povertymap have two


@pytest.fixture
def few_checkpoints(monkeypatch):
    """Train image networks without checkpoints, which take most of the time, except for one method with a teacher."""
    train = run_module.train

    def train_without_checkpoint(spec, task, checkpoint, on_epoch):
        keeps = spec.network == "mlp" or spec.objective == "Noisy Student"
        return train(spec, task, checkpoint if keeps else None, on_epoch)

    monkeypatch.setattr(run_module, "train", train_without_checkpoint)


SLOW_SUITES = {"povertymap", "povertymap-unlabeled", "rcf-mnist", "rcf-mnist-pretrained", "chair-angles"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW_SUITES)) for name in NETWORK_SUITES]
)
def test_a_miniature_of_every_suite_runs_end_to_end(name, mini, few_checkpoints):
    pytest.importorskip("torch")
    pytest.importorskip("optuna")
    suite = read_suite(name)
    result = reproduce(suite, replace(mini, seeds=1) if name in ONE_SEED else mini)
    assert result.failures == []
    assert all(path.is_file() for path in result.files)
    assert {path.name for path in result.files} >= {"records.jsonl", "table.md", "table.csv"}
    assert all(sheet.rows for sheet in result.sheets)
    records = read_records(mini.out / name / "records.jsonl")
    assert all(r.spec["task"] == r.task and r.versions["torch"] and r.machine["processor"] for r in records)
    assert {r.spec["objective"] for r in records} == {method for block in suite.blocks for method in block.methods}
    text = (mini.out / name / "table.md").read_text()
    assert all(note in text for note in suite.differs)


def make_records(suite, seeds):
    return [
        Record(block.tasks[0], method, seed, suite.metrics[0], 6.0)
        for block in suite.blocks
        for method in block.methods
        for seed in range(seeds)
    ]


@pytest.mark.parametrize("name", ["tabular", "rcf-mnist", "rank-cut"])
def test_findings_are_shown_for_the_full_number_of_seeds_only(name):
    suite = read_suite(name)
    assert suite.found
    assert select_findings(suite, make_records(suite, suite.seeds)) == suite.found
    for seeds in (1, 2, suite.seeds - 1, suite.seeds + 1):
        assert select_findings(suite, make_records(suite, seeds)) == ()
    assert select_findings(suite, []) == ()
    without_method = [r for r in make_records(suite, suite.seeds) if r.method != "C-Mixup"]
    assert select_findings(suite, without_method) == ()
    assert select_findings(make_miniature(suite), make_records(suite, 2)) == ()


def test_a_suite_with_missing_packages_is_not_ready(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "optuna", None)
    states = {name: state for name, _, state in describe_suites(None)}
    assert states["table1"] == "ready"
    assert "pyspar[torch]" in states["tabular"]
    assert "pyspar[paper]" not in states["tabular"]
    assert "pyspar[torch]" in states["tabular-tuned"]
    assert "pyspar[paper]" in states["tabular-tuned"]


def test_suites_with_images_are_announced_as_slow_on_a_cpu(tmp_path):
    suites = select_suites(["tabular", "rcf-mnist"])
    (caution,) = find_cautions(suites, Options(out=tmp_path))
    assert "rcf-mnist" in caution
    assert "tabular" not in caution
    assert find_cautions(suites, Options(out=tmp_path, mini=True)) == []
