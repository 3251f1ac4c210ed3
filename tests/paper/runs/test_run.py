"""One run: missing and damaged files are created again, failures are outcomes, and a killed command continues."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.paper.runs import run as run_module
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.run import run_one
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import RunFolder, hold_lock
from pyspar.paper.runs.summary import FILE, read_summaries, summarise, write_summaries

torch = pytest.importorskip("torch")


def forbid_training(monkeypatch):
    monkeypatch.setattr(run_module, "train_network", lambda *_, **__: pytest.fail("trained again"))


def run_again(run, first):
    """Do a run again, and check that it has the outcome of the first time."""
    again = run_one(run)
    assert (again.kind, again.reason) == ("done", "")
    assert (again.scores, again.training["validation"]) == (first.scores, first.training["validation"])
    assert set(again.training["seconds"]) == {"train", "features"}
    return again


@pytest.mark.parametrize("name", ["features.npz", "scores.json", "done.json", "model.pt"])
@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"\x00\xff", lambda c: b"[1]"])
def test_a_damaged_file_is_created_again(finished_run, name, damage):
    run, first = finished_run
    path = run.folder.path / name
    path.write_bytes(damage(path.read_bytes()))
    if name in ("features.npz", "model.pt"):  # read for heads without scores only
        (path.parent / "scores.json").unlink()
    run_again(run, first)


def test_features_without_their_weights_are_trained_again_and_with_them_computed_again(finished_run, monkeypatch):
    run, first = finished_run
    for name in ("features.npz", "scores.json"):
        (run.folder.path / name).unlink()
    with monkeypatch.context() as patch:
        forbid_training(patch)
        assert run_again(run, first).reused
    for name in ("features.npz", "scores.json", "model.pt"):
        (run.folder.path / name).unlink()
    assert not run_again(run, first).reused


def test_new_heads_and_metrics_need_no_training_and_are_added_to_the_stored_scores(finished_run, monkeypatch):
    run, first = finished_run
    forbid_training(monkeypatch)
    other = replace(run, heads=(*run.heads, Head("trained")), metrics=("r",))
    scores = run_one(other).scores
    key = run.heads[0].key
    assert scores[key] == {**first.scores[key], "r": scores[key]["r"]}
    assert set(scores) == {head.key for head in other.heads}


def test_an_unreadable_checkpoint_is_ignored_and_the_folder_has_the_key_of_the_spec(run):
    run.folder.path.mkdir(parents=True)
    (run.folder.path / "checkpoint.pt").write_bytes(b"not a checkpoint")
    assert run_one(run).kind == "done"
    assert run.folder.read_json("spec.json") == run.spec.as_dict()
    assert run.folder.path.name == run.spec.key
    names = {path.name for path in run.folder.path.iterdir()}
    assert names == {"lock", "spec.json", "done.json", "scores.json", "features.npz", "model.pt"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("the epochs must be positive"), "failed"),
        (RuntimeError("the cat\n on the keyboard"), "failed"),
        ("TrainingError", "diverged"),
    ],
)
def test_a_failure_is_an_outcome_with_its_reason(run, monkeypatch, error, kind):
    from pyspar.paper import TrainingError

    error = TrainingError("ERM diverged") if error == "TrainingError" else error

    def fail(*_, **__):
        assert torch.backends.cudnn.benchmark
        raise error

    monkeypatch.setattr(run_module, "train_network", fail)
    outcome = run_one(run)
    assert not torch.backends.cudnn.benchmark
    assert outcome.kind == kind
    assert " ".join(str(error).split()) in outcome.reason


def test_a_full_disk_is_raised_and_leaves_no_temporary_file(run, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run_one(run)
    assert {path.name for path in run.folder.path.iterdir()} == {"lock"}


def test_networks_that_only_differ_in_the_rows_they_are_adapted_to_are_trained_once():
    base = RunSpec("povertymap", "multispectral-resnet18", "ERM", 0, {"fold": "A"})
    assert base.key == replace(base, options={"fold": "A", "unlabeled": True}).key
    assert base.key == replace(base, options={"fold": "A", "hold_out": "id"}).key
    assert base.key != replace(base, options={"fold": "A", "hold_out": 0.2}).key
    assert base.key != replace(base, options={"fold": "B"}).key
    coral = replace(base, objective="Deep CORAL")
    assert coral.key != replace(coral, options={"fold": "A", "unlabeled": True}).key


def test_a_pool_that_an_earlier_suite_did_not_need_is_read_from_the_weights(run, monkeypatch):
    spec = replace(run.spec, options={"mini": "pool"})
    first = replace(run, spec=spec)
    assert run_one(first).kind == "done"
    (first.folder.path / "features-unlabeled.npz").unlink()
    forbid_training(monkeypatch)
    pool = Head("SpAR", adapt_to="unlabeled")
    outcome = run_one(replace(first, heads=(pool,)))
    assert outcome.reused
    assert outcome.scores[pool.key] != outcome.scores[Head("SpAR").key]


@pytest.mark.skipif(os.name == "nt", reason="needs flock")
def test_a_second_process_waits_for_the_lock_and_foreign_folders_stay(tmp_path):
    order = []

    def hold():
        with hold_lock(tmp_path / "lock"):
            order.append("second")

    with hold_lock(tmp_path / "lock"):
        thread = threading.Thread(target=hold)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".features.abc.npz").write_bytes(b"left by a killed process")
    with RunFolder(tmp_path).lock():
        assert {path.name for path in tmp_path.iterdir()} == {"lock", ".ipynb_checkpoints"}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_command_that_is_killed_continues_and_writes_the_same_records(tmp_path, jobs):
    def command(out):
        words = ["reproduce", "tabular", "--mini", "--jobs", jobs, "--out", str(out)]
        return [sys.executable, "-m", "pyspar", *words]

    subprocess.run(command(tmp_path / "unbroken"), check=True, capture_output=True)
    process = subprocess.Popen(command(tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "killed").glob("runs/*/done.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    subprocess.run(command(tmp_path / "killed"), check=True, capture_output=True)
    texts = [(tmp_path / name / "tabular" / "records.jsonl").read_text() for name in ("unbroken", "killed")]
    values = [
        sorted((r["run"], r["method"], r["value"]) for r in map(json.loads, t.splitlines()) if "value" in r)
        for t in texts
    ]
    assert values[0] == values[1]
    assert (tmp_path / "killed" / "tabular" / "table.md").is_file()


def test_a_summary_scores_the_trained_head_and_a_new_one_to_three_digits(finished_run, tmp_path):
    from pyspar import SpARRegressor

    run, _ = finished_run
    features = run.folder.read_features()
    write_summaries(tmp_path / FILE, {("ERM", 0): summarise(features)})
    summary = read_summaries(tmp_path / FILE)["ERM", 0]
    test = features.test.astype(float)
    trained = np.sqrt(np.mean((test @ features.head[0] - features.y_test) ** 2))
    assert summary.trained_rmse == pytest.approx(trained, rel=1e-3)
    outcome = run_one(replace(run, heads=(Head("OLS"),)))
    ols = SpARRegressor(fit_intercept=False).fit(summary.source)
    assert summary.rmse(ols.coef_) == pytest.approx(outcome.scores[Head("OLS").key]["rmse"], rel=1e-3)
    content = bytearray((tmp_path / FILE).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match="cannot read"):
        read_summaries(tmp_path / FILE)
