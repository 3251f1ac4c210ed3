"""Mutated files of every format: each command reads or rejects them, and they cause no other action."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

for name in ("pyarrow", "openpyxl", "skops"):
    pytest.importorskip(name, reason="needs: pip install 'pyspar[cli]'")

PROGRAM = Path(__file__).with_name("fuzz_files.py")


@pytest.mark.slow
def test_no_mutated_file_crashes_a_command_or_causes_another_action(tmp_path):
    command = [sys.executable, "-X", "faulthandler", str(PROGRAM), str(tmp_path), "150", "20240607", "0"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    mutants = sorted(tmp_path.glob("mutant-*"), key=lambda path: path.stat().st_mtime_ns)
    assert finished.returncode == 0, f"last file: {mutants[-1:]}; {finished.stderr[:4000]}"
    result = json.loads(finished.stdout)
    assert result["failures"] == []
    assert result["events"] == {}
    assert set(result["outcomes"]) <= {"0", "2", "3"}
    assert result["outcomes"]["0"] > 0  # some mutations are harmless
    assert result["outcomes"]["2"] > 0
