"""Forecasts for any regressor, compared with scikit-learn's cross-validation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pyspar.errors import InputError
from pyspar.estimators.experience import rmse_factors, rmse_interval
from pyspar.inspection.any_regressor import forecast_regressor
from pyspar.terminal import Lines


def rows(rng, n=120):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


def test_the_error_at_home_is_the_cross_validated_one(rng):
    X, y = rows(rng)
    Z, groups = rows(rng)[0] + 2.0, np.arange(120) // 10
    model = KNeighborsRegressor().fit(X, y)
    for given, folds in ((None, KFold(5, shuffle=True, random_state=0)), (groups, GroupKFold(5))):
        (found,) = forecast_regressor(model, Z, source=(X, y), groups=given)
        names = None if given is None else given.astype(str)
        predicted = cross_val_predict(model, X, y, cv=folds, groups=names)
        assert found.home == pytest.approx(np.sqrt(np.mean((predicted - y) ** 2)))
        assert found.separation.found
        assert found.outcome == "unverified"
        factors = rmse_factors(0.95, found.separation, "any")
        assert found.forecast.interval95 == pytest.approx([found.home * factor for factor in factors])
        assert found.base_rate.n_tasks > 0


def test_without_a_shift_the_interval_has_the_width_of_the_sampling_error(rng):
    """The log RMSE of m normal errors has the standard error sqrt(1 / (2 m)), and its estimate sqrt(1 / (2 n))."""
    X, y = rows(rng, 4000)
    Z = rows(rng, 1000)[0]
    (found,) = forecast_regressor(Ridge().fit(X, y), Z, source=(X, y))
    assert found.outcome == "no-shift"
    reach = np.exp(1.96 * np.sqrt(1 / 8000 + 1 / 2000))
    narrow = found.home / reach, found.home * reach
    expected = rmse_interval(0.95, found.home, narrow, found.separation, "any")
    assert found.forecast.interval95 == pytest.approx(expected, rel=0.01)


def test_groups_that_share_labels_have_a_larger_error(rng):
    groups = np.repeat(np.arange(12), 10)
    X = rng.normal(size=(12, 2))[groups] + 0.01 * rng.normal(size=(120, 2))
    y = rng.normal(size=12)[groups]
    model = KNeighborsRegressor(1).fit(X, y)
    (by_rows,), (by_groups,) = (forecast_regressor(model, X, source=(X, y), groups=g) for g in (None, groups))
    assert by_groups.home > 3.0 * by_rows.home
    assert by_groups.has_groups


def test_columns_may_be_mixed_missing_and_unseen(rng):
    X, y = rows(rng)
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=rng.choice(["Bonn", "Kiel"], 120))
    frame.loc[:5, "a"] = np.nan
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingRegressor(max_iter=5)).fit(frame, y)
    target = frame.assign(town="Bonn")
    (same,) = forecast_regressor(model, frame, source=(frame, y))
    assert not same.separation.found
    (shifted,) = forecast_regressor(model, target, source=(frame, y))
    assert shifted.separation.found
    assert shifted.unseen == {}
    target.loc[:29, "town"] = "Ulm"
    (unknown,) = forecast_regressor(model, target, source=(frame, y))
    assert unknown.unseen == {"town": 0.25}
    assert unknown.outcome == "unknown"


def test_each_output_has_a_forecast_and_progress_is_reported(rng):
    X, y = rows(rng)
    lines = []
    both = np.column_stack([y, 2.0 * y])
    model = LinearRegression().fit(X, both)
    one, two = forecast_regressor(model, X, source=(X, both), progress=Lines(lines.append))
    assert two.home == pytest.approx(2.0 * one.home)
    assert len(lines) > 2


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"source": 3}, "int"),
        ({"source": (np.zeros((20, 3)), np.zeros(19))}, r"\(19,\)"),
        ({"source": (np.zeros((20, 2)), np.zeros(20))}, r"\(20, 2\)"),
        ({"source": (np.zeros((4, 3)), np.zeros(4))}, "4"),
        ({"groups": np.zeros(120)}, "1"),
    ],
)
def test_unusable_input_is_refused(rng, change, value):
    X, y = rows(rng)
    model = LinearRegression().fit(X, y)
    with pytest.raises((InputError, ValueError), match=value):
        forecast_regressor(model, X, **{"source": (X, y), **change})


def test_a_pipeline_without_a_regressor_is_refused(rng):
    X = rng.normal(size=(40, 2))
    with pytest.raises(TypeError, match=r"Pipeline.*predict"):
        forecast_regressor(make_pipeline(StandardScaler()).fit(X), X, source=(X, X[:, 0]))
