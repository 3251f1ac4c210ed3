"""Several runs: processes that die, runs that another process has locked, and progress reports."""

import multiprocessing
import operator
import os
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pyspar.paper.experiments.reproduce import make_miniature, reproduce
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs import parallel
from pyspar.paper.runs import run as run_module
from pyspar.paper.runs.parallel import run_parallel
from pyspar.paper.runs.store import RunFolder, hold_lock
from pyspar.terminal import SILENT, LineProgress, Progress

pytest.importorskip("torch")


class Killer(Progress):
    """Kills the process of a run as soon as it has started."""

    def start(self, key, title, *, total=None, unit=""):
        for child in multiprocessing.active_children():
            child.kill()


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_process_is_a_failure_that_is_recorded_in_the_folder(run):
    (outcome,) = run_parallel([run], 2, Killer())
    assert outcome.kind == "failed"
    assert "-9" in outcome.reason
    assert run.folder.read_json("failed.json")["error"] == outcome.reason


def test_a_process_that_cannot_start_is_a_failure(run, monkeypatch):
    monkeypatch.setattr(parallel, "_work", operator.truth)  # takes one argument instead of two
    (outcome,) = run_parallel([run], 2, SILENT)
    assert outcome.kind == "failed"
    assert "exit code 1" in outcome.reason


def test_a_pipe_that_breaks_within_a_message_is_a_failure(run):
    def break_pipe():
        raise OSError("got end of file during message")

    process = SimpleNamespace(join=lambda timeout=None: None, is_alive=lambda: False, exitcode=-9)
    worker = parallel._Worker(run, process, SimpleNamespace(recv=break_pipe))
    outcome = parallel._receive(worker)
    assert outcome.kind == "failed"
    assert "-9" in outcome.reason


@pytest.mark.slow
def test_two_processes_give_the_same_files_as_one(mini, tmp_path):
    suite = read_suite("alpha")
    one, two = replace(mini, out=tmp_path / "one"), replace(mini, out=tmp_path / "two", jobs=2)
    for options in (one, two):
        assert reproduce(suite, options).failures == []
    for name in ("records.jsonl", "table.md", "table.csv"):
        assert (one.out / "alpha" / name).read_bytes() == (two.out / "alpha" / name).read_bytes()


def test_each_run_reports_its_start_its_epochs_and_its_outcome(mini):
    lines = []
    reproduce(read_suite("alpha"), mini, LineProgress(lines.append))
    run_lines = [line for line in lines if line.startswith("skillcraft, ERM, 2 seeds: ")]
    _, epoch, outcome = (line.rpartition(": ")[2] for line in run_lines)
    assert (epoch, outcome) == ("1 of 2 epochs", "done")
    # The suite reports its start and the number of finished runs.
    assert len(lines) == 2 * len(run_lines) + 2


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_call_reports_reused_runs(finished_run, jobs):
    run, _ = finished_run
    lines = []
    (outcome,) = run_parallel([run], jobs, LineProgress(lines.append))
    assert outcome.reused
    assert [line for line in lines if "reused" in line] == [f"{run.spec.title}: {outcome.text}"]


def test_a_locked_run_is_waited_for(mini):
    pytest.importorskip("fcntl")
    suite = read_suite("alpha")
    first, second = mini.specs(make_miniature(suite))
    path = RunFolder.of(mini.out, first).path
    path.mkdir(parents=True)
    lines, locked, release = [], threading.Event(), threading.Event()

    def print_line(line):
        lines.append(line)
        if "waiting" in line:
            release.set()

    def hold():
        with hold_lock(path / "lock"):
            locked.set()
            release.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    locked.wait(60)
    result = reproduce(suite, mini, LineProgress(print_line))
    other.join()
    assert result.failures == []
    titles = {first.title: "first", second.title: "second"}
    events = [(titles[title], text) for title, _, text in (line.rpartition(": ") for line in lines) if title in titles]
    assert [name for name, text in events if "epoch" not in text] == [
        *("first", "first", "first"),  # start, waiting, done
        *("second", "second"),
    ]
    assert release.is_set()
    assert events[-1] == ("second", "done")


@pytest.mark.slow
def test_a_run_continues_when_the_process_that_holds_its_lock_dies(mini, monkeypatch):
    pytest.importorskip("fcntl")
    spec = mini.specs(make_miniature(read_suite("alpha")))[0]
    path = RunFolder.of(mini.out, spec).path
    path.mkdir(parents=True)
    code = (
        "import sys, time; from pathlib import Path; from pyspar.paper.runs.store import hold_lock\n"
        "with hold_lock(Path(sys.argv[1])): print('locked', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(path / "lock")], stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    keys, train = [], run_module.train
    monkeypatch.setattr(run_module, "train", lambda spec, *rest: keys.append(spec.key) or train(spec, *rest))
    progress = LineProgress(lambda line: other.kill() if "waiting" in line else None)
    result = reproduce(read_suite("alpha"), mini, progress)
    other.communicate()
    assert result.failures == []
    assert keys[0] == spec.key
