"""Published cells next to ours, in the number format of the published table."""

import pytest

from pyspar.paper.experiments.comparison import Cell, format_scientific


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.54e6, "2.54e6"), (0.77, "0.77e0"), (12.96, "1.30e1"), (999.6, "1.00e3"), (0.0, "0.00e0"), (803.9, "8.04e2")],
)
def test_numbers_have_the_format_of_the_published_table(value, text):
    assert format_scientific(value) == text


def test_the_verdict_is_the_difference_in_joint_standard_errors():
    same = Cell("t", "m", ("1.00e0", "0.10e0"), ("1.00e0", "0.10e0"))
    off = Cell("t", "n", ("2.00e0", "0.30e0"), ("2.10e0", "0.40e0"), draws=25)  # 0.1 / (0.5 / 5)
    spread = Cell("t", "o", ("2.00e0", "0.10e0"), ("2.00e0", "0.20e0"), draws=25)
    one_draw = Cell("t", "p", ("2.00e0", "0.10e0"), ("2.00e0", "0.20e0"))
    assert [cell.verdict for cell in (same, off, spread, one_draw)] == ["same", "+1.0 SE", "+0.0 SE", "differs"]
