"""One run: missing and damaged files are created again, and failures are recorded."""

import pytest

from pyspar.errors import InputError
from pyspar.paper.runs import run as run_module
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.run import record_failure, run_one

pytest.importorskip("torch")


def ignore_epoch(message):
    """Report nothing."""


def run_again(run, first):
    """Do a run again, and check that it has the outcome of the first time."""
    again = run_one(run, ignore_epoch)
    assert (again.kind, again.reason) == ("done", "")
    assert (again.scores, again.training["validation"]) == (first.scores, first.training["validation"])
    assert set(again.training["seconds"]) == {"train", "features"}
    assert not (run.folder.path / "failed.json").exists()
    return again


@pytest.mark.parametrize("name", ["features-1.npz", "scores.json", "done.json"])
@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"\x00\xff"], ids=["truncated", "not text"])
def test_a_damaged_file_is_created_again(finished_run, name, damage):
    run, first = finished_run
    path = run.folder.path / name
    path.write_bytes(damage(path.read_bytes()))
    if name.startswith("features"):  # features are read for heads without scores only
        (path.parent / "scores.json").unlink()
    run_again(run, first)


@pytest.mark.parametrize("content", ["[1]", "{}", '{"content": 3}', '{"content": {}, "sha256": 5}'])
@pytest.mark.parametrize("name", ["scores.json", "done.json"])
def test_a_json_file_with_other_content_is_created_again(finished_run, name, content):
    run, first = finished_run
    (run.folder.path / name).write_text(content)
    run_again(run, first)


def test_features_with_a_damaged_header_are_computed_again(finished_run):
    run, first = finished_run
    path = run.folder.path / "features-0.npz"
    path.write_bytes(path.read_bytes().replace(b"'descr': '<f4'", b"'descr': '<f4(", 1))
    (run.folder.path / "scores.json").unlink()
    assert not run_again(run, first).reused


def test_scores_are_computed_again_from_the_features(finished_run, monkeypatch):
    run, first = finished_run
    monkeypatch.setattr(run_module, "train", lambda *_: pytest.fail("trained again"))
    scores = run.folder.read_json("scores.json")
    del scores[Head("SpAR").key]
    run.folder.write_json("scores.json", scores)
    assert run_again(run, first).reused


def test_new_metrics_are_added_to_the_stored_scores(finished_run, monkeypatch):
    run, first = finished_run
    monkeypatch.setattr(run_module, "train", lambda *_: pytest.fail("trained again"))
    other = type(run)(run.spec, run.heads, ("r",), run.out)
    key = run.heads[0].key
    scores = run_one(other, ignore_epoch).scores[key]["seeds"]
    assert scores["0"] == {**first.scores[key]["seeds"]["0"], "r": scores["0"]["r"]}


def test_an_unreadable_checkpoint_is_ignored(run):
    run.folder.path.mkdir(parents=True)
    (run.folder.path / "checkpoint.pt").write_bytes(b"not a checkpoint")
    assert run_one(run, ignore_epoch).kind == "done"


def test_the_spec_in_the_folder_has_the_key_of_the_folder(finished_run):
    run, _ = finished_run
    assert run.folder.read_json("spec.json") == run.spec.as_dict()
    assert run.folder.path.name == run.spec.key
    assert run.folder.is_done


def test_a_success_removes_the_record_of_a_failure(finished_run, monkeypatch):
    run, _ = finished_run
    path = run.folder.path
    (path / "scores.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "predict_with_heads", lambda *_: 1 / 0)
        assert run_one(run, ignore_epoch).kind == "failed"
    assert "ZeroDivisionError" in run.folder.read_json("failed.json")["traceback"]
    assert run_one(run, ignore_epoch).kind == "done"
    assert not (path / "failed.json").exists()


def test_a_failure_that_cannot_be_recorded_is_a_storage_error_with_both_reasons(run, monkeypatch):
    def fill_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(run.folder), "write_json", fill_disk)
    outcome = record_failure(run, "failed", "the first reason")
    assert outcome.kind == "storage"
    assert "No space left on device" in outcome.reason
    assert "the first reason" in outcome.reason


def test_an_input_error_of_the_training_without_a_checkpoint_is_a_failure(run, monkeypatch):
    def refuse(*_):
        raise InputError("the epochs must be positive")

    monkeypatch.setattr(run_module, "train", refuse)
    outcome = run_one(run, ignore_epoch)
    assert (outcome.kind, outcome.reason) == ("failed", "InputError: the epochs must be positive")


def test_a_training_that_diverges_has_its_own_kind_of_outcome(run, monkeypatch):
    from pyspar.paper import TrainingError

    def diverge(*_, **__):
        raise TrainingError("ERM diverged")

    monkeypatch.setattr("pyspar.paper.train_seeds", diverge)
    assert run_one(run, ignore_epoch).kind == "diverged"
