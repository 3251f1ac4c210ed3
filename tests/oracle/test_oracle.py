"""The answers of version 0.2.0 on 508 problems, for everything that was not changed on purpose."""

import gzip
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from problems import problems  # noqa: E402
from solve import solve  # noqa: E402

sys.path.remove(str(HERE))

TOLERANCE = 1e-6
CHANGED = {
    "forecast": "the expectation is the calibrated median after a shift, not the in-distribution error",
    "interval": "row intervals have two sides and share the covariance of the forecast",
    "prediction": "labels have a robust likelihood",
    "scale": "labels have a robust likelihood",
    "rmse": "labels have a robust likelihood",
}
"""Numbers that differ from version 0.2.0, with the reason."""


@pytest.fixture(scope="module")
def answers():
    with gzip.open(HERE / "answers.json.gz", "rt") as file:
        return json.load(file)


@pytest.mark.parametrize("question", ["linear", "correction", "head"])
def test_the_answers_are_those_of_the_former_version(answers, question):
    different = {}
    for problem in (p for p in problems() if p.question == question):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = solve(problem)
        assert found.keys() == answers[problem.name].keys()
        for name, expected in answers[problem.name].items():
            expected = np.array(expected)
            error = np.abs(found[name].ravel() - expected).max() / max(np.abs(expected).max(), 1e-9)
            if name not in CHANGED and not error < TOLERANCE:
                different[f"{problem.name}: {name}"] = error
    assert different == {}
