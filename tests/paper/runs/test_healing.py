"""Damaged files are made again, another process is left alone, and a process that dies leaves a record."""

import json
import multiprocessing
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pyspar.paper.experiments.reproduce import miniature, reproduce
from pyspar.paper.experiments.suite import suite_named
from pyspar.paper.runs import parallel as pool
from pyspar.paper.runs import run as stage
from pyspar.paper.runs.machine import made_now
from pyspar.paper.runs.records import Record, append_records, read_records
from pyspar.paper.runs.run import Job, carry_out
from pyspar.paper.runs.run_suite import Options
from pyspar.paper.runs.store import RunFolder

pytest.importorskip("torch")


def silently(done, total):
    """Watch nothing."""


@pytest.fixture
def job(mini):
    from pyspar.paper.runs.heads import Head

    spec = mini.specs(miniature(suite_named("alpha")))[0]
    return Job(spec, (Head("OLS"), Head("SpAR")), ("rmse",), mini.out)


@pytest.mark.parametrize("name", ["features-1.npz", "scores.json", "train.json", "timing.json", "made.json"])
@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"\x00\xff"], ids=["cut off", "not text"])
def test_a_damaged_file_of_a_run_is_made_again(job, name, damage):
    first = carry_out(job, silently)
    path = RunFolder.of(job.root, job.spec).path / name
    path.write_bytes(damage(path.read_bytes()))
    if name.startswith("features"):  # they are read only for what was not scored yet
        (path.parent / "scores.json").unlink()
    again = carry_out(job, silently)
    assert (again.kind, again.scores, again.validation) == ("done", first.scores, first.validation)
    assert set(again.timing) == {"train", "features"}
    assert not (path.parent / "failed.json").exists()


@pytest.mark.parametrize("content", ["[1]", "{}", '{"0": 3}', '{"train": "x", "features": {}}'])
@pytest.mark.parametrize("name", ["scores.json", "train.json", "timing.json"])
def test_a_file_of_a_run_that_is_json_but_not_ours_is_made_again(job, name, content):
    first = carry_out(job, silently)
    (RunFolder.of(job.root, job.spec).path / name).write_text(content)
    again = carry_out(job, silently)
    assert (again.kind, again.scores, again.validation) == ("done", first.scores, first.validation)


def test_features_that_a_suite_reads_itself_are_made_again(mini):
    suite = suite_named("spectral-inflation")
    first = reproduce(suite, mini)
    for path in mini.out.glob("runs/*/features-0.npz"):
        path.write_bytes(path.read_bytes()[:100])
    again = reproduce(suite, mini)
    assert again.troubles == []
    assert [s.rows for s in again.sheets] == [s.rows for s in first.sheets]


def test_a_checkpoint_that_cannot_be_read_is_no_checkpoint(job):
    folder = RunFolder.of(job.root, job.spec)
    folder.path.mkdir(parents=True)
    folder.checkpoint.write_bytes(b"not a checkpoint")
    assert carry_out(job, silently).kind == "done"


def test_a_failure_is_forgotten_after_a_success(job, monkeypatch):
    carry_out(job, silently)
    path = RunFolder.of(job.root, job.spec).path
    (path / "scores.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(stage, "predictions", lambda *_: 1 / 0)
        assert carry_out(job, silently).kind == "failed"
    assert (path / "failed.json").is_file()
    assert carry_out(job, silently).kind == "done"
    assert not (path / "failed.json").exists()


ADD = """
import sys
from pathlib import Path
from pyspar.paper.runs.records import Record, append_records
path, start = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for i in range(start, start + 40):
    append_records(path, [Record("t", "m", i, "rmse", float(i))])
"""


@pytest.mark.skipif(os.name == "nt", reason="needs flock")
def test_two_processes_that_add_the_same_records_leave_each_once_and_whole(tmp_path):
    path = tmp_path / "r.jsonl"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, str(path), str(start)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for start in (0, 20)
    ]
    for process in both:
        process.stdout.readline()
    for process in both:  # both are ready, so that they write at the same time
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate()
        assert process.returncode == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["value"] for line in lines) == list(range(60))


def test_a_number_that_is_in_a_file_twice_is_read_once(tmp_path):
    path = tmp_path / "r.jsonl"
    append_records(path, [Record("t", "m", 0, "rmse", 1.0)])
    path.write_text(path.read_text() * 2)
    assert len(read_records(path)) == 1


class Killer(pool.Silent):
    """Kills the process of a run as soon as it was started."""

    def started(self, key, title):
        for child in multiprocessing.active_children():
            child.kill()


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_process_that_is_killed_leaves_the_record_that_the_message_names(job):
    (outcome,) = pool.carry_out_all([job], 2, Killer())
    assert (outcome.kind, outcome.reason) == ("failed", "the process died (exit code -9)")
    recorded = RunFolder.of(job.root, job.spec).read_json("failed.json")
    assert recorded["error"] == outcome.reason


def test_a_pipe_that_breaks_in_the_midst_of_a_message_is_a_process_that_died(job):
    def broken():
        raise OSError("got end of file during message")

    process = SimpleNamespace(join=lambda timeout=None: None, is_alive=lambda: False, exitcode=-9)
    outcome = pool._read(pool._Worker(job, process, SimpleNamespace(recv=broken)), pool.Silent())
    assert outcome.reason == "the process died (exit code -9)"


def test_records_carry_the_versions_of_the_training_and_of_the_scoring(mini, monkeypatch):
    suite = suite_named("alpha")
    reproduce(suite, mini)
    for path in mini.out.glob("runs/*/made.json"):
        made = json.loads(path.read_text())
        made["training"]["versions"]["torch"] = "0.1"
        made["training"]["machine"]["processor"] = "abacus"
        path.write_text(json.dumps(made))
    (mini.out / "alpha" / "records.jsonl").unlink()
    reproduce(suite, mini)
    now = made_now()
    for record in read_records(mini.out / "alpha" / "records.jsonl"):
        assert record.versions["torch"] == "0.1"
        assert record.versions["torch, scoring"] == now["versions"]["torch"]
        assert record.machine["processor"] == "abacus"
        assert record.versions["numpy"] == now["versions"]["numpy"]


def test_a_run_without_such_a_note_has_the_versions_of_now(mini):
    suite = suite_named("alpha")
    reproduce(suite, mini)
    for path in mini.out.glob("runs/*/made.json"):
        path.unlink()
    (mini.out / "alpha" / "records.jsonl").unlink()
    assert reproduce(suite, mini).troubles == []
    assert all(r.versions == made_now()["versions"] for r in read_records(mini.out / "alpha" / "records.jsonl"))


def test_times_are_of_runs_that_no_other_suite_trains():
    from pyspar.paper.experiments import cost

    options = Options()
    asked = []

    def keep(suite, specs, *rest, **job):
        asked.extend(specs)
        assert rest[1].jobs == 1
        assert job["resume"] is False

    original, cost.perform = cost.perform, keep
    try:
        cost.gather(suite_named("cost"), Options(jobs=4), pool.Silent())
    finally:
        cost.perform = original
    assert all(len(spec.seeds) == 1 for spec in asked)
    assert not {s.key for s in asked} & {s.key for s in options.specs(suite_named("tabular"))}
    assert all(spec.options["timed"] for spec in asked)


def test_what_a_suite_measures_itself_is_measured_with_one_thread(mini, monkeypatch):
    import torch

    from pyspar.paper.experiments import inflation

    seen = []
    real = inflation.sorted_inflation

    def watched(*arguments):
        seen.append(torch.get_num_threads())
        return real(*arguments)

    monkeypatch.setattr(inflation, "sorted_inflation", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        reproduce(suite_named("spectral-inflation"), mini)
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_a_training_that_diverges_has_a_kind_of_its_own(job, monkeypatch):
    from pyspar.paper import TrainingError

    def runaway(*_, **__):
        raise TrainingError("ERM diverged")

    monkeypatch.setattr("pyspar.paper.train_seeds", runaway)
    assert carry_out(job, silently).kind == "diverged"


def test_a_draw_of_a_search_that_diverges_is_a_notice_and_no_trouble(mini, monkeypatch):
    pytest.importorskip("optuna")
    from pyspar.paper.runs.features import DivergedError

    train, calls = stage.train, []

    def first_runs_away(*arguments):
        calls.append(1)
        if len(calls) == 1:
            raise DivergedError("the loss is no number")
        return train(*arguments)

    monkeypatch.setattr(stage, "train", first_runs_away)
    found = reproduce(suite_named("tabular-tuned"), mini)
    assert found.troubles == []
    assert any("diverged (DivergedError: the loss is no number)" in notice for notice in found.notices)


def test_adaptation_in_a_miniature_does_something_and_not_all(mini):
    reproduce(suite_named("tabular"), mini)
    records = read_records(mini.out / "tabular" / "records.jsonl")
    values = {(r.task, r.method, r.seed): r.value for r in records if r.metric == "rmse"}
    pairs = [(v, values[t, "ERM + SpAR", s]) for (t, m, s), v in values.items() if m == "ERM + OLS"]
    assert pairs
    assert all(a != b for a, b in pairs)
    assert len({b for _, b in pairs}) == len(pairs)  # were everything removed, all seeds would predict zero
