"""Labels in another unit than the predictions, by Monte Carlo."""

import numpy as np
import pytest

from pyspar.core.moments import Moments
from pyspar.estimators.label_units import describe_other_unit, find_other_unit, measure_slopes


def judge(rng, *, explained=0.5, n=12, factor=1.0, mean=0.0, drift=0.0, slope=1.0):
    """Return whether labels in another unit are reported, in 200 samples of rows with one standardised feature."""
    noise, reports = np.sqrt(1.0 / explained - 1.0), 0
    for _ in range(200):
        x, z = rng.normal(size=(400, 1)), 1.5 * rng.normal(size=n)
        y = mean + x[:, 0] + noise * rng.normal(size=400)
        labels = factor * (mean + drift + slope * z + noise * rng.normal(size=n))
        report = describe_other_unit(
            mean + z, labels, slope=measure_slopes(Moments.of(x, y), np.ones((1, 1)))[0],
            spread=max(y.std(), z.std()), noise=noise,
        )  # fmt: skip
        reports += report is not None
    return reports / 200


@pytest.mark.parametrize("explained", [0.1, 0.5, 0.95])
@pytest.mark.parametrize(
    "change", [{}, {"drift": 1.0}, {"slope": 1.3}, {"slope": 0.8}, {"n": 3}, {"n": 60, "drift": -1.0}]
)
def test_labels_in_the_same_unit_are_rarely_reported_even_if_the_relation_changed(explained, change, rng):
    assert judge(rng, explained=explained, **change) <= 0.035  # P(|t| > 3) is 0.013 with 10 degrees of freedom


@pytest.mark.parametrize("explained", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("mean", [0.0, 20.0])
@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_labels_1000_times_too_large_or_too_small_are_reported(explained, mean, factor, rng):
    assert judge(rng, explained=explained, mean=mean, factor=factor) >= 0.98


@pytest.mark.parametrize(("slope", "correlation"), [(1.0, 0.5), (1.0, 0.8), (1.0, 0.99), (1.4, 0.95), (0.72, 0.95)])
def test_few_labels_rarely_seem_to_be_in_another_unit(slope, correlation, rng):
    noise = slope * np.sqrt(1.0 / correlation**2 - 1.0)
    predicted = rng.normal(size=(500, 10))
    labels = slope * predicted + 3.0 + noise * rng.normal(size=(500, 10))
    alarms = sum(find_other_unit(p, y) is not None for p, y in zip(predicted, labels, strict=True))
    assert alarms <= 0.02 * 500  # P(|t| > 3) is 0.017 with 8 degrees of freedom, and the slopes are inside the bounds


def test_a_factor_of_two_is_found_if_labels_and_predictions_are_related(rng):
    predicted = rng.normal(size=(200, 100))
    labels = 5.0 + predicted + 0.5 * rng.normal(size=(200, 100))  # a correlation of 0.9; slopes are known to 5 %
    for factor in (2.0, 0.5):
        slopes = [find_other_unit(p, factor * y) for p, y in zip(predicted, labels, strict=True)]
        assert sum(slope is not None for slope in slopes) >= 0.95 * 200
        assert np.mean([slope for slope in slopes if slope is not None]) == pytest.approx(factor, rel=0.02)
