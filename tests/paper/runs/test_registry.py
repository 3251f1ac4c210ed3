"""Names of suites, methods and heads: unknown ones raise an error with the closest names."""

import pytest

from pyspar.errors import InputError
from pyspar.paper.runs.registry import check_name


def test_an_unknown_name_is_answered_with_the_closest_and_with_all_names():
    assert check_name("thing", "beta", ["beta", "alpha"]) == "beta"
    with pytest.raises(InputError, match=r"thing: 'bata'; .*'beta'\?.* alpha, beta\."):
        check_name("thing", "bata", ["beta", "alpha"])
    with pytest.raises(InputError, match=r"thing: 'zzz'\..* a, b\."):
        check_name("thing", "zzz", ["b", "a"])
