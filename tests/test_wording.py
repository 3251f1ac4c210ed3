"""Numbers and names as text."""

import math

import pytest

from pyspar.wording import (
    TOO_LARGE,
    describe_new_categories,
    format_interval,
    format_number,
    format_percent,
    replace_exponents,
)


def test_exponents_are_written_as_numbers_or_powers_but_names_are_kept():
    text = replace_exponents("from 2.512e+04 to 3e+12 (5e-07), x1e+05 as it is")
    assert text == "from 25,120 to 3·10¹² (5·10⁻⁷), x1e+05 as it is"


@pytest.mark.parametrize("value", [None, math.nan])
def test_unknown_numbers_are_called_unknown(value):
    assert format_number(value) == format_interval((1.0, value)) == "unknown"


def test_a_missing_share_is_called_unknown():
    assert format_percent(None) == "unknown"


def test_infinite_errors_are_called_too_large():
    assert format_number(math.inf) == format_interval((math.inf, math.inf)) == TOO_LARGE


def test_long_categories_are_cut():
    text = describe_new_categories(3, ["a" * 100, "b", "c", "d"])
    assert "a" * 39 + "…" in text
    assert "a" * 40 not in text
    assert "4 new categories" in text
    assert "1 more" in text
