"""The tables of methods: differences from the published numbers, and gains from adapting."""

import numpy as np
import pytest

from pyspar.paper.experiments.methods import Comparison, compare_methods, judge_gain, present
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.records import Record

T_95 = {3: 4.303, 5: 2.776, 10: 2.262, 40: 2.023}  # printed tables of Student's t, two-sided, n - 1 degrees of freedom


def test_a_difference_is_in_joint_standard_errors():
    cell = Comparison("t", "m", "rmse", ("6.0", "3.0"), 9, (7.0, 11.0))
    # Ours has mean 9 and spread 2 over two seeds. Spreads have the divisor n, so the standard error is
    # sqrt(9 / 8 + 4 / 1). Our part is the variance with the divisor n - 1 over n, 8 / 2.
    assert cell.difference == pytest.approx(3 / np.sqrt(9 / 8 + 4))
    assert np.var([7.0, 11.0], ddof=1) / 2 == pytest.approx(4)
    assert cell.ours == ("9.0", "2.0")


def test_gains_are_judged_against_the_trained_head_and_least_squares():
    suite, records = make_records(3, {"ERM": 6.0, "ERM + OLS": 8.0, "ERM + SpAR": 7.0})
    assert len(compare_methods(suite, records)) == 12
    sheets, _ = present(suite, records)
    verdicts = {(row[2], row[3]): row[-1] for row in sheets[-1].rows}
    assert verdicts == {("ERM + SpAR", "ERM"): "worse", ("ERM + SpAR", "ERM + OLS"): "better"}


def make_gains(n, t):
    """Return n gains with a mean of t standard errors."""
    shape = np.arange(n) - (n - 1) / 2
    return shape + t * shape.std(ddof=1) / np.sqrt(n)


@pytest.mark.parametrize(("n", "t"), T_95.items())
def test_the_limit_agrees_with_printed_tables(n, t):
    assert judge_gain(make_gains(n, t + 0.001)) == "better"
    assert judge_gain(make_gains(n, t - 0.001)) == "no difference seen"
    assert judge_gain(-make_gains(n, t + 0.001)) == "worse"


def test_five_percent_of_random_gains_are_significant(rng):
    significant = [judge_gain(rng.normal(size=3)) != "no difference seen" for _ in range(2000)]
    assert abs(np.mean(significant) - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 2000)  # five standard errors


@pytest.mark.parametrize("gain", [[0.3], [0.3, 0.30001], [0.3, 0.3, np.nan]])
def test_fewer_than_three_seeds_or_a_missing_value_get_no_verdict(gain):
    assert judge_gain(np.array(gain)) == "-"


def make_records(seeds, errors):
    suite = read_suite("tabular")
    return suite, [
        Record(task, method, seed, metric, value + 0.01 * seed)
        for task in ("skillcraft", "communities-and-crime")
        for method, value in errors.items()
        for seed in range(seeds)
        for metric in suite.metrics
    ]


def test_two_seeds_have_neither_verdicts_nor_differences_and_notes_state_the_minimum():
    sheets, _ = present(*make_records(2, {"ERM": 6.0, "ERM + SpAR": 7.0}))
    assert {row[-1] for sheet in sheets for row in sheet.rows} == {"-"}
    notes = [note for sheet in sheets for note in sheet.notes]
    assert "3 seeds" in notes[0]
    assert "3 seeds" in notes[-1]
    assert "95%" in notes[-1]


def test_the_table_of_gains_has_a_row_for_each_data_set_and_metric():
    sheets, _ = present(*make_records(3, {"ERM": 6.0, "ERM + SpAR": 7.0}))
    assert [row[:4] for row in sheets[-1].rows] == [
        (task, metric, "ERM + SpAR", "ERM")
        for task in ("skillcraft", "communities-and-crime")
        for metric in ("RMSE", "worst-group RMSE")
    ]
