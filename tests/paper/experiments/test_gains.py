"""Better or worse is said by Student's t, and not at all of one seed or two."""

import numpy as np
import pytest

from pyspar.paper.experiments.gains import gain_sheets, verdict
from pyspar.paper.experiments.methods import present
from pyspar.paper.experiments.suite import suite_named
from pyspar.paper.runs.records import Record

T_95 = {3: 4.303, 5: 2.776, 10: 2.262, 40: 2.023}  # printed tables of Student's t, two-sided, n - 1 degrees of freedom


def gains(n, t):
    """Return n gains whose mean is t of its standard errors."""
    shape = np.arange(n) - (n - 1) / 2
    return shape + t * shape.std(ddof=1) / np.sqrt(n)


@pytest.mark.parametrize(("n", "t"), T_95.items())
def test_the_limit_is_that_of_printed_tables(n, t):
    assert verdict(gains(n, t + 0.001)) == "better"
    assert verdict(gains(n, t - 0.001)) == "no difference seen"
    assert verdict(-gains(n, t + 0.001)) == "worse"


def test_without_a_difference_five_in_a_hundred_are_called_one(rng):
    called = [verdict(rng.normal(size=3)) != "no difference seen" for _ in range(2000)]
    assert abs(np.mean(called) - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 2000)  # five standard errors


@pytest.mark.parametrize("gain", [[0.3], [0.3, 0.30001], [0.3, 0.3, np.nan]])
def test_of_fewer_than_three_seeds_or_of_one_without_a_number_nothing_is_said(gain):
    assert verdict(np.array(gain)) == "-"


def test_what_did_not_change_is_the_same_whatever_the_number_of_seeds():
    assert verdict(np.zeros(1)) == verdict(np.zeros(10)) == "the same"


def records(seeds):
    suite = suite_named("tabular")
    return suite, [
        Record(task, method, seed, metric, value + 0.01 * seed)
        for task in ("skillcraft", "communities-and-crime")
        for method, value in (("ERM", 6.0), ("ERM + SpAR", 7.0))
        for seed in range(seeds)
        for metric in suite.metrics
    ]


def test_two_seeds_have_neither_verdicts_nor_differences_and_the_text_says_so():
    suite, two = records(2)
    sheets, _ = present(suite, two)
    assert {row[-1] for sheet in sheets for row in sheet.rows} == {"-"}
    notes = [note for sheet in sheets for note in sheet.notes]
    assert "in joint standard errors, from 3 seeds on." in notes[0]
    assert "below 3 seeds nothing is said" in notes[-1]
    assert "95% interval of Student's t" in notes[-1]


def test_each_data_set_and_metric_has_a_table_and_the_last_says_how_to_read_them():
    sheets = gain_sheets(*records(3))
    assert [sheet.title for sheet in sheets] == [
        f"Where adapting helps, {task}: {metric}"
        for task in ("skillcraft", "communities-and-crime")
        for metric in ("RMSE", "worst-group RMSE")
    ]
    assert [len(sheet.notes) for sheet in sheets] == [0, 0, 0, 1]
    assert gain_sheets(suite_named("tabular"), []) == []
