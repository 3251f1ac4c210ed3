"""``python -m pyspar.paper``: wrong arguments, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pyspar.paper.__main__ import main

pytest.importorskip("torch")


def test_without_a_name_the_suites_are_listed_and_wrong_arguments_are_errors(capsys, tmp_path):
    assert main([]) == 0
    assert "rcf-mnist" in capsys.readouterr().out
    assert main(["tabluar", "--out", str(tmp_path)]) == 2
    assert "did you mean 'tabular'?" in capsys.readouterr().err
    assert main(["tabular", "--jobs", "0", "--out", str(tmp_path)]) == 2
    assert "--jobs must be at least 1" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="needs groups of processes")
def test_ctrl_c_ends_the_command_with_a_message_and_it_can_be_continued(tmp_path):
    command = [sys.executable, "-m", "pyspar.paper", "tabular", "--mini", "--jobs", "1", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out/runs/*/done.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    subprocess.run(command, check=True, capture_output=True)
