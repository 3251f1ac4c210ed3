"""What a shell sees: completion, help in a narrow terminal, exit codes, and a watch of an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from pyspar.cli.app import ALARM, app
from pyspar.terminal import EXIT_CODES, STOP_CODE

DOCS = Path(__file__).parents[2] / "docs"

TRY = """
source completion.bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMPREPLY=(); _spar_completion spar; echo "${COMPREPLY[*]}"; }
try spar adapt --lab
try spar adapt hom
complete -p spar
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_options_and_leaves_files_to_the_shell(tmp_path):
    (tmp_path / "homes.csv").touch()
    (tmp_path / "spar").write_text(f'#!/bin/bash\nexec {sys.executable} -m pyspar "$@"\n')
    (tmp_path / "spar").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }

    def run(*command):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "completion.bash").write_text(run("spar", "--show-completion", "bash"))
    options, file, registered = run("bash", "-c", TRY).splitlines()
    assert options.split() == ["--label", "--labels"]
    assert file == ""  # nothing, so that the default of bash applies: file names
    assert "-o default" in registered


def test_help_in_a_narrow_terminal_is_complete(spar, monkeypatch):
    for name, command in typer.main.get_command(app).commands.items():
        result = spar(name, "--help")
        assert "…" not in result.stdout
        for parameter in command.params:
            if not getattr(parameter, "hidden", False) and parameter.opts[0].startswith("--"):
                assert parameter.opts[0] in result.stdout
    monkeypatch.setenv("COLUMNS", "80")
    narrow = spar("adapt", "--help").stdout
    assert "--use-target-labels " in narrow
    assert max(map(len, narrow.splitlines())) <= 80


def test_the_exit_codes_are_those_of_the_help_and_of_the_page(spar):
    codes = ["0", "1", "2", str(ALARM), str(STOP_CODE)]
    assert re.findall(r"[:;] (\d+) ", EXIT_CODES) == codes
    assert " ".join(EXIT_CODES.split()) in " ".join(spar("--help").stdout.split())
    section = (
        (DOCS / "command-line.md").read_text(encoding="utf-8").partition("## Exit codes\n")[2].partition("\n## ")[0]
    )
    assert re.findall(r"^\| (\d+) \|", section, flags=re.MULTILINE) == codes


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("adapt",), 2),
        (("adapt", "no.csv", "no.csv", "--label", "y"), 2),
        (("no-such-command",), 2),
        (("adapt", "a.csv", "b.csv", "--level", "much"), 2),
        (("data", "check", "no-such-set"), 2),
    ],
)
def test_an_error_in_arguments_or_input_is_code_2(spar, arguments, code):
    assert spar(*arguments).exit_code == code


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("adapt", "a.csv", "b.csv", "--method", "magic"), ("'--method'", "'magic'", "'bayes', 'spar'")),
        (("adapt", "a.csv", "b.csv", "--level", "much"), ("'--level'", "'much'")),
        (("label", "a.csv", "b.csv", "--rows", "0"), ("'--rows'", "'0'", "1")),
        (("adapt", "a.csv", "b.csv", "--lable", "y"), ("--lable", "--label")),
        (("adapt", "a.csv"), ("'TARGET'",)),
        (("adapt", "a.csv", "b.csv", "--label"), ("--label",)),
        (("adapt", "a.csv", "b.csv", "c.csv"), ("c.csv",)),
        (("adap",), ("'adap'", "'adapt'")),
        (("data", "chekc"), ("'chekc'", "'check'")),
        (("--bad",), ("--bad",)),
    ],
)
def test_an_error_in_the_arguments_is_one_line_with_the_value_and_the_help_to_read(spar, arguments, parts):
    result = spar(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert re.search(r"; see spar[a-z ]* --help\n$", result.stderr)
    for part in parts:
        assert part in result.stderr


def test_a_group_of_commands_without_arguments_prints_its_help(spar):
    for arguments in ((), ("data",)):
        result = spar(*arguments)
        assert result.output.startswith("Usage: spar")
        assert "Commands:" in result.output


def test_a_watch_of_an_empty_folder_says_what_it_waits_for(spar, tmp_path, monkeypatch):
    from pyspar.tables import watch as watching

    (tmp_path / "source.csv").write_text("a,y\n1,2\n2,3\n3,5\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.txt").write_text("not a table")
    once = spar("watch", tmp_path / "source.csv", tmp_path / "in", "--label", "y", "--once")
    assert once.exit_code == 0
    assert once.stdout == ""
    assert str(tmp_path / "in") in once.stderr
    assert ".parquet" in once.stderr

    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", stop)
    waiting = spar("watch", tmp_path / "source.csv", tmp_path / "in", "--label", "y", "--seconds", "7")
    assert waiting.exit_code == STOP_CODE
    assert "7 seconds" in waiting.stderr
    assert "Ctrl-C" in waiting.stderr
