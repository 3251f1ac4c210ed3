"""The command as a process: errors, exit codes, signals, pipes, names that are not UTF-8, help, and the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import pyspar
from pyspar.cli import commands
from pyspar.cli.app import app
from pyspar.sources.files import READERS

HOME = ("--label", "price", "--id", "home")
ENVIRONMENT = {**os.environ, "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"}


def process(*arguments, **options):
    command = [sys.executable, "-m", "pyspar", *arguments]
    return subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=120, **options)


FAILURES = {
    "internal": (ZeroDivisionError("by zero"), 1, "ZeroDivisionError: by zero; run again with --debug"),
    "memory": (MemoryError(), 2, "--stream"),
    "disk": (OSError(5, "Input/output error", "disk"), 2, "disk: input/output error"),
    "stop": (KeyboardInterrupt(), 130, "stopped"),
    "input": (pyspar.InputError("wrong"), 2, "error: wrong"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_every_failure_is_one_line_and_a_code(spar, files, source, target, monkeypatch, kind):
    error, code, text = FAILURES[kind]

    def fail(*_):
        raise error

    monkeypatch.setattr(commands, "fit", fail)
    result = spar("adapt", *files(source, target), *HOME)
    assert result.exit_code == code
    assert result.stderr.count("\n") == 1
    assert text in result.stderr
    assert "Traceback" in spar("adapt", *files(source, target), *HOME, "--debug").stderr


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_while_writing_leaves_neither_output(spar, files, source, target, tmp_path, monkeypatch, error):
    paths = files(source, target)
    (tmp_path / "p.csv").write_text("old")

    def fail(model, path):
        path.write_bytes(b"half")
        raise error

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(commands, "write_model", fail)
    result = spar("adapt", *paths, *HOME, "-o", tmp_path / "p.csv", "--save-model", tmp_path / "m.skops")
    assert result.exit_code in (2, 130)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "p.csv").read_text() == "old"


MOMENTS = {
    "while importing": (
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pyspar.cli.app': wait()\n"
        "sys.meta_path.insert(0, Slow())\n"
    ),
    # CPython records a KeyboardInterrupt that passes through exec, and later ends the process by the signal.
    "in exec": "import pyspar.cli.commands as p\np.files.load_inputs = lambda *a, **k: exec('wait()')\n",
    "while writing": "import pyspar.cli.commands as p\np.write_model = lambda m, f: f.write_text('x') and wait()\n",
    "at exit": "import atexit\natexit.register(wait)\n",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_exit_code_is_130_at_every_moment(files, source, target, tmp_path, moment):
    program = (
        "import sys, time\ndef wait(): sys.stderr.write('now\\n'); time.sleep(60)\n"
        f"import builtins; builtins.wait = wait\n{MOMENTS[moment]}from pyspar.__main__ import main\nmain()"
    )
    (tmp_path / "probe.py").write_text(program)
    outputs = ["-o", "p.csv", "--save-model", "m.skops"]
    command = [sys.executable, "-m", "probe", "adapt", *files(source, target), *HOME, *outputs]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert running.stderr.readline() == "now\n"
    running.send_signal(signal.SIGINT if moment == "in exec" else signal.SIGTERM)
    _, stderr = running.communicate(timeout=60)
    assert running.returncode == 130
    assert stderr.count("\n") == (0 if moment in ("while importing", "at exit") else 1)
    left = {path.name for path in tmp_path.iterdir() if path.suffix in (".csv", ".skops")}
    assert left == {"source.csv", "target.csv"} | ({"p.csv", "m.skops"} if moment == "at exit" else set())


@pytest.mark.slow
def test_a_killed_process_leaves_complete_files_only(source, target, tmp_path):
    source.to_csv(tmp_path / "s.csv", index=False)
    big = pd.concat([target] * 500)
    big.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "out").mkdir()
    arguments = ["adapt", "s.csv", "t.parquet", *HOME, "-o", "out/p.csv"]
    for delay in (1.0, 2.0, 3.0, 4.0):
        command = [sys.executable, "-m", "pyspar", *arguments]
        running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        time.sleep(delay)
        running.kill()
        running.wait(timeout=60)
        if (tmp_path / "out" / "p.csv").exists():
            assert len(pd.read_csv(tmp_path / "out" / "p.csv")) == len(big)


FULL = b"error: cannot print the result: no space left on device; the files are complete\n"
ENDS = [("| true; exit ${PIPESTATUS[0]}", (0, 141), b""), (">&- 2>&-", (0,), b""), ("> /dev/full", (1,), FULL)]


@pytest.mark.parametrize(("end", "codes", "message"), ENDS)
def test_files_are_complete_if_the_output_is_closed_or_full(files, source, target, tmp_path, end, codes, message):
    words = " ".join(["adapt", *files(source, target), *HOME, "-o", str(tmp_path / "p.csv")])
    command = ["bash", "-c", f"{sys.executable} -m pyspar {words} {end}"]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT)
    assert done.returncode in codes
    assert done.stderr == message
    assert len(pd.read_csv(tmp_path / "p.csv")) == 80
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m pyspar --help {end}"], capture_output=True)
    assert done.returncode in (*codes, 1)  # click returns 1 for a closed pipe
    assert done.stderr == message.replace(b"; the files are complete", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have names in UTF-8")
def test_names_of_files_need_not_be_utf8(files, source, target, tmp_path):
    paths = [os.fsencode(path) for path in files(source, target)]
    named = [path.replace(b".csv", b"\xff.csv") for path in paths]
    for path, name in zip(paths, named):
        os.rename(path, name)
    outputs = [os.fsencode(tmp_path) + b"/p\xfe.csv", os.fsencode(tmp_path) + b"/m\xfe.skops"]
    done = process(b"adapt", *named, *HOME, b"-o", outputs[0], b"--save-model", outputs[1])
    assert done.returncode == 0, done.stderr
    assert all(os.path.exists(path) for path in outputs)
    done.stdout.decode("utf-8")
    done = process(b"predict", outputs[1], b"nowhere\xff.csv", b"-o", outputs[0], b"--json")
    assert done.returncode == 2
    assert b"not found" in done.stderr


def test_the_output_is_utf8_and_names_cannot_control_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["größe", "\x1b[31mred", "y"]).assign(same=1)
    table.rename(columns={"same": "\x1b[2Jsame"}).to_csv(tmp_path / "s.csv", index=False)
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "cp1252", "LC_ALL": "C"}
    command = [sys.executable, "-m", "pyspar", "inspect", "s.csv", "s.csv", "--label", "y"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    assert "2Jsame" in done.stdout.decode("utf-8")


def test_help_is_fast_and_has_examples_and_codes(spar):
    program = (
        "import sys\nfrom pyspar.__main__ import main\ntry: main()\n"
        "finally: print([name for name in ('pandas', 'sklearn', 'pyarrow', 'skops') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "Exit codes: 0 success; 1 internal error" in done.stdout.replace("\n", " ").replace("  ", " ")
    for command in ("adapt", "inspect", "label", "predict"):
        text = spar(command, "--help").stdout
        assert f"Example: spar {command} " in text
        assert all(suffix in text for suffix in (".gz", *(name for name in READERS if not name.endswith(".gz"))))
    assert spar("--version").stdout == f"spar {pyspar.__version__}\n"


def describe(command, name):
    """Return the help of a command and of its options, without the layout of typer."""
    lines = [f"$ {name} --help", command.help or ""]
    for parameter in command.params:
        if text := getattr(parameter, "help", None):
            lines.append(f"  {', '.join(parameter.opts)}: {text}")
    texts = ["\n".join([*lines, *([command.epilog] if command.epilog else [])])]
    for child, inner in getattr(command, "commands", {}).items():
        if name == "spar" and child not in ("data", "reproduce"):
            texts += describe(inner, f"{name} {child}")
    return texts


def test_the_help_has_the_expected_text(golden):
    golden("cli-help", "\n\n".join(describe(typer.main.get_command(app), "spar")))


def test_an_error_in_the_arguments_names_them_and_the_help_to_read(spar):
    for arguments, text in (
        (("adapt", "a.csv", "b.csv", "--method", "pcr"), "spar adapt --help"),
        (("adapt", "a.csv", "b.csv", "--alpha", "1.5"), "--alpha"),
        (("adapt", "a.csv", "b.csv", "--level", "1"), "--level"),
        (("adapt", "a.csv", "b.csv", "--level", "nan"), "--level"),
        (("adapt", "a.csv"), "TARGET"),
        (("label", "a.csv", "b.csv", "--rows", "0"), "--rows"),
        (("watch", "a.csv"), "watch"),
        (("adapt", "a.csv", "b.csv", "--decimal", "x"), "--decimal"),
    ):
        result = spar(*arguments)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "--help" in result.stderr
        assert text in result.stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_terminal_shows_the_stages_and_gets_its_cursor_back(files, source, target, stream):
    numbers = ["area", "garden", "lift", "price"]
    program = "import pyspar.progress as p; p.DELAY = 0.0\nfrom pyspar.__main__ import main\nmain()"
    arguments = ["adapt", *files(source[numbers], target[numbers]), "--label", "price", *stream]
    leader, follower = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, stderr=follower, env={**ENVIRONMENT, "COLUMNS": "150", "TERM": "xterm"}, timeout=120,
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


def test_the_messages_have_the_expected_text(spar, files, source, target, tmp_path, monkeypatch, golden):
    """Run many invalid commands, and compare all messages with one text."""
    monkeypatch.chdir(tmp_path)
    texts = []

    def run(change_source=None, change_target=None, *arguments, label="price", paths=("source.csv", "target.csv")):
        files(
            source if change_source is None else change_source(source.copy()),
            target if change_target is None else change_target(target.copy()),
        )
        options = (*paths, *(() if label is None else ("--label", label)), *arguments)
        before = sorted(tmp_path.rglob("*"))
        result = spar("adapt", *options)
        assert result.exit_code == 2, (options, result.output)
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        texts.append(f"$ spar adapt {' '.join(options)}\n{result.stderr.replace(str(tmp_path), 'TMP')}")

    def put(rows, column, value):
        def change(table):
            table[column] = table[column].astype(object)
            table.loc[rows, column] = value
            return table

        return change

    def write(name, text):
        Path(name).write_text(text)
        return name

    run(paths=("nowhere.csv", "target.csv"))
    run(paths=("source.csv", "."))
    run(paths=(write("empty.csv", ""), "target.csv"))
    run(paths=(write("ragged.csv", "area,price\n1,2\n3\n"), "target.csv"))
    run(paths=(write("twice.csv", "area,area,price\n1,2,3\n"), "target.csv"))
    np.save("x.npy", np.ones((3, 2)))
    run(paths=("x.npy", "x.npy"), label="7")
    run(label=None)
    run(label="prize")
    run(label="town")
    run(lambda table: table.drop(columns="price"))
    run(lambda table: table[:1])
    run(lambda table: table.assign(price=7))
    run(lambda table: table.assign(price=None))
    run(put([3, 10], "price", None))
    run(put([3, 10], "price", "soon"))
    run(put(4, "price", "2,000"))
    run(put(17, "area", -np.inf))
    run(None, put([9, 10, 11, 12], "area", "large"))
    run(None, put(4, "area", "0,5"))
    run(None, put(4, "sold", "last May"))
    run(None, put(4, "price", "unknown!"))
    run(None, lambda table: table.rename(columns={"area": "Area"}).drop(columns="town"))
    run(lambda table: table[["price"]])
    run(None, None, "--id", "hom")
    run(None, None, "--id", "price")
    run(None, None, "--groups", "price")
    run(None, None, "--drop", "gardn")
    run(None, None, "--drop", "price")
    run(None, None, "--groups", "group")
    run(lambda table: table.assign(who="one"), None, "--groups", "who")
    run(None, None, "--sep", "::")
    run(None, None, "-o", "p.xlsx")
    run(None, None, "-o", "nowhere/p.csv")
    run(None, None, "-o", "source.csv")
    Path("folder.csv").mkdir()
    run(None, None, "-o", "folder.csv")
    run(None, None, "--save-model", "m.pkl")
    run(None, None, "--labels", "nowhere.csv")
    run(None, lambda table: table.drop(columns="price"), "--use-target-labels")
    run(None, put(17, "garden", np.inf), "--stream")
    run(None, None, "--stream", "--assume", "measurement")
    run(None, None, "--stream", "--groups", "town")
    run(put([3, 10], "town", None), None, "--groups", "town")
    run(None, None, "--stream", label="town")
    run(put(17, "price", None), None, "--stream")
    golden("cli-refusals", "\n".join(texts))
