"""Calibrated forecasts and intervals of the estimators, and the errors that they start from."""

import time

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict

from pyspar import BayesSpARRegressor, InputError, SpARRegressor
from pyspar.core.separation import Separation
from pyspar.estimators.calibration import (
    ROWS,
    STRETCH,
    forecast_error,
    forecast_from_errors,
    judge_outcome,
    row_factor,
    training_p_value,
)  # fmt: skip
from pyspar.estimators.cross_validation import left_out_errors

NONE, NEAR, FAR = Separation(0.5, 0.7, False), Separation(0.7, 0.0, True), Separation(0.999, 0.0, True)
MATCHED = Separation(0.5, 1.0, False, matched=True)
KINDS = ["linear", "regressor", "network"]
KNOWN = {"label_spread": 2.0, "n_source": 300, "n_target": 200}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("separation", [NONE, NEAR, FAR, MATCHED])
@pytest.mark.parametrize("spread", [0.5, 1.0, 3.0, 1e9])
def test_intervals_contain_the_median_and_grow_with_the_level(kind, separation, spread):
    forecast = forecast_error(1.0, kind=kind, separation=separation, **{**KNOWN, "label_spread": spread})
    (low95, high95), (low80, high80) = forecast.interval95, forecast.interval80
    assert 0.0 < low95 < low80 < forecast.rmse < high80 < high95
    assert forecast.rmse >= 1.0


def test_without_a_shift_the_median_is_the_known_error_and_the_interval_is_that_of_sampling():
    few, many = (forecast_error(2.0, kind="linear", separation=NONE, label_spread=3.0, n_source=n, n_target=n)
                 for n in (20, 20000))  # fmt: skip
    assert few.rmse == many.rmse == few.source_rmse == 2.0
    # Each distance is that of normal errors times the table's factor.
    error, (down, up) = 0.5 * np.sqrt(2.0 * 2.0 / 20000), STRETCH["linear"][0.95]
    assert many.interval95 == pytest.approx((2.0 * np.exp(-1.96 * error * down), 2.0 * np.exp(1.96 * error * up)), 1e-4)
    assert few.interval95[1] / few.interval95[0] > many.interval95[1] / many.interval95[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_far_target_of_a_model_that_explains_much_has_a_larger_error(kind):
    def median(separation, spread):
        return forecast_error(1.0, kind=kind, separation=separation, **{**KNOWN, "label_spread": spread}).rmse

    assert 1.0 < median(NEAR, 1.0) < 1.1
    assert median(NEAR, 5.0) < median(FAR, 5.0) < 3.0
    assert median(FAR, 1.0) < median(FAR, 3.0) < median(FAR, 9.0)


def test_the_model_of_linear_regressors_is_multiplied_and_other_errors_are_kept():
    options = {"kind": "linear", "separation": FAR, **KNOWN}
    one, two = (forecast_error(1.0, model_rmse=of, **options) for of in (1.0, 5.0))
    assert two.rmse == pytest.approx(5.0 * one.rmse)
    assert (two.source_rmse, two.model_rmse) == (1.0, 5.0)
    assert np.isnan(forecast_error(1.0, **options).model_rmse)
    assert np.isnan(forecast_error(np.nan, **options).rmse)
    assert forecast_error(0.0, **options).interval95 == (0.0, 0.0)


def test_row_factors_follow_the_forecast_and_exceed_normal_quantiles():
    levels = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.999)
    known = {"source_rmse": 1.0, "label_spread": 4.0}
    normal, far = ([row_factor(level, s, **known) for level in levels] for s in (None, FAR))
    assert normal == [row_factor(level, NONE, **known) for level in levels]
    assert all(f > n for f, n in zip(far, normal, strict=True))
    assert sorted(far) == far
    growth = forecast_error(1.0, kind="linear", separation=FAR, label_spread=4.0, n_source=1, n_target=1).rmse
    assert far[4] == pytest.approx(normal[4] * growth * ROWS[0.9])


@pytest.mark.parametrize(
    ("outcome", "case"),
    [
        ("hurts", {"model_rmse": 1.2, "separation": NEAR}),
        ("hurts", {"model_rmse": 1.4, "separation": NONE}),
        ("no-shift", {"model_rmse": 1.2, "separation": NONE}),
        ("unverified", {"model_rmse": 1.0, "separation": FAR}),
        ("unknown", {"model_rmse": 1.0, "separation": FAR, "outside": 0.1}),
        ("unknown", {"model_rmse": 1.0, "separation": FAR, "unseen": True}),
        ("unknown", {"model_rmse": np.nan, "separation": FAR}),
    ],
)
def test_an_outcome_follows_from_what_is_known_without_labels(outcome, case):
    assert judge_outcome(source_rmse=1.0, **case) == outcome


@pytest.mark.parametrize("groups", [None, "groups"])
def test_left_out_errors_are_those_of_cross_validation(rng, groups):
    X, names = rng.normal(size=(60, 3)), np.repeat(list("abcdefghijkl"), 5)
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(60, 2))
    cv = KFold(5, shuffle=True, random_state=0) if groups is None else GroupKFold(5)
    expected = cross_val_predict(LinearRegression(), X, Y, cv=cv, groups=None if groups is None else names) - Y
    errors = left_out_errors(LinearRegression(), X, Y, None if groups is None else names)
    np.testing.assert_allclose(errors, expected)
    forecasts = forecast_from_errors(errors, Y, kind="regressor", separation=NEAR, n_target=30)
    np.testing.assert_allclose([f.source_rmse for f in forecasts], np.sqrt(np.mean(expected**2, axis=0)))
    with pytest.raises(InputError, match="at least 2 groups, got 1"):
        left_out_errors(LinearRegression(), X, Y, np.zeros(60))


# The estimators -------------------------------------------------------------------------------------------------------


def shifted(rng, n=200, m=150, d=4):
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d)) + 1.5
    w = rng.normal(size=d)
    return X, X @ w + rng.normal(size=n), Z, Z @ w + rng.normal(size=m)


@pytest.mark.parametrize("kind", [BayesSpARRegressor, SpARRegressor])
def test_an_estimator_forecasts_by_its_posterior_and_the_tables(rng, kind):
    X, y, Z, _ = shifted(rng)
    est = kind().fit(X, y).adapt(Z)
    forecast = est.expected_rmse(Z)
    known = {"label_spread": y.std(), "n_source": len(X), "n_target": len(Z), "model_rmse": forecast.model_rmse}
    again = forecast_error(est.source_rmse(), kind="linear", separation=est.separation_, name=kind.__name__, **known)
    assert forecast.interval95 == pytest.approx(again.interval95)
    assert float(forecast) == pytest.approx(again.rmse)
    assert est.expected_rmse().rmse == pytest.approx(forecast.rmse)
    low, high = est.predict_interval(Z, 0.9)
    factor = row_factor(0.9, est.separation_, source_rmse=est.source_rmse(), label_spread=y.std())
    assert np.sqrt(np.mean(((high - low) / 2.0 / factor) ** 2)) == pytest.approx(forecast.model_rmse)
    np.testing.assert_allclose(est.predict(Z), (low + high) / 2.0)


@pytest.mark.filterwarnings("ignore::pyspar.SparWarning")
@pytest.mark.parametrize("kind", [BayesSpARRegressor, SpARRegressor])
def test_intervals_of_rows_have_two_sides_of_at_least_the_noise(kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(3, 60)), int(rng.integers(1, 30))
        X, Z = rng.normal(size=(n, d)) * np.geomspace(1.0, 1e-3, d), rng.normal(size=(40, d)) * rng.exponential(size=d)
        X[:, -1] = 1.0  # constant in the source only
        y = X.sum(axis=1) + rng.normal(size=n)
        est = kind().fit(X, y)
        for adapted in (False, True):
            est = est.adapt(Z) if adapted else est
            (low, high), prediction = est.predict_interval(Z), est.predict(Z)
            noise = 1.64 * np.sqrt(est._posterior(getattr(est, "_adapted_to", None)).sigma2[0])
            assert noise > 0.0
            assert (high - prediction >= noise).all()
            assert (prediction - low >= noise).all()


@pytest.mark.filterwarnings("ignore::pyspar.SparWarning")
@pytest.mark.parametrize("kind", [BayesSpARRegressor, SpARRegressor])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_source_without_residual_degrees_of_freedom_is_not_forecast_without_error(kind, d):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(d + 1, d)), rng.normal(size=(100, d))
        est = kind().fit(X, X[:, 0] + rng.normal(size=d + 1)).adapt(Z)
        forecast = est.expected_rmse()
        assert 0.0 < forecast.interval95[0] < forecast.rmse < forecast.interval95[1] < np.inf
        low, high = est.predict_interval(Z)
        assert (low < est.predict(Z)).all()
        assert (high > est.predict(Z)).all()


def test_intervals_of_rows_agree_with_the_forecast_where_a_column_varies_in_the_target_only(rng):
    def rows(spread):
        return np.c_[rng.normal(size=(200, 3)), 20.0 + spread * rng.normal(size=200)]

    for spread in (0.0, 0.01):
        X, Z = rows(spread), rows(3.0)
        est = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=200)).adapt(Z)
        forecast, (low, high) = est.expected_rmse(Z), est.predict_interval(Z)
        assert 1.0 < np.median((high - low) / 2.0) / forecast.rmse < 3.0
        assert est.separation_.found == (spread > 0.0)  # a constant column may be a rare category


def test_a_thousand_outputs_are_forecast_in_well_under_a_second(rng):
    X, Z = rng.normal(size=(300, 20)), rng.normal(size=(200, 20)) + 0.5
    est = BayesSpARRegressor().fit(X, X @ rng.normal(size=(20, 1000)) + rng.normal(size=(300, 1000))).adapt(Z)
    start = time.process_time()
    forecasts = est.expected_rmse(Z)
    assert time.process_time() - start < 2.0  # 0.3 s alone; six times as slow on a busy machine is still right
    assert len(forecasts) == 1000


def test_random_splits_have_the_error_that_is_forecast_and_rows_are_covered():
    rng = np.random.default_rng(1)
    covered, ratios, rows = [], [], []
    for _ in range(120):
        X, w = rng.normal(size=(150, 5)), rng.normal(size=5)
        y = X @ w + rng.normal(size=150)
        est = BayesSpARRegressor().fit(X[:90], y[:90]).adapt(X[90:])
        forecast = est.expected_rmse()
        actual = np.sqrt(np.mean((est.predict(X[90:]) - y[90:]) ** 2))
        ratios.append(actual / forecast.rmse)
        covered.append(forecast.interval95[0] <= actual <= forecast.interval95[1])
        low, high = est.predict_interval(X[90:])
        rows.append(np.mean((low <= y[90:]) & (y[90:] <= high)))
    assert np.mean(covered) >= 0.93
    assert np.median(ratios) == pytest.approx(1.0, abs=0.04)
    assert np.mean(rows) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(("misfit", "growth"), [(0.0, 0.0), (0.0, 2.0), (1.0, 1.0)])
def test_errors_on_new_rows_seldom_look_like_those_of_training(misfit, growth):
    """Independent errors, also of unequal size or about a smooth misfit: at most 5 % of p-values are below 0.05."""
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 3))
        noise = np.exp(growth * X[:, :1]) * rng.normal(size=(80, 1))
        p_values.append(training_p_value(X, noise + misfit * np.sin(X[:, 1:2])))
    assert np.mean(np.array(p_values) < 0.05) <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / 150)  # three standard errors


def test_errors_after_a_smoother_was_fitted_to_these_rows_are_found():
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(size=(400, 2)), rng.normal(size=(400, 1))
    K = np.exp(-10.0 * np.square(X[:, None] - X).sum(axis=2))
    residual = noise - K @ np.linalg.solve(K + 0.1 * np.eye(400), noise)  # kernel ridge regression
    assert training_p_value(X, residual) < 0.01 < training_p_value(X, noise)
    assert training_p_value(1e6 * X, np.hstack([1e-9 * residual, 1e9 * residual])) < 0.01  # the scale does not matter
    for rows, errors in ((np.ones((9, 2)), noise[:9]), (X, 0.0 * noise), (X, np.full_like(noise, np.inf))):
        assert training_p_value(rows, errors) == 1.0
