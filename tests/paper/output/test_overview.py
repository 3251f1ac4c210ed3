"""The verdicts of the first table."""

import pytest

from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.output.overview import judge
from pyspar.paper.runs.records import Record


def make_records(suite, change):
    """Return records whose means and spreads are ``change`` of the published ones."""
    records = []
    for metric in suite.metrics:
        for task, methods in published(suite.published, metric).cells.items():
            for method, printed in methods.items():
                mean, spread = change(task, method, *map(float, printed))
                values = (mean - spread, mean + spread) * 5
                records += [Record(task, method, seed, metric, value) for seed, value in enumerate(values)]
    return records


@pytest.mark.parametrize(
    ("shifted", "verdict"),
    [
        ((), "agrees: 24 of 24 cells; SpAR's sign in 8 of 8"),
        (("skillcraft",), "partly agrees: 12 of 24 cells (12 higher)"),
        (("skillcraft", "communities-and-crime"), "differs: 0 of 24 cells (24 higher)"),
    ],
)
def test_the_verdict_counts_cells_within_two_standard_errors(shifted, verdict):
    suite = read_suite("tabular")

    def change(task, method, mean, spread):
        # Both means have the standard error spread / 3, so this is three joint standard errors.
        return mean + (spread * 2**0.5 if task in shifted else 0.0), spread

    assert judge(suite, make_records(suite, change)).startswith(verdict)


def test_the_verdict_counts_the_signs_of_gains():
    suite = read_suite("tabular")
    records = make_records(suite, lambda task, method, mean, spread: (-mean if " + SpAR" in method else mean, spread))
    better = judge(suite, records)  # every error with SpAR is negative, so SpAR always helps
    assert better.endswith("SpAR's sign in 7 of 8")  # of the published gains, one is negative
