"""``python -m pyspar.paper``: interrupted, killed or started twice, it ends with the same files."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from pyspar.paper.experiments.reproduce import make_miniature, reproduce
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.store import RunFolder, hold_lock

pytest.importorskip("torch")
KILLS = int(os.environ.get("PYSPAR_KILLS", "2"))  # PYSPAR_KILLS=10 for the long version
FILES = ("records.jsonl", "table.md", "table.csv")
needs_process_groups = pytest.mark.skipif(sys.platform == "win32", reason="needs groups of processes")


def start(out, jobs, **options):
    command = [sys.executable, "-m", "pyspar.paper", "alpha", "--mini", "--out", str(out), "--jobs", str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def run_or_kill(out, jobs, delay=None):
    """Run to the end, or kill the process after a delay."""
    process = start(out, jobs)
    try:
        _, errors = process.communicate(timeout=delay)
        assert process.returncode == 0, errors
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def interrupt(process):
    """Send Ctrl-C to a group of processes, and check that it ends without a traceback."""
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command" in errors.splitlines()[-1]
    assert "Traceback" not in errors


def group_is_gone(group):
    """Return whether a group of processes ends. The resource tracker of Python ends a moment after the others."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_a_suite_that_is_killed_at_random_times_ends_with_the_same_files(mini, tmp_path):
    start_time = time.monotonic()
    reproduce(read_suite("alpha"), mini)
    seconds = 2.0 + time.monotonic() - start_time  # the process also imports its packages
    rng = random.Random(0)
    killed = tmp_path / "killed"
    for _ in range(KILLS):
        run_or_kill(killed, rng.choice((1, 2)), delay=rng.uniform(0.3, 1.0) * seconds)
    run_or_kill(killed, 1)
    for name in FILES:
        assert (killed / "alpha" / name).read_bytes() == (mini.out / "alpha" / name).read_bytes()
    assert not list(killed.glob("runs/*/checkpoint.pt"))
    assert not list(killed.glob("runs/*/.*"))


@needs_process_groups
@pytest.mark.slow
def test_ctrl_c_ends_the_child_processes_too(tmp_path):
    process = start(tmp_path, 2, start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("runs/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    interrupt(process)
    assert group_is_gone(process.pid)


@pytest.mark.slow
@needs_process_groups
def test_ctrl_c_ends_the_wait_for_another_process(mini):
    spec = mini.specs(make_miniature(read_suite("alpha")))[0]
    lock = RunFolder.of(mini.out, spec).path / "lock"
    lock.parent.mkdir(parents=True)
    with hold_lock(lock):
        process = start(mini.out, 2, start_new_session=True)
        for line in process.stderr:
            if "waiting" in line:
                break
        time.sleep(0.2)
        interrupt(process)


@pytest.mark.slow
def test_two_calls_at_the_same_time_both_end_with_the_files_of_one(mini, tmp_path):
    pytest.importorskip("fcntl")
    reproduce(read_suite("alpha"), mini)
    shared = tmp_path / "shared"
    processes = [start(shared, 1) for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert "communities-and-crime" in output
    for name in FILES:
        assert (shared / "alpha" / name).read_bytes() == (mini.out / "alpha" / name).read_bytes()


@pytest.mark.slow
def test_suites_run_without_the_packages_of_the_command_line(tmp_path):
    missing = ["rich", "typer", "pandas", "pyarrow", "matplotlib", "optuna", "dask"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing})); "
        f"from pyspar.paper.__main__ import main; sys.exit(main(['alpha', '--mini', '--out', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "matplotlib" in done.stderr  # there are no figures
    assert "ERM + SpAR" in (tmp_path / "alpha" / "table.md").read_text()
