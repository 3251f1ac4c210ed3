"""Range checks: valid values are returned as int or float, others raise with name and value."""

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.paper.parameters import check_choice, check_integer, check_number


@pytest.mark.parametrize("value", [0, 0.5, 1, np.float32(0.5), np.int64(1)])
def test_numbers_in_the_range_are_returned_as_float(value):
    assert check_number("share", value, high=1.0) == float(value)
    assert type(check_number("share", value, high=1.0)) is float


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf, True, "0.5", None, 0.5j])
def test_other_numbers_raise(value):
    with pytest.raises(InputError, match=r"^share .*\[0, 1\].*got"):
        check_number("share", value, high=1.0)


@pytest.mark.parametrize("high", [1.0, np.inf])
def test_positive_numbers_exclude_zero(high):
    assert check_number("rate", 0.5, high=high, positive=True) == 0.5
    with pytest.raises(InputError, match=r"^rate .*got 0; use 1$"):
        check_number("rate", 0, high=high, positive=True, hint="use 1")


@pytest.mark.parametrize("value", [1, 1.0, True, "2", np.float64(2)])
def test_values_that_are_not_integers_in_the_range_raise(value):
    assert check_integer("count", np.int32(2), low=2) == 2
    with pytest.raises(InputError, match=r"^count .*2, got"):
        check_integer("count", value, low=2)


def test_other_choices_raise():
    check_choice("by", "step", ("step", "radius"))
    with pytest.raises(InputError, match=r"^by .*'steps'"):
        check_choice("by", "steps", ("step",))
