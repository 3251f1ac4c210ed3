"""Two processes on one folder: each leaves alone what the other is at, comes back to it, and both end complete."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from pyspar.paper.experiments.reproduce import miniature, reproduce
from pyspar.paper.experiments.suite import suite_named
from pyspar.paper.output.lines import Lines
from pyspar.paper.runs import run as stage
from pyspar.paper.runs import store
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.locks import held
from pyspar.paper.runs.run import Job, carry_out
from pyspar.paper.runs.store import RunFolder

pytest.importorskip("torch")
pytest.importorskip("fcntl")


def silently(done, total):
    """Watch nothing."""


@pytest.fixture
def job(mini):
    spec = mini.specs(miniature(suite_named("alpha")))[0]
    return Job(spec, (Head("OLS"), Head("SpAR")), ("rmse",), mini.out)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(store, "_PATIENCE", 0.1)


def test_a_run_that_another_process_does_is_busy_and_nothing_is_written_there(job, impatient):
    path = RunFolder.of(job.root, job.spec).path
    path.mkdir(parents=True)
    with held(path / "lock", patience=0):
        outcome = carry_out(job, silently)
    assert outcome.kind == "busy"
    assert "another process is working on" in outcome.reason
    assert [p.name for p in path.iterdir()] == ["lock"]


def test_a_run_that_another_process_is_at_comes_last_and_is_waited_for(mini, impatient):
    suite = suite_named("alpha")
    first, second = (spec.title for spec in mini.specs(miniature(suite)))
    path = RunFolder.of(mini.out, mini.specs(miniature(suite))[0]).path
    path.mkdir(parents=True)
    said, free = [], threading.Event()

    def say(line):
        said.append(line)
        if "waiting" in line:
            free.set()

    def other_process():
        with held(path / "lock", patience=0):
            there.set()
            free.wait(60)

    there = threading.Event()
    other = threading.Thread(target=other_process)
    other.start()
    there.wait(60)
    found = reproduce(suite, mini, Lines(say))
    other.join()
    assert found.troubles == []
    assert [line for line in said if "epoch" not in line] == [
        "2 runs",
        f"{first}: begins",
        f"{first}: another process is at it, so it comes last",
        f"{second}: begins",
        f"{second}: done",
        f"{first}: waiting for the other process; Ctrl-C stops that",
        f"{first}: done",
    ]


def command(out, jobs):
    return [sys.executable, "-m", "pyspar.paper", "alpha", "--mini", "--out", str(out), "--jobs", str(jobs)]


def test_two_calls_at_the_same_time_both_end_complete_with_the_tables_of_one(mini, tmp_path):
    reproduce(suite_named("alpha"), mini)
    shared = tmp_path / "shared"
    both = [
        subprocess.Popen(command(shared, 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        shown, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert "communities-and-crime" in shown
        assert "not done" not in shown
    for name in ("records.jsonl", "table.md", "table.csv"):
        assert (shared / "alpha" / name).read_bytes() == (mini.out / "alpha" / name).read_bytes()


def test_ctrl_c_ends_the_wait_politely(mini):
    spec = mini.specs(miniature(suite_named("alpha")))[0]
    lock = RunFolder.of(mini.out, spec).path / "lock"
    lock.parent.mkdir(parents=True)
    with held(lock, patience=0):
        process = subprocess.Popen(
            command(mini.out, 2),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for line in process.stderr:
            if "waiting" in line:
                break
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in said
    assert "Traceback" not in said


def test_a_run_is_done_here_when_the_process_that_was_at_it_dies(mini, impatient, monkeypatch):
    spec = mini.specs(miniature(suite_named("alpha")))[0]
    path = RunFolder.of(mini.out, spec).path
    path.mkdir(parents=True)
    code = (
        "import sys, time; from pathlib import Path; from pyspar.paper.runs.locks import held\n"
        "with held(Path(sys.argv[1]), patience=0): print('there', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(path / "lock")], stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    trained, train = [], stage.train
    monkeypatch.setattr(stage, "train", lambda spec, *rest: trained.append(spec.key) or train(spec, *rest))
    found = reproduce(suite_named("alpha"), mini, Lines(lambda line: other.kill() if "waiting" in line else None))
    other.communicate()
    assert found.troubles == []
    assert trained[-1] == spec.key
