"""Importing pyspar is free of side effects on the rest of the process."""

import json
import subprocess
import sys

PROBE = """
import json, logging, warnings
import numpy, scipy.linalg, scipy.stats, sklearn.base, sklearn.linear_model, sklearn.pipeline, sklearn.utils.validation

def settings():
    return [
        sklearn.get_config(),
        numpy.geterr(),
        numpy.get_printoptions(),
        [str(entry) for entry in warnings.filters],
        str(numpy.random.get_state()[1].sum()),
        [logging.root.level, len(logging.root.handlers)],
    ]

before = settings()
import pyspar, pyspar.theory
import sys
optional = [name for name in ("polars", "torch", "skops", "dask", "matplotlib") if name in sys.modules]
print(json.dumps([before == settings(), optional]))
"""


def test_importing_changes_no_global_setting_and_brings_no_optional_package():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    unchanged, optional = json.loads(done.stdout)
    assert unchanged
    assert optional == []
    assert done.stderr == ""


def test_every_public_name_is_there():
    import pyspar

    assert all(hasattr(pyspar, name) for name in pyspar.__all__)
