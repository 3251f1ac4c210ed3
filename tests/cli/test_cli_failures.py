"""What goes wrong that nobody's table is to blame for, and the command as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import pyspar
from pyspar.tables import job, write


def process(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pyspar", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        **options,
    )


def test_an_internal_error_is_one_line_and_code_1(spar, files, source, target, monkeypatch):
    monkeypatch.setattr(job, "SpARRegressor", lambda **_: 1 / 0)
    result = spar("adapt", *files(source, target), "--label", "price")
    assert result.exit_code == 1
    assert result.stderr == (
        "internal error: ZeroDivisionError: division by zero; run again with --debug for the traceback\n"
    )


def test_debug_shows_the_traceback_and_keeps_the_code(spar, files, source, target):
    result = spar("adapt", *files(source, target), "--label", "prize", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "checks.py" in result.stderr


def test_a_stop_while_writing_leaves_neither_output(spar, files, source, target, tmp_path, monkeypatch):
    def stop(model, path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    paths = files(source, target)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(write.persist, "save", stop)
    arguments = ("-o", tmp_path / "p.csv", "--save", tmp_path / "m.skops")
    result = spar("adapt", *paths, "--label", "price", *arguments)
    assert result.exit_code == 130
    assert result.stderr == "stopped; nothing was written\n"
    assert sorted(tmp_path.iterdir()) == before


def test_a_disk_that_fails_leaves_neither_output(spar, files, source, target, tmp_path, monkeypatch):
    def full(model, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write.persist, "save", full)
    paths = files(source, target)
    result = spar("adapt", *paths, "--label", "price", "-o", tmp_path / "p.csv", "--save", tmp_path / "m.skops")
    assert result.exit_code == 2
    assert "No space left on device; nothing was written" in result.stderr
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(("module", "arguments"), [("pandas", ()), ("skops.io", ("--save", "m.skops"))])
def test_a_missing_package_is_named_with_what_to_install(spar, files, source, target, monkeypatch, module, arguments):
    monkeypatch.setitem(sys.modules, module, None)
    result = spar("adapt", *files(source, target), "--label", "price", *arguments)
    assert result.exit_code == 2
    assert "pip install 'pyspar[cli]'" in result.stderr


def test_ctrl_c_stops_the_process_with_code_130(files, source, target, tmp_path):
    program = (
        "import time, sys, pyspar.tables.prepare as p\n"
        "def slow(*a, **k): print('reading', flush=True); time.sleep(60)\n"
        "p.read_table = slow\n"
        "from pyspar.__main__ import main\n"
        "main()"
    )
    arguments = ["adapt", *files(source, target), "--label", "price", "-o", str(tmp_path / "p.csv")]
    running = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout.readline() == "reading\n"
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 130
    assert stderr == "stopped; nothing was written\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.csv", "target.csv"]


MOMENTS = {
    "while it imports": (
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pyspar.cli.app': wait()\n"
        "sys.meta_path.insert(0, Slow())\n"
    ),
    # CPython notes a KeyboardInterrupt that passes through such text, and ends a module by the signal later.
    "while text is executed": "import pyspar.tables.prepare as p\np.read_table = lambda *a, **k: exec('wait()')\n",
    "while Python ends": "import atexit\natexit.register(wait)\n",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_code_is_130_at_whichever_moment_the_signal_comes(files, source, target, tmp_path, moment, number):
    program = (
        "import sys, time\ndef wait(): sys.stderr.write('now\\n'); time.sleep(60)\n"
        f"import builtins; builtins.wait = wait\n{MOMENTS[moment]}from pyspar.__main__ import main\nmain()"
    )
    (tmp_path / "probe.py").write_text(program)
    command = [sys.executable, "-m", "probe", "adapt", *files(source, target), "--label", "price"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert running.stderr.readline() == "now\n"
    running.send_signal(number)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 130
    assert stderr == ("stopped; nothing was written\n" if moment == "while text is executed" else "")


def test_a_signal_that_was_ignored_from_the_start_stays_so(files, source, target, tmp_path):
    program = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import pyspar.tables.job as job; prepare = job.prepare\n"
        "def hit(*a, **k): os.kill(os.getpid(), signal.SIGINT); return prepare(*a, **k)\n"
        "job.prepare = hit\nfrom pyspar.__main__ import main\nmain()"
    )
    arguments = ["adapt", *files(source, target), "--label", "price", "-o", str(tmp_path / "p.csv")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.csv").exists()


def test_the_process_adapts_and_is_quiet_on_stderr(files, source, target, tmp_path):
    done = process("adapt", *files(source, target), "--label", "price", "-o", tmp_path / "p.csv")
    assert done.returncode == 0
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert (tmp_path / "p.csv").stat().st_size > 1000


def test_the_process_refuses_with_code_2_and_no_traceback(files, source, target):
    done = process("inspect", *files(source, target), "--label", "prize")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: source ")
    assert "Traceback" not in done.stderr


def test_help_names_the_verbs_and_loads_no_table_code():
    program = (
        "import sys\n"
        "from pyspar.__main__ import main\n"
        "try: main()\n"
        "finally: print([name for name in ('pyspar.tables', 'skops') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "inspect" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("verb", ["adapt", "inspect", "summarize"])
def test_help_of_each_verb_has_an_example_and_the_formats(spar, verb):
    text = spar(verb, "--help").stdout
    assert f"Example: spar {verb} " in text
    assert ".npz" in text


def test_the_version_is_the_packages(spar):
    assert spar("--version").stdout == f"spar {pyspar.__version__}\n"
