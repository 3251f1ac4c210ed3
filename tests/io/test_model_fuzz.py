"""Several hundred mutated model files: each is loaded or rejected, and none causes any other action."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("fuzz_models.py")


def test_no_mutated_model_imports_opens_or_runs_anything(valid_models, tmp_path):
    for name in (
        "spar-frame-2-adapted",
        "bayes-array-1-adapted",
        "columns-SpARRegressor",
        "adapt-pcr-mixed",
        "selected-1",
    ):
        (tmp_path / f"{name}.skops").write_bytes(valid_models[name])
    command = [sys.executable, str(PROGRAM), str(tmp_path), "400", "20240607"]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert result["events"] == []
    assert set(result["outcomes"]) == {"loaded", "InputError"}  # some mutations leave a model intact
    assert sum(result["outcomes"].values()) == 400
