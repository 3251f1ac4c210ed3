"""The tables of methods: differences from the published numbers, and gains from adapting."""

import numpy as np
import pytest

from pyspar.paper.experiments.methods import Comparison, compare_methods, present
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.records import Record


def test_a_difference_is_in_joint_standard_errors():
    cell = Comparison("t", "m", "rmse", ("6.0", "3.0"), 9, (7.0, 11.0))
    # Ours has mean 9 and spread 2 over two seeds. Spreads have the divisor n, so the standard error is
    # sqrt(9 / 8 + 4 / 1). Our part is the variance with the divisor n - 1 over n, 8 / 2.
    assert cell.difference == pytest.approx(3 / np.sqrt(9 / 8 + 4))
    assert np.var([7.0, 11.0], ddof=1) / 2 == pytest.approx(4)
    assert cell.ours == ("9.0", "2.0")


def test_gains_are_judged_against_the_trained_head_and_least_squares():
    suite = read_suite("tabular")
    records = [
        Record("skillcraft", method, seed, metric, value + 0.01 * seed * seed)
        for method, value in (("ERM", 6.0), ("ERM + OLS", 8.0), ("ERM + SpAR", 7.0))
        for seed in range(3)
        for metric in suite.metrics
    ]
    assert len(compare_methods(suite, records)) == 6
    sheets, _ = present(suite, records)
    verdicts = {(row[0], row[1]): row[-1] for row in sheets[-1].rows}
    assert verdicts == {("ERM + SpAR", "ERM"): "worse", ("ERM + SpAR", "ERM + OLS"): "better"}


def test_a_gain_within_its_confidence_interval_is_no_difference():
    suite = read_suite("tabular")
    records = [
        Record("skillcraft", method, seed, metric, value)
        for metric in suite.metrics
        for method, values in (("ERM", (6.0, 6.0, 6.0)), ("ERM + SpAR", (7.0, 5.0, 5.5)))
        for seed, value in enumerate(values)
    ]
    sheets, _ = present(suite, records)
    assert {row[-1] for row in sheets[-1].rows} == {"no difference seen"}


def test_rows_with_fewer_seeds_show_their_number():
    suite = read_suite("tabular")
    records = [
        Record("skillcraft", method, seed, metric, 6.0 + seed)
        for method, seeds in (("ERM", 3), ("C-Mixup", 2))
        for seed in range(seeds)
        for metric in suite.metrics
    ]
    (sheet, *_), _ = present(suite, records)
    ours = {row[0]: row[2] for row in sheet.rows}
    assert ours["C-Mixup"].endswith("(2 seeds)")
    assert "seeds" not in ours["ERM"]
