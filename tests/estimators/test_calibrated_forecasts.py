"""Experience: the data file, the intervals and outcomes that it gives, and how estimators use it."""

import json
import pickle

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, Moments, SpARRegressor
from pyspar.core.separation import Separation, measure_separation
from pyspar.estimators.calibrated_forecasts import (
    FILE,
    base_rate,
    judge_outcome,
    rmse_factors,
    rmse_interval,
    row_factor,
    separation_class,
)

NONE, NEAR, FAR = Separation(0.5, 0.4, False), Separation(0.7, 0.0, True), Separation(0.999, 0.0, True)
MATCHED = Separation(0.5, 1.0, False, matched=True)


@pytest.mark.parametrize("kind", ["linear", "any"])
@pytest.mark.parametrize("separation", [NONE, NEAR, FAR, MATCHED])
def test_intervals_contain_the_expectation_and_grow_with_the_level(kind, separation):
    (low80, high80), (low95, high95) = (rmse_factors(level, separation, kind) for level in (0.8, 0.95))
    assert low95 <= low80 <= 1.0 <= high80 <= high95
    for scales in ({"home": 2.0, "spread": 2.0}, {"home": 0.5, "spread": 3.0}, {"home": 0.0, "spread": 1e300}):
        wide = rmse_interval(0.95, 2.0, (2.0 / 1.1**1.96, 2.0 * 1.1**1.96), separation, kind, **scales)
        narrow = rmse_interval(0.8, 2.0, (2.0 / 1.1**1.28, 2.0 * 1.1**1.28), separation, kind, **scales)
        assert 0.0 < wide[0] <= narrow[0] <= 2.0 <= narrow[1] <= wide[1] < np.inf


@pytest.mark.parametrize("kind", ["linear", "any"])
def test_ratios_to_the_error_at_home_change_one_end_each_if_a_shift_is_found(kind):
    """In the units of the expected RMSE, ends are powers of the ratios, which count from 1 to 10."""
    a, b = json.loads(FILE.read_text())[kind]["powers"]
    assert b > 0.0
    assert (a > 0.0) == (kind == "linear")

    def interval(separation, home, spread):
        return np.array(rmse_interval(0.95, 7.0, (6.0, 8.0), separation, kind, home=home, spread=spread))

    for separation in (NEAR, FAR, MATCHED):
        plain = interval(separation, 7.0, 7.0)
        np.testing.assert_allclose(interval(separation, 7.0, 21.0), plain * [1.0, 3.0**b])
        np.testing.assert_allclose(interval(separation, 3.5, 3.5), plain * [2.0**-a, 1.0])
        np.testing.assert_allclose(interval(separation, 14.0, 7.0), plain)
        np.testing.assert_allclose(interval(separation, 0.007, 7.0), plain * [10.0**-a, 10.0**b])
    assert (interval(NONE, 0.1, 70.0) == interval(NONE, 7.0, 7.0)).all()


def test_a_found_shift_has_wider_intervals_and_more_so_if_it_is_far():
    scales = {"home": 1.0, "spread": 1.0}
    highs = [rmse_interval(0.95, 1.0, (0.9, 1.1), separation, **scales)[1] for separation in (NONE, NEAR, FAR)]
    rows = [row_factor(0.9, separation) for separation in (NONE, NEAR, FAR)]
    assert highs == sorted(highs)
    assert rows == sorted(rows)
    assert row_factor(0.9, None) == rows[0]


def test_the_factor_of_rows_is_interpolated_between_the_levels_of_the_file():
    known = json.loads(FILE.read_text())["linear"]["rows"]
    name = separation_class(FAR)
    assert row_factor(0.9, FAR) == pytest.approx(known["0.9"][name])
    assert known["0.9"][name] <= row_factor(0.93, FAR) <= known["0.95"][name]
    assert row_factor(0.999, FAR) == known["0.95"][name]


@pytest.mark.parametrize(
    ("outcome", "case"),
    [
        ("no-shift", {"separation": NONE, "expected": 1.0}),
        ("no-shift", {"separation": MATCHED, "expected": 1.0}),
        ("unverified", {"separation": NEAR, "expected": 1.05}),
        ("hurts", {"separation": FAR, "expected": 1.2}),
        ("no-shift", {"separation": NONE, "expected": 1.2}),
        ("hurts", {"separation": NONE, "expected": 2.0}),
        ("unknown", {"separation": FAR, "expected": 1.2, "outside": 0.2}),
        ("unknown", {"separation": NONE, "expected": 1.0, "unseen": True}),
        ("unknown", {"separation": NEAR, "expected": float("inf")}),
        ("unknown", {"separation": NEAR, "expected": 1.0, "outside": float("nan")}),
    ],
)
def test_an_outcome_follows_from_what_is_known_without_labels(outcome, case):
    assert judge_outcome(home=1.0, **case) == outcome


@pytest.mark.parametrize("kind", ["linear", "any"])
def test_base_rates_are_counts_of_tasks(kind):
    for outcome in ("unverified", "no-shift"):
        for separation in (NEAR, FAR, NONE):
            rate = base_rate(outcome, separation, kind)
            assert rate.n_tasks >= 15
            assert 0 <= rate.n_exceeded < rate.n_tasks
            assert rate.rate == rate.n_exceeded / rate.n_tasks
    assert base_rate("unknown", NEAR, "linear").is_of_outcome
    assert base_rate("no-shift", MATCHED, kind).rate > base_rate("no-shift", NONE, kind).rate


def test_an_outcome_without_experience_has_the_rate_of_all_shifts_with_this_separation():
    """Records of other regressors never have the outcome "unknown"."""
    rate, similar = base_rate("unknown", FAR, "any"), base_rate("unverified", FAR, "any")
    assert (rate.n_tasks, rate.n_exceeded) == (similar.n_tasks, similar.n_exceeded)
    assert not rate.is_of_outcome


def test_matched_rows_have_the_factors_of_a_small_separation():
    matched, near = (rmse_interval(0.95, 1.0, (0.9, 1.1), s, home=1.0, spread=2.0) for s in (MATCHED, NEAR))
    assert matched == near
    assert row_factor(0.9, MATCHED) == row_factor(0.9, NEAR)


def test_the_intervals_of_a_forecast_are_those_of_experience(rng):
    X = rng.normal(size=(200, 3))
    y = 5.0 + 2.0 * X[:, 0] + rng.normal(size=200)
    for Z in (rng.normal(size=(100, 3)), rng.normal(size=(100, 3)) + 1.0, 9.0 * rng.normal(size=(100, 3))):
        for est in (BayesSpARRegressor().fit(X, y), SpARRegressor().fit(X, y).adapt(Z)):
            scales = {"home": est.source_rmse(), "spread": y.std()}
            found, separation = est.expected_rmse(Z), measure_separation(Moments.of(X), Moments.of(Z))
            for level, interval, narrow in (
                (0.8, found.interval80, found.interval80_if_linear),
                (0.95, found.interval95, found.interval95_if_linear),
            ):
                assert interval == pytest.approx(rmse_interval(level, found.rmse, narrow, separation, **scales))


def test_rows_use_the_separation_of_the_adapted_target_and_contain_the_prediction(rng):
    X, y, Z = rng.normal(size=(200, 3)), rng.normal(size=200), rng.normal(size=(100, 3)) + 3.0
    est = BayesSpARRegressor().fit(X, y)
    assert not hasattr(est, "separation_")
    est.adapt(Z)
    prediction, std = est.predict(Z, return_std=True)
    low, high = est.predict_interval(Z, 0.9)
    low_linear, high_linear = est._model.row_intervals(Z, 0.9)[:, :, 0]
    factor = row_factor(0.9, est.separation_)
    assert factor > 1.0
    assert (low <= prediction).all()
    np.testing.assert_allclose(high - prediction, factor * np.maximum(high_linear - prediction, 0.0))
    np.testing.assert_allclose(prediction - low, factor * np.maximum(prediction - low_linear, 0.0))
    plain_std = est._before_adapting().predict(Z, return_std=True)[1]
    assert np.median(std / plain_std) > 0.9 * factor


def test_copies_and_files_keep_the_separation_without_the_moments_of_the_target(rng):
    X, y, Z = rng.normal(size=(60, 3)), rng.normal(size=60), rng.normal(size=(40, 3)) + 1.0
    est = BayesSpARRegressor().fit(X, y).adapt(Z)
    restored = pickle.loads(pickle.dumps(est))
    assert restored.separation_ == est.separation_
    assert not hasattr(restored, "_adapted_to")
    np.testing.assert_array_equal(restored.predict_interval(Z), est.predict_interval(Z))
    assert est.adapt(X).separation_.auc == pytest.approx(0.5)
    assert not hasattr(est._before_adapting(), "separation_")


def test_intervals_do_not_depend_on_the_order_of_rows_if_both_spreads_are_equal(rng):
    X = rng.normal(size=(30, 20))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y, order = X[:, 0] + rng.normal(size=30), rng.permutation(30)
    first, second = (BayesSpARRegressor().fit(X[rows], y[rows]).adapt(X) for rows in (np.arange(30), order))
    np.testing.assert_allclose(first.predict_interval(X), second.predict_interval(X), rtol=0.0, atol=1e-6)
    for level in ("interval80", "interval95"):
        ends = [getattr(model.expected_rmse(X), level) for model in (first, second)]
        np.testing.assert_allclose(*ends, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e55, 1e-50])
@pytest.mark.parametrize("groups", [None, np.arange(200) // 20])
def test_the_error_at_home_has_the_scale_of_the_labels(rng, scale, groups):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    one, scaled = (BayesSpARRegressor().fit(X, y * unit, groups=groups) for unit in (1.0, scale))
    assert scaled.source_rmse() / scale == pytest.approx(one.source_rmse(), rel=1e-9)


def test_a_source_with_one_weighted_row_has_a_forecast():
    est = BayesSpARRegressor().fit([[1.0, 2.0], [3.0, 5.0]], [3.0, 4.0], sample_weight=[1.0, 0.0])
    forecast = est.expected_rmse(np.random.default_rng(0).normal(size=(100, 2)) + 5.0)
    assert forecast.interval95[0] <= forecast.rmse <= forecast.interval95[1]
