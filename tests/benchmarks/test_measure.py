"""Tasks in processes: results as they end, faulty tasks by name, and no process left."""

import json
import multiprocessing
import time

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of an installed package")

from benchmarks.measure import run_in_processes


def test_a_faulty_task_is_reported_and_the_others_continue(capsys):
    tasks = [("1",), ("{broken",), ("[2]",)]
    assert sorted(run_in_processes(json.loads, tasks, jobs=2, description="reading")) == [(("1",), 1), (("[2]",), [2])]
    assert "{broken: JSONDecodeError" in capsys.readouterr().out


def test_processes_end_if_their_results_are_no_longer_wanted():
    results = run_in_processes(time.sleep, [(0.0,), (600.0,), (600.0,)], jobs=2, description="waiting")
    assert next(results) == ((0.0,), None)
    results.close()
    # The pool's own thread joins the processes too, so a join here may return before their end is known.
    deadline = time.monotonic() + 30
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not multiprocessing.active_children()
