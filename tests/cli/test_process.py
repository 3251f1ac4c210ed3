"""The command as a process: internal errors, full disks, signals, encodings, and help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import typer

import pyspar
from pyspar.cli.app import app
from pyspar.tables import adapt


def process(*arguments, **variables):
    environment = {**os.environ, "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1", **variables}
    return subprocess.run(
        [sys.executable, "-m", "pyspar", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )


def test_an_internal_error_is_one_line_and_code_1(spar, files, source, target, monkeypatch):
    monkeypatch.setattr(adapt, "SpARRegressor", lambda **_: 1 / 0)
    result = spar("adapt", *files(source, target), "--label", "price")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "--debug" in result.stderr


def test_too_little_memory_is_reported(spar, files, source, target, monkeypatch):
    def fail(**_):
        raise MemoryError

    monkeypatch.setattr(adapt, "SpARRegressor", fail)
    result = spar("adapt", *files(source, target), "--label", "price")
    assert result.exit_code == 2
    assert "--stream" in result.stderr


def test_an_error_of_the_operating_system_is_reported_with_its_file(spar, files, source, target, monkeypatch):
    def fail(*_, **__):
        raise OSError(5, "Input/output error", "disk")

    monkeypatch.setattr(adapt, "load_files", fail)
    result = spar("adapt", *files(source, target), "--label", "price")
    assert result.exit_code == 2
    assert "disk: input/output error" in result.stderr


def test_debug_shows_the_traceback_and_keeps_the_code(spar, files, source, target):
    result = spar("adapt", *files(source, target), "--label", "prize", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "columns.py" in result.stderr


def test_a_stop_while_writing_leaves_neither_output(spar, files, source, target, tmp_path, monkeypatch):
    def stop(model, path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    paths = files(source, target)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(adapt, "write_model", stop)
    arguments = ("-o", tmp_path / "p.csv", "--save", tmp_path / "m.skops")
    result = spar("adapt", *paths, "--label", "price", *arguments)
    assert result.exit_code == 130
    assert result.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_leaves_neither_output(spar, files, source, target, tmp_path, monkeypatch):
    def fail(model, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(adapt, "write_model", fail)
    paths = files(source, target)
    result = spar("adapt", *paths, "--label", "price", "-o", tmp_path / "p.csv", "--save", tmp_path / "m.skops")
    assert result.exit_code == 2
    assert "m.skops: no space left on device" in result.stderr
    assert not (tmp_path / "p.csv").exists()


def test_a_missing_package_is_named_with_the_extra_to_install(files, source, target):
    program = "import sys; sys.modules['pandas'] = None; from pyspar.__main__ import main; main()"
    command = [sys.executable, "-c", program, "adapt", *files(source, target), "--label", "price"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "pip install 'pyspar[cli]'" in result.stderr


def test_a_package_that_only_an_option_needs_is_named_before_the_files_are_read(
    spar, files, source, target, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setattr(adapt, "load_files", lambda *_, **__: pytest.fail("the files were read"))
    result = spar("adapt", *files(source, target), "--label", "price", "--save", tmp_path / "m.skops")
    assert result.exit_code == 2
    assert "pip install 'pyspar[cli]'" in result.stderr


MOMENTS = {
    "while importing": (
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pyspar.cli.app': wait()\n"
        "sys.meta_path.insert(0, Slow())\n"
    ),
    # CPython records a KeyboardInterrupt that passes through exec, and later ends the process by the signal.
    "in exec": "import pyspar.tables.load as p\np.load_table = lambda *a, **k: exec('wait()')\n",
    "at exit": "import atexit\natexit.register(wait)\n",
}


@pytest.mark.parametrize(
    ("moment", "number"),
    [("while importing", signal.SIGTERM), ("in exec", signal.SIGINT), ("at exit", signal.SIGTERM)],
)
def test_the_exit_code_is_130_at_every_moment(files, source, target, tmp_path, moment, number):
    program = (
        "import sys, time\ndef wait(): sys.stderr.write('now\\n'); time.sleep(60)\n"
        f"import builtins; builtins.wait = wait\n{MOMENTS[moment]}from pyspar.__main__ import main\nmain()"
    )
    (tmp_path / "probe.py").write_text(program)
    command = [sys.executable, "-m", "probe", "adapt", *files(source, target), "--label", "price", "-o", "p.csv"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert running.stderr.readline() == "now\n"
    running.send_signal(number)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 130
    assert stderr.count("\n") == (1 if moment == "in exec" else 0)
    left = {path.name for path in tmp_path.iterdir() if path.suffix == ".csv"}
    assert left == {"source.csv", "target.csv"} | ({"p.csv"} if moment == "at exit" else set())


@pytest.mark.slow
def test_a_signal_that_is_ignored_from_the_start_stays_ignored(files, source, target, tmp_path):
    program = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import pyspar.tables.adapt as adapt; load_files = adapt.load_files\n"
        "def hit(*a, **k): os.kill(os.getpid(), signal.SIGINT); return load_files(*a, **k)\n"
        "adapt.load_files = hit\nfrom pyspar.__main__ import main\nmain()"
    )
    arguments = ["adapt", *files(source, target), "--label", "price", "-o", str(tmp_path / "p.csv")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.csv").exists()


@pytest.mark.slow
def test_the_process_adapts_in_a_terminal_without_arrows_and_writes_nothing_to_stderr(files, source, target, tmp_path):
    arguments = "adapt", *files(source, target), "--label", "price", "-o", tmp_path / "p.csv"
    done = process(*arguments, PYTHONIOENCODING="cp1252")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "least squares" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert (tmp_path / "p.csv").stat().st_size > 1000


def test_the_process_refuses_with_code_2_and_no_traceback(files, source, target):
    done = process("inspect", *files(source, target), "--label", "prize")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: source ")
    assert "Traceback" not in done.stderr


def test_help_does_not_import_tables():
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


@pytest.mark.parametrize("command", ["adapt", "inspect", "summarize"])
def test_help_of_each_command_has_an_example_and_the_formats(spar, command):
    text = spar(command, "--help").stdout
    assert f"Example: spar {command} " in text
    assert ".npz" in text


def describe(command, name):
    """Return the help of a command and of its options, without the layout of typer."""
    lines = [f"$ {name} --help", command.help or ""]
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        if text:
            lines.append(f"  {', '.join(parameter.opts)}: {text}")
    texts = ["\n".join([*lines, *([command.epilog] if command.epilog else [])])]
    for child, inner in getattr(command, "commands", {}).items():
        texts += describe(inner, f"{name} {child}")
    return texts


def test_the_help_has_the_expected_text(golden):
    texts = describe(typer.main.get_command(app), "spar")
    assert len(texts) == 12
    golden("cli-help", "\n\n".join(texts))


def test_the_version_is_that_of_the_package(spar):
    assert spar("--version").stdout == f"spar {pyspar.__version__}\n"


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    X.assign(y=X.a + rng.normal(size=200)).to_csv(tmp_path / "s.csv", index=False)
    X[:50].to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_the_output_is_utf_8_in_every_locale(tables, encoding):
    frame = pd.read_csv(tables / "s.csv")
    frame.assign(y=3e20 * frame.y).to_csv(tables / "s.csv", index=False)
    command = [sys.executable, "-m", "pyspar", "adapt", "s.csv", "t.csv", "--label", "y"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, cwd=tables, env=environment, capture_output=True, check=True)
    assert "·10²⁰" in done.stdout.decode()


def test_names_cannot_control_the_terminal(spar, tables):
    for name in ("s.csv", "t.csv"):
        frame = pd.read_csv(tables / name).rename(columns={"b": "\x1b[31mred"})
        frame.to_csv(tables / name, index=False)
    done = spar("inspect", tables / "s.csv", tables / "t.csv", "--label", "y")
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert "red" in done.stdout


def test_an_output_folder_that_is_a_file_is_refused(spar, tables):
    done = spar("reproduce", "table1", "--out", tables / "s.csv")
    assert done.exit_code == 2
    assert "s.csv" in done.stderr


@pytest.mark.slow
def test_sigterm_leaves_no_partial_file(tables):
    rng = np.random.default_rng(0)
    big = pd.DataFrame(rng.normal(size=(200_000, 3)), columns=["a", "b", "c"])
    big.to_parquet(tables / "t.parquet")
    (tables / "out").mkdir()
    codes = set()
    for delay in (0.2, 1.5, 2.5):
        command = [sys.executable, "-m", "pyspar", "adapt", "s.csv", "t.parquet", "--label", "y", "-o", "out/p.csv"]
        process = subprocess.Popen(command, cwd=tables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        codes.add(process.wait(timeout=60))
        assert set(os.listdir(tables / "out")) <= {"p.csv"}
    # Finished, stopped, or not yet started.
    assert codes <= {0, 130, -signal.SIGTERM}


LONG = """
import hashlib, sys
import pyspar.terminal as terminal
import pyspar.tables.adapt as adapt
terminal.GRACE_SECONDS = 0.3

def write(model, path):
    path.write_bytes(b"half")
    print("working", file=sys.stderr, flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # one operation of minutes, in which no handler runs

adapt.write_model = write
from pyspar.__main__ import main
main()
"""


@pytest.mark.slow
def test_sigterm_ends_a_single_long_operation_and_leaves_no_file(tables):
    (tables / "out").mkdir()
    arguments = ["adapt", "s.csv", "t.csv", "--label", "y", "-o", "out/p.csv", "--save", "out/m.skops"]
    running = subprocess.Popen(
        [sys.executable, "-c", LONG, *arguments],
        cwd=tables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr.readline() == "working\n"
    assert len(os.listdir(tables / "out")) == 2
    running.send_signal(signal.SIGTERM)
    _, stderr = running.communicate(timeout=20)
    assert running.returncode == 130
    assert stderr.count("\n") == 1
    assert os.listdir(tables / "out") == []


SLOW = """
import sys, time
from functools import partial
from pyspar.sources.files import text
from pyspar.tables import reduce, streamed
reduce.open_rows = partial(reduce.open_rows, batch_bytes=500)

def slow(function):
    def later(*arguments):
        print("working", flush=True)
        time.sleep(0.2)
        return function(*arguments)
    return later

if sys.argv.pop(1) == "reading":
    text.build_batch = slow(text.build_batch)
else:
    streamed.RowChunk = slow(streamed.RowChunk)
from pyspar.__main__ import main
main()
"""


@pytest.mark.parametrize("stage", [pytest.param("reading", marks=pytest.mark.slow), "predicting"])
def test_ctrl_c_during_a_stream_leaves_no_file(files, source, target, tmp_path, stage):
    numbers = ["area", "garden", "lift", "price"]
    paths = files(source[numbers], target[numbers])
    arguments = ["adapt", *paths, "--label", "price", "--stream", "-o", str(tmp_path / "out.csv")]
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW, stage, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert [running.stdout.readline() for _ in range(2)] == ["working\n"] * 2
    if stage == "predicting":
        assert [path for path in tmp_path.iterdir() if path.name.startswith(".out.pyspar-")]
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 130
    assert stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.csv", "target.csv"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize("stream", [(), pytest.param(("--stream",), marks=pytest.mark.slow)])
def test_a_terminal_shows_the_stages_and_gets_its_cursor_back(files, source, target, stream):
    numbers = ["area", "garden", "lift", "price"]
    program = "import pyspar.terminal as p; p.DELAY = 0.0\nfrom pyspar.__main__ import main\nmain()"
    arguments = ["adapt", *files(source[numbers], target[numbers]), "--label", "price", *stream]
    leader, follower = os.openpty()
    environment = {**os.environ, "COLUMNS": "150", "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, stderr=follower, env=environment, check=False, timeout=60,
    )  # fmt: skip
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 65536):
            shown += part
    except OSError:  # Linux raises EIO at the end
        pass
    os.close(leader)
    assert done.returncode == 0
    for stage in (b"reading the source", b"reading the target", b"fitting and adapting"):
        assert stage in shown
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")  # the cursor is visible again
    assert b"least squares" in done.stdout
