"""The sentence of the README about all ten measurements, recomputed with the code of its example."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import pyspar
from pyspar.errors import collect_warnings

README = Path(pyspar.__file__).parents[2] / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the README is not part of an installed package")
def test_the_readme_has_the_range_of_the_reductions_over_the_ten_measurements():
    text = README.read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert example.count(", 20]") == 2
    reductions = []
    for column in range(20, 30):
        namespace: dict = {}
        # For some measurements one label is ignored with a warning, because it is far from the others.
        with contextlib.redirect_stdout(io.StringIO()), collect_warnings():
            exec(compile(example.replace(", 20]", f", {column}]"), "README", "exec"), namespace)
        truth, rest, Z = (namespace[name] for name in ("truth", "rest", "Z"))
        before, after = (
            namespace["rmse"](truth[rest], namespace[name].predict(Z[rest])) for name in ("model", "corrected")
        )
        reductions.append(100.0 * (1.0 - after / before))
    assert f"by {min(reductions):.0f} % to {max(reductions):.0f} %." in text
