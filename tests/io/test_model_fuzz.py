"""Several hundred mutated model files: each is loaded or refused, and none makes the process do anything else."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("fuzz_models.py")


def test_no_mutated_model_imports_opens_or_runs_anything(honest, tmp_path):
    for name in ("spar-frame-2-adapted", "bayes-array-1-adapted", "columns-SpARRegressor", "adapt-pcr-mixed"):
        (tmp_path / f"{name}.skops").write_bytes(honest[name])
    command = [sys.executable, str(PROGRAM), str(tmp_path), "400", "20240607"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["events"] == []
    assert set(found["outcomes"]) == {"loaded", "InputError"}  # some mutations leave a model intact
    assert sum(found["outcomes"].values()) == 400
