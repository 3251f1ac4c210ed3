"""The records of forecasts: what is learnt from them, and what they show about the package."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.forecasts.__main__ import _lists
from benchmarks.forecasts.check import apply, summarise
from benchmarks.forecasts.learn import learn, prepare, quantile_regression, row_cover, weighted_quantile
from benchmarks.forecasts.measure import RECORDS, measure_linear, measure_regressor
from benchmarks.records import read

from pyspar import BayesSpARRegressor
from pyspar.estimators import calibration


@pytest.fixture(scope="module")
def table():
    return prepare(read(RECORDS))


def test_the_tables_of_the_package_are_learnt_from_the_records_of_develop(table):
    for name, values in learn(table[table["part"] == "develop"]).items():
        assert _lists(getattr(calibration, name)) == _lists(values)


@pytest.mark.parametrize("part", ["validate", "test"])
@pytest.mark.parametrize("kind", ["linear", "regressor", "network"])
def test_the_forecasts_of_the_package_hold_on_parts_that_it_was_not_learnt_from(table, part, kind):
    own = table[(table["part"] == part) & (table["kind"] == kind)]
    natural, alike = (own[own["is_natural"] == is_natural] for is_natural in (True, False))
    tasks, sets, median, _, _, interval, score, _, rows, few = summarise(apply(natural))
    assert int(tasks) >= int(sets) >= 25
    assert 0.85 <= float(median) <= 1.2
    assert float(interval.rstrip(" %")) >= 90.0
    assert float(score) <= 2.6
    if kind == "linear":
        assert 0.85 <= float(rows) <= 0.95
        assert float(few.rstrip(" %")) <= 12.0
    if kind != "network":
        assert 0.97 <= float(summarise(apply(alike))[2]) <= 1.03


def test_quantile_regressions_agree_with_quantiles_of_groups(rng):
    group, values = rng.integers(0, 2, 400), rng.normal(size=400)
    X = np.column_stack([np.ones(400), group])
    low, step = quantile_regression(X, values + 3.0 * group, np.ones(400), 0.8)
    first = np.quantile(values[group == 0], 0.8, method="inverted_cdf")
    second = np.quantile(values[group == 1], 0.8, method="inverted_cdf")
    assert (low, step) == pytest.approx((first, 3.0 + second - first), abs=0.05)
    assert weighted_quantile([3.0, 1.0, 2.0], [1.0, 1.0, 2.0], 0.5) == 2.0


def test_row_covers_are_shares_of_rows(rng):
    X, Z, w = rng.normal(size=(100, 3)), rng.normal(size=(80, 3)) + 1.0, np.ones(3)
    y, yz = X @ w + rng.normal(size=100), Z @ w + rng.normal(size=80)
    record = measure_linear(BayesSpARRegressor(), X, y, Z, yz)
    est = BayesSpARRegressor().fit(X, y).adapt(Z)
    low, high = est.predict_interval(Z)
    factor = calibration.row_factor(0.9, est.separation_, source_rmse=est.source_rmse(), label_spread=y.std())
    assert row_cover(record["need"], factor) == pytest.approx(np.mean((low <= yz) & (yz <= high)), abs=0.03)
    assert record["known"] == pytest.approx(est.expected_rmse().model_rmse)
    other = measure_regressor(BayesSpARRegressor(), X, y, Z, yz)
    assert other["actual"] > 0.0
    assert other["known"] == other["source"]


def test_data_sets_count_once():
    rows = [{"set": "a", "model": "SpAR"}, {"set": "a", "model": "SpAR"}, {"set": "b", "model": "SpAR"}]
    known = {"map": "raw", "split": "shift", "n": 100, "m": 100, "auc": 0.9, "p_value": 0.0, "matched": False}
    known |= {"source": 1.0, "known": 1.0, "spread": 2.0, "variation": 2.0, "need": None}
    actual = 1.0, 1.0, 100.0
    table = prepare(pd.DataFrame([{**row, **known, "actual": of} for row, of in zip(rows, actual, strict=True)]))
    assert table["weight"].tolist() == [0.5, 0.5, 1.0]
    assert summarise(apply(table))[4:6] == ["50 %", "50 %"]
