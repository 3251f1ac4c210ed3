"""Importing pyspar has no side effects on the process."""

import json
import subprocess
import sys

import pytest

import pyspar

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
print(json.dumps(before == settings()))
"""


def test_importing_changes_no_global_setting():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["nn", "theory", "errors", "paper", "core", "sources"])
def test_modules_are_reached_from_the_package_that_was_imported(name):
    assert pyspar.__getattr__(name).__name__ == f"pyspar.{name}"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("SparRegressor", "SpARRegressor"), ("BayesSparRegressor", "BayesSpARRegressor"), ("theroy", "theory")],
)
def test_the_error_for_a_misspelt_name_suggests_the_right_one(name, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean '{meant}'"):
        getattr(pyspar, name)
    with pytest.raises(AttributeError, match=r"no attribute '_private'$"):
        _ = pyspar._private
