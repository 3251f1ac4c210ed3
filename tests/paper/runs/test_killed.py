"""Killed at any moment and run again, a suite ends with the same bytes as one that was left in peace."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")
KILLS = int(os.environ.get("PYSPAR_KILLS", "3"))  # PYSPAR_KILLS=10 for the long version


def command(out, jobs):
    return [sys.executable, "-m", "pyspar.paper", "alpha", "--mini", "--out", str(out), "--jobs", str(jobs)]


def run(out, jobs, delay=None):
    """Run to the end, or kill after a delay; return the exit code, None for a kill."""
    process = subprocess.Popen(command(out, jobs), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, said = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    assert process.returncode == 0, said
    return process.returncode


def test_a_suite_killed_at_random_moments_ends_with_the_same_tables(tmp_path):
    began = time.monotonic()
    run(tmp_path / "peace", 1)
    took = time.monotonic() - began
    moments = random.Random(0)
    killed = tmp_path / "killed"
    for _ in range(KILLS):
        run(killed, moments.choice((1, 2)), delay=moments.uniform(0.3, 1.0) * took)
    assert run(killed, 1) == 0
    for name in ("records.jsonl", "table.md", "table.csv"):
        assert (killed / "alpha" / name).read_bytes() == (tmp_path / "peace" / "alpha" / name).read_bytes()
    assert not list(killed.glob("runs/*/checkpoint.pt"))
    assert not list(killed.glob("runs/*/.*"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs groups of processes")
def test_ctrl_c_ends_the_children_too_and_says_how_to_go_on(tmp_path):
    process = subprocess.Popen(
        command(tmp_path, 2), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob("runs/*")) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in said
    assert "Traceback" not in said
    assert _gone(process.pid)


def _gone(group):
    """Say whether nobody of a group of processes is left; Python's own tracker of resources ends a moment later."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
