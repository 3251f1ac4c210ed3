"""Every suite goes all the way on generated data: runs, features, heads, records, tables, figures."""

import json
import operator

import numpy as np
import pytest

from pyspar.paper.experiments.reproduce import miniature, reproduce
from pyspar.paper.experiments.suite import suite_named, suite_names
from pyspar.paper.runs import parallel as pool
from pyspar.paper.runs import run as stage
from pyspar.paper.runs.heads import Head, predictions
from pyspar.paper.runs.records import read_records
from pyspar.paper.runs.store import Features, RunFolder

torch = pytest.importorskip("torch")
pytest.importorskip("optuna")
NETWORKS = [name for name in suite_names() if name != "table1"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_miniature_of_every_suite_runs_end_to_end(name, mini):
    suite = suite_named(name)
    found = reproduce(suite, mini)
    assert found.troubles == []
    assert all(path.is_file() for path in found.files)
    assert {path.name for path in found.files} >= {"records.jsonl", "table.md", "table.csv"}
    assert all(sheet.rows for sheet in found.sheets)
    records = read_records(mini.out / name / "records.jsonl")
    assert all(r.spec["task"] == r.task and r.versions["torch"] and r.machine["processor"] for r in records)
    methods = {method for block in suite.blocks for method in block.methods}
    assert {r.spec["objective"] for r in records} == methods
    text = (mini.out / name / "table.md").read_text()
    assert all(note in text for note in suite.differs)


def test_a_second_call_trains_nothing_and_writes_the_same_bytes(mini, monkeypatch):
    suite = suite_named("tabular")
    reproduce(suite, mini)
    files = sorted(p for p in (mini.out / "tabular").iterdir() if p.suffix != ".png")
    before = [p.read_bytes() for p in files]
    monkeypatch.setattr(stage, "train", lambda *_: pytest.fail("trained again"))
    reproduce(suite, mini)
    assert [p.read_bytes() for p in files] == before


def test_other_values_of_alpha_need_no_training(mini, monkeypatch):
    reproduce(suite_named("tabular"), mini)
    monkeypatch.setattr(stage, "train", lambda *_: pytest.fail("trained again"))
    found = reproduce(suite_named("alpha"), mini)
    assert found.troubles == []


def test_two_processes_side_by_side_give_the_same_records_as_one(mini, tmp_path):
    suite = suite_named("tabular")
    reproduce(suite, mini)
    side = type(mini)(out=tmp_path / "side", mini=True, jobs=2)
    reproduce(suite, side)
    for name in ("records.jsonl", "table.md", "table.csv"):
        assert (mini.out / "tabular" / name).read_bytes() == (side.out / "tabular" / name).read_bytes()


def test_a_run_that_fails_is_recorded_and_the_rest_go_on_and_it_is_tried_again(mini, monkeypatch):
    suite = suite_named("tabular")
    train = stage.train

    def failing(spec, *rest):
        if spec.objective == "C-Mixup":
            raise RuntimeError("the cat\n on the keyboard")
        return train(spec, *rest)

    monkeypatch.setattr(stage, "train", failing)
    found = reproduce(suite, mini)
    assert len(found.troubles) == 2
    assert "RuntimeError: the cat on the keyboard" in found.troubles[0]
    assert "the cat on the keyboard" in (mini.out / "tabular" / "table.md").read_text()
    failed = RunFolder.of(mini.out, mini.specs(miniature(suite))[1]).read_json("failed.json")
    assert "Traceback" in failed["traceback"]
    monkeypatch.setattr(stage, "train", train)
    again = reproduce(suite, mini)
    assert again.troubles == []
    assert any(row[0] == "C-Mixup + SpAR" for row in again.sheets[0].rows)


def test_a_process_that_dies_is_a_failed_run(mini, monkeypatch):
    spec = mini.specs(miniature(suite_named("alpha")))[0]
    job = stage.Job(spec, (), ("rmse",), mini.out, resume=False)
    monkeypatch.setattr(pool, "_work", operator.truth)  # a child that cannot even begin: it takes one argument, not two
    (outcome,) = pool.carry_out_all([job], 2, pool.Silent())
    assert outcome.kind == "failed"
    assert "the process died (exit code 1)" in outcome.reason


def test_features_that_were_dropped_are_made_again_only_when_a_new_head_needs_them(mini, monkeypatch):
    frugal = type(mini)(out=mini.out, mini=True, keep=False)
    reproduce(suite_named("tabular"), frugal)
    assert not list(mini.out.glob("runs/*/features-*.npz"))
    train = stage.train
    monkeypatch.setattr(stage, "train", lambda *_: pytest.fail("trained again"))
    assert reproduce(suite_named("tabular"), frugal).troubles == []
    monkeypatch.setattr(stage, "train", train)
    assert reproduce(suite_named("alpha"), frugal).troubles == []


def test_the_spec_beside_a_run_is_the_one_that_names_its_folder(mini):
    reproduce(suite_named("alpha"), mini)
    for spec in mini.specs(miniature(suite_named("alpha"))):
        folder = RunFolder.of(mini.out, spec)
        assert json.loads((folder.path / "spec.json").read_text()) == spec.as_dict()
        assert folder.is_done


def test_heads_are_a_literal_reading_of_the_paper(rng):
    X, Z = (rng.normal(size=(n, 5)).astype(np.float32) for n in (60, 40))
    y, w = rng.normal(size=60), rng.normal(size=(1, 5))
    empty, group = np.zeros(0), np.zeros(40, dtype=np.int64)
    features = Features(X, X[:0], Z, w, y, empty, np.zeros(40), group[:0], group)
    heads = [Head("trained"), Head("OLS"), Head("SpAR", {"alpha": 0.0}), Head("SpAR", {"alpha": 1.0})]
    trained, ols, kept, gone = predictions(features, heads).values()
    Z64 = Z.astype(np.float64)
    np.testing.assert_allclose(trained, Z64 @ w[0])
    np.testing.assert_allclose(ols, Z64 @ (np.linalg.pinv(X.astype(np.float64)) @ y), rtol=1e-10)
    np.testing.assert_allclose(kept, ols)  # alpha = 0 removes nothing
    np.testing.assert_allclose(gone, 0, atol=1e-12)  # alpha = 1 removes everything
