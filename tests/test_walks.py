"""The number of files that a common call visits, traced by ``benchmarks.walks``."""

import pytest
from benchmarks.walks import trace, walks

MAX_FILES = {
    "SpARRegressor fit + adapt + predict": 9,
    "BayesSpARRegressor fit + adapt + predict": 10,
    "spar adapt, CSV": 30,
}


@pytest.mark.parametrize("name", MAX_FILES)
def test_a_call_visits_few_files(name, tmp_path):
    call = walks(tmp_path)[name]
    call()  # imports do not count
    files = trace(call).files
    assert files
    assert len(files) <= MAX_FILES[name], files
